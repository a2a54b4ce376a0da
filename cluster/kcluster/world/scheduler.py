"""The threads of a world: their turns, their waits, and the passing of time.

Owns: threads, the baton that one of them holds, the run queue, their timers.  Never: replaces
anything (replaced/ does), opens a socket, moves time itself (the cluster does). Kafka: no
counterpart; the operating system's scheduler.

The user's threads are real OS threads, so thread locals, asyncio, debuggers and coverage work
unchanged.  One of them runs at a time.  A thread that waits hands the baton to the next one that
can run.  When no thread can run, the one that ran last lets time pass, up to the next timer or
until an event of the cluster, such as arriving bytes, wakes a thread.
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
from math import log
from operator import attrgetter
from random import Random
from types import TracebackType
from typing import Final, Protocol, final

from kcluster.chance import Chance
from kcluster.timers import NEVER_US
from kcluster.world.compute import ComputeCost, Polls
from kcluster.world.errors import Deadlock, Livelock, TimeLimit, WorldEnded
from kcluster.world.lines import WaitingLines
from kcluster.world.waits import FOREVER, NO_WAIT, StuckThread, Waiting, place_of

_allocate_lock: Final = _thread.allocate_lock
_acquire: Final[Callable[..., bool]] = _thread.LockType.acquire
_release: Final[Callable[[_thread.LockType], None]] = _thread.LockType.release
_start_new_thread: Final = _thread.start_new_thread
_get_ident: Final = _thread.get_ident
_turn: Final = attrgetter("turn")
# Bound before anything is replaced, because the scheduler itself needs the real functions.

INTERRUPTIONS: Final = (0.02, 0.1, 0.3, 0.6)
"""Probabilities of an interruption at each possible place.  Each world has one of these: some races
need few interruptions, others many."""
OVERTAKING: Final = (2, 8, 32)
"""The number of turns for which a thread that can run may be overtaken, about.  Each world has one
of these, too."""
LONGEST_PAUSE_US: Final = 5_000
"""The longest time for which an interrupted thread waits, as on a busy machine."""
TIME_SLICE_US: Final = 5_000
"""The computing time after which a thread lets the others run, as with the interpreter's lock."""
LONGEST_HANDOVER_S: Final = 1.0
"""The longest real time that the first thread waits for the baton after Ctrl-C."""
MAX_HANDOVERS: Final = 1_000_000
"""The number of times that threads may hand the baton over at one moment of time; beyond it they
wake each other for ever."""
MAX_ENDINGS: Final = 1_000
"""The number of times that a remaining thread is woken at the end before it is given up."""


class WorldClock(Protocol):
    """The cluster's time, which passes only through the scheduler."""

    @property
    def now_us(self) -> int:
        """The current time of the cluster."""

    def advance(self, limit_us: int, condition: Callable[[], bool]) -> bool:
        """Let time pass until `condition()` holds, or until `limit_us`; returns whether it holds.
        With NEVER_US and nothing due, time does not pass."""


LineWatch = Callable[[str, str], bool]
"""Sees that a program (its name, "" for a thread that the test has started itself) is about to
execute a line (`billing.py:31`); returns whether something is to be done there."""


@final
class WorldThread:
    """A thread of the world.  `number`: its place in the order of starts, 0 for the thread that
    entered.

    `sentinel`: called once when the thread has ended, for threads that join it.
    """

    __slots__ = (
        "app", "baton", "endings", "ident", "is_done", "is_ended_by_force", "is_lost", "is_parked",
        "line", "loading", "number", "places_left", "polls", "scheduler", "sentinel", "stalling",
        "token", "turn", "turns", "wait", "was_woken",
    )  # fmt: skip

    def __init__(
        self, scheduler: Scheduler, number: int, app: str, turns: Random, stalling: Random
    ) -> None:
        self.scheduler = scheduler
        self.number = number
        self.app = app
        """The program that the thread belongs to; "" for a test."""
        self.baton = _allocate_lock()
        _acquire(self.baton)
        self.ident = 0
        """The ident of the thread's OS thread."""
        self.is_parked = False
        self.was_woken = False
        """Whether a wake-up, not the deadline, ended the thread's last wait."""
        self.is_done = False
        self.is_ended_by_force = False
        self.endings = 0
        """The number of times that WorldEnded was raised in the thread."""
        self.is_lost = False
        """Whether the thread kept the baton, so that the others went on without it."""
        self.token = 0
        """The number of the thread's waits, so that a timer of an earlier wait does not end a later
        one."""
        self.wait: Waiting = FOREVER
        self.polls = Polls()
        self.loading = 0
        """The number of modules that the thread is loading; while it loads one, it is not
        interrupted."""
        self.line = (0, 0, -1)
        """The last place at which the thread could be interrupted: (frame, line, instruction)."""
        self.sentinel: Callable[[], object] | None = None
        self.turns = turns
        """Draws when the thread is interrupted, and its places among the threads that can run."""
        self.stalling = stalling
        """Draws the thread's stalls."""
        self.turn = 0.0
        """The thread's place among those that can run, if threads take turns at random."""
        self.places_left = 0
        """The number of possible places until the thread is interrupted."""

    @property
    def name(self) -> str:
        """The name of its threading.Thread, if it has one."""
        thread = threading._active.get(self.ident)  # type: ignore[attr-defined]  # asks silently
        return thread.name if thread is not None else f"thread {self.number}"


