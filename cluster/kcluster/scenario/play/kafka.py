"""A run of a scenario on a real Kafka: the clock `kafka`.

Owns: the cluster of the run, and its pace.  Never: plays a step (live.py and
runner.py do).  Kafka: the thing itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec.structs import replace

from kcluster.clients.ledger import Ledger, Partition
from kcluster.evidence.history import OpenTransaction
from kcluster.handle.cluster import Cluster
from kcluster.mirror.changes import SEEN_KINDS
from kcluster.mirror.cluster import KafkaCluster
from kcluster.mirror.coordinators import Coordinated, await_coordinators
from kcluster.mirror.driver import KafkaDriver
from kcluster.mirror.recorder import MirrorRecorder
from kcluster.mirror.transactions import TransactionWatch
from kcluster.operations.unrest import Unrest
from kcluster.scenario.language.model import Checks, WorkloadSpec
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.live import LiveStage, run_on
from kcluster.scenario.play.pace import TENTH_OF_KAFKA, Pace
from kcluster.scenario.play.phases import Progress, RunResult
from kcluster.scenario.play.unfinished import EndsAreOld

CALM_MS: Final = 120_000
"""The least time for the end of a run: a JVM starts in seconds, whatever the profile."""


class KafkaStage(LiveStage):
    """A stage on a real Kafka.  `kafka`: its driver."""

    kafka: KafkaDriver

    def unsettled(self) -> Iterator[Unrest]:
        """Also that the ends of logs were read before the last ack: on a busy machine it takes
        seconds until they are read again."""
        yield from super().unsettled()
        if self.kafka.looked_ms <= max((send.ended_ms for send in self.ledger.sends), default=0):
            yield EndsAreOld()

    def open_transactions(
        self, partitions: Iterable[Partition]
    ) -> dict[Partition, list[OpenTransaction]]:
        watch = self.kafka.transactions
        if watch is None:
            return {}
        return {partition: watch.open_in(partition) for partition in partitions}

    def judged(self, checks: Checks) -> tuple[Checks, tuple[str, ...]]:
        """Without the causes of anomalies, and the events that only brokers could report."""
        named = [
            *(f"events: {kind}" for kind in checks.events if kind not in SEEN_KINDS),
            *(f"no_events: {kind}" for kind in checks.no_events if kind not in SEEN_KINDS),
            *(["causes"] if checks.causes else []),
        ]
        seen = replace(
            checks,
            events=tuple(kind for kind in checks.events if kind in SEEN_KINDS),
            no_events=tuple(kind for kind in checks.no_events if kind in SEEN_KINDS),
            causes=(),
        )
        return seen, tuple(named)


def run_kafka(
    scenario: Scenario, seed: int, progress: Progress, pace: Pace | None = None
) -> RunResult:
    """Run a scenario on a real Kafka of its own.  `pace`: None for that of its profile."""
    chosen = pace or (TENTH_OF_KAFKA if scenario.topology.profile == "fast" else None)
    if chosen is not None:
        scenario = chosen.stretched(scenario)
    cluster = KafkaCluster(scenario.topology, seed=seed, record=False)
    driver = cluster.driver
    recorder = MirrorRecorder(driver, has_all_ledgers=True)

    def make_stage(cluster: Cluster, seed: int, ledger: Ledger) -> LiveStage:
        coordinated = coordinated_by(scenario.workload)
        await_coordinators(driver, coordinated)
        stage = KafkaStage(cluster, seed, ledger)
        stage.kafka = driver
        if coordinated.transactional_ids:
            driver.transactions = TransactionWatch()
        if chosen is not None:
            chosen.set_on(stage)
        return stage

    return run_on(cluster, recorder, scenario, seed, progress, make_stage, CALM_MS)


def coordinated_by(workload: WorkloadSpec) -> Coordinated:
    """What the clients of a workload need coordinators for."""
    groups = [each.group for each in workload.consumers if not each.share]
    groups += [each.group for each in workload.processors]
    ids = [
        each.transactions.id or each.name or each.topic
        for each in workload.producers
        if each.transactions is not None
    ]
    ids += [each.name or each.group for each in workload.processors]
    return Coordinated(tuple(filter(None, groups)), tuple(ids))
