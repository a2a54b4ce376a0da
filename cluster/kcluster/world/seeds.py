"""Runs with many seeds, each in a child that is forked from this process.

Owns: the children, their outcomes, the choice of the failed seed that is reported.  Never: knows
what a run does, prints.  Kafka: no counterpart.

Children need not import the modules of this process.  They take no part in its exit: no atexit
functions, no flushed streams.  A child's output is part of its outcome.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import os
import selectors
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import IO, Final, NoReturn

import msgspec
from msgspec import Struct

from kcluster.world.heap import frozen_for_children

LIMIT_S: Final = 120.0
"""The CPU time after which a child counts as hanging; for a child that uses hardly any CPU, its
real time counts.  On a busy machine a sound child may take much longer in real time."""
IDLE_SHARE: Final = 0.002
"""The share of a core below which a child counts as blocked; beside 100 others, a working child
uses five times more."""
MIN_LOOK_S: Final = 0.1
GRACE_S: Final = 0.5
"""The time that a hanging child has to print the places of its threads."""
WHERE_SIGNAL: Final = signal.SIGUSR2
"""The signal upon which a child prints the place of each thread; handled in C, because a thread may
block there."""
_CPU_OF_PROCESS: Final = 2
"""The bits of a clock's id that mean a process, of the kind CPUCLOCK_SCHED
(clock_getcpuclockid)."""
MAX_OUTPUT_BYTES: Final = 1 << 20
"""The greatest size of a child's output; beyond it only the end is kept."""


class SeedResult(Struct, frozen=True):
    """The report of a run.  `report`: the caller's, for instance text or JSON."""

    failed: bool
    report: bytes = b""


class SeedOutcome(Struct, frozen=True):
    """One child.  `result`: None if the child ended without one; `ended`: in that case, the way in
    which it ended, in words; `output`: the end of its output, or all of it."""

    seed: int
    result: SeedResult | None
    ended: str = ""
    output: bytes = b""

    @property
    def failed(self) -> bool:
        """Whether the child failed, hung, or died."""
        return self.result is None or self.result.failed


class SeedsOutcome(Struct, frozen=True):
    """All children.  `first_failed`: the failed child with the lowest seed; `passed`: the number of
    seeds that passed."""

    first_failed: SeedOutcome | None
    passed: int


class _Child(Struct, eq=False):
    """A running child.  `results`: the reading end of its pipe; `look_s`: the real time of the next
    check for hanging; `cpu_s`: its CPU time at `since_s`."""

    seed: int
    pid: int
    results: int
    output: IO[bytes]
    look_s: float
    received: bytearray
    since_s: float
    cpu_s: float = 0.0
    hangs: str = ""
    """The reason to think that the child hangs, in words; "" if it works."""


