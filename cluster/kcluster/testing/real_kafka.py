"""The cluster of a fixture as a real Kafka, by `--kcluster-clock kafka`.

Owns: its handle, and skipping tests that it cannot serve.  Never: is loaded without that option.
Kafka: ClusterInstance of ClusterTestExtensions.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kcluster.checks.verdict import Verdict
from kcluster.config.topology.model import Topology
from kcluster.mirror.cluster import KafkaCluster
from kcluster.mirror.limits import KafkaLimit, RefusedOnKafka
from kcluster.testing.callers import notes_its_callers
from kcluster.testing.items import FIXTURE, KAFKA
from kcluster.testing.marks import VIRTUAL_KEYS, arguments_of
from kcluster.testing.reports import remember
from kcluster.testing.verbs import TestVerbs


@notes_its_callers
class TestedKafkaCluster(TestVerbs, KafkaCluster):
    """A real Kafka that records its metadata, for the report of a failed test."""

    def __init__(self, topology: Topology, seed: int, test: str) -> None:
        self._begin_report()
        super().__init__(topology, seed=seed, log=self._on_connection_line)
        self.test = test
        self.record.begin()

    def open(self, timeout_s: float | None = None) -> None:
        """Start the cluster; deaths of threads are noted until it is closed."""
        super().open(timeout_s)
        self.deaths.attach()

    def close(self) -> None:
        """Stop the cluster."""
        self.deaths.detach()
        super().close()

    def verdict(self, since: str | int | None = None) -> Verdict:
        """The verdict on the test's clients; without a proxy before the brokers the test is
        skipped."""
        if self.no_proxy:
            raise RefusedOnKafka(
                KafkaLimit("a verdict", f"no proxy sees what clients request; {self.no_proxy}")
            )
        return super().verdict(since)


def real_cluster(
    request: pytest.FixtureRequest, mark: pytest.Mark | None
) -> Iterator[TestedKafkaCluster]:
    """The cluster of a fixture; skips a test whose mark names something of virtual time."""
    keys = {} if mark is None else mark.kwargs
    named = [key for key in VIRTUAL_KEYS if key in keys]
    if keys.get("clock") == "virtual" or named:
        pytest.skip(f"{FIXTURE}: {', '.join(named) or 'clock'} needs virtual time")
    arguments = arguments_of(mark, "live")
    cluster = TestedKafkaCluster(arguments.topology, arguments.seed, request.node.name)
    cluster.replay = f"pytest -k '{request.node.name}' --kcluster-clock {KAFKA}"
    remember(request.node, cluster)
    with cluster:
        yield cluster
        cluster.check_steps()
