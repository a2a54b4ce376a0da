"""Coordinators whose groups are not those of their logs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from kcluster.broker.coordinator.classic_members import ClassicMember
from kcluster.broker.coordinator.consumer.member import ConsumerMember
from kcluster.broker.coordinator.modern.group import ModernGroup
from kcluster.broker.coordinator.modern.records import TargetMember
from tests.invariants.test_broken_cores import names, run

pytestmark = pytest.mark.pure_python  # a class of the extension cannot be broken on purpose

Patch = Callable[[pytest.MonkeyPatch], None]
STORY = """\
topology:
  brokers: 3
  topics: {orders: {partitions: 3, replication_factor: 3}}
  config:
    offsets.topic.num.partitions: 1
    group.initial.rebalance.delay.ms: 0
    group.consumer.min.heartbeat.interval.ms: 500
    group.consumer.heartbeat.interval.ms: 500
    group.streams.min.heartbeat.interval.ms: 500
    group.streams.heartbeat.interval.ms: 500
    group.streams.initial.rebalance.delay.ms: 100
workload:
  producers: {topic: orders, rate: 20/s}
  consumers:
    - {topics: orders, name: desk, group: classic, config: {group.instance.id: desk}}
    - {topics: orders, name: till, group: classic}
    - {topics: orders, name: new, group: epochs, group_protocol: consumer}
    - {topics: orders, name: guest, group: epochs, group_protocol: consumer, start: 3s, stop: 7s}
    - {topics: orders, name: flow, group: engine, group_protocol: streams}
    - {topics: orders, name: packer, group: shared, share: true}
duration: 9s
steps:
  - {at: 5s, move: {partition: __consumer_offsets-0, to: 2}}
  - {at: 6s, move: {partition: __consumer_offsets-0, to: 3}}
"""


BY_PATTERN = """\
topology:
  brokers: 3
  topics: {orders: {partitions: 2}}
  config: {offsets.topic.num.partitions: 1}
workload:
  producers: {topic: orders, rate: 5/s}
  consumers:
    topics: orders
    name: reader
    group: matching
    group_protocol: consumer
    by_pattern: true
duration: 3s
"""


def static_members_are_lost_on_load(patch: pytest.MonkeyPatch) -> None:
    sound = ClassicMember.restored

    def restored(*saved: Any) -> ClassicMember:
        member = sound(*saved)
        member.instance_id = None
        return member

    patch.setattr(ClassicMember, "restored", staticmethod(restored))


def the_previous_epoch_is_lost(patch: pytest.MonkeyPatch) -> None:
    sound = ConsumerMember.with_current

    def with_current(self: ConsumerMember, value: Any) -> ConsumerMember:
        return replace(sound(self, value), previous_epoch=-1)

    patch.setattr(ConsumerMember, "with_current", with_current)


def targets_outlive_members(patch: pytest.MonkeyPatch) -> None:
    sound = ModernGroup.replay

    def replay(self: ModernGroup[Any, Any], record: Any) -> bool:
        if isinstance(record, TargetMember) and record.value is None:
            return True
        return sound(self, record)

    patch.setattr(ModernGroup, "replay", replay)


def test_groups__that_are_as_their_logs() -> None:
    assert run(STORY).passed


def test_groups__whose_members_subscribe_by_an_expression() -> None:
    """A group has its first epoch, without a record, until the expression is resolved."""
    assert run(BY_PATTERN).passed


@pytest.mark.parametrize(
    "bug", [static_members_are_lost_on_load, the_previous_epoch_is_lost, targets_outlive_members]
)
def test_groups__that_are_not_as_their_logs(bug: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    assert "coordinator-differs" in names(run(STORY))
