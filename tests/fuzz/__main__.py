"""`make fuzz`: made-up input for all that takes input from strangers, until the time is over.

Owns: the command line, the order of the seeds, what is printed.  Never: knows a target's steps.

Each failure is printed once, with the seed that shows it again (`--only brokers --seed 123`), is
shrunk, and is written to the corpus.  The exit code is 1 if there was one.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Final

from tests.fuzz import corpus
from tests.fuzz.episodes import COSTS, Failure, Target, shrunk
from tests.fuzz.targets import TARGETS, smaller

SHARES: Final = {
    "brokers": 0.3,
    "logins": 0.1,
    "members": 0.05,
    "tls": 0.05,
    "runs": 0.15,
    "http": 0.15,
    "live": 0.15,
    "proxied": 0.05,
}
"""Of the time."""
REPORT_S: Final = 60.0


def main() -> int:
    """Run it; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="0: without an end")
    parser.add_argument("--seed", type=int, help="play this one seed, and print its failure")
    parser.add_argument("--first", type=int, help="the first of the seeds; else drawn by time")
    parser.add_argument("--only", choices=sorted(TARGETS), action="append")
    parser.add_argument("--corpus", type=Path, default=corpus.CORPUS)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: it reports and ends
    names = options.only or list(TARGETS)
    if options.seed is not None:
        return replay([TARGETS[name]() for name in names], options.seed)
    return Fuzzing(names, options.corpus, options.first).run(options.seconds)


def replay(targets: list[Target], seed: int) -> int:
    """Play one seed of each target; print its failure in full."""
    code = 0
    for target in targets:
        failure = target.play(target.draw(Random(f"{target.name}/{seed}")))
        print(f"{target.name}, seed {seed}: {failure.what if failure else 'no failure'}")
        if failure is not None:
            print(failure.detail)
            code = 1
    return code


class Fuzzing:
    """One run of the fuzzer."""

    def __init__(self, names: list[str], directory: Path, first: int | None) -> None:
        self.targets = {name: TARGETS[name]() for name in names}
        self.directory = directory
        self.seed = int(time.time()) if first is None else first
        self.found: dict[tuple[str, str], int] = {}
        """By target and failure: how often."""
        self.seeds: dict[tuple[str, str], int] = {}
        """The seed that showed it first."""
        self.episodes: Counter[str] = Counter()
        self.steps: Counter[str] = Counter()
        self.spent_s = dict.fromkeys(names, 0.0)

    def run(self, limit_s: float) -> int:
        """Until the time is over; 0: until it is interrupted."""
        began_s, first = time.monotonic(), self.seed
        reported_s = began_s
        print(f"fuzz: {', '.join(self.targets)}; seeds from {first}", flush=True)
        try:
            while not limit_s or time.monotonic() < began_s + limit_s:
                if time.monotonic() > reported_s + REPORT_S:
                    reported_s = time.monotonic()
                    print(f"fuzz: so far {sum(self.steps.values()):,} steps", flush=True)
                # The target that is furthest behind its share of the time.
                name = min(self.spent_s, key=lambda one: self.spent_s[one] / SHARES[one])
                self.episode(self.targets[name])
        except KeyboardInterrupt:
            pass
        self.report(time.monotonic() - began_s, first)
        return 1 if self.found else 0

    def episode(self, target: Target) -> None:
        """One episode of a target; its failure, if it is a new one."""
        seed, self.seed = self.seed, self.seed + 1
        began_s = time.monotonic()
        steps = target.draw(Random(f"{target.name}/{seed}"))
        failure = target.play(steps)
        if failure is not None and failure.what in COSTS:
            failure = target.play(steps)  # else it was the machine, or a collection of garbage
        self.episodes[target.name] += 1
        self.steps[target.name] += len(steps)
        self.spent_s[target.name] += time.monotonic() - began_s
        if failure is None:
            return
        key = target.name, failure.what
        self.found[key] = self.found.get(key, 0) + 1
        if self.found[key] == 1:
            self.seeds[key] = seed
            self.keep(target, seed, failure, steps)

    def keep(self, target: Target, seed: int, failure: Failure, steps: list[object]) -> None:
        """Print a new failure, shrink it and write it down."""
        print(f"\nfuzz: {target.name}, seed {seed}: {failure.what}\n{failure.detail}", flush=True)
        left = shrunk(steps, failure.what, target.play, smaller)
        again = target.play(left)
        if again is None or again.what != failure.what:
            print("fuzz: it does not fail again from the same steps", flush=True)
            left = steps
        path = corpus.add(self.directory, target, str(seed), failure, left)
        print(f"fuzz: {len(steps)} steps shrunk to {len(left)}: {path}", flush=True)

    def report(self, took_s: float, first: int) -> None:
        """What was done, and what was found."""
        for name in self.targets:
            done = f"{self.episodes[name]:,} episodes, {self.steps[name]:,} steps"
            print(f"fuzz: {name}: {done}, {self.spent_s[name]:.0f} s")
        for (name, what), times in self.found.items():
            print(f"fuzz: FOUND {name}: {what} ({times} times)")
        seeds = f"seeds {first} to {self.seed - 1}"
        print(f"fuzz: {took_s:.0f} s, {seeds}, {len(self.found)} defects found", flush=True)


if __name__ == "__main__":
    sys.exit(main())
