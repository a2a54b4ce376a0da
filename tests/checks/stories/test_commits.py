"""The last commit of an offset, among the commits of one partition."""

from __future__ import annotations

from kcluster.checks.stories.commits import commit_ms
from kcluster.config.topology.model import Topology
from kcluster.evidence.group_history import offsets_written
from kcluster.evidence.lookups import Facts
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.running import run_scenario
from kcluster.testing.handles import VirtualCluster


def test_commit__in_a_transaction_is_that_of_its_marker() -> None:
    text = """
    topology: {brokers: 1, profile: fast, topics: {orders: {}, bills: {}}}
    workload:
      producers: {topic: orders, name: shop, rate: 50/s, count: 20}
      processors: {topic: orders, to: bills, group: billing, name: biller, abort: 30%}
    duration: 2s
    """
    result = run_scenario(Scenario.parse(text), "virtual")
    facts = Facts(result.recorder, result.ledger)
    written = offsets_written(result.recorder, "billing", ("orders", 0))
    last_ms = max(each.at_ms for each in written if each.offset == 20)
    assert commit_ms(facts, "billing", ("orders", 0), 20) >= last_ms
    assert commit_ms(facts, "billing", ("orders", 0), 21) == 0


def test_commit__of_another_topic_does_not_count() -> None:
    topology = Topology.of(brokers=1, profile="fast", topics={"orders": {}, "others": {}})
    cluster = VirtualCluster(topology, 1, "others")
    cluster.producer("others", rate="100/s", count=50)
    cluster.consumer(topics="others", group="billing")
    cluster.run_for(2_000)
    facts = Facts(cluster.recorder, cluster.ledger)
    assert commit_ms(facts, "billing", ("others", 0), 50) > 0
    assert commit_ms(facts, "billing", ("orders", 0), 50) == 0
