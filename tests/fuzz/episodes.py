"""An episode: what is done to one target from its fresh start on, and the failure that it shows.

Owns: Failure, Target, `shrunk`, `of_exception`.  Never: knows what a step is; each target has its
own.

Steps are values that decide nothing: everything random was drawn before, so an episode plays the
same again, and plays on when steps are taken out of it.
"""

from __future__ import annotations

import re
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final, Protocol

from msgspec import Struct

STEP_CPU_S: Final = 1.0
"""No request may hold the loop for more CPU time than this.  An honest one takes a millisecond."""
PARTITION_CPU_S: Final = 0.000_5
"""What each partition of the cluster may cost besides: a request may make or delete 10,000."""
STEP_BYTES: Final = 128 << 20
"""Nor may the process grow by more than this in one step; an episode sends a few MB."""
SHRINK_S: Final = 30.0
DETAIL_CHARS: Final = 2_500


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
    ours = [frame for frame in frames if _is_ours(frame.filename)] or frames
    where = f"{Path(ours[-1].filename).name}: {ours[-1].name}" if ours else "?"
    text = "".join(traceback.format_exception(error))
    kind = type(error).__qualname__
    if kind == "error":
        kind = f"{type(error).__module__}.error"
    return Failure(f"{kind} in {where}", text[-DETAIL_CHARS:])


class Watch:
    """`with watch: ...`: what is raised inside goes no further, and is `failure`; whatever it is,
    it is what we look for."""

    def __init__(self) -> None:
        self.failure: Failure | None = None

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        self.failure = of_exception(error)
        return True


def of_traceback(text: str) -> Failure:
    """The failure that a process has printed."""
    lines = text[text.rindex("Traceback (") :].splitlines()
    frames = [line for line in lines if line.startswith("  File ")]
    ours = [line for line in frames if _is_ours(line.split('"')[1])] or frames
    where = "?"
    if ours:
        path = ours[-1].split('"')[1]
        where = f"{Path(path).name}: {ours[-1].rpartition(' in ')[2]}"
    error = next((line for line in lines[1:] if line and not line.startswith(" ")), "?")
    return Failure(f"{error.partition(':')[0]} in {where}", text[-DETAIL_CHARS:])


def _is_ours(path: str) -> bool:
    """Whether a frame of this file names a failure: the codec's first call only compiles."""
    return "/kcluster/" in path and not path.endswith("/compiler.py")


def resident_bytes() -> int:
    """The memory of this process; 0 where /proc is missing."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
    except OSError:
        return 0


class Budget:
    """What one step may cost: `with budget: ...` raises nothing; `over` says what was exceeded.
    `partitions`: how many the cluster has."""

    def __init__(self, partitions: Callable[[], int] = lambda: 0) -> None:
        self.over: Failure | None = None
        self.worst_cpu_s = 0.0
        self._partitions = partitions
        self._before = 0
        self._cpu_s = self._bytes = 0.0

    def __enter__(self) -> None:
        self._before = self._partitions()
        self._bytes = resident_bytes()
        self._cpu_s = time.thread_time()

    def __exit__(self, *_: object) -> None:
        cpu_s = time.thread_time() - self._cpu_s
        grown = resident_bytes() - self._bytes
        self.worst_cpu_s = max(self.worst_cpu_s, cpu_s)
        size = max(self._before, self._partitions())
        if cpu_s > STEP_CPU_S + PARTITION_CPU_S * size:
            self.over = Failure("CPU", f"{cpu_s:.2f} s of CPU for one step")
        elif grown > STEP_BYTES:
            self.over = Failure("memory", f"{grown / 1e6:.0f} MB for one step")


def packed(data: bytes) -> str:
    """Bytes in hexadecimal; a byte that is repeated is there once, with its count: `00{40000}`."""
    parts, end = [], 0
    for run in _RUN.finditer(data):
        parts.append(f"{data[end : run.start()].hex()}{run[1].hex()}{{{len(run[0])}}}")
        end = run.end()
    return "".join((*parts, data[end:].hex()))


def unpacked(text: str) -> bytes:
    """The bytes of `packed`."""
    return bytes.fromhex(_PACKED.sub(lambda run: run[1] * int(run[2]), text))


_RUN: Final = re.compile(rb"(.)\1{15,}", re.DOTALL)
_PACKED: Final = re.compile(r"(..)\{(\d+)\}")


def shorter(size: int) -> Iterable[int]:
    """Sizes that may do in place of this one, the smallest first."""
    smaller = 1
    while smaller < size:
        yield smaller
        smaller += max(1, smaller // 2)


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
                break
    return left
