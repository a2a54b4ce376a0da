"""Callers for which a replaced function makes an exception, known by their frames.

Owns: the table of these callers, with the releases whose code was read, and the test that needs the
exception.  Never: makes the exception (selecting.py, replaced/locks.py, refusals.py, signals.py
do).
Kafka: no counterpart.
"""

from __future__ import annotations

import sys
import threading
from types import CodeType, FrameType
from typing import Final, NamedTuple

from kcluster.world.holders import is_untouched


class KnownCaller(NamedTuple):
    """A caller with an exception.  `modules`: the possible `__name__`s of its module; `code`: its
    function, if only one has the exception.  `read_in`: the releases whose code was read; `test`:
    the test that fails without the exception."""

    why: str
    read_in: str
    test: str
    modules: tuple[str, ...] = ()
    code: CodeType | None = None

    def is_at(self, frame: FrameType | None) -> bool:
        """Whether this frame belongs to the caller."""
        if frame is None:
            return False
        if self.code is not None:
            return frame.f_code is self.code
        return frame.f_globals.get("__name__") in self.modules


ASYNCIO: Final = KnownCaller(
    why="Its loop looks for sockets before each batch of callbacks, and sleeps until its timers:"
    " its looks are not polling.",
    read_in="CPython 3.11 to 3.14",
    test="test_asyncio__looks_for_sockets_without_polling",
    modules=("asyncio.base_events",),
)
THREAD_POOL: Final = KnownCaller(
    why="It looks once, for an idle thread or for more work, and does not repeat it.",
    read_in="CPython 3.11 to 3.14",
    test="test_thread_pool__looks_for_an_idle_thread_without_polling",
    modules=("concurrent.futures.thread",),
)
IS_OWNED: Final = KnownCaller(
    why="A condition tries its lock to see whether it owns it, which it expects.",
    read_in="CPython 3.11 to 3.14",
    test="test_condition__looks_whether_it_owns_its_lock_without_polling",
    code=vars(threading.Condition)["_is_owned"].__code__,
)
CONDITION_WAIT: Final = KnownCaller(
    why="Semaphore.acquire calls it, for a pool that looks for an idle thread.",
    read_in="CPython 3.11 to 3.14",
    test="test_thread_pool__looks_for_an_idle_thread_without_polling",
    code=threading.Condition.wait.__code__,
)
IMPORT_SYSTEM: Final = KnownCaller(
    why="The locks of modules are the interpreter's: they have no part in the interleaving.",
    read_in="CPython 3.11 to 3.14",
    test="test_interleaving__what_a_process_remembers_does_not_matter",
    modules=(sys.modules["_frozen_importlib"].__name__,),
)
CALLERS: Final = (ASYNCIO, THREAD_POOL, IS_OWNED, CONDITION_WAIT, IMPORT_SYSTEM)


def is_tool(frame: FrameType) -> bool:
    """Whether the caller watches the program, like coverage and pytest, or is the simulator itself.
    Such callers keep the original functions (holders.py)."""
    return is_untouched(frame.f_globals.get("__name__"))
