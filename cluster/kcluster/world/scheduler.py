"""The threads of a world: which one runs, when time moves, and what each waits for.

Owns: threads, the baton that one of them holds, the run queue, their timers.  Never: replaces
anything (replaced/ does), opens a socket, moves time itself (its clock does: the cluster).
Kafka: no counterpart; the operating system's scheduler.

The user's threads are real OS threads, so thread locals, asyncio, debuggers and coverage work as
they are.  One of them runs at a time.  A thread that waits hands the baton to the next one that can
run.  When none can, the thread that was last to run lets time pass, up to the next timer or until
something in the cluster (bytes that arrive) makes one of them able to run.
"""

from __future__ import annotations

import _thread
import ctypes
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from heapq import heappop, heappush
from random import Random
from types import TracebackType
from typing import Any, Final, Protocol, final

from kcluster.timers import NEVER_US
from kcluster.world.compute import ComputeCost, Polls
from kcluster.world.errors import Deadlock, TimeLimit, WorldEnded
from kcluster.world.lines import WaitingLines
from kcluster.world.waits import FOREVER, StuckThread, Waiting, place_of

_allocate_lock: Final = _thread.allocate_lock
_acquire: Final[Callable[..., bool]] = _thread.LockType.acquire
_release: Final[Callable[[Any], None]] = _thread.LockType.release
_start_new_thread: Final = _thread.start_new_thread
_get_ident: Final = _thread.get_ident
# Bound before anything is replaced: the scheduler itself needs the real ones.

INTERRUPTIONS: Final = (0.02, 0.1, 0.3, 0.6)
"""How probable it is that a thread is interrupted where it can be: one of these in each world, for
some races want few interruptions and some many."""
LONGEST_PAUSE_US: Final = 5_000
"""An interrupted thread may be kept waiting for up to this time, as on a busy machine."""
TIME_SLICE_US: Final = 5_000
"""A thread that computes for this long lets the others run, as with the interpreter's lock."""
LONGEST_HANDOVER_S: Final = 1.0
"""How long the first thread waits for the baton after Ctrl-C, in real time."""
MAX_ENDINGS: Final = 1_000
"""How often a thread that is left at the end is woken, until it is given up."""


class WorldClock(Protocol):
    """The cluster's time, which passes only when the scheduler says so."""

    @property
    def now_us(self) -> int:
        """The present time."""

    def advance(self, limit_us: int, condition: Callable[[], bool]) -> bool:
        """Let time pass until `condition()` holds, or until `limit_us`; returns whether it holds.
        With NEVER_US and nothing due, time stays."""


@final
class WorldThread:
    """A thread of the world.  `number`: in the order of their starts, 0 for the one that entered.

    `sentinel`: called once when it has ended, for whoever joins it.
    """

    __slots__ = (
        "app", "baton", "ident", "is_done", "is_ended_by_force", "is_lost", "is_parked", "line",
        "loading", "number", "polls", "scheduler", "sentinel", "token", "wait", "was_woken",
    )  # fmt: skip

    def __init__(self, scheduler: Scheduler, number: int, app: str) -> None:
        self.scheduler = scheduler
        self.number = number
        self.app = app
        """The program that it belongs to; "" for a test."""
        self.baton = _allocate_lock()
        _acquire(self.baton)
        self.ident = 0
        """Of its OS thread."""
        self.is_parked = False
        self.was_woken = False
        """It was woken by somebody, not by its deadline."""
        self.is_done = False
        self.is_ended_by_force = False
        self.is_lost = False
        """It kept the baton, and the others went on without it."""
        self.token = 0
        """Counts its waits: a timer of an earlier wait does not end a later one."""
        self.wait: Waiting = FOREVER
        self.polls = Polls()
        self.loading = 0
        """How many modules it is loading: it is not interrupted meanwhile."""
        self.line = (0, 0, -1)
        """Where it could be interrupted last: (frame, line, instruction)."""
        self.sentinel: Callable[[], object] | None = None

    @property
    def name(self) -> str:
        """Of its threading.Thread, if it has one."""
        thread = threading._active.get(self.ident)  # type: ignore[attr-defined]  # asks silently
        return thread.name if thread is not None else f"thread {self.number}"