class Scheduler:
    """All threads of one world.

    `limit_us`: the time of the cluster's clock at which the world must have ended.  `chance`: each
    thread has its own streams, so one thread less does not change the luck of the others.
    `is_random`: whether the next thread to run and the interruptions are drawn; if not, threads run
    first in, first out.
    """

    def __init__(
        self,
        clock: WorldClock,
        *,
        limit_us: int = NEVER_US,
        cost: ComputeCost,
        chance: Chance,
        is_random: bool = False,
    ) -> None:
        self.clock = clock
        self.advance = clock.advance
        """How time passes; interleaving.py wraps it."""
        self.limit_us = limit_us
        self.cost = cost
        self.threads: list[WorldThread] = []
        """The threads that have not ended, in the order of their starts."""
        self.current: WorldThread | None = None
        """The thread with the baton."""
        self.is_advancing = False
        """Whether the cluster runs, in the thread of `current`, which must not wait now."""
        self.switches = 0
        self._moment_switches = 0
        """The value of `switches` when time last passed."""
        self.lines: WaitingLines[WorldThread] = WaitingLines()
        self.is_random = is_random
        """Whether threads are interrupted at random."""
        self._chance = chance
        self.stalls: dict[str, tuple[float, int, str]] = {}
        """By program, "" for all: the share of lines of users' code at which its threads stand
        still, the longest time in µs, and the only line at which they do; "" for any."""
        self.line_watches: list[LineWatch] = []
        """Who sees the lines of users' code that programs are about to execute."""
        schedule = chance.stream("schedule")
        self._interruptions = schedule.choice(INTERRUPTIONS)
        self._overtaking = schedule.choice(OVERTAKING)
        self.by_ident: dict[int, WorldThread] = {}
        """The threads that have begun and not ended, by ident, except threads that are `outside`
        now."""
        self.paused: dict[str, list[WorldThread]] = {}
        """The programs that are paused, each with its threads whose turn has come meanwhile."""
        self._run_queue: deque[WorldThread] = deque()
        self._timers: list[tuple[int, int, WorldThread, int]] = []
        """(time in µs, sequence number, thread, token of the wait)."""
        self._sequence = 0
        self._started = 0
        self._started_of: dict[str, int] = {}
        """The number of threads that each program has started."""
        self._slice_us = 0
        """The computing time of the current thread since it got the baton, in µs."""
        self._crash: BaseException | None = None
        """The error that the first thread is to raise."""
        self._last_reading_ns = 0

    def thread_here(self) -> WorldThread | None:
        """The calling thread, if it belongs to this world."""
        return self.by_ident.get(_get_ident())

    @contextmanager
    def outside(self) -> Iterator[None]:
        """Take the calling thread out of the world for a while: clocks, locks and threads are the
        machine's. It must not wait for a thread of the world."""
        thread = self.by_ident.pop(_get_ident(), None)
        try:
            yield
        finally:
            if thread is not None:
                self.by_ident[thread.ident] = thread

    @property
    def here(self) -> WorldThread:
        """The calling thread, which must belong to this world."""
        return self.by_ident[_get_ident()]

    @property
    def now_us(self) -> int:
        """The time of the cluster."""
        return self.clock.now_us

    # ------------------------------------------------------------------------- beginning, ending

    def enter(self) -> None:
        """Make the calling thread the first of this world."""
        thread = self._thread(0, "")
        thread.ident = _get_ident()
        self.by_ident[thread.ident] = thread
        self.threads.append(thread)
        self.current = thread

    def _thread(self, number: int, app: str) -> WorldThread:
        place = self._started_of[app] = self._started_of.get(app, 0) + 1
        stream = self._chance.stream
        turns, stalling = stream(f"turns {app} {place}"), stream(f"stalls {app} {place}")
        thread = WorldThread(self, number, app, turns, stalling)
        self._draw_interruption(thread)
        return thread

    def leave(self) -> list[StuckThread]:
        """End every other thread, by an exception where it waits, and let go of the calling thread,
        which is the first thread.  Returns descriptions of the ended threads."""
        first = self._first
        left = self.describe(others_than=first)
        self.limit_us = NEVER_US
        self._crash = None
        self.paused.clear()
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

    def kill(self, app: str) -> None:
        """End all threads of a program: each raises WorldEnded where it waits, at its next turn,
        and can wait for nothing more.  It may be called while the cluster runs."""
        self.resume(app)
        for thread in self.threads:
            if thread.app == app and not thread.is_ended_by_force:
                thread.is_ended_by_force = True
                if thread.is_parked:
                    thread.is_parked = False
                    self._run_queue.append(thread)

    def pause(self, app: str) -> None:
        """Give no thread of a program a turn until `resume`, as SIGSTOP does.  Its connections stay
        open, and its deadlines pass.  It may be called while the cluster runs."""
        queue = self._run_queue
        self.paused.setdefault(app, []).extend(thread for thread in queue if thread.app == app)
        self._run_queue = deque(thread for thread in queue if thread.app != app)

    def resume(self, app: str) -> None:
        """Let the threads of a paused program go on, those first whose turn came first."""
        self._run_queue.extend(self.paused.pop(app, ()))

    def await_forced_ends(self) -> None:
        """Let the threads that are ended by force end; called by another thread."""
        while any(thread.is_ended_by_force for thread in self.threads):
            self.let_others_run()

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
        if self.current.is_ended_by_force and not self.is_advancing:
            raise WorldEnded
        self._started += 1
        thread = self._thread(self._started, self.current.app if app is None else app)
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
        self._make_ready(thread)
        return thread

    def _end(self, thread: WorldThread) -> None:
        if thread.sentinel is not None:
            thread.sentinel()
        thread.is_done = True
        self.by_ident.pop(thread.ident, None)
        self.threads.remove(thread)
        # A thread that is ended by force may have called this to wait, or to let others run.
        thread.is_parked = False
        while thread in self._run_queue:
            self._run_queue.remove(thread)
        self._hand_to(self._next())

    # ----------------------------------------------------------------------------------- waiting

    def park(self, deadline_us: int | None, wait: Waiting) -> bool:
        """Let the calling thread wait until it is woken, or until the deadline; returns whether it
        was woken."""
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
        """Wake a waiting thread."""
        if thread.is_parked:
            thread.is_parked, thread.was_woken = False, True
            self._make_ready(thread)

    def _make_ready(self, thread: WorldThread) -> None:
        """Put a thread at the end of the run queue; one of a paused program goes on later."""
        if self.is_random:
            thread.turn = self.switches + self._overtaking * thread.turns.random()
        held = self.paused.get(thread.app) if self.paused else None
        (self._run_queue if held is None else held).append(thread)

    def pass_on(self, lock: object) -> None:
        """Reserve a free lock for the first thread that waits for it, and wake the thread."""
        thread = self.lines.first(lock)
        if thread is not None:
            self.lines.reserved[lock] = thread
            self.wake(thread)

    def let_others_run(self) -> None:
        """Put the calling thread at the end of the run queue."""
        self._make_ready(self._current)
        self._switch()

    def sleep(self, duration_us: int, wait: Waiting) -> None:
        """Let the calling thread wait for this time."""
        if duration_us <= 0:
            self.polled()
            self.let_others_run()
        else:
            self.park(self.now_us + duration_us, wait)

    def sleep_in_c(self, duration_us: int, wait: Waiting) -> None:
        """Sleep, as called from C code, which passes no exception on.  An exception that is meant
        for this thread is raised at its next wait."""
        with _Crashes(self, all_of_them=True):
            self.sleep(duration_us, wait)

    def may_switch(self) -> None:
        """Interrupt the calling thread here with some probability, if interleavings are random."""
        thread = self._current
        if not self.is_random or self.is_advancing or thread.loading:
            return
        thread.places_left -= 1
        if thread.places_left > 0:
            return
        # All is drawn before a look at the other threads, on which a thread's luck does not depend.
        self._draw_interruption(thread)
        pauses, pause_us = thread.turns.random() < 0.5, thread.turns.randrange(1, LONGEST_PAUSE_US)
        if not self._run_queue:
            return
        if pauses:
            self.park(self.now_us + pause_us, FOREVER)
        else:
            self.let_others_run()

    def _draw_interruption(self, thread: WorldThread) -> None:
        rate = -log(1 - self._interruptions)
        thread.places_left = 1 + int(thread.turns.expovariate(rate))

    def may_stall(self, line: str) -> None:
        """Let the calling thread stand still at this line for a drawn time, with the probability
        that its program has."""
        thread = self._current
        found = self.stalls.get(thread.app) or self.stalls.get("")
        if found is None or self.is_advancing or thread.loading or not thread.number:
            return
        share, longest_us, only = found
        if only in ("", line) and thread.stalling.random() < share:
            self.park(self.now_us + thread.stalling.randrange(1, longest_us + 1), FOREVER)

    def at_line(self, line: str) -> None:
        """Show a line of users' code, which the calling thread is about to execute, to those who
        watch.  If one of them wants something done, the thread waits for it."""
        thread = self._current
        if self.is_advancing or thread.loading or not (thread.app or thread.number):
            return
        wanted = [
            watch(thread.app, line) for watch in tuple(self.line_watches)
        ]  # all of them see it
        if any(wanted):
            self.park(self.now_us + 1, FOREVER)

    def deadline_us(self, timeout_s: float) -> int | None:
        """The end of a timeout that began at the last reading of the clock, rounded up: a thread
        that sleeps until then finds the timeout over.  None for endless timeouts."""
        if timeout_s >= 1e9:
            return None
        last_ns = max(self._last_reading_ns, self.now_us * 1000)
        return max(self.now_us + 1, -(-(last_ns + int(timeout_s * 1e9)) // 1000))

    # ----------------------------------------------------------------------------------- the clock

    def read_clock_ns(self) -> int:
        """The time, as read by a thread.  No two readings are equal, and reading without ever
        waiting takes time (compute.py)."""
        if self.is_random:
            self.may_switch()
        cost_us = self.cost.of_reading()
        if cost_us and not self.is_advancing:
            self.compute(cost_us)
        next_ns, now_ns = self._last_reading_ns + 1, self.clock.now_us * 1000
        self._last_reading_ns = reading_ns = now_ns if now_ns > next_ns else next_ns
        return reading_ns

    def polled(self) -> None:
        """Count a poll of the calling thread that found nothing and does not wait."""
        cost_us = self.cost.of_poll(self._current.polls, self.now_us)
        if cost_us and not self.is_advancing:
            self.compute(cost_us)

    def compute(self, cost_us: int) -> None:
        """Charge computing time to the calling thread; the cluster and timers go on meanwhile."""
        until_us = self.now_us + cost_us
        self._advance(until_us, _never)
        self._fire_timers()
        self._slice_us += cost_us
        if self._current.is_ended_by_force:
            self._end_if_forced(self._current)
        elif self.now_us >= self.limit_us and self._crash is None:
            self._crash = TimeLimit(self.describe())
            self.let_others_run()
        elif self._current.app in self.paused or (
            self._slice_us >= TIME_SLICE_US and self._run_queue
        ):
            self.let_others_run()

    def _advance(self, limit_us: int, condition: Callable[[], bool]) -> bool:
        before_us = self.now_us
        self.is_advancing = True
        try:
            return self.advance(limit_us, condition)
        finally:
            self.is_advancing = False
            if self.now_us != before_us:
                self._moment_switches = self.switches

    def _fire_timers(self) -> None:
        timers, now_us = self._timers, self.now_us
        while timers and timers[0][0] <= now_us:
            _, _, thread, token = heappop(timers)
            if thread.is_parked and thread.token == token:
                thread.is_parked = False
                self._make_ready(thread)

    # ------------------------------------------------------------------------------ who runs next

    @property
    def _current(self) -> WorldThread:
        thread = self.current
        assert thread is not None, "the world is over"
        return thread

    def _switch(self) -> None:
        thread = self._current
        self._end_if_forced(thread)
        successor = self._next()
        self._slice_us = 0
        if successor is not thread:
            self._hand_to(successor)
            self._await_baton(thread)
        self._end_if_forced(thread)
        if self._crash is not None and thread.number == 0:
            crash, self._crash = self._crash, None
            raise crash

    def _end_if_forced(self, thread: WorldThread) -> None:
        """Raise WorldEnded in a thread that is ended by force.  A thread that catches it again and
        again, as a loop with a bare except does, stands still for ever."""
        if not thread.is_ended_by_force:
            return
        thread.endings += 1
        if thread.endings > MAX_ENDINGS and thread.number:
            thread.is_lost = True
            self._end(thread)
            _acquire(thread.baton)
        raise WorldEnded

    def _await_baton(self, thread: WorldThread) -> None:
        try:
            _acquire(thread.baton)
        finally:
            if self.current is not thread:
                self._take_baton(thread)

    def _take_baton(self, thread: WorldThread) -> None:
        """Take the baton from another thread at its next wait, because Ctrl-C or another signal has
        interrupted the first thread, which calls this."""
        self._crash = KeyboardInterrupt()
        if not _acquire(thread.baton, True, LONGEST_HANDOVER_S):
            self.go_on_without_current()
        self._crash = None

    def go_on_without_current(self) -> None:
        """Take the baton from a thread that does not hand it over; that thread then no longer
        belongs to the world.  Called by the first thread."""
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
            lost.sentinel()  # neither join() nor the end of the process waits for the thread
        end_thread(lost.ident)

    @property
    def progress(self) -> tuple[int, ...]:
        """A number that changes whenever a thread of the world does something."""
        return (self.switches, self.cost.readings, self.now_us, self._sequence)

    def _hand_to(self, thread: WorldThread) -> None:
        self.switches += 1
        self.current = thread
        _release(thread.baton)

    def _next(self) -> WorldThread:
        if self.switches - self._moment_switches >= MAX_HANDOVERS and self._crash is None:
            self._moment_switches = self.switches  # what ends the threads hands over, too
            self._crash = Livelock(self.describe(), MAX_HANDOVERS)
        with _Crashes(self):
            while not self._run_queue and self._crash is None:
                self._let_time_pass()
        if self._crash is not None:
            first = self._first
            first.is_parked = False
            if first in self._run_queue:
                self._run_queue.remove(first)
            return first
        if self.is_random and len(self._run_queue) > 1:
            thread = min(self._run_queue, key=_turn)
            self._run_queue.remove(thread)
            return thread
        return self._run_queue.popleft()

    def crash(self, error: BaseException) -> None:
        """Have the first thread raise this error when it has the baton."""
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
        waits_for_cluster = self.paused or any(x.wait.is_for_cluster for x in self.threads)
        if due_us == NEVER_US and not waits_for_cluster:
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
        """A description of each thread: the kind and the place of its wait."""
        frames = sys._current_frames()
        return [
            StuckThread(
                thread.name,
                NO_WAIT if thread is self.current and not thread.is_parked else thread.wait,
                place_of(frames.get(thread.ident)),
                thread.app,
            )
            for thread in self.threads
            if thread is not others_than
        ]


class _Crashes:
    """Reports a bug in a broker, a deadlock or the limit in the first thread, whichever thread
    meets it.  `all_of_them`: whether other errors are reported too, because C code passes none
    on."""

    __slots__ = ("_all_of_them", "_scheduler")

    def __init__(self, scheduler: Scheduler, *, all_of_them: bool = False) -> None:
        self._scheduler = scheduler
        self._all_of_them = all_of_them

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if error is None or not (self._all_of_them or isinstance(error, Exception)):
            return False
        if not isinstance(error, WorldEnded):
            self._scheduler.crash(error)
        return True


def end_thread(ident: int) -> None:
    """Raise WorldEnded in a thread of the interpreter, once it runs Python code.  The error is not
    reported, even if it comes after the end of the world."""
    thread = threading._active.get(ident)  # type: ignore[attr-defined]  # asks silently
    if thread is not None:
        thread._invoke_excepthook = _ignore
    set_error = ctypes.pythonapi.PyThreadState_SetAsyncExc
    set_error(ctypes.c_ulong(ident), ctypes.py_object(WorldEnded))


def _ignore(crash: object) -> None:
    pass


def _never() -> bool:
    return False
