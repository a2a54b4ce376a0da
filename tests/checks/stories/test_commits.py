"""The last commit of an offset, among the commits of one partition."""

from __future__ import annotations

from kcluster.checks.stories.commits import commit_ms
from kcluster.config.topology.model import Topology
from kcluster.evidence.lookups import Facts
from kcluster.testing.handles import VirtualCluster


def test_commit__of_another_topic_does_not_count() -> None:
    topology = Topology.of(brokers=1, profile="fast", topics={"orders": {}, "others": {}})
    cluster = VirtualCluster(topology, 1, "others")
    cluster.producer("others", rate="100/s", count=50)
    cluster.consumer(topics="others", group="billing")
    cluster.run_for(2_000)
    facts = Facts(cluster.recorder, cluster.ledger)
    assert commit_ms(facts, "billing", ("others", 0), 50) > 0
    assert commit_ms(facts, "billing", ("orders", 0), 50) == 0
