"""One scenario played on one ground, and the record of what was seen.

Owns: Record, the grounds, the times that both have, what no real Kafka can play.  Never: compares
two records (table.py).
Kafka: the thing itself, by kcluster's `mirror/`.
"""

from __future__ import annotations

import os
from collections import Counter
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from compare.certified.windows import Windows, windows_of
from kcluster.apache_kafka.installation import find_installation, version_for
from kcluster.apache_kafka.properties import with_real_times
from kcluster.operations.errors import ClusterError
from kcluster.runs.directory import write_run
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.kafka import run_kafka
from kcluster.scenario.play.on_kafka import refused_steps
from kcluster.scenario.play.pace import AS_KAFKA, TENTH_OF_KAFKA, Pace
from kcluster.scenario.play.phases import RunResult
from kcluster.scenario.play.virtual import run_virtual
from kcluster.version import __version__


class Ground(StrEnum):
    """Where a scenario is played."""

    KAFKA = "kafka"
    SIMULATED = "simulated"


PACES: Final[dict[str, Pace]] = {"tenth": TENTH_OF_KAFKA, "kafka": AS_KAFKA}
"""The brokers' times on both grounds: a tenth of Kafka's defaults, or Kafka's."""
INCIDENT_TIMES: Final = "kafka"
RANDOM_TIMES: Final = "tenth"


class Record(Struct, frozen=True, omit_defaults=True):
    """What one run showed.  `version`: of Apache Kafka, or of kcluster; `times`: one of PACES;
    `load`: the machine's load average at the start; `anomalies`: how many, by name; `failures`:
    the checks of the file that did not hold; `refused`: why it could not be played; `crash`: how a
    bug ended it; `took_s`: seconds of wall clock; `tries`: how often it was played: a run that
    differed may be repeated, if the machine was busy."""

    scenario: str
    ground: Ground
    version: str
    times: str
    seed: int
    date: str
    load: float
    outcome: str = ""
    anomalies: dict[str, int] = {}
    failures: tuple[str, ...] = ()
    not_judged: tuple[str, ...] = ()
    windows: Windows = Windows()
    took_s: float = 0.0
    refused: str = ""
    crash: str = ""
    tries: int = 1

    @property
    def key(self) -> tuple[str, Ground, str, int]:
        """What another try of the run has, too."""
        return self.scenario, self.ground, self.times, self.seed


def refusals(scenario: Scenario) -> tuple[str, ...]:
    """Why no real Kafka can play a scenario; empty if it can."""
    found = [step.limit.text for step in refused_steps(scenario)]
    try:
        version_for(scenario.topology)
    except ClusterError as error:
        found.insert(0, str(error))
    return tuple(dict.fromkeys(found))


def play(scenario: Scenario, ground: Ground, times: str, seed: int, directory: Path) -> Record:
    """Play a scenario on a ground, with these times if it is one for `fast`.  A run that was not as
    its file says leaves a run directory below `directory`."""
    version = __version__
    if ground is Ground.KAFKA:
        version = find_installation(version_for(scenario.topology)).version
    record = Record(
        scenario=scenario.name,
        ground=ground,
        version=version,
        times=times,
        seed=seed,
        date=datetime.now(UTC).date().isoformat(),
        load=round(os.getloadavg()[0], 1),
    )
    try:
        result = _run(scenario, ground, _pace(scenario, times), seed)
    except ClusterError as error:
        return replace(record, refused=str(error))
    if result.failures:
        write_run(directory, result.record())
    return _seen(record, result)


def _pace(scenario: Scenario, times: str) -> Pace | None:
    """The pace of a scenario for `fast`; None for one that is written with Kafka's own times."""
    return PACES[times] if scenario.topology.profile == "fast" else None


def _run(scenario: Scenario, ground: Ground, pace: Pace | None, seed: int) -> RunResult:
    if ground is Ground.KAFKA:
        return run_kafka(scenario, seed, _no_progress, pace)
    stretched = scenario if pace is None else pace.stretched(scenario)
    simulated = replace(stretched, topology=with_real_times(stretched.topology))
    return run_virtual(simulated, seed, _no_progress, pace=pace)


def _seen(record: Record, result: RunResult) -> Record:
    return replace(
        record,
        outcome=result.verdict.outcome,
        anomalies=dict(sorted(Counter(result.verdict.counts()).items())),
        failures=tuple(result.failures),
        not_judged=result.not_judged,
        windows=windows_of(result),
        took_s=round(result.wall_s, 1),
    )


def _no_progress(passed_ms: int, all_ms: int) -> None:
    pass
