"""`python -m bench.micro`: times the hot paths, and compares them with the committed figures.

Owns: timing, the comparison.  Never: defines the cases (micro_cases.py, coordinator_cases.py,
tls_cases.py).

Machines differ, and one machine differs from hour to hour.  So every case is also measured in
*units*: one unit is the time that a fixed piece of plain Python takes at the same moment.  Slower
means more units than before.  The figures name the build that was timed, pure or compiled.
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
from bench.coordinator_cases import coordinator_cases
from bench.micro_cases import CALLS, Call, all_cases
from bench.processes import ROOT
from bench.results import DOCUMENT
from bench.tls_cases import tls_cases
from kcluster import build

COMMITTED: Final = ROOT / "bench" / "results" / "micro.json"
SLOWER: Final = 1.15
REPEATS: Final = 15
RUN_S: Final = 0.02
"""The length of one timed run.  All runs together make at most CALLS calls."""
UNIT_LOOPS: Final = 200


class Timing(msgspec.Struct):
    """The fastest time per call in µs, and in units."""

    us: float
    units: float


class Micro(msgspec.Struct):
    """All timings, the machine's unit in µs, and the build (`kcluster.build()`) that was timed."""

    unit_us: float
    build: str
    cases: dict[str, Timing] = {}


def unit() -> int:
    """Plain Python like that of the hot paths: dicts, lists, method calls, ints."""
    table: dict[int, list[int]] = {}
    total = 0
    for number in range(UNIT_LOOPS):
        entry = table.setdefault(number & 7, [])
        entry.append(number)
        total += len(entry) + (number << 3 & 0xFF)
    return total


def fastest_us(call: Call, calls: int) -> float:
    """The time per call in the fastest of several runs."""
    best = float("inf")
    for _ in range(REPEATS):
        began = time.perf_counter()
        for _ in range(calls):
            call()
        best = min(best, time.perf_counter() - began)
    return best / calls * 1e6


def calls_for(call: Call) -> int:
    """The number of calls in one timed run."""
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
        us = fastest_us(call, calls_for(call))
    finally:
        gc.enable()
    return Timing(round(us, 3), round(us / unit_us, 4))


def load(path: Path = COMMITTED) -> Micro | None:
    """The committed figures."""
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
    """A line that names both builds if they differ; else ""."""
    if committed is None or committed.build == running:
        return ""
    return f"not like with like: now {running}, committed {committed.build}"


def head(running: str, committed: Micro | None) -> str:
    """The column titles with the build; before them a line if the committed build differs."""
    columns = f"{f'hot paths, {running}':<52} {'now':>13} {'committed':>13}  by units"
    return "\n".join(filter(None, (mixes(running, committed), columns)))


def render(micro: Micro) -> str:
    """The committed figures as Markdown."""
    rows = [[name, f"{timing.us:,.2f}"] for name, timing in micro.cases.items()]
    about = (
        f"Fastest time per call in µs, {micro.build}. One unit of plain Python took"
        f" {micro.unit_us:.1f} µs."
    )
    return f"## Hot paths\n\n{about}\n\n" + report.table(["path", "µs"], rows)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser("python -m bench.micro", description="hot paths, timed")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--save", action="store_true", help="save the figures, to be committed")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a case is slower")
    options = parser.parse_args(arguments)
    committed = load()
    before = committed.cases if committed else {}
    found = Micro(0.0, build())
    mixed = mixes(found.build, committed)
    if options.save and options.only and mixed:
        parser.error(f"--save keeps figures of one build: {mixed}")
    slower = 0
    print(head(found.build, committed))
    for name, prepare in {**all_cases(), **coordinator_cases(), **tls_cases()}.items():
        if options.only.lower() not in name.lower():
            continue
        unit_us = fastest_us(unit, 100)
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
