"""The handle of a real Kafka.  `make test-slow` runs these, where there are Java and Maven."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kcluster import ClusterError, Topology, rule
from kcluster.apache_kafka.installation import find_installation
from kcluster.events.brokers import BrokerFenced
from kcluster.events.partitions import LeaderElected
from kcluster.events.reasons import ElectionKind, Fencing, Requested
from kcluster.mirror.cluster import KafkaCluster
from kcluster.mirror.limits import RefusedOnKafka
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.running import run_scenario

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout_s(300),
    pytest.mark.xdist_group("kafka programs"),  # a Kafka at a time
]

SCENARIO = """
story: A leader dies.
topology:
  brokers: 3
  profile: fast
  topics: {orders: {config: {min.insync.replicas: 2}}}
workload:
  producers: {topic: orders, name: shop, rate: 100/s, delivery_timeout: 30s}
  consumers: {topics: orders, group: readers}
duration: 1s
steps:
  - {at: 200ms, kill: leader(orders-0), as: old}
  - {after: 400ms, start: old}
checks:
  events: [leader_elected, log_truncated]
  failed: none
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    try:
        installation = find_installation(log=print)
    except ClusterError as error:
        pytest.skip(str(error))
    topics = {"orders": {"assignment": [[1, 2, 3]]}}
    topology = Topology.of(brokers=3, topics=topics, profile="fast")
    with KafkaCluster(topology, installation=installation) as opened:
        yield opened


def test_cluster__a_dead_leader_is_replaced_and_comes_back(cluster: KafkaCluster) -> None:
    old = cluster.leader("orders-0")
    cluster.kill(old)
    new = cluster.leader("orders-0")
    assert new != old
    cluster.start(old, timeout_s=60)
    assert cluster.wait_until_settled(timeout_s=60)
    events = [entry.event for entry in cluster.events()]
    fenced = next(x for x in events if isinstance(x, BrokerFenced))
    assert (fenced.broker, fenced.fencing) == (old, Fencing.SESSION_EXPIRED)
    elected = next(x for x in events if isinstance(x, LeaderElected))
    assert (elected.old_leader, elected.new_leader) == (old, new)


def test_cluster__a_leader_is_moved_and_the_order_of_replicas_stays(cluster: KafkaCluster) -> None:
    before = cluster.partition("orders", 0)
    to = next(x for x in before.isr if x != before.leader)
    assert cluster.move("orders-0", to=to) == to
    moved = [x.event for x in cluster.events() if isinstance(x.event, LeaderElected)][-1]
    assert (moved.reason, moved.election) == (Requested(), ElectionKind.REQUESTED)
    cluster.wait_until(
        lambda: cluster.verbs.partition("orders", 0).replicas == before.replicas, 10, "no order"
    )


def test_cluster__topics_and_configs_are_kafkas(cluster: KafkaCluster) -> None:
    cluster.create_topic("more", 3, 2, {"min.insync.replicas": "2"})
    assert len([x for x in cluster.status().partitions if x.topic == "more"]) == 3
    cluster.delete_topic("more")
    assert "more" not in cluster.topics()
    with pytest.raises(ClusterError, match="INVALID_REPLICATION_FACTOR"):
        cluster.create_topic("wide", 1, 9)


def test_cluster__what_it_cannot_do_is_refused(cluster: KafkaCluster) -> None:
    with pytest.raises(RefusedOnKafka, match="page cache"):
        cluster.kill(1, "power")
    with pytest.raises(ClusterError, match="cannot be paused"):
        cluster.pause_clock()


@pytest.mark.filterwarnings("default::DeprecationWarning")
def test_cluster__clients_from_outside_are_judged(cluster: KafkaCluster) -> None:
    """Through a rule and the end of a leader; only what a broker had, and lost, is missed."""
    from kafka import KafkaConsumer, KafkaProducer
    from kafka.errors import KafkaTimeoutError

    servers = cluster.bootstrap.split(",")
    assert all(server.startswith("127.0.0.1:") for server in servers)
    cluster.create_topic("single", 1, 1)
    producer = KafkaProducer(bootstrap_servers=servers, acks="all", client_id="shop")
    cluster.add_rule(rule(api="Produce", client="shop", answer="NOT_ENOUGH_REPLICAS", times=2))
    for topic in ("orders", "single"):
        for number in range(10):
            producer.send(topic, b"%d" % number).get(30)
    assert [one.hits for one in cluster.rules()] == [2]
    cluster.clear_rules()
    cluster.kill(cluster.leader("orders-0"))
    try:
        producer.send("orders", b"after").get(30)
    except KafkaTimeoutError:
        # Now and then kafka-python's I/O thread fails again and again with UnknownBrokerIdError for
        # the dead leader, and never asks for newer metadata.
        producer.close(timeout=0)
        producer = KafkaProducer(bootstrap_servers=servers, acks="all", client_id="shop")
        producer.send("orders", b"after").get(30)
    cluster.start("down", timeout_s=60)
    assert cluster.wait_until_settled(timeout_s=60)
    consumer = KafkaConsumer(
        "orders",
        "single",
        bootstrap_servers=servers,
        auto_offset_reset="earliest",
        group_id="billing",
    )
    read = 0
    while read < 21:
        read += sum(map(len, consumer.poll(1_000).values()))
    verdict = cluster.verdict()
    assert not verdict.anomalies  # valid, unless a busy machine has made an ISR shrink just now
    assert (verdict.acked, verdict.read) == (21, 21)
    cluster.perform("rebalance", group="billing")
    holder = cluster.leader("single-0")
    cluster.kill(holder, "wipe")
    cluster.start(holder, timeout_s=60)
    assert cluster.wait_until_settled(timeout_s=60)
    verdict = cluster.verdict()
    assert [(one.name, one.count) for one in verdict.anomalies][:1] == [("lost-write", 10)]
    consumer.close()
    producer.close()


def test_scenario__is_judged_by_its_clients_and_the_logs(cluster: KafkaCluster) -> None:
    cluster.close()  # one Kafka at a time
    result = run_scenario(Scenario.parse(SCENARIO), "kafka")
    assert result.passed, result.failures
    assert result.verdict.outcome == "valid"
    assert result.verdict.acked == result.verdict.read
    assert result.verdict.acked >= 90  # of 100 in the file: a busy machine sends some too late
    assert result.not_judged == ("events: log_truncated",)


def test_cluster__three_controllers_elect_another(cluster: KafkaCluster) -> None:
    cluster.close()
    topology = Topology.of(brokers=1, controllers=3, profile="fast")
    with KafkaCluster(topology, installation=cluster.installation, with_network=False) as several:
        before = several.status()
        assert sorted(before.controllers.values()) == ["active", "up", "up"]
        for dead in (1, 2):
            old = several.status().controller_id
            seen = several.last_sequence
            several.kill("controller")
            if dead == 1:
                several.wait_for(event="controller_elected", since=seen, timeout_s=60)
                assert several.status().controller_id != old
        assert sorted(several.status().controllers.values()) == ["down", "down", "up"]
        seen = several.last_sequence
        several.start("controller")
        several.wait_for(event="controller_elected", since=seen, timeout_s=60)
        assert "down" not in several.status().controllers.values()
        several.create_topic("after", 1, 1)
