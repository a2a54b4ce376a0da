"""Objects that garbage collections skip, because they are frozen while worlds or children run.

Owns: freezing and unfreezing these objects, except for objects that the program itself has frozen.
Never: collects.  Kafka: no counterpart.

Python counts frozen objects one by one, which takes a tenth of a second in the process of a large
test suite.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

_was_frozen = False
"""The result of the last call of `is_frozen`."""


def is_frozen() -> bool:
    """Whether any object is frozen, by this module or by the program."""
    global _was_frozen
    _was_frozen = gc.get_freeze_count() > 0
    return _was_frozen


def freeze(undo: ExitStack) -> None:
    """Freeze all present objects for a world, until `undo` ends.  If the program has frozen objects
    itself, no further objects are frozen."""
    if not _was_frozen and not is_frozen():
        gc.freeze()
        undo.callback(gc.unfreeze)


@contextmanager
def frozen_for_children() -> Iterator[None]:
    """Freeze all present objects for forked children, whose collections would copy every page of
    this process."""
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