def run_seeds(
    seeds: Iterable[int],
    run: Callable[[int], SeedResult],
    *,
    workers: int = 0,
    limit_s: float = LIMIT_S,
    on_outcome: Callable[[SeedOutcome], object] = lambda outcome: None,
    keeps_going: bool = False,
    until_s: float | None = None,
) -> SeedsOutcome:
    """Call `run(seed)` in a child for each seed, `workers` at a time (0: as many as cores), until
    one fails.  The failed seed that is reported does not depend on the speed of the children.

    `on_outcome` is called here, for each child that ended.  An exception of `run` fails its seed.
    `keeps_going`: whether all seeds run, also after one has failed.  `until_s`: the time of
    `time.monotonic` after which no more children begin.
    """
    children = _Children(run, limit_s)
    wanted = iter(sorted(set(seeds)))
    first_failed: SeedOutcome | None = None
    passed = 0
    gc.collect()
    with frozen_for_children(), contextlib.ExitStack() as undo:
        undo.callback(children.stop)
        while True:
            while len(children.running) < (workers or cores()):
                is_late = until_s is not None and time.monotonic() >= until_s
                is_over = is_late or (first_failed is not None and not keeps_going)
                seed = None if is_over else next(wanted, None)
                if seed is None:
                    break
                children.start(seed)
            if not children.running:
                return SeedsOutcome(first_failed, passed)
            for outcome in children.ended():
                on_outcome(outcome)
                if not outcome.failed:
                    passed += 1
                elif first_failed is None or outcome.seed < first_failed.seed:
                    first_failed = outcome
                    if not keeps_going:
                        children.stop(above=outcome.seed)


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Children:
    """The running children."""

    def __init__(self, run: Callable[[int], SeedResult], limit_s: float) -> None:
        self.running: dict[int, _Child] = {}
        """The children by the reading ends of their pipes."""
        self._run = run
        self._limit_s = limit_s
        self._selector = selectors.DefaultSelector()

    def start(self, seed: int) -> None:
        """Fork a child for a seed."""
        output = tempfile.TemporaryFile()  # noqa: SIM115  # closed with its outcome
        receiving, sending = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            # Threads of a test runner do not exist in the child, which uses nothing of theirs.
            warnings.filterwarnings("ignore", ".*multi-threaded", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            os.close(receiving)
            _live(seed, self._run, sending, output)
        os.close(sending)
        began_s = time.monotonic()
        self.running[receiving] = _Child(
            seed, pid, receiving, output, began_s + self._limit_s, bytearray(), began_s
        )
        self._selector.register(receiving, selectors.EVENT_READ)

    def ended(self) -> Iterator[SeedOutcome]:
        """Wait until a child ends or hangs; return the ended children."""
        soonest_s = min(child.look_s for child in self.running.values())
        for key, _ in self._selector.select(max(0.0, soonest_s - time.monotonic())):
            child = self.running.get(key.fd)
            if child is None:
                continue  # the child was stopped in between
            data = os.read(key.fd, 1 << 16)
            child.received.extend(data)
            if not data:
                yield self._outcome(child, "")
        for child in tuple(self.running.values()):
            if time.monotonic() < child.look_s:
                continue
            if child.hangs:
                os.kill(child.pid, signal.SIGKILL)
                yield self._outcome(child, child.hangs)
            elif self._hangs(child):
                os.kill(child.pid, WHERE_SIGNAL)
                child.look_s = time.monotonic() + GRACE_S

    def _hangs(self, child: _Child) -> bool:
        now_s, limit_s, cpu_s = time.monotonic(), self._limit_s, _cpu_s(child.pid)
        if cpu_s is None:
            child.hangs = f"did not end within {limit_s:g} s"
        elif cpu_s >= limit_s:
            child.hangs = f"did not end within {limit_s:g} s of CPU time"
        elif now_s - child.since_s >= limit_s:
            if cpu_s - child.cpu_s < limit_s * IDLE_SHARE:
                child.hangs = f"did nothing for {limit_s:g} s"
            child.since_s, child.cpu_s = now_s, cpu_s
        if cpu_s is not None and not child.hangs:
            # With a core to itself, the child may reach the limit at that time.
            child.look_s = now_s + max(limit_s - cpu_s, MIN_LOOK_S)
        return bool(child.hangs)

    def stop(self, above: int = -1) -> None:
        """End the children with higher seeds."""
        for child in tuple(self.running.values()):
            if child.seed > above:
                os.kill(child.pid, signal.SIGKILL)
                self._outcome(child, "")

    def _outcome(self, child: _Child, ended: str) -> SeedOutcome:
        del self.running[child.results]
        self._selector.unregister(child.results)
        os.close(child.results)
        _, status = os.waitpid(child.pid, 0)
        with child.output as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - MAX_OUTPUT_BYTES))
            output = file.read()
        result = None
        if child.received and not ended:
            with contextlib.suppress(msgspec.DecodeError):
                result = msgspec.msgpack.decode(child.received, type=SeedResult)
        if result is None and not ended:
            ended = _how_it_ended(os.waitstatus_to_exitcode(status))
        return SeedOutcome(child.seed, result, ended, output)


def _cpu_s(pid: int) -> float | None:
    """The CPU time that a process has used; None if the system does not report it."""
    if not sys.platform.startswith("linux"):
        return None
    return time.clock_gettime(~pid << 3 | _CPU_OF_PROCESS)


def _how_it_ended(exit_code: int) -> str:
    if exit_code >= 0:
        return f"ended without a result, with exit code {exit_code}"
    try:
        return f"was ended by {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"was ended by signal {-exit_code}"


class _ChildEnding:
    """Turns everything that a run raises into the child's result."""

    def __init__(self) -> None:
        self.result = SeedResult(True)

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if error is not None:
            lines = "".join(traceback.format_exception(error))
            self.result = SeedResult(True, lines.encode(errors="replace"))
        return True


def _live(seed: int, run: Callable[[int], SeedResult], sending: int, output: IO[bytes]) -> NoReturn:
    """Run in a child; never returns to the parent's code."""
    exit_code = 1
    try:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
        faulthandler.register(WHERE_SIGNAL, file=2)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        ending = _ChildEnding()
        with ending:
            ending.result = run(seed)
        sys.stdout.flush()
        sys.stderr.flush()
        with os.fdopen(sending, "wb") as pipe:
            pipe.write(msgspec.msgpack.encode(ending.result))
        exit_code = 0
    finally:
        os._exit(exit_code)
