"""Requests of administrators through both libraries: answers, and the libraries' own errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import confluent_kafka as ck
import kafka
import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)
from kafka.admin import ConfigResource as PythonResource
from kafka.admin import NewTopic as PythonNewTopic
from kafka.errors import (
    InvalidConfigurationError,
    InvalidPartitionsError,
    InvalidReplicationFactorError,
    InvalidTopicError,
    NonEmptyGroupError,
    OffsetOutOfRangeError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)

from kcluster.handle.cluster import Cluster
from tests.foreign_clients.conftest import MakeTopic
from tests.foreign_clients.real_clients import (
    LIMIT_S,
    confluent_consumer,
    confluent_producer,
    confluent_read,
    confluent_result,
    confluent_take,
    python_admin,
    python_consumer,
    python_read,
    python_take,
)

KE = ck.KafkaError


@pytest.fixture(scope="module")
def python(shared: Cluster) -> Iterator[kafka.KafkaAdminClient]:
    with python_admin(shared.bootstrap) as client:
        yield client


def code_of(futures: dict[Any, Any]) -> int:
    """The error of the only future of an answer."""
    with pytest.raises(ck.KafkaException) as caught:
        confluent_result(futures)
    return int(caught.value.args[0].code())


def fill(cluster: Cluster, topic: str, count: int = 10) -> None:
    with confluent_producer(cluster.bootstrap) as producer:
        for number in range(count):
            producer.produce(topic, b"%d" % number, partition=0)
        assert producer.flush(LIMIT_S) == 0


# ------------------------------------------------------------------------------ kafka-python


def test_admin__kafka_python_creates_describes_and_deletes_topics(
    shared: Cluster, python: kafka.KafkaAdminClient
) -> None:
    new = PythonNewTopic("python-made", 2, 3, topic_configs={"retention.ms": "60000"})
    python.create_topics([new], validate_only=True)
    assert "python-made" not in python.list_topics()
    python.create_topics([new])
    shared.wait_for(isr=("python-made", 1, 3))
    python.wait_for_topics(["python-made"])
    (topic,) = python.describe_topics(["python-made"])
    assert [sorted(part["replica_nodes"]) for part in topic["partitions"]] == [[1, 2, 3]] * 2
    with pytest.raises(TopicAlreadyExistsError):
        python.create_topics([new])
    python.delete_topics(["python-made"])
    assert "python-made" not in {part.topic for part in shared.status().partitions}
    with pytest.raises(UnknownTopicOrPartitionError):
        python.delete_topics(["python-made"])


@pytest.mark.parametrize(
    ("new", "error"),
    [
        (PythonNewTopic("no/slash", 1, 1), InvalidTopicError),
        (PythonNewTopic("x", 0, 1), InvalidPartitionsError),
        (PythonNewTopic("x", 1, 4), InvalidReplicationFactorError),
        (PythonNewTopic("x", 1, 1, topic_configs={"retention": "1"}), InvalidConfigurationError),
        (PythonNewTopic("x", 1, 1, topic_configs={"retention.ms": "x"}), InvalidConfigurationError),
    ],
    ids=["name", "partitions", "replication factor", "config's name", "config's value"],
)
def test_admin__kafka_python_gets_the_error_of_a_wrong_topic(
    python: kafka.KafkaAdminClient, new: PythonNewTopic, error: type[Exception]
) -> None:
    with pytest.raises(error):
        python.create_topics([new])


def test_admin__kafka_python_adds_partitions(
    shared: Cluster, python: kafka.KafkaAdminClient, topic: str
) -> None:
    python.create_partitions({topic: 3})
    shared.wait_for(isr=(topic, 2, 3))
    with pytest.raises(InvalidPartitionsError):
        python.create_partitions({topic: 2})
    with pytest.raises(UnknownTopicOrPartitionError):
        python.create_partitions({"nowhere": 2})


def test_admin__kafka_python_describes_and_alters_configs(
    python: kafka.KafkaAdminClient, topic: str
) -> None:
    altered = python.alter_configs([PythonResource("TOPIC", topic, {"retention.ms": "60000"})])
    assert altered == {"topic": {topic: "OK"}}
    shown = python.describe_configs([PythonResource("TOPIC", topic)])["topic"][topic]
    assert shown["retention.ms"]["value"] == "60000"
    python.reset_configs([PythonResource("TOPIC", topic, ["retention.ms"])])
    shown = python.describe_configs([PythonResource("TOPIC", topic)])["topic"][topic]
    assert "retention.ms" not in shown
    refused = python.alter_configs([PythonResource("TOPIC", topic, {"retention.ms": "soon"})])
    assert "InvalidConfigurationError" in refused["topic"][topic]
    broker = python.describe_configs([PythonResource("BROKER", "1")], config_filter="all")
    assert broker["broker"]["1"]["num.partitions"]["value"] == "1"


def test_admin__kafka_python_describes_groups_and_their_offsets(
    shared: Cluster, python: kafka.KafkaAdminClient, topic: str, group: str
) -> None:
    fill(shared, topic)
    part = kafka.TopicPartition(topic, 0)
    with python_consumer(shared.bootstrap, topic, group_id=group, client_id="me") as consumer:
        python_take(consumer, 10)
        consumer.commit()
        assert group in {listed["group_id"] for listed in python.list_groups()}
        described = python.describe_groups([group])[group]
        assert described["group_state"] == "Stable"
        (member,) = described["members"]
        assert (member["client_id"], member["client_host"]) == ("me", "/127.0.0.1")
        refused = python.delete_groups([group])
        assert NonEmptyGroupError.__name__ in str(refused)
    assert python.describe_groups([group])[group]["group_state"] == "Empty"
    assert python.list_group_offsets(group)[group][part].offset == 10
    python.alter_group_offsets(group, {part: kafka.OffsetAndMetadata(4, "", 0)})
    assert python.list_group_offsets(group)[group][part].offset == 4
    python.delete_group_offsets(group, [part])
    assert python.list_group_offsets(group)[group] == {}
    python.delete_groups([group])
    assert group not in {listed["group_id"] for listed in python.list_groups()}


def test_admin__kafka_python_deletes_records(
    shared: Cluster, python: kafka.KafkaAdminClient, topic: str
) -> None:
    fill(shared, topic)
    part = kafka.TopicPartition(topic, 0)
    assert python.delete_records({part: 4})[part]["low_watermark"] == 4
    assert [record.offset for record in python_read(shared.bootstrap, topic)] == list(range(4, 10))
    with pytest.raises(OffsetOutOfRangeError):
        python.delete_records({part: 11})
    assert python.delete_records({part: -1})[part]["low_watermark"] == 10


def test_admin__kafka_python_describes_the_cluster(
    shared: Cluster, python: kafka.KafkaAdminClient
) -> None:
    described = python.describe_cluster()
    assert described["cluster_id"] == shared.status().cluster_id
    addresses = {at["broker_id"]: (at["host"], at["port"]) for at in described["brokers"]}
    assert addresses == shared.plan.addresses


def test_admin__kafka_python_elects_leaders_and_lists_offsets(
    shared: Cluster, python: kafka.KafkaAdminClient, topic: str
) -> None:
    fill(shared, topic)
    preferred = shared.leader(topic, 0)
    shared.move(topic, 0, preferred % 3 + 1)
    python.elect_leaders(0, {topic: [0]})
    shared.wait_for(leader=(topic, 0, preferred))
    python.elect_leaders(0, {topic: [0]})  # not needed, which this client treats as success
    part = kafka.TopicPartition(topic, 0)
    assert python.list_partition_offsets({part: -1})[part].offset == 10
    assert python.list_partition_offsets({part: -2})[part].offset == 0
    found = python.describe_topic_partitions([topic])["topics"][0]["partitions"][0]
    assert found["leader_id"] == preferred


# ---------------------------------------------------------------------------- confluent-kafka


def test_admin__confluent_creates_describes_and_deletes_topics(
    shared: Cluster, admin: AdminClient
) -> None:
    new = NewTopic("confluent-made", 2, replica_assignment=[[1, 2], [2, 3]])
    confluent_result(admin.create_topics([new], validate_only=True))
    assert "confluent-made" not in admin.list_topics(timeout=LIMIT_S).topics
    confluent_result(admin.create_topics([new]))
    shared.wait_for(isr=("confluent-made", 1, 2))
    assert code_of(admin.create_topics([new])) == KE.TOPIC_ALREADY_EXISTS
    described = confluent_result(admin.describe_topics(ck.TopicCollection(["confluent-made"])))
    replicas = [[node.id for node in part.replicas] for part in described.partitions]
    assert replicas == [[1, 2], [2, 3]]
    assert [part.leader.id for part in described.partitions] == [1, 2]
    confluent_result(admin.delete_topics(["confluent-made"]))
    assert code_of(admin.delete_topics(["confluent-made"])) == KE.UNKNOWN_TOPIC_OR_PART


@pytest.mark.parametrize(
    ("new", "error"),
    [
        (NewTopic("no/slash", 1, 1), KE.TOPIC_EXCEPTION),
        (NewTopic("x", 1, 4), KE.INVALID_REPLICATION_FACTOR),
        (NewTopic("x", 1, replica_assignment=[[1, 1]]), KE.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("x", 1, replica_assignment=[[9]]), KE.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("x", 1, 1, config={"retention.mss": "1"}), KE.INVALID_CONFIG),
        (NewTopic("x", 1, 1, config={"cleanup.policy": "burn"}), KE.INVALID_CONFIG),
    ],
    ids=["name", "replication factor", "replica twice", "no such broker", "config", "value"],
)
def test_admin__confluent_gets_the_error_of_a_wrong_topic(
    admin: AdminClient, new: NewTopic, error: int
) -> None:
    assert code_of(admin.create_topics([new])) == error


def test_admin__confluent_adds_partitions(shared: Cluster, admin: AdminClient, topic: str) -> None:
    new = NewPartitions(topic, 3, replica_assignment=[[1, 2, 3], [2, 3, 1]])
    confluent_result(admin.create_partitions([new]))
    shared.wait_for(isr=(topic, 2, 3))
    assert code_of(admin.create_partitions([NewPartitions(topic, 2)])) == KE.INVALID_PARTITIONS


def test_admin__confluent_describes_and_alters_configs(admin: AdminClient, topic: str) -> None:
    def shown() -> dict[str, ConfigEntry]:
        found: dict[str, ConfigEntry] = confluent_result(
            admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)])
        )
        return found

    def alter(name: str, value: str | None, kind: AlterConfigOpType) -> dict[Any, Any]:
        entry = ConfigEntry(name, value, incremental_operation=kind)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        answer: dict[Any, Any] = admin.incremental_alter_configs([resource])
        return answer

    confluent_result(alter("cleanup.policy", "compact", AlterConfigOpType.APPEND))
    assert shown()["cleanup.policy"].value == "delete,compact"
    confluent_result(alter("cleanup.policy", None, AlterConfigOpType.DELETE))
    assert shown()["cleanup.policy"].value == "delete"
    assert shown()["cleanup.policy"].is_default
    assert code_of(alter("no.such.config", "1", AlterConfigOpType.SET)) == KE.INVALID_CONFIG
    assert code_of(alter("retention.ms", "soon", AlterConfigOpType.SET)) == KE.INVALID_CONFIG


def test_admin__a_changed_config_takes_effect_at_once(
    shared: Cluster, admin: AdminClient, topic: str
) -> None:
    entry = ConfigEntry("max.message.bytes", "100", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    confluent_result(admin.incremental_alter_configs([resource]))
    errors: list[Any] = []
    with confluent_producer(shared.bootstrap) as producer:
        producer.produce(topic, b"x" * 100, on_delivery=lambda error, _: errors.append(error))
        producer.flush(LIMIT_S)
    assert errors[0].code() == KE.MSG_SIZE_TOO_LARGE


def test_admin__confluent_describes_groups_and_their_offsets(
    shared: Cluster, admin: AdminClient, topic: str, group: str
) -> None:
    fill(shared, topic)
    with confluent_consumer(shared.bootstrap, group_id=group, client_id="me") as consumer:
        consumer.subscribe([topic])
        confluent_take(consumer, 10)
        consumer.commit(asynchronous=False)
        listed = admin.list_consumer_groups().result(LIMIT_S)
        assert group in {found.group_id for found in listed.valid}
        assert not listed.errors
        described = confluent_result(admin.describe_consumer_groups([group]))
        assert described.state == ck.ConsumerGroupState.STABLE
        assert [member.client_id for member in described.members] == ["me"]
        assert described.coordinator.id in shared.broker_ids
        assert code_of(admin.delete_consumer_groups([group])) == KE.NON_EMPTY_GROUP
    place = ck.TopicPartition(topic, 0)
    request = [ck.ConsumerGroupTopicPartitions(group, [place])]
    found = confluent_result(admin.list_consumer_group_offsets(request))
    assert [at.offset for at in found.topic_partitions] == [10]
    wanted = [ck.ConsumerGroupTopicPartitions(group, [ck.TopicPartition(topic, 0, 4)])]
    confluent_result(admin.alter_consumer_group_offsets(wanted))
    found = confluent_result(admin.list_consumer_group_offsets(request))
    assert [at.offset for at in found.topic_partitions] == [4]
    confluent_result(admin.delete_consumer_groups([group]))
    assert code_of(admin.delete_consumer_groups([group])) == KE.GROUP_ID_NOT_FOUND


def test_admin__confluent_deletes_records(shared: Cluster, admin: AdminClient, topic: str) -> None:
    fill(shared, topic)
    deleted = confluent_result(admin.delete_records([ck.TopicPartition(topic, 0, 4)]))
    assert deleted.low_watermark == 4
    assert [r.offset for r in confluent_read(shared.bootstrap, topic)] == list(range(4, 10))
    beyond = admin.delete_records([ck.TopicPartition(topic, 0, 11)])
    assert code_of(beyond) == KE.OFFSET_OUT_OF_RANGE


def test_admin__confluent_describes_the_cluster(shared: Cluster, admin: AdminClient) -> None:
    described = admin.describe_cluster().result(LIMIT_S)
    assert described.cluster_id == shared.status().cluster_id
    assert {node.id: (node.host, node.port) for node in described.nodes} == shared.plan.addresses
    assert described.controller.id in shared.broker_ids


def test_admin__confluent_elects_leaders_and_lists_offsets(
    shared: Cluster, admin: AdminClient, make_topic: MakeTopic
) -> None:
    topic = make_topic(2)
    fill(shared, topic)
    preferred = shared.leader(topic, 0)
    shared.move(topic, 0, preferred % 3 + 1)
    parts = [ck.TopicPartition(topic, partition) for partition in (0, 1)]
    elected = admin.elect_leaders(ck.ElectionType.PREFERRED, parts).result(LIMIT_S)
    assert elected[parts[0]] is None
    assert elected[parts[1]].code() == KE.ELECTION_NOT_NEEDED
    shared.wait_for(leader=(topic, 0, preferred))
    for spec, offset in (
        (OffsetSpec.latest(), 10),
        (OffsetSpec.earliest(), 0),
        (OffsetSpec.max_timestamp(), 9),
        (OffsetSpec.for_timestamp(1), 0),
    ):
        found = confluent_result(admin.list_offsets({parts[0]: spec}))
        assert (found.offset <= offset) if offset == 9 else (found.offset == offset)
