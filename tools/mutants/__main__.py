"""Search for every mutation, and write how many runs that took.

    python -m tools.mutants [NAME ...] [--jobs 2] [--runs 300] [--cpu-seconds 60] [--seeds 1,2]
                            [--plain] [--without any] [--no-shrink] [--again]
                            [--page docs/reference/mutants.md]

Owns: the command line, and the processes.  Never: measures (measure.py), words the page (page.py).
Kafka: no counterpart.

Without names: all mutations that are not equivalent, in their own workloads and without a scenario,
and the sample by chance and guided with several seeds.  Results are kept in
tools/mutants/results.jsonl; the same command goes on where it ended.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import structs

from kcluster.collector import collect_rarely
from kcluster.config.files.problems import unknown
from tools.mutants.catalog import MUTATIONS
from tools.mutants.measure import Limits, Measured, measure
from tools.mutants.mutation import Mutation
from tools.mutants.page import page_of
from tools.mutants.results import Results, is_within, judged, key_of
from tools.mutants.sample import SAMPLE, SAMPLE_LIMITS, SEEDS, WITHOUT_LIMITS

SEED: Final = 1


class Task(NamedTuple):
    """One search to be made."""

    name: str
    seed: int
    guided: bool
    limits: Limits
    shrinks: bool
    without: str = ""
    """The workloads in place of the mutation's own: ANY or AROUND."""

    @property
    def mutation(self) -> Mutation:
        mutation = MUTATIONS[self.name]
        return structs.replace(mutation, workloads=(self.without,)) if self.without else mutation

    @property
    def key(self) -> str:
        return key_of(self.mutation, self.seed, guided=self.guided)


def _measure(task: Task) -> Measured:
    return measure(task.mutation, task.seed, task.limits, guided=task.guided, shrinks=task.shrinks)


def all_tasks(limits: Limits, shrinks: bool) -> list[Task]:
    """All searches of the page: of every mutation, then of the sample, then without a scenario."""
    searched = [name for name, mutation in MUTATIONS.items() if not mutation.equivalent]
    every = [Task(name, SEED, True, limits, shrinks) for name in searched]
    sample = [
        Task(name, seed, guided, SAMPLE_LIMITS, False)
        for name in SAMPLE
        for seed in SEEDS
        for guided in (True, False)
    ]
    without = [
        Task(name, SEED, True, limits, False, where)
        for where, limits in WITHOUT_LIMITS.items()
        for name in searched
    ]
    return [*dict.fromkeys((*every, *sample)), *without]


def measured(tasks: Sequence[Task], results: Results, jobs: int) -> Iterator[tuple[Task, Measured]]:
    """The results of tasks, the kept ones first, the others in the order in which they end."""
    left = []
    for task in tasks:
        known = results.get(task.key)
        is_known = known is not None and is_within(known, task.limits)
        if known is None or not is_known or (task.shrinks and known.run and known.steps < 0):
            left.append(task)
        else:
            yield task, judged(MUTATIONS[task.name], known)
    with ProcessPoolExecutor(jobs, get_context("fork"), collect_rarely) as pool:
        under_way = {pool.submit(_measure, task): task for task in left}
        for future in as_completed(under_way):
            task = under_way[future]
            results.add(task.key, future.result())
            yield task, future.result()


def line_of(one: Measured) -> str:
    """A result in one line, for a terminal."""
    way = f" in {one.without}" * bool(one.without) + " plain" * (not one.guided)
    head = f"{one.name} seed {one.seed}{way}:"
    alarms = f", {one.false_alarms} false alarms" if one.false_alarms else ""
    if not one.run:
        return f"{head} not found in {one.runs} runs, {one.cpu_s} s{alarms}"
    right = "" if one.is_right else " (another cause)"
    steps = f", {one.steps_before} -> {one.steps} steps" if one.steps >= 0 else ""
    return (
        f"{head} run {one.run} ({one.workload}), {one.cpu_s} s: {', '.join(one.names)}{right}"
        f"{steps}{alarms}"
    )


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.mutants")
    parser.add_argument("names", nargs="*", help="these mutations alone")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--runs", type=int, default=Limits().runs)
    parser.add_argument("--cpu-seconds", type=float, default=Limits().cpu_s)
    parser.add_argument("--seeds", default=str(SEED), help="with names: such as 1,2,3")
    parser.add_argument("--plain", action="store_true", help="with names: by chance")
    parser.add_argument(
        "--without", choices=WITHOUT_LIMITS, default="", help="with names: without a scenario"
    )
    parser.add_argument("--no-shrink", action="store_true", help="do not shrink")
    parser.add_argument(
        "--again", action="store_true", help="forget what is kept: of the names, or all"
    )
    parser.add_argument("--page", type=Path, help="write the page")
    options = parser.parse_args(arguments)
    for name in options.names:
        if name not in MUTATIONS:
            parser.error(unknown("mutation", name, MUTATIONS))
    results = Results()
    limits = Limits(options.runs, options.cpu_seconds)
    tasks = all_tasks(limits, not options.no_shrink)
    if options.names:
        tasks = [
            Task(name, int(seed), not options.plain, limits, not options.no_shrink, options.without)
            for name in options.names
            for seed in options.seeds.split(",")
        ]
    if options.again:
        results.forget({task.key for task in tasks} if options.names else None)
    found = {}
    for task, one in measured(tasks, results, options.jobs):
        found[task] = one
        print(line_of(one), flush=True)
    if options.page is not None:
        options.page.write_text(page_of(list(found.values()), limits), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
