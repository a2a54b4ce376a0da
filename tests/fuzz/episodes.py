"""An episode: what is done to one target from its fresh start on, and the failure that it shows.

Owns: Failure, Target, `shrunk`, `of_exception`.  Never: knows what a step is; each target has its
own.

Steps are values that decide nothing: everything random was drawn before, so an episode plays the
same again, and plays on when steps are taken out of it.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final, Protocol

from msgspec import Struct

STEP_CPU_S: Final = 1.0
"""No request may hold the loop for more CPU time than this.  An honest one takes a millisecond."""
STEP_BYTES: Final = 128 << 20
"""Nor may the process grow by more than this in one step; an episode sends a few MB."""
SHRINK_S: Final = 60.0
_HERE: Final = str(Path(__file__).parents[2] / "cluster" / "kcluster")


class Failure(Struct, frozen=True):
    """`what`: the same for the same defect: `OverflowError in group_log.py: encode`.  `detail`:
    a traceback, or what was seen."""

    what: str
    detail: str = ""


class Target(Protocol):
    """Something that takes input from strangers.

    `step`: the type of its steps.  `draw`: the steps of an episode.  `play`: does them to a fresh
    one, and returns what failed, if anything; it raises nothing.
    """

    name: str
    step: Any

    def draw(self, rng: Random) -> list[Any]: ...
    def play(self, steps: Sequence[Any]) -> Failure | None: ...


def of_exception(error: BaseException) -> Failure:
    """The failure of something that raised what it should not have: named by the innermost line of
    ours."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if frame.filename.startswith(_HERE)] or frames
    where = f"{Path(ours[-1].filename).name}: {ours[-1].name}" if ours else "?"
    text = "".join(traceback.format_exception(error))
    return Failure(f"{type(error).__name__} in {where}", text)


def of_traceback(text: str) -> Failure:
    """The failure that a process has printed."""
    lines = text[text.index("Traceback") :].splitlines()
    ours = [line for line in lines if line.startswith("  File ") and "/kcluster/" in line]
    where = "?"
    if ours:
        path = ours[-1].split('"')[1]
        where = f"{Path(path).name}: {ours[-1].rpartition(' in ')[2]}"
    error = next((line for line in lines[1:] if line and not line.startswith(" ")), "?")
    return Failure(f"{error.partition(':')[0]} in {where}", text[-4_000:])


def resident_bytes() -> int:
    """The memory of this process; 0 where /proc is missing."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
    except OSError:
        return 0


class Budget:
    """What one step may cost: `with budget: ...` raises nothing; `over` says what was exceeded."""

    def __init__(self) -> None:
        self.over: Failure | None = None
        self.worst_cpu_s = 0.0
        self._cpu_s = self._bytes = 0.0

    def __enter__(self) -> None:
        self._bytes = resident_bytes()
        self._cpu_s = time.thread_time()

    def __exit__(self, *_: object) -> None:
        cpu_s = time.thread_time() - self._cpu_s
        grown = resident_bytes() - self._bytes
        self.worst_cpu_s = max(self.worst_cpu_s, cpu_s)
        if cpu_s > STEP_CPU_S:
            self.over = Failure("CPU", f"{cpu_s:.2f} s of CPU for one step")
        elif grown > STEP_BYTES:
            self.over = Failure("memory", f"{grown / 1e6:.0f} MB for one step")


def shrunk(
    steps: Sequence[Any],
    what: str,
    play: Callable[[Sequence[Any]], Failure | None],
    smaller: Callable[[Any], Iterable[Any]] = lambda step: (),
    limit_s: float = SHRINK_S,
) -> list[Any]:
    """Fewer steps, each made smaller, that still fail in the same way."""
    end_s = time.monotonic() + limit_s

    def fails(some: Sequence[Any]) -> bool:
        found = play(some)
        return found is not None and found.what == what

    left = list(steps)
    size = max(1, len(left) // 2)
    while time.monotonic() < end_s:
        at = 0
        shorter = False
        while at < len(left) and time.monotonic() < end_s:
            some = left[:at] + left[at + size :]
            if fails(some):
                left, shorter = some, True
            else:
                at += size
        if size == 1 and not shorter:
            break
        size = max(1, size // 2)
    for at in range(len(left)):
        tries = iter(smaller(left[at]))
        for step in tries:
            if time.monotonic() > end_s:
                return left
            some = [*left[:at], step, *left[at + 1 :]]
            if fails(some):
                left = some
    return left
