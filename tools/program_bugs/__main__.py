"""Search each program with a bug, and its twin, and write how many runs that took.

    python -m tools.program_bugs [NAME ...] [--runs 50] [--seeds 1,2,3] [--plain] [--only bug]
                                 [--again] [--kept] [--seconds 200]
                                 [--page docs/reference/program-bugs.md]

Owns: the command line.  Never: measures (measure.py), words the page (page.py).  Kafka: no
counterpart.

Without names: all programs, and the sample by chance and near moments with several seeds.  Results
are kept in tools/program_bugs/results.jsonl; the same command goes on where it ended.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from kcluster.config.files.problems import unknown
from tools.program_bugs.catalog import CATALOG
from tools.program_bugs.measure import BUG, TWIN, Measured, Search, measure
from tools.program_bugs.page import page_of
from tools.program_bugs.results import ProgramResults, is_enough, key_of
from tools.program_bugs.sample import SAMPLE, SEEDS

RUNS: Final = 50
SEED: Final = 1


def all_searches(runs: int) -> list[Search]:
    """All searches of the page."""
    every = [Search(name, kind, runs) for kind in (BUG, TWIN) for name in CATALOG]
    sample = [
        Search(name, BUG, runs, seed, plain)
        for name in SAMPLE
        for seed in SEEDS
        for plain in (False, True)
    ]
    return list(dict.fromkeys((*every, *sample)))


def measured(
    searches: Sequence[Search], results: ProgramResults, *, again: bool, seconds: float
) -> Iterator[Measured]:
    """The results of searches, one after the other: a search uses all cores.  `again`: also of
    those whose results are kept; `seconds`: none begins after this time."""
    until_s = time.monotonic() + seconds
    for search in searches:
        program = CATALOG[search.name]
        key = key_of(program, search)
        known = results.get(key)
        if known is not None and is_enough(known, search) and not again:
            yield known
        elif time.monotonic() < until_s:
            found = measure(program, search)
            results.add(key, found)
            yield found


def line_of(one: Measured) -> str:
    """A result in one line, for a terminal; more of them if there was no search."""
    search = one.search
    way = " plain" if search.plain else ""
    head = f"{search.name} {search.kind} seed {search.seed}{way}:"
    if one.problem:
        return f"{head} fails without faults\n{one.problem}"
    if not one.run:
        return f"{head} {one.runs} runs, none failed, {one.cpu_s} s"
    right = "" if one.is_right(CATALOG[search.name]) else " (another reason)"
    steps = f"{one.steps_before} -> {one.steps} steps"
    return f"{head} run {one.run}, {one.cpu_s} s, {steps}: {one.reason}{right}. {one.sentence}"


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.program_bugs")
    parser.add_argument("names", nargs="*", help="these programs alone")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--seeds", default=str(SEED), help="with names: such as 1,2,3")
    parser.add_argument("--plain", action="store_true", help="with names: by chance")
    parser.add_argument("--only", choices=(BUG, TWIN), help="no twins, or only these")
    parser.add_argument("--again", action="store_true", help="search what was searched before")
    parser.add_argument("--kept", action="store_true", help="search nothing: the kept results")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin none after this")
    parser.add_argument("--page", type=Path, help="write the page")
    options = parser.parse_args(arguments)
    for name in options.names:
        if name not in CATALOG:
            parser.error(unknown("program", name, CATALOG))
    searches = all_searches(options.runs)
    if options.names:
        searches = [
            Search(name, kind, options.runs, int(seed), options.plain)
            for name in options.names
            for kind in (BUG, TWIN)
            for seed in options.seeds.split(",")
        ]
    chosen = [each for each in searches if options.only in (None, each.kind)]
    results = ProgramResults()
    found = []
    seconds = 0.0 if options.kept else options.seconds
    for one in measured(chosen, results, again=options.again, seconds=seconds):
        found.append(one)
        print(line_of(one), flush=True)
    if options.page is not None:
        options.page.write_text(page_of(found, options.runs), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
