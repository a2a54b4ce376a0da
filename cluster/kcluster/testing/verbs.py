"""The methods of a test's cluster beyond the verbs of every handle, on either clock.

Owns: `do`, `new_topic`, `repair` and the report of a running cluster.  Never: knows which clock
runs.
Kafka: ClusterInstance of ClusterTestExtensions.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeVar

from kcluster.actions.base import repair_all
from kcluster.checks.verdict import LATE_MS, LATE_VIRTUAL_MS, Verdict, judge
from kcluster.checks.verdict_facts import Remedy, RemedyKind
from kcluster.config.files.problems import unknown
from kcluster.config.kafka.spelling import config_name
from kcluster.config.kafka.topic import TOPIC_CONFIGS
from kcluster.evidence.outside import FROM_THE_START
from kcluster.evidence.recorder import Recorder
from kcluster.handle.cluster_verbs import ClusterVerbs
from kcluster.handle.since import since_ms_of
from kcluster.operations.errors import ClusterError
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.perform import do
from kcluster.scenario.started import clients_started, stop_client
from kcluster.testing.reported import ReportedRun
from kcluster.testing.steps import PlayedSteps

T = TypeVar("T")

REPAIR_LIMIT_S: Final = 30.0
_TOPIC_KEYS: Final = ("name", "partitions", "replication_factor", "config")


class TestVerbs(ReportedRun, ClusterVerbs):
    """The methods of `kafka_cluster` that a Cluster does not have."""

    __test__ = False
    playing: list[PlayedSteps]
    """The steps that `play` has begun."""
    _topics_made = 0

    def _begin_report(self) -> None:
        super()._begin_report()
        self.playing = []

    def check_steps(self) -> None:
        """Raise ClusterError if a step of `play` could not be performed and no call has reported
        it."""
        for steps in self.playing:
            steps.check()

    def clock_ms(self) -> int:
        """The cluster's time at this moment."""
        return self.driver.clock_ms()

    def _on_connection_line(self, line: str) -> None:
        self.connection_lines.append((self.clock_ms(), line))

    def _between_steps(self, function: Callable[[], T]) -> T:
        return self.call(function)

    @property
    def recorder(self) -> Recorder:
        """The recorder of every step; a live Cluster has a recorder that samples instead."""
        return self.record.recorder

    def _moment_ms(self, since: str | int | None) -> int | None:
        return None if since is None else since_ms_of(since, self.driver.now_ms(), self.kept)

    def _judge(self, since_ms: int | None = None) -> Verdict:
        since_ms = self.test_began_ms if since_ms is None else since_ms
        return judge(
            self.recorder,
            self.ledger,
            healed=True,
            remedies=(Remedy(RemedyKind.REPAIR),),
            began_ms=self.origin_ms,
            since_ms=FROM_THE_START if since_ms is None else since_ms,
            late_ms=LATE_VIRTUAL_MS if self.clock_name == "virtual" else LATE_MS,
        )

    def do(self, verb: str, short: object = None, **keys: object) -> Callable[[], None]:
        """Perform an action of scenario files; returns the function that undoes it."""
        return do(self, verb, short, **keys)

    def play(self, scenario: str | os.PathLike[str] | Scenario) -> PlayedSteps:
        """Perform the steps of a scenario file at their times from now on, while the test goes on.
        Its topology, workload and checks are ignored.  ScenarioError, with the places
        of all problems, for a wrong file."""
        read = scenario if isinstance(scenario, Scenario) else Scenario.load(scenario)
        steps = PlayedSteps(self, read)
        self.playing.append(steps)
        return steps

    def new_topic(
        self,
        name: str = "",
        partitions: int = 1,
        replication_factor: int = 0,
        config: Mapping[str, object] | None = None,
        **configs: object,
    ) -> str:
        """Create a topic with a unique name; returns the name when all brokers know the topic.
        Configs are keywords with underscores, `min_insync_replicas=2`, or a mapping `config`, with
        underscores or with Kafka's dots."""
        if not name:
            self._topics_made += 1
            name = f"topic-{self._topics_made}"
        for key in configs:
            if config_name(key, TOPIC_CONFIGS) not in TOPIC_CONFIGS:
                known = [*_TOPIC_KEYS, *(known.replace(".", "_") for known in TOPIC_CONFIGS)]
                raise ClusterError(f"{key}: {unknown('argument of new_topic', key, known)}")
        named = {
            config_name(key, TOPIC_CONFIGS): str(value)
            for key, value in {**(config or {}), **configs}.items()
        }
        self.create_topic(name, partitions, replication_factor or None, named)
        return name

    def repair(self) -> None:
        """Undo every fault: links, rules, disks, pauses, deaths.  Started clients stop, and the
        clock runs at the machine's speed.  Returns when all replicas are in sync."""
        self.set_speed(1)
        self.resume_clock()
        for client in clients_started(self):
            if client.is_running:
                stop_client(self, client.name)
        problems = self.call(lambda: repair_all(self.verbs))
        if problems:
            raise ClusterError("; ".join(problems))
        failure = "not all replicas are in sync again"
        self.wait_until(self.verbs.settled.all_in_sync, REPAIR_LIMIT_S, failure)

    def story(self, parent: Path) -> list[str]:
        """The report of a failed test: timeline, verdict, seed, run directory."""
        return self.call(lambda: self._story(self.clock_name, parent))