class Scheduler:
    """All threads of one world.

    `limit_us`: when the world has to be over, by the cluster's clock.  `rng`: draws which thread
    runs next and where threads are interrupted; without it they run first in, first out.
    """

    def __init__(
        self,
        clock: WorldClock,
        *,
        limit_us: int = NEVER_US,
        cost: ComputeCost | None = None,
        rng: Random | None = None,
    ) -> None:
        self.clock = clock
        self.limit_us = limit_us
        self.cost = cost or ComputeCost()
        self.threads: list[WorldThread] = []
        """Those that have not ended, in the order of their starts."""
        self.current: WorldThread | None = None
        """The one with the baton."""
        self.is_advancing = False
        """The cluster runs, in the thread of `current`, which must not wait now."""
        self.switches = 0
        self.lines: WaitingLines[WorldThread] = WaitingLines()
        self.is_random = rng is not None
        """Whether threads are interrupted at random."""
        self._rng = rng
        self._chance = 0.0 if rng is None else rng.choice(INTERRUPTIONS)
        self.by_ident: dict[int, WorldThread] = {}
        """Those that have begun and not ended, without those that are `outside` now."""
        self._run_queue: deque[WorldThread] = deque()
        self._timers: list[tuple[int, int, WorldThread, int]] = []
        """(µs, sequence number, thread, token of the wait)."""
        self._sequence = 0
        self._started = 0
        self._slice_us = 0
        """Computed by the current thread since it got the baton."""
        self._crash: BaseException | None = None
        """To be raised in the first thread."""
        self._last_reading_ns = 0

    def thread_here(self) -> WorldThread | None:
        """The calling thread, if it is one of this world."""
        return self.by_ident.get(_get_ident())

    @contextmanager
    def outside(self) -> Iterator[None]:
        """The calling thread is of no world meanwhile: clocks, locks and threads are the machine's.
        It must not wait for a thread of the world."""
        thread = self.by_ident.pop(_get_ident(), None)
        try:
            yield
        finally:
            if thread is not None:
                self.by_ident[thread.ident] = thread

    @property
    def here(self) -> WorldThread:
        """The calling thread, which is one of this world."""
        return self.by_ident[_get_ident()]

    @property
    def now_us(self) -> int:
        """The time of the cluster."""
        return self.clock.now_us

    # ------------------------------------------------------------------------- beginning, ending

    def enter(self) -> None:
        """Make the calling thread the first of this world."""
        thread = WorldThread(self, 0, "")
        thread.ident = _get_ident()
        self.by_ident[thread.ident] = thread
        self.threads.append(thread)
        self.current = thread

    def leave(self) -> list[StuckThread]:
        """End every other thread, by an exception where it waits, and let go of the calling thread,
        which is the first thread.  Returns those that were left, as they were."""
        first = self._first
        left = self.describe(others_than=first)
        self.limit_us = NEVER_US
        self._crash = None
        for _ in range(MAX_ENDINGS):
            others = [thread for thread in self.threads if thread is not first]
            if not others:
                break
            victim = others[0]
            victim.is_ended_by_force = True
            victim.is_parked = first.is_parked = False
            self._run_queue.clear()
            self._run_queue.extend((victim, first))
            self._switch()
        self.by_ident.pop(first.ident, None)
        self.current = None
        return left

    @property
    def _first(self) -> WorldThread:
        return self.threads[0]

    def spawn(
        self,
        function: Callable[..., object],
        arguments: Sequence[object],
        keywords: Mapping[str, object],
        app: str | None = None,
    ) -> WorldThread:
        """Start a thread of the world; it runs when its turn comes."""
        assert self.current is not None, "a thread of no world starts a thread of this one"
        self._started += 1
        thread = WorldThread(self, self._started, self.current.app if app is None else app)
        self.threads.append(thread)
        is_known = _allocate_lock()
        _acquire(is_known)

        def live() -> None:
            thread.ident = _get_ident()
            self.by_ident[thread.ident] = thread
            _release(is_known)
            _acquire(thread.baton)
            try:
                if not thread.is_ended_by_force:
                    function(*arguments, **keywords)
            except (WorldEnded, SystemExit):
                pass
            finally:
                if not thread.is_lost:
                    self._end(thread)

        _start_new_thread(live, ())
        _acquire(is_known)
        self._run_queue.append(thread)
        return thread

    def _end(self, thread: WorldThread) -> None:
        if thread.sentinel is not None:
            thread.sentinel()
        thread.is_done = True
        self.by_ident.pop(thread.ident, None)
        self.threads.remove(thread)
        # One that is ended by force may have wanted to wait, or to let others run.
        thread.is_parked = False
        while thread in self._run_queue:
            self._run_queue.remove(thread)
        self._hand_to(self._next())

    # ----------------------------------------------------------------------------------- waiting

    def park(self, deadline_us: int | None, wait: Waiting) -> bool:
        """The calling thread waits until somebody wakes it, or until the deadline; returns whether
        it was woken."""
        assert not self.is_advancing, f"the cluster itself waits: {wait}"
        thread = self._current
        thread.is_parked, thread.was_woken, thread.wait = True, False, wait
        thread.token += 1
        if deadline_us is not None:
            self._sequence += 1
            due_us = max(deadline_us, self.now_us + 1)
            heappush(self._timers, (due_us, self._sequence, thread, thread.token))
        self._switch()
        return thread.was_woken

    def wake(self, thread: WorldThread) -> None:
        """Let a thread that waits go on."""
        if thread.is_parked:
            thread.is_parked, thread.was_woken = False, True
            self._run_queue.append(thread)

    def pass_on(self, lock: object) -> None:
        """A lock is free: the first thread that waits for it is next."""
        thread = self.lines.first(lock)
        if thread is not None:
            self.lines.reserved[lock] = thread
            self.wake(thread)

    def let_others_run(self) -> None:
        """The calling thread goes to the end of the run queue."""
        self._run_queue.append(self._current)
        self._switch()

    def sleep(self, duration_us: int, wait: Waiting) -> None:
        """The calling thread waits for this long."""
        if duration_us <= 0:
            self.polled()
            self.let_others_run()
        else:
            self.park(self.now_us + duration_us, wait)

    def sleep_in_c(self, duration_us: int, wait: Waiting) -> None:
        """The same for C code, which passes no exception on: what is to be raised in this thread is
        raised at its next wait."""
        with _AtNextWait(self):
            self.sleep(duration_us, wait)

    def may_switch(self) -> None:
        """A place at which the calling thread could be interrupted: with random interleavings it
        is, now and then."""
        if self._rng is None or not self._run_queue or self.is_advancing or self._current.loading:
            return
        if self._rng.random() >= self._chance:
            return
        if self._rng.random() < 0.5:
            self.let_others_run()
        else:
            self.park(self.now_us + self._rng.randrange(1, LONGEST_PAUSE_US), FOREVER)

    def deadline_us(self, timeout_s: float) -> int | None:
        """The time at which a timeout has passed that begins at the last reading of the clock,
        rounded up: who sleeps until then finds it past.  None for timeouts longer than anything."""
        if timeout_s >= 1e9:
            return None
        last_ns = max(self._last_reading_ns, self.now_us * 1000)
        return max(self.now_us + 1, -(-(last_ns + int(timeout_s * 1e9)) // 1000))

    # ----------------------------------------------------------------------------------- the clock

    def read_clock_ns(self) -> int:
        """The time, by a thread.  No two readings are equal, and reading without ever waiting takes
        time (compute.py)."""
        if self.is_random:
            self.may_switch()
        cost_us = self.cost.of_reading()
        if cost_us and not self.is_advancing:
            self.compute(cost_us)
        next_ns, now_ns = self._last_reading_ns + 1, self.clock.now_us * 1000
        self._last_reading_ns = reading_ns = now_ns if now_ns > next_ns else next_ns
        return reading_ns

    def polled(self) -> None:
        """The calling thread looked for something in vain, and does not wait for it."""
        cost_us = self.cost.of_poll(self._current.polls, self.now_us)
        if cost_us and not self.is_advancing:
            self.compute(cost_us)

    def compute(self, cost_us: int) -> None:
        """The calling thread computes; the cluster and timers go on meanwhile."""
        until_us = self.now_us + cost_us
        self._advance(until_us, _never)
        self._fire_timers()
        self._slice_us += cost_us
        if self._slice_us >= TIME_SLICE_US and self._run_queue:
            self.let_others_run()

    def _advance(self, limit_us: int, condition: Callable[[], bool]) -> bool:
        self.is_advancing = True
        try:
            return self.clock.advance(limit_us, condition)
        finally:
            self.is_advancing = False

    def _fire_timers(self) -> None:
        timers, now_us = self._timers, self.now_us
        while timers and timers[0][0] <= now_us:
            _, _, thread, token = heappop(timers)
            if thread.is_parked and thread.token == token:
                thread.is_parked = False
                self._run_queue.append(thread)

    # ------------------------------------------------------------------------------ who runs next

    @property
    def _current(self) -> WorldThread:
        thread = self.current
        assert thread is not None, "the world is over"
        return thread

    def _switch(self) -> None:
        thread = self._current
        if thread.is_ended_by_force:
            raise WorldEnded
        successor = self._next()
        self._slice_us = 0
        if successor is not thread:
            self._hand_to(successor)
            self._await_baton(thread)
        if thread.is_ended_by_force:
            raise WorldEnded
        if self._crash is not None and thread.number == 0:
            crash, self._crash = self._crash, None
            raise crash

    def _await_baton(self, thread: WorldThread) -> None:
        try:
            _acquire(thread.baton)
        finally:
            if self.current is not thread:
                self._take_baton(thread)

    def _take_baton(self, thread: WorldThread) -> None:
        """Ctrl-C, or another signal, has interrupted the first thread, and another one has the
        baton, which it hands over at its next wait."""
        self._crash = KeyboardInterrupt()
        if not _acquire(thread.baton, True, LONGEST_HANDOVER_S):
            self.go_on_without_current()
        self._crash = None

    def go_on_without_current(self) -> None:
        """The thread with the baton does not hand it over; the calling thread, which is the first
        one, takes it.  The other belongs to the world no longer."""
        first, lost = self._first, self._current
        if lost is first:
            return
        lost.is_lost = True
        self.threads.remove(lost)
        del self.by_ident[lost.ident]
        if first in self._run_queue:
            self._run_queue.remove(first)
        first.is_parked = False
        self.current = first
        if lost.sentinel is not None:
            lost.sentinel()  # nobody waits for it, and nor does the end of the process
        end_thread(lost.ident)

    @property
    def progress(self) -> tuple[int, ...]:
        """Changes whenever threads do something in the world."""
        return (self.switches, self.cost.readings, self.now_us, self._sequence)

    def _hand_to(self, thread: WorldThread) -> None:
        self.switches += 1
        self.current = thread
        _release(thread.baton)

    def _next(self) -> WorldThread:
        with _Crashes(self):
            while not self._run_queue and self._crash is None:
                self._let_time_pass()
        if self._crash is not None:
            first = self._first
            first.is_parked = False
            if first in self._run_queue:
                self._run_queue.remove(first)
            return first
        if self._rng is not None and len(self._run_queue) > 1:
            self._run_queue.rotate(-self._rng.randrange(len(self._run_queue)))
        return self._run_queue.popleft()

    def crash(self, error: BaseException) -> None:
        """The first thread raises this when it has the baton."""
        self._crash = error

    def _let_time_pass(self) -> None:
        self.cost.idle()
        while self.lines.freed:
            self.pass_on(self.lines.freed.popleft())
        if self._run_queue:
            return
        timers = self._timers
        while timers and (timers[0][2].token != timers[0][3] or not timers[0][2].is_parked):
            heappop(timers)
        due_us = timers[0][0] if timers else NEVER_US
        if due_us == NEVER_US and not any(thread.wait.is_for_cluster for thread in self.threads):
            self.lines.find_freed()
            if self.lines.freed:
                return
            raise Deadlock(self.describe())
        self._advance(min(due_us, self.limit_us), lambda: bool(self._run_queue))
        self._fire_timers()
        if not self._run_queue and self.now_us >= self.limit_us:
            raise TimeLimit(self.describe())
        if not self._run_queue and due_us == NEVER_US == self.limit_us:
            raise Deadlock(self.describe())

    def describe(self, others_than: WorldThread | None = None) -> list[StuckThread]:
        """What each thread waits for, and where."""
        frames = sys._current_frames()
        return [
            StuckThread(thread.name, thread.wait, place_of(frames.get(thread.ident)), thread.app)
            for thread in self.threads
            if thread is not others_than
        ]


class _Crashes:
    """A bug in a broker, a deadlock, the limit: the first thread reports it, whoever finds it."""

    __slots__ = ("_scheduler",)

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        self._scheduler.crash(error)
        return True


class _AtNextWait:
    """What is raised here, the thread raises at its next wait."""

    __slots__ = ("_scheduler",)

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if error is not None and not isinstance(error, WorldEnded):
            self._scheduler.crash(error)
        return True


def end_thread(ident: int) -> None:
    """Raise WorldEnded in a thread of the interpreter, once it runs Python code.  Nobody reports
    it, also if that is after the end of the world."""
    thread = threading._active.get(ident)  # type: ignore[attr-defined]  # asks silently
    if thread is not None:
        thread._invoke_excepthook = _ignore
    set_error = ctypes.pythonapi.PyThreadState_SetAsyncExc
    set_error(ctypes.c_ulong(ident), ctypes.py_object(WorldEnded))


def _ignore(crash: object) -> None:
    pass


def _never() -> bool:
    return False
