"""A described cluster becomes a topology that runs; what it cannot say is listed."""

from __future__ import annotations

import pytest

from kcluster.config.files.scalars import scalar
from kcluster.config.kafka.broker import BROKER_CONFIGS
from kcluster.config.topology.model import Topology
from kcluster.importing.described import (
    DescribedBroker,
    DescribedCluster,
    DescribedConfig,
    DescribedPartition,
    DescribedTopic,
)
from kcluster.importing.topology_draft import draft_topology, refusal
from kcluster.importing.topology_text import topology_text
from tests.importing.outputs import cluster_of


def left_out(cluster: DescribedCluster) -> list[str]:
    return [str(entry) for entry in draft_topology(cluster).left_out]


def test_draft__of_everything_has_the_same_replicas_and_configs() -> None:
    cluster = cluster_of("topics.txt", "broker_configs_all.txt", "topic_configs_all.txt")
    topology = Topology.parse(topology_text(draft_topology(cluster)))
    assert [(broker.id, broker.rack) for broker in topology.brokers] == [
        (1, "a"),
        (2, "b"),
        (3, "c"),
    ]
    assert topology.config == {
        "auto.create.topics.enable": "false",
        "default.replication.factor": "3",
        "log.retention.ms": "86400000",
        "message.max.bytes": "2000000",
        "num.network.threads": "4",
        "min.insync.replicas": "1",
        "num.partitions": "4",
        "offsets.topic.num.partitions": "10",
        "offsets.topic.replication.factor": "3",
        "replica.lag.time.max.ms": "4000",
        "transaction.state.log.min.isr": "2",
        "transaction.state.log.replication.factor": "3",
    }
    assert topology.brokers[1].config == {
        "log.cleaner.threads": "2",
        "log.segment.bytes": "500000000",
        "num.io.threads": "9",
    }
    assert sorted(topology.topics) == ["audit.log", "orders", "payments", "plain"]
    assert topology.topics["payments"].assignment == ((1, 2), (2, 3), (3, 1))
    assert topology.topics["orders"].config == {
        "cleanup.policy": "compact,delete",
        "leader.replication.throttled.replicas": "0:1,1:2",
        "min.insync.replicas": "2",
        "retention.ms": "604800000",
    }
    assert topology.topics["plain"].config == {}


def test_draft__everything_described__lists_what_is_not_simulated_with_the_reason() -> None:
    cluster = cluster_of("topics.txt", "broker_configs_all.txt", "topic_configs_all.txt")
    quorum = "the simulator has one controller, and no quorum to configure"
    assert left_out(cluster) == [
        f"config controller.listener.names: {quorum}",
        f"config controller.quorum.voters: {quorum}",
        "config log.dirs: a path on that machine; here logs are kept in memory",
        f"config process.roles: {quorum}",
        "topic __consumer_offsets: created when it is first needed; how many partitions and"
        " replicas is a broker config",
    ]


def test_draft__of_topics_alone_has_their_configs_and_no_racks() -> None:
    cluster = cluster_of("topics.txt")
    topology = Topology.parse(topology_text(draft_topology(cluster)))
    assert [(broker.id, broker.rack) for broker in topology.brokers] == [
        (1, None),
        (2, None),
        (3, None),
    ]
    assert topology.topics["plain"].config == {
        "max.message.bytes": "2000000",
        "retention.ms": "86400000",
    }
    assert "racks: unknown; with --brokers FILE they are taken over" in left_out(cluster)


def test_draft__topics_and_brokers_configs__a_value_of_the_brokers_is_not_repeated() -> None:
    cluster = cluster_of("topics.txt", "broker_configs.txt", brokers=("endpoints.txt",))
    topology = Topology.parse(topology_text(draft_topology(cluster)))
    assert topology.topics["plain"].config == {}
    assert topology.brokers[2].rack == "c"
    assert topology.config["message.max.bytes"] == "2000000"


def test_draft__leaders_that_died__are_listed() -> None:
    listed = left_out(cluster_of("topics_two_brokers_down.txt"))
    assert "topic audit.log: partition 0: no leader there" in listed
    assert (
        "topic orders: partitions 0, 1, 3, 4: led by another than the preferred replica, which"
        " leads here from the start"
    ) in listed


def test_draft__a_replica_on_a_broker_that_was_not_described__adds_the_broker() -> None:
    topic = DescribedTopic("a", (DescribedPartition(0, 1, (1, 4), (1,)),))
    cluster = DescribedCluster("x", brokers=(DescribedBroker(1, "a"),), topics=(topic,))
    draft = draft_topology(cluster)
    assert [broker.id for broker in draft.brokers] == [1, 4]
    assert "broker 4: has replicas, but was not described: no rack" in map(str, draft.left_out)


