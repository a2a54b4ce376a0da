"""`python -m bench.searches`: what runs in virtual time cost, for docs/reference/benchmarks.md.

Owns: the runs of searches, of sweeps and of programs, their CPU time, the table.  Never: measures
wall time, which shows the machine where others use it.

A first run, which imports and compiles code, is not counted.  Every run is followed by the garbage
collection that follows it in a search or in a sweep.  CPU time depends on the machine, and on what
else it does: so *units* (micro.py) are timed between the runs, and the times are those of a machine
whose unit takes UNIT_US.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from bench import report, results
from bench.micro import unit
from bench.processes import machine
from kcluster import __version__, build
from kcluster.cli.work.scenario_files import one_scenario
from kcluster.collector import collect_after_run, collect_rarely
from kcluster.config.files.tree import from_python
from kcluster.pipeline.sweep.columns import Cell
from kcluster.pipeline.sweep.runs import play
from kcluster.scenario.language.scenario import Scenario, read_scenario
from kcluster.scenario.play.running import run_scenario
from kcluster.search.loop import ScheduleSearch
from kcluster.search.spaces import searched_space
from kcluster.search.trial import run_trial

UNIT_US: Final = 15.7
UNITS: Final = 20
"""The number of units that are timed before each run."""
MINUTE: Final = Cell(partitions=1, rate_per_s=10, failures=2, duration_ms=60_000)


class Case(Struct, frozen=True):
    """One kind of run.  `goal_ms`: the most CPU time of a run; `prepare` makes a function that runs
    it with a seed."""

    name: str
    what: str
    goal_ms: float
    prepare: Callable[[], Callable[[int], object]]


def searching(file: str) -> Callable[[int], object]:
    """The next run of a guided search of a scenario, with what the search learns from it."""
    scenario = one_scenario(file)
    space = searched_space(scenario)
    search = ScheduleSearch([space], seed=1)

    def run(_: int) -> None:
        (schedule,) = search.batch(1)
        search.learn([run_trial(space, schedule)])

    return run


def judged(*, has_reader: bool) -> Callable[[int], object]:
    """A minute with two dead leaders, recorded and judged."""
    scenario = a_minute(has_reader=has_reader)

    def run(seed: int) -> None:
        result = run_scenario(scenario, "virtual", seed)
        assert result.passed, result.failures

    return run


def a_minute(*, has_reader: bool) -> Scenario:
    """Three brokers, 50 records per second, two dead leaders."""
    workload: dict[str, object] = {"producers": {"topic": "orders", "name": "shop", "rate": "50/s"}}
    if has_reader:
        workload["consumers"] = {"topics": "orders", "name": "reader", "group": "readers"}
    values = {
        "duration": "60s",
        "topology": {
            "brokers": 3,
            "topics": {"orders": {"partitions": 6, "replication_factor": 3}},
        },
        "workload": workload,
        "steps": [
            {"at": "15s", "kill": "leader(orders-0)", "for": "10s"},
            {"at": "40s", "kill": "leader(orders-0)", "for": "10s"},
        ],
    }
    return read_scenario(from_python(values), "minute.yaml", {}, [])


def telling(story: str) -> Callable[[int], object]:
    """A user's test of a failover, with a real client library."""
    from tests.world.bodies.stories import tell  # loads the client libraries

    logging.disable(logging.ERROR)

    def run(seed: int) -> None:
        outcome, *_ = tell(story, "virtual", seed)
        assert not outcome.lost, outcome.lost

    return run


CASES: Final = (
    Case(
        "faults",
        "search: 20 s, overlapping faults (safe_settings_overlapping)",
        50,
        lambda: searching("safe_settings_overlapping"),
    ),
    Case("txn", "search: 10 s, transactions (txn_storm)", 125, lambda: searching("txn_storm")),
    Case("groups", "search: 10 s, groups (groups_storm)", 125, lambda: searching("groups_storm")),
    Case(
        "reader",
        "60 s, 50 records/s, two kills, verdict, a reader in a group",
        150,
        lambda: judged(has_reader=True),
    ),
    Case("writer", "the same without a reader", 80, lambda: judged(has_reader=False)),
    Case("sweep", "a run of a sweep: 60 s, 10 records/s, two failures", 48, lambda: sweeping),
    Case("kafka_python", "60 s failover test of kafka-python", 700, lambda: telling("failover")),
    Case("aiokafka", "the same of aiokafka", 400, lambda: telling("asyncio_failover")),
)


def sweeping(seed: int) -> None:
    """A run of a sweep."""
    assert not play(MINUTE, seed).error


def cpu_ms(case: Case, runs: int) -> tuple[float, float]:
    """(mean CPU time of a run on a machine whose unit takes UNIT_US, time of a unit in µs)."""
    run = case.prepare()
    run(0)
    collect_after_run()
    took_s = units_s = 0.0
    for seed in range(1, runs + 1):
        began_s = time.process_time()
        for _ in range(UNITS):
            unit()
        units_s += time.process_time() - began_s
        began_s = time.process_time()
        run(seed)
        collect_after_run()
        took_s += time.process_time() - began_s
    unit_us = units_s / (runs * UNITS) * 1e6
    return took_s / runs * 1e3 * UNIT_US / unit_us, unit_us


def line_of(case: Case, average_ms: float) -> str:
    """A row of the table."""
    goal = f"{case.goal_ms:g}: {'met' if average_ms <= case.goal_ms else 'not met'}"
    return f"| {case.what} | {average_ms:.0f} | {1e3 / average_ms:.1f} | {goal} |"


def main(arguments: Sequence[str]) -> int:
    """Measure, print the table, and write it into the page."""
    parser = argparse.ArgumentParser("python -m bench.searches", description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--only", nargs="*", choices=[case.name for case in CASES])
    parser.add_argument("--dry", action="store_true", help="print the table, write nothing")
    options = parser.parse_args(arguments)
    collect_rarely()
    units, rows = [], []
    for case in CASES:
        if not options.only or case.name in options.only:
            average_ms, unit_us = cpu_ms(case, options.runs)
            units.append(unit_us)
            rows.append(line_of(case, average_ms))
            print(rows[-1], f"unit {unit_us:.1f} µs", flush=True)
    facts = ", ".join(f"{name} {value}" for name, value in machine().items())
    text = "\n".join(
        [
            "## Runs in virtual time",
            "",
            f"Written by `python -m bench.searches`: kcluster {__version__}, {build()}; {facts}. "
            f"The mean CPU time of {options.runs} runs, on a machine whose unit of Python takes "
            f"{UNIT_US} µs, as with the hot paths above; here it took {min(units):.1f} to "
            f"{max(units):.1f} µs.",
            "",
            "| run | CPU ms | runs per second and core | at most, ms |",
            "|---|--:|--:|--:|",
            *rows,
        ]
    )
    if not options.dry:
        report.write(results.DOCUMENT, "searches", text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
