"""Worlds and children freeze the heap for their time, and leave frozen what others froze."""

from __future__ import annotations

import gc
from contextlib import ExitStack

from kcluster.world import heap


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
