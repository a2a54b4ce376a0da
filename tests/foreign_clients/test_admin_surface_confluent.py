"""confluent-kafka's admin client: topics, partitions and configs, as Apache Kafka 4.3.1 answers.

Its other methods: test_admin_surface_confluent_groups.py.  These tests also passed
against three real brokers.
"""

from __future__ import annotations

from typing import Any

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import (
    AclOperation,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from kcluster.handle.cluster import Cluster
from tests.foreign_clients.conftest import MakeTopic
from tests.foreign_clients.real_clients import (
    KEPT,
    LIMIT_S,
    comes_to,
    confluent_filled,
    confluent_outcomes,
    confluent_result,
    until,
)

KE = ck.KafkaError
RECORDS = 10
NOWHERE = ck.TopicPartition("nowhere", 0)
Spec: Any = OffsetSpec


@pytest.fixture
def filled(shared: Cluster, make_topic: MakeTopic) -> str:
    """Records 0 to 9, stamped 1000, 2000 … ms, in the first of two partitions."""
    return confluent_filled(shared.bootstrap, make_topic(2, **KEPT), RECORDS)


def described(admin: AdminClient, topic: str, **more: Any) -> Any:
    """The description of a topic, once the broker that answers knows it."""

    def answer() -> Any:
        answers = confluent_outcomes(admin.describe_topics(ck.TopicCollection([topic]), **more))
        return None if answers[topic] == KE.UNKNOWN_TOPIC_OR_PART else answers[topic]

    return until(answer, f"description of {topic}")


def replicas(admin: AdminClient, topic: str) -> list[list[int]]:
    return [[node.id for node in at.replicas] for at in described(admin, topic).partitions]


# ------------------------------------------------------------------------------------ topics


def test_admin_surface__topics_are_created_described_and_deleted(admin: AdminClient) -> None:
    wanted = [
        NewTopic("confluent-a", 2, 3, config={"flush.ms": "7"}),
        NewTopic("confluent-b", 2, replica_assignment=[[3, 1], [2, 3]]),
        NewTopic("confluent-c", 1, 9),
    ]
    answers = {
        "confluent-a": None,
        "confluent-b": None,
        "confluent-c": KE.INVALID_REPLICATION_FACTOR,
    }
    assert confluent_outcomes(admin.create_topics(wanted, validate_only=True)) == answers
    assert "confluent-a" not in admin.list_topics(timeout=LIMIT_S).topics
    assert confluent_outcomes(admin.create_topics(wanted, operation_timeout=LIMIT_S)) == answers
    comes_to(lambda: replicas(admin, "confluent-b"), [[3, 1], [2, 3]])
    found = described(admin, "confluent-a", include_authorized_operations=True)
    assert (found.name, found.is_internal, len(found.partitions)) == ("confluent-a", False, 2)
    assert [len(at.isr) for at in found.partitions] == [3, 3]
    everything = {"READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE"}
    everything |= {"DESCRIBE_CONFIGS", "ALTER_CONFIGS"}
    assert {AclOperation(operation).name for operation in found.authorized_operations} == everything
    assert described(admin, "confluent-a").authorized_operations is None
    gone = admin.delete_topics(["confluent-a", "confluent-b", "nowhere"], operation_timeout=LIMIT_S)
    assert confluent_outcomes(gone) == {
        "confluent-a": None,
        "confluent-b": None,
        "nowhere": KE.UNKNOWN_TOPIC_OR_PART,
    }
    comes_to(lambda: "confluent-a" in admin.list_topics(timeout=LIMIT_S).topics, False)
    unknown = admin.describe_topics(ck.TopicCollection(["nowhere", "no/slash"]))
    assert confluent_outcomes(unknown) == {
        "nowhere": KE.UNKNOWN_TOPIC_OR_PART,
        "no/slash": KE.TOPIC_EXCEPTION,
    }


def test_admin_surface__metadata_of_all_topics_or_of_one(
    shared: Cluster, admin: AdminClient, topic: str
) -> None:
    found = admin.list_topics(topic, timeout=LIMIT_S)
    assert list(found.topics) == [topic]
    at = found.topics[topic].partitions[0]
    assert sorted(at.replicas) == sorted(at.isrs) == [1, 2, 3]
    assert (at.leader, at.error) == (at.replicas[0], None)
    assert topic in admin.list_topics(timeout=LIMIT_S).topics
    addresses = {f"{node.host}:{node.port}" for node in found.brokers.values()}
    assert addresses == set(shared.bootstrap.split(","))
    assert found.controller_id in found.brokers
    unknown: Any = admin.list_topics("no/slash", timeout=LIMIT_S).topics["no/slash"]
    assert (unknown.error.code(), unknown.partitions) == (KE.TOPIC_EXCEPTION, {})


def test_admin_surface__partitions_are_added_on_the_given_brokers(
    admin: AdminClient, topic: str
) -> None:
    def answer(*new: NewPartitions, **more: Any) -> int | None:
        found: int | None = confluent_outcomes(admin.create_partitions(list(new), **more))[topic]
        return found

    assert answer(NewPartitions(topic, 9), validate_only=True) is None
    assert answer(NewPartitions(topic, 2, replica_assignment=[[2, 1, 3]])) is None
    comes_to(lambda: replicas(admin, topic)[1:], [[2, 1, 3]])
    for new_total, assignment, error in (
        (3, [[2, 1]], KE.INVALID_REPLICA_ASSIGNMENT),
        (3, [[2, 1, 9]], KE.INVALID_REPLICA_ASSIGNMENT),
        (2, None, KE.INVALID_PARTITIONS),
        (1, None, KE.INVALID_PARTITIONS),
    ):
        more = {"replica_assignment": assignment} if assignment else {}
        assert answer(NewPartitions(topic, new_total, **more)) == error
    unknown = admin.create_partitions([NewPartitions("nowhere", 2)])
    assert confluent_outcomes(unknown) == {"nowhere": KE.UNKNOWN_TOPIC_OR_PART}


# --------------------------------------------------------------------------------- partitions


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (Spec.earliest(), (0, -1)),
        (Spec.latest(), (RECORDS, -1)),
        (Spec.max_timestamp(), (RECORDS - 1, 10_000)),
        (Spec.for_timestamp(3_500), (3, 4_000)),
        (Spec.for_timestamp(99_000), (-1, -1)),
    ],
    ids=["earliest", "latest", "max", "timestamp", "later"],
)
def test_admin_surface__offsets_are_found(
    admin: AdminClient, filled: str, spec: OffsetSpec, expected: tuple[int, int]
) -> None:
    place = ck.TopicPartition(filled, 0)
    committed = ck.IsolationLevel.READ_COMMITTED
    found = confluent_result(admin.list_offsets({place: spec}, isolation_level=committed))
    assert (found.offset, found.timestamp) == expected
    unknown = admin.list_offsets({NOWHERE: spec})
    assert confluent_outcomes(unknown) == {NOWHERE: KE._NOENT}