def test_draft__partitions_with_different_numbers_of_replicas__all_have_the_least() -> None:
    rows = (
        DescribedPartition(0, 1, (1, 2, 3), (1, 2, 3)),
        DescribedPartition(1, 2, (2, 1), (1, 2)),
    )
    draft = draft_topology(DescribedCluster("x", topics=(DescribedTopic("a", rows),)))
    assert draft.topics[0].assignment == ((1, 2), (2, 1))
    assert "topic a: its partitions have 2, 3 replicas; here all have 2" in map(str, draft.left_out)


def test_draft__keeps_kafkas_default_of_one_replica() -> None:
    default = DescribedConfig("default.replication.factor", "1", "DEFAULT_CONFIG")
    brokers = tuple(DescribedBroker(number) for number in (1, 2, 3))
    configs: dict[int, tuple[DescribedConfig, ...]] = {broker.id: (default,) for broker in brokers}
    draft = draft_topology(DescribedCluster("x", brokers=brokers, broker_configs=configs))
    assert draft.config == {"default.replication.factor": "1"}


def test_draft__internal_topics__are_broker_configs_or_listed() -> None:
    row = DescribedPartition(0, 1, (1, 2), (1, 2))
    configs = (DescribedConfig("min.insync.replicas", "1", "DYNAMIC_TOPIC_CONFIG"),)
    topics = (
        DescribedTopic("__transaction_state", (row,), configs),
        DescribedTopic("__share_group_state", (row,)),
    )
    brokers = (DescribedBroker(1), DescribedBroker(2), DescribedBroker(3))
    draft = draft_topology(DescribedCluster("x", brokers=brokers, topics=topics))
    assert draft.topics == ()
    assert draft.config == {
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "1",
        "transaction.state.log.replication.factor": "2",
    }
    assert "topic __share_group_state: share groups are not simulated" in map(str, draft.left_out)


def test_draft__an_internal_topic_wins_over_the_config_that_it_was_not_created_by() -> None:
    row = DescribedPartition(0, 1, (1, 2, 3), (1, 2, 3))
    one = DescribedConfig("offsets.topic.replication.factor", "1", "STATIC_BROKER_CONFIG")
    cluster = DescribedCluster(
        "x", topics=(DescribedTopic("__consumer_offsets", (row,)),), default_configs=(one,)
    )
    assert draft_topology(cluster).config["offsets.topic.replication.factor"] == "3"


def test_draft__configs_that_are_valid_only_together__are_taken_over() -> None:
    names = ("group.min.session.timeout.ms", "group.max.session.timeout.ms")
    configs = tuple(DescribedConfig(name, "3000000", "STATIC_BROKER_CONFIG") for name in names)
    cluster = DescribedCluster("x", brokers=(DescribedBroker(1),), broker_configs={1: configs})
    draft = draft_topology(cluster)
    assert draft.config == dict.fromkeys(sorted(names), "3000000")
    assert Topology.parse(topology_text(draft)).config == draft.config


def test_draft__a_topic_without_partitions__is_listed() -> None:
    draft = draft_topology(DescribedCluster("x", (DescribedBroker(1),), (DescribedTopic("a", ()),)))
    assert draft.topics == ()
    assert [str(entry) for entry in draft.left_out] == ["topic a: without partitions"]


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (DescribedConfig("sasl.enabled.mechanisms", "PLAIN"), "security is not imported"),
        (DescribedConfig("listener.name.a.ssl.keystore.type", "JKS"), "security is not imported"),
        (
            DescribedConfig("ssl.key.password", None, sensitive=True),
            "sensitive: Kafka does not show",
        ),
        (
            DescribedConfig("remote.log.storage.system.enable", "true"),
            "tiered storage is not simulated",
        ),
        (DescribedConfig("num.network.threads", "4"), None),
        (DescribedConfig("num.network.threads", "none"), "value none refused: "),
        (DescribedConfig("confluent.balancer.enable", "true"), "no config of Apache Kafka 4.3"),
        (DescribedConfig("num.partitions", "many"), "value many refused: "),
        (DescribedConfig("num.partitions", "4"), None),
        (DescribedConfig("controller.quorum.request.timeout.ms", "3000"), None),
    ],
)
def test_refusal__names_the_reason(config: DescribedConfig, reason: str | None) -> None:
    found = refusal(config, BROKER_CONFIGS)
    assert found == reason or (found is not None and found.startswith(str(reason)))


@pytest.mark.parametrize("text", ["null", "a: b", "0:1,1:2", "", "-1", "007", "*", "no", "é", "#"])
def test_scalar__reads_as_the_same_text(text: str) -> None:
    values = f"brokers: [{{id: 1, rack: {scalar(text or 'x')}}}]"
    assert Topology.parse(values).brokers[0].rack == (text or "x")
