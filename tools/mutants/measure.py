"""How many runs a search needs to find a mutation.

Owns: one such search: its schedules, the run that counts, its comparison with the core as it is.
Never: prints, writes results (results.py does).  Kafka: no counterpart.

The schedules are chosen by `kcluster.search` in this process, and played by a worker with the
mutated core.  A run counts if it has findings, and the same schedule on the core as it is has none.
Workloads take turns, a batch each.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from kcluster.scenario.language.writing import text_of_scenario
from kcluster.search.findings import SearchFinding
from kcluster.search.loop import BATCH, FindingGroup, ScheduleSearch
from kcluster.search.report import Report
from kcluster.search.schedule import Schedule, Space, scenario_of
from kcluster.search.trial import Trial, run_trial
from kcluster.search.words import sentence
from tools.mutants.mutation import Mutation, changed_texts
from tools.mutants.workloads import ANY, AROUND, spaces

ROOT: Final = Path(__file__).resolve().parents[2]
FALSE_ALARMS: Final = ROOT / "build" / "false-alarms"
"""The scenarios of false alarms."""


class Limits(Struct, frozen=True):
    """The limits of one search: runs, and seconds of CPU time of the runs with the mutated core."""

    runs: int = 300
    cpu_s: float = 60.0


class Measured(Struct, frozen=True, kw_only=True):
    """The outcome of one search.  `without`: ANY or AROUND, if it was not in the mutation's own
    workloads.  `run`: the first run that counts, from 1; 0: none did.  `runs`: how many were
    played.  `finding`: the name of the leading finding, one with the right cause if there is one.
    `names`: of all findings of that run.  `false_alarms`: runs whose schedule has findings on the
    core as it is, too.  `steps`: after shrinking; -1: not shrunk."""

    name: str
    guided: bool
    seed: int
    without: str = ""
    runs: int
    cpu_s: float
    run: int = 0
    workload: str = ""
    finding: str = ""
    names: tuple[str, ...] = ()
    is_right: bool = False
    false_alarms: int = 0
    steps_before: int = -1
    steps: int = -1
    sentence: str = ""


class Worker:
    """A process with a mutated core.  `cpu_s`: the CPU time of its runs."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.cpu_s = 0.0

    def ask(self, command: str, *arguments: object) -> Any:
        """The result of a command; see worker.py."""
        self._connection.send((command, arguments))
        result, cpu_s = self._connection.recv()
        self.cpu_s += cpu_s
        return result


@contextmanager
def worker_of(mutation: Mutation) -> Iterator[Worker]:
    """A worker with this mutation, which ends with the block."""
    texts = changed_texts(mutation)
    ours, theirs = socket.socketpair()
    with theirs:
        command = [sys.executable, "-m", "tools.mutants.worker", str(theirs.fileno())]
        process = subprocess.Popen(command, cwd=ROOT, pass_fds=[theirs.fileno()])
    connection = Connection(ours.detach())
    try:
        connection.send(texts)
        yield Worker(connection)
    finally:
        connection.close()
        process.wait()


def measure(
    mutation: Mutation, seed: int, limits: Limits, *, guided: bool = True, shrinks: bool = True
) -> Measured:
    """Search for a mutation until a run counts, or a limit is reached.  `shrinks`: whether its
    schedule is shrunk."""
    searches = {
        name: ScheduleSearch(spaces(name), seed, guided=guided) for name in mutation.workloads
    }
    false_alarms = runs = 0
    with worker_of(mutation) as worker:
        while runs < limits.runs and worker.cpu_s < limits.cpu_s:
            for workload, search in searches.items():
                trials = []
                for schedule in search.batch(min(BATCH, limits.runs - runs)):
                    trial: Trial = worker.ask("play", workload, schedule)
                    runs += 1
                    trials.append(trial)
                    if not trial.findings:
                        continue
                    space = search.space_of(schedule)
                    if alarms := run_trial(space, schedule).findings:
                        false_alarms += 1
                        _keep(f"{mutation.name}-{seed}-{runs}", space, schedule, alarms)
                        trials[-1] = _without_findings(trial)
                        continue
                    found = _found(mutation, trial, runs)
                    report = None
                    cpu_s = worker.cpu_s
                    if shrinks:
                        report = worker.ask("examine", workload, found)
                    return _measured(
                        mutation, search, found, workload, runs, cpu_s, false_alarms, report
                    )
                search.learn(trials)
        return Measured(
            name=mutation.name,
            guided=guided,
            seed=seed,
            without=_without(mutation),
            runs=runs,
            cpu_s=round(worker.cpu_s, 1),
            false_alarms=false_alarms,
        )


def _without(mutation: Mutation) -> str:
    (first, *_) = mutation.workloads
    return first if first in (ANY, AROUND) else ""


def _without_findings(trial: Trial) -> Trial:
    return Trial(trial.schedule, (), trial.signatures, trial.moments, trial.outcome)


def _keep(name: str, space: Space, schedule: Schedule, alarms: Sequence[SearchFinding]) -> None:
    """Write the scenario of a false alarm to a file."""
    FALSE_ALARMS.mkdir(parents=True, exist_ok=True)
    heads = "".join(f"# {one.name}: {one.detail}\n" for one in alarms)
    text = text_of_scenario(scenario_of(space, schedule))
    (FALSE_ALARMS / f"{name}.yaml").write_text(heads + text)


def _found(mutation: Mutation, trial: Trial, run: int) -> FindingGroup:
    """The finding of a run by which it is known: the first one with the right cause, if any."""
    right = [one for one in trial.findings if one.name in mutation.expects]
    leading: SearchFinding = (right or trial.findings)[0]
    return FindingGroup(leading, trial, run)


def _measured(
    mutation: Mutation,
    search: ScheduleSearch,
    found: FindingGroup,
    workload: str,
    runs: int,
    cpu_s: float,
    false_alarms: int,
    report: Report | None,
) -> Measured:
    return Measured(
        name=mutation.name,
        guided=search.guided,
        seed=search.seed,
        without=_without(mutation),
        runs=runs,
        cpu_s=round(cpu_s, 1),
        run=runs,
        workload=workload,
        finding=found.finding.name,
        names=tuple(dict.fromkeys(one.name for one in found.example.findings)),
        is_right=found.finding.name in mutation.expects,
        false_alarms=false_alarms,
        steps_before=len(found.example.schedule.steps),
        steps=-1 if report is None else len(report.steps),
        sentence="" if report is None else sentence(report),
    )