def test_admin_surface__records_are_deleted(admin: AdminClient, filled: str) -> None:
    def delete(offset: int) -> Any:
        place = ck.TopicPartition(filled, 0, offset)
        return confluent_outcomes(admin.delete_records([place], operation_timeout=LIMIT_S))[place]

    assert [delete(4).low_watermark, delete(2).low_watermark] == [4, 4]
    assert delete(RECORDS + 1) == KE.OFFSET_OUT_OF_RANGE
    assert delete(ck.OFFSET_END).low_watermark == RECORDS
    place = ck.TopicPartition(filled, 0)
    found = confluent_result(admin.list_offsets({place: Spec.earliest()}))
    assert found.offset == RECORDS


@pytest.mark.parametrize("kind", [ck.ElectionType.PREFERRED, ck.ElectionType.UNCLEAN])
def test_admin_surface__an_unneeded_election_fails(
    admin: AdminClient, topic: str, kind: ck.ElectionType
) -> None:
    place = ck.TopicPartition(topic, 0)
    answer = admin.elect_leaders(kind, [place, NOWHERE]).result(LIMIT_S)
    assert {at: error and error.code() for at, error in answer.items()} == {
        place: KE.ELECTION_NOT_NEEDED,
        NOWHERE: KE.UNKNOWN_TOPIC_OR_PART,
    }
    everywhere = admin.elect_leaders(kind, None).result(LIMIT_S)
    assert place not in everywhere


# ------------------------------------------------------------------------------------ configs

TOPIC, BROKER = ResourceType.TOPIC, ResourceType.BROKER
SET, DELETE = AlterConfigOpType.SET, AlterConfigOpType.DELETE
APPEND, SUBTRACT = AlterConfigOpType.APPEND, AlterConfigOpType.SUBTRACT


def configs(admin: AdminClient, kind: ResourceType, name: str) -> dict[str, ConfigEntry]:
    found: dict[str, ConfigEntry] = confluent_result(
        admin.describe_configs([ConfigResource(kind, name)])
    )
    return found


def alter(
    admin: AdminClient,
    kind: ResourceType,
    name: str,
    *changes: tuple[str, str | None, Any],
    **more: Any,
) -> int | None:
    """The error's code, or None."""
    entries = [ConfigEntry(key, value, incremental_operation=how) for key, value, how in changes]
    resource = ConfigResource(kind, name, incremental_configs=entries)
    answer = confluent_outcomes(admin.incremental_alter_configs([resource], **more))
    code: int | None = answer[resource]
    return code


