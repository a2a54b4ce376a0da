"""Worlds and children freeze the heap for their time, and leave frozen what others froze."""

from __future__ import annotations

import gc
from contextlib import ExitStack

import pytest

from kcluster.world import heap
from tests.world.rig import empty_world

pytestmark = pytest.mark.filterwarnings("default")
"""What other tests of this process left open is garbage that only an unfrozen heap gives back."""


def test_heap__what_was_not_frozen_is_frozen_for_a_time() -> None:
    gc.unfreeze()  # what this suite has frozen
    try:
        assert not heap.is_frozen()
        with ExitStack() as undo:
            heap.freeze(undo)
            assert gc.get_freeze_count() > 0
        assert gc.get_freeze_count() == 0
        with heap.frozen_for_children():
            assert gc.get_freeze_count() > 0
        assert gc.get_freeze_count() == 0
    finally:
        gc.freeze()


def test_heap__what_others_froze_stays_frozen() -> None:
    assert heap.is_frozen(), "by this suite"
    with heap.frozen_for_children(), ExitStack() as undo:
        heap.freeze(undo)
    assert gc.get_freeze_count() > 0


class Node:
    """Garbage that only the collector finds."""

    def __init__(self, ended: list[str], name: str) -> None:
        self.itself = self
        self.ended = ended
        self.name = name

    def __del__(self) -> None:
        self.ended.append(self.name)


def test_heap__a_world_begins_without_the_garbage_of_the_one_before() -> None:
    ended: list[str] = []
    with empty_world():
        Node(ended, "garbage")
        assert ended == []
    with empty_world():
        assert ended == ["garbage"]
        Node(ended, "made inside")
        gc.collect()
        assert ended == ["garbage", "made inside"]
