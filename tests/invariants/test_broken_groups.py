"""Broken coordinators of groups that one short story shows, as in test_broken_cores.py."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.broker.coordinator.classic_group import ClassicGroup
from kcluster.broker.coordinator.interface import Settled
from kcluster.protocol.errors import ErrorCode
from tests.invariants.test_broken_cores import names, run

pytestmark = pytest.mark.pure_python  # a class of the extension cannot be broken on purpose

STATIC_MEMBER_RETURNS = """\
topology: {brokers: 3, profile: fast, topics: {orders: {assignment: [[1, 2, 3]]}}}
workload:
  producers: {topic: orders, rate: 20/s}
  consumers:
    - {topics: orders, name: desk, group: billing, config: {group.instance.id: desk}}
    - {topics: orders, name: till, group: billing, config: {group.instance.id: till}}
duration: 8s
steps:
  - {at: 3s, kill: client till, for: 100ms}
  - {at: 5s, kill: coordinator(billing), for: 1s}
"""


def test_static_member__that_is_back_and_that_the_next_coordinator_does_not_know(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """KAFKA-10284: its new id was not stored, so the old one still had its place in the log."""
    assert run(STATIC_MEMBER_RETURNS).passed
    sound = ClassicGroup._replace_static

    def count_as_stored(self: ClassicGroup, _: Any, settled: Settled, now_ms: int) -> None:
        settled(ErrorCode.NONE, now_ms)

    def replace_static(self: ClassicGroup, *args: Any) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(ClassicGroup, "_store", count_as_stored)
            sound(self, *args)

    monkeypatch.setattr(ClassicGroup, "_replace_static", replace_static)
    assert "lost-member" in names(run(STATIC_MEMBER_RETURNS))