CONFIGS = [
    # resource, config, valid value, invalid value, error for the invalid one
    (TOPIC, None, "retention.ms", "60000", "soon", KE.INVALID_CONFIG),
    (BROKER, "2", "log.cleaner.threads", "2", "none", KE.INVALID_REQUEST),
    (
        ResourceType.GROUP,
        "confluent",
        "consumer.session.timeout.ms",
        "50000",
        "1",
        KE.INVALID_CONFIG,
    ),
]


@pytest.mark.parametrize(("kind", "name", "config", "value", "wrong", "error"), CONFIGS)
def test_admin_surface__a_config_is_altered_and_reset(
    admin: AdminClient,
    topic: str,
    kind: ResourceType,
    name: str | None,
    config: str,
    value: str,
    wrong: str,
    error: int,
) -> None:
    name = name or topic

    def shown() -> str | None:
        found = configs(admin, kind, name).get(config)
        return found.value if found else None

    before = shown()
    assert alter(admin, kind, name, (config, value, SET), validate_only=True) is None
    assert shown() == before
    assert alter(admin, kind, name, (config, value, SET)) is None
    comes_to(shown, value)
    assert alter(admin, kind, name, (config, wrong, SET)) == error
    assert alter(admin, kind, name, (config, None, DELETE)) is None
    comes_to(shown, before)


def test_admin_surface__list_values_are_appended_to_subtracted_from_and_replaced(
    admin: AdminClient, topic: str
) -> None:
    def modified() -> dict[str, str | None]:
        found = configs(admin, TOPIC, topic).values()
        return {at.name: at.value for at in found if not at.is_default}

    before = modified()
    assert alter(admin, TOPIC, topic, ("cleanup.policy", "compact", APPEND)) is None
    comes_to(modified, {**before, "cleanup.policy": "delete,compact"})
    assert alter(admin, TOPIC, topic, ("cleanup.policy", "delete", SUBTRACT)) is None
    comes_to(modified, {**before, "cleanup.policy": "compact"})
    assert alter(admin, TOPIC, topic, ("flush.ms", "1", APPEND)) == KE.INVALID_CONFIG
    both = [("flush.ms", "1", SET), ("retention.ms", "soon", SET)]
    assert alter(admin, TOPIC, topic, *both) == KE.INVALID_CONFIG
    assert alter(admin, TOPIC, topic, ("no.such", "1", SET)) == KE.INVALID_CONFIG
    whole = ConfigResource(TOPIC, topic, set_config={"flush.ms": "7"})
    unknown = ConfigResource(TOPIC, "nowhere", set_config={"flush.ms": "7"})
    with pytest.warns(DeprecationWarning, match="incremental_alter_configs"):
        answer = admin.alter_configs([whole, unknown])
    assert confluent_outcomes(answer) == {whole: None, unknown: KE.UNKNOWN_TOPIC_OR_PART}
    comes_to(modified, {**before, "flush.ms": "7"})


def test_admin_surface__a_value_has_its_source_and_synonyms(admin: AdminClient) -> None:
    def value_with_source() -> tuple[Any, ...]:
        found = configs(admin, BROKER, "3")["log.cleaner.threads"]
        synonyms = [(ConfigSource(at.source).name, at.value) for at in found.synonyms.values()]
        return ConfigSource(found.source).name, found.value, found.is_default, synonyms

    by_default = ("DEFAULT_CONFIG", "1", True, [("DEFAULT_CONFIG", "1")])
    comes_to(value_with_source, by_default)
    assert alter(admin, BROKER, "3", ("log.cleaner.threads", "2", SET)) is None
    comes_to(value_with_source, ("DYNAMIC_BROKER_CONFIG", "2", False, [("DEFAULT_CONFIG", "1")]))
    assert alter(admin, BROKER, "3", ("log.cleaner.threads", None, DELETE)) is None
    comes_to(value_with_source, by_default)
    assert alter(admin, BROKER, "3", ("node.id", "7", SET)) == KE.INVALID_REQUEST
    shown = configs(admin, BROKER, "3")
    assert (shown["node.id"].value, shown["node.id"].is_read_only) == ("3", True)
    assert ConfigSource(shown["node.id"].source) is ConfigSource.STATIC_BROKER_CONFIG
    nowhere = ConfigResource(TOPIC, "nowhere")
    unknown = admin.describe_configs([nowhere])
    assert confluent_outcomes(unknown) == {nowhere: KE.UNKNOWN_TOPIC_OR_PART}
