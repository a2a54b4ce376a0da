"""`python -m bench.micro`: the hot paths alone, beside the figures committed last.

Owns: the stopwatch, the comparison.  Never: what is timed (micro_cases.py).

Machines differ, and one machine from hour to hour: every case is also told in *units*, the time
that a fixed piece of plain Python takes here and now.  Slower means: more units than before.  What
is timed is the build that runs, pure or compiled; the figures say which.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from bench import report
from bench.micro_cases import CALLS, Call, all_cases
from bench.processes import ROOT
from bench.results import DOCUMENT
from kcluster import build

COMMITTED: Final = ROOT / "bench" / "results" / "micro.json"
SLOWER: Final = 1.15
REPEATS: Final = 15
RUN_S: Final = 0.02
"""A timed run makes as many calls as fill this; all runs together CALLS at most."""
UNIT_LOOPS: Final = 200


class Timing(msgspec.Struct):
    """Least time of a call, µs, and the same in units."""

    us: float
    units: float


class Micro(msgspec.Struct):
    """All timings, the machine's unit in µs, and the build (`cluster.build()`) that was timed."""

    unit_us: float
    build: str
    cases: dict[str, Timing] = {}


def unit() -> int:
    """Plain Python of the kind that the hot paths are: attributes, dicts, lists, slices, ints."""
    table: dict[int, list[int]] = {}
    total = 0
    for number in range(UNIT_LOOPS):
        entry = table.setdefault(number & 7, [])
        entry.append(number)
        total += len(entry) + (number << 3 & 0xFF)
    return total


def least_us(call: Call, calls: int) -> float:
    """Time of one call in the quickest of several runs."""
    best = float("inf")
    for _ in range(REPEATS):
        began = time.perf_counter()
        for _ in range(calls):
            call()
        best = min(best, time.perf_counter() - began)
    return best / calls * 1e6


def calls_for(call: Call) -> int:
    """How many calls fill a timed run."""
    call()
    began = time.perf_counter()
    for _ in range(3):
        call()
    once_s = (time.perf_counter() - began) / 3
    return max(1, min(CALLS // REPEATS, int(RUN_S / max(once_s, 1e-7))))


def time_case(prepare: Callable[[], Call], unit_us: float) -> Timing:
    """Prepare a case and time it."""
    call = prepare()
    gc.collect()
    gc.disable()
    try:
        us = least_us(call, calls_for(call))
    finally:
        gc.enable()
    return Timing(round(us, 3), round(us / unit_us, 4))


def load(path: Path = COMMITTED) -> Micro | None:
    """The figures committed last."""
    return msgspec.json.decode(path.read_bytes(), type=Micro) if path.exists() else None


def save(micro: Micro, path: Path = COMMITTED) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(micro), indent=1) + b"\n")


def change(now: Timing, before: Timing | None) -> float | None:
    """Units now over units before."""
    return None if before is None else now.units / before.units


def line(name: str, now: Timing, before: Timing | None) -> str:
    """One case as it is printed."""
    ratio = change(now, before)
    if before is None or ratio is None:
        return f"{name:<52} {now.us:>10.2f} µs"
    flag = "  SLOWER" if ratio > SLOWER else ""
    return f"{name:<52} {now.us:>10.2f} µs {before.us:>10.2f} µs {ratio:>6.2f} ×{flag}"


def mixes(running: str, committed: Micro | None) -> str:
    """The builds now and then, in a line, if they are not the same; else nothing."""
    if committed is None or committed.build == running:
        return ""
    return f"not like with like: now {running}, committed {committed.build}"


def head(running: str, committed: Micro | None) -> str:
    """What the columns are, and of which build; before it a line if that was another one."""
    columns = f"{f'hot paths, {running}':<52} {'now':>13} {'committed':>13}  by units"
    return "\n".join(filter(None, (mixes(running, committed), columns)))


def render(micro: Micro) -> str:
    """The committed figures as Markdown."""
    rows = [[name, f"{timing.us:,.2f}"] for name, timing in micro.cases.items()]
    about = (
        f"Least time of a call, µs, {micro.build}, where a unit of plain Python takes"
        f" {micro.unit_us:.1f} µs."
    )
    return f"## Hot paths\n\n{about}\n\n" + report.table(["path", "µs"], rows)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser("python -m bench.micro", description="hot paths, timed")
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--save", action="store_true", help="keep the figures, to be committed")
    parser.add_argument("--strict", action="store_true", help="exit code 1 if one is slower")
    options = parser.parse_args(arguments)
    committed = load()
    before = committed.cases if committed else {}
    found = Micro(0.0, build())
    mixed = mixes(found.build, committed)
    if options.save and options.only and mixed:
        parser.error(f"--save keeps figures of one build: {mixed}")
    slower = 0
    print(head(found.build, committed))
    for name, prepare in all_cases().items():
        if options.only.lower() not in name.lower():
            continue
        unit_us = least_us(unit, 100)
        found.unit_us = min(unit_us, found.unit_us or unit_us)
        timing = found.cases[name] = time_case(prepare, unit_us)
        ratio = change(timing, before.get(name))
        slower += ratio is not None and ratio > SLOWER
        print(line(name, timing, before.get(name)), flush=True)
    print(f"{slower} of {len(found.cases)} more than {SLOWER - 1:.0%} slower than committed")
    if options.save:
        if options.only and committed:
            found.cases = {**committed.cases, **found.cases}
        save(found)
        report.write(DOCUMENT, "micro", render(found))
    return 1 if slower and options.strict else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
