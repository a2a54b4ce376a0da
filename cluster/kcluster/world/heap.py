"""What collections of garbage leave out: objects that are frozen while worlds or children run.

Owns: freezing them, and that what the program itself has frozen stays so.  Never: collects.
Kafka: no counterpart.

Python counts frozen objects one by one: a tenth of a second in the process of a large test suite.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

_was_frozen = False
"""What was found when it was last asked."""


def is_frozen() -> bool:
    """Whether anything is frozen, by whomever."""
    global _was_frozen
    _was_frozen = gc.get_freeze_count() > 0
    return _was_frozen


def freeze(undo: ExitStack) -> None:
    """For a world: freeze what is there, until `undo` ends.  A program that was seen to freeze
    objects by itself is left alone, and not asked again."""
    if not _was_frozen and not is_frozen():
        gc.freeze()
        undo.callback(gc.unfreeze)


@contextmanager
def frozen_for_children() -> Iterator[None]:
    """For forked children, whose collections would copy every page of this process."""
    global _was_frozen
    before = is_frozen()
    gc.freeze()
    _was_frozen = True
    try:
        yield
    finally:
        _was_frozen = before
        if not before:
            gc.unfreeze()
