"""kafka-python's admin client: topics, partitions and configs, as Apache Kafka 4.3.1 answers.

Its other methods: test_admin_surface_python_groups.py.  These tests also passed against
three real brokers.
"""

from __future__ import annotations

import uuid
from functools import partial
from typing import Any, TypeAlias

import kafka
import kafka.errors as ke
import pytest
from kafka import TopicPartition
from kafka.admin import ConfigResource, OffsetSpec, OffsetTimestamp

from kcluster.handle.cluster import Cluster
from tests.foreign_clients.conftest import MakeTopic
from tests.foreign_clients.real_clients import KEPT, comes_to, python_filled

PREFERRED, UNCLEAN = 0, 1
BROKERS = (1, 2, 3)
RECORDS = 10
NOWHERE = TopicPartition("nowhere", 0)

Admin: TypeAlias = kafka.KafkaAdminClient


@pytest.fixture
def filled(shared: Cluster, make_topic: MakeTopic) -> TopicPartition:
    """Records 0 to 9, stamped 1000, 2000 … ms, in the first of two partitions."""
    return python_filled(shared.bootstrap, make_topic(2, **KEPT), RECORDS)


def leader_of(admin: Admin, at: TopicPartition) -> int:
    (found,) = admin.describe_topics([at.topic])
    leaders = {p["partition_index"]: p["leader_id"] for p in found["partitions"]}
    leader = leaders[at.partition]
    assert isinstance(leader, int)
    return leader


# ------------------------------------------------------------------------------------ topics


def test_admin_surface__topics_are_created_described_by_id_and_deleted(python: Admin) -> None:
    wanted = {
        "surface-a": {"num_partitions": 2, "replication_factor": 3, "configs": {"flush.ms": "7"}},
        "surface-b": {"assignments": {0: [3, 1], 1: [2, 3]}},
    }
    made = python.create_topics(wanted, wait_for_metadata=True)["topics"]
    shapes = {at["name"]: (at["num_partitions"], at["replication_factor"]) for at in made}
    assert shapes == {"surface-a": (2, 3), "surface-b": (2, 2)}
    ids = {at["name"]: uuid.UUID(at["topic_id"]) for at in made}
    flush = next(at["configs"]["flush.ms"] for at in made if at["name"] == "surface-a")
    assert (flush["value"], flush["config_source"]) == ("7", "DYNAMIC_TOPIC_CONFIG")
    assert set(wanted) <= set(python.list_topics())
    (found,) = python.describe_topics([ids["surface-b"]])
    assert found["name"] == "surface-b"
    assert [part["replica_nodes"] for part in found["partitions"]] == [[3, 1], [2, 3]]
    assert {"READ", "WRITE", "ALTER_CONFIGS"} <= set(found["authorized_operations"])
    (again,) = python.create_topics(["surface-a"], raise_errors=False)["topics"]
    assert (again["error_code"], again["topic_id"]) == (ke.TopicAlreadyExistsError.errno, None)
    deleted = python.delete_topics([ids["surface-b"]])["topics"]
    assert [at["name"] for at in deleted] == ["surface-b"]
    comes_to(lambda: "surface-b" in python.list_topics(), False)
    with pytest.raises(ke.UnknownTopicIdError):
        python.delete_topics([ids["surface-b"]])
    (refused,) = python.delete_topics(["nowhere"], raise_errors=False)["topics"]
    assert refused["error_code"] == ke.UnknownTopicOrPartitionError.errno


def test_admin_surface__waiting_for_an_unknown_topic_times_out(python: Admin) -> None:
    (by_name, by_id) = python.describe_topics(["nowhere"]) + python.describe_topics([uuid.uuid4()])
    assert by_name["error_code"] == ke.UnknownTopicOrPartitionError.errno
    assert (by_id["error_code"], by_id["name"]) == (ke.UnknownTopicIdError.errno, None)
    with pytest.raises(ke.KafkaTimeoutError, match="UnknownTopicOrPartition"):
        python.wait_for_topics(["nowhere"], timeout_ms=100)


def test_admin_surface__partitions_are_added_on_the_given_brokers(
    python: Admin, topic: str
) -> None:
    python.create_partitions({topic: 9}, validate_only=True)
    python.create_partitions({topic: {"count": 2, "assignments": [[2, 1, 3]]}})
    comes_to(
        lambda: [
            (part["partition_index"], part["replica_nodes"][0])
            for part in python.describe_topic_partitions([topic])["topics"][0]["partitions"][1:]
        ],
        [(1, 2)],
    )
    for wrong, error in (
        ({"count": 3, "assignments": [[2, 1]]}, ke.InvalidReplicationAssignmentError),
        ({"count": 4, "assignments": [[2, 1, 3]]}, ke.InvalidReplicationAssignmentError),
        (2, ke.InvalidPartitionsError),
    ):
        with pytest.raises(error):
            python.create_partitions({topic: wrong})


def test_admin_surface__partitions_are_described_page_by_page(
    python: Admin, make_topic: MakeTopic
) -> None:
    topic = make_topic(3)
    first = python.describe_topic_partitions([topic], response_partition_limit=2)
    assert first["next_cursor"] == {"topic_name": topic, "partition_index": 2}
    last = python.describe_topic_partitions([topic], cursor=first["next_cursor"])
    pages = [page["topics"][0]["partitions"] for page in (first, last)]
    assert [[part["partition_index"] for part in page] for page in pages] == [[0, 1], [2]]
    assert last["next_cursor"] is None
    (unknown,) = python.describe_topic_partitions(["nowhere"])["topics"]
    assert unknown["error_code"] == ke.UnknownTopicOrPartitionError.errno


# --------------------------------------------------------------------------------- partitions


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (OffsetSpec.EARLIEST, (0, -1)),
        (OffsetSpec.LATEST, (RECORDS, -1)),
        (OffsetSpec.MAX_TIMESTAMP, (RECORDS - 1, 10_000)),
        (OffsetSpec.EARLIEST_LOCAL, (0, -1)),
        (OffsetSpec.LATEST_TIERED, (-1, -1)),
        (OffsetTimestamp(3_500), (3, 4_000)),
        (OffsetTimestamp(99_000), (-1, -1)),
    ],
)
def test_admin_surface__offsets_are_found(
    python: Admin, filled: TopicPartition, spec: Any, expected: tuple[int, int]
) -> None:
    found = python.list_partition_offsets({filled: spec}, isolation_level="read_committed")[filled]
    assert (found.offset, found.timestamp) == expected
    with pytest.raises(ke.UnknownTopicOrPartitionError):
        python.list_partition_offsets({NOWHERE: spec})


def test_admin_surface__only_the_leader_deletes_records(
    python: Admin, filled: TopicPartition
) -> None:
    assert python.delete_records({filled: 4})[filled]["low_watermark"] == 4
    earliest = python.list_partition_offsets({filled: OffsetSpec.EARLIEST})
    assert earliest[filled].offset == 4
    other = leader_of(python, filled) % 3 + 1
    with pytest.raises(ke.NotLeaderForPartitionError):
        python.delete_records({filled: 5}, partition_leader_id=other)


@pytest.mark.parametrize("kind", [PREFERRED, UNCLEAN])
def test_admin_surface__an_unneeded_election_fails(python: Admin, topic: str, kind: int) -> None:
    answer = python.elect_leaders(kind, {topic: [0], "nowhere": [0]}, raise_errors=False)
    errors = {at.topic: at.partition_result[0].error_code for at in answer.replica_election_results}
    assert errors == {
        topic: ke.ElectionNotNeededError.errno,
        "nowhere": ke.UnknownTopicOrPartitionError.errno,
    }


def test_admin_surface__a_partition_moves_and_can_lead_elsewhere(python: Admin, topic: str) -> None:
    at = TopicPartition(topic, 0)
    (found,) = python.describe_topics([topic])
    wanted = found["partitions"][0]["replica_nodes"][::-1]
    assert python.alter_partition_reassignments({at: wanted}) == {at: None}
    comes_to(lambda: python.list_partition_reassignments([at]), {})
    python.elect_leaders(PREFERRED, {topic: [0]})
    comes_to(lambda: leader_of(python, at), wanted[0])
    cancelled = python.alter_partition_reassignments({at: None})
    assert cancelled == {at: ke.NoReassignmentInProgressError}


def test_admin_surface__producers_of_a_partition(python: Admin, filled: TopicPartition) -> None:
    empty = TopicPartition(filled.topic, 1)
    found = python.describe_producers([filled, empty])
    (producer,) = found[filled].active_producers
    assert (producer.producer_epoch, producer.last_sequence) == (0, RECORDS - 1)
    assert (producer.last_timestamp, producer.current_transaction_start_offset) == (10_000, -1)
    assert found[empty].active_producers == []


def test_admin_surface__there_are_no_transactions(python: Admin) -> None:
    assert python.list_transactions() == {broker_id: [] for broker_id in BROKERS}
    assert python.list_transactions(broker_ids=[2], state_filters=["Ongoing"]) == {2: []}
    assert python.find_hanging_transactions() == []
    with pytest.raises((ke.CoordinatorNotAvailableError, ke.TransactionalIdNotFoundError)):
        python.describe_transactions(["nobody's"])


# ------------------------------------------------------------------------------------ configs


CONFIGS = [
    # resource, config, valid value, invalid value, error for the invalid one
    ("topic", None, "retention.ms", "60000", "soon", ke.InvalidConfigurationError),
    ("broker", "2", "log.cleaner.threads", "2", "none", ke.InvalidRequestError),
    ("broker_logger", "2", "kafka.server.KafkaApis", "TRACE", "LOUD", ke.InvalidConfigurationError),
    ("client_metrics", "surface", "interval.ms", "1000", "1", ke.InvalidRequestError),
    ("group", "surface", "consumer.session.timeout.ms", "50000", "1", ke.InvalidConfigurationError),
]


@pytest.mark.parametrize(("kind", "name", "config", "value", "wrong", "error"), CONFIGS)
def test_admin_surface__a_config_is_altered_and_reset(
    python: Admin,
    topic: str,
    kind: str,
    name: str | None,
    config: str,
    value: str,
    wrong: str,
    error: type[Exception],
) -> None:
    name = name or topic

    def shown() -> str | None:
        resources = [ConfigResource(kind, name, [config])]
        entry = python.describe_configs(resources, config_filter="all")[kind][name].get(config)
        value: str | None = entry and entry["value"]
        return value

    before = shown()
    done = {kind: {name: "OK"}}
    wanted = [ConfigResource(kind, name, {config: value})]
    assert python.alter_configs(wanted, validate_only=True) == done
    assert shown() == before
    assert python.alter_configs(wanted) == done
    comes_to(shown, value)
    refused = python.alter_configs([ConfigResource(kind, name, {config: wrong})])
    assert error.__name__ in refused[kind][name]
    assert python.reset_configs([ConfigResource(kind, name, [config])]) == done
    comes_to(shown, before)


def test_admin_surface__list_values_are_appended_to_subtracted_from_and_reset(
    python: Admin, topic: str
) -> None:
    def modified() -> dict[str, str]:
        configs = python.describe_configs([ConfigResource("TOPIC", topic)])["topic"][topic]
        return {name: config["value"] for name, config in configs.items()}

    def alter(changes: dict[str, Any], **more: Any) -> str:
        result = python.alter_configs([ConfigResource("TOPIC", topic, changes)], **more)
        return str(result["topic"][topic])

    assert alter({"cleanup.policy": ("APPEND", "compact")}) == "OK"
    comes_to(modified, {"cleanup.policy": "delete,compact"})
    assert alter({"cleanup.policy": ("SUBTRACT", "delete")}) == "OK"
    comes_to(modified, {"cleanup.policy": "compact"})
    assert "InvalidConfigurationError" in alter({"flush.ms": ("APPEND", "1")})
    assert alter({"flush.ms": "7"}, incremental=False) == "OK"
    comes_to(modified, {"cleanup.policy": "compact", "flush.ms": "7"})
    python.reset_configs([ConfigResource("TOPIC", topic, ["flush.ms"])], incremental=False)
    comes_to(modified, {"cleanup.policy": "compact"})
    python.reset_configs([ConfigResource("TOPIC", topic, [])])
    comes_to(modified, {})
    with pytest.raises(ValueError, match="Unrecognized"):
        alter({"no.such": "1"})
    assert "InvalidConfigurationError" in alter({"no.such": "1"}, raise_on_unknown=False)


def test_admin_surface__synonyms_show_the_sources_of_a_value(python: Admin) -> None:
    change = [ConfigResource("BROKER", "3", {"log.cleaner.threads": "2"})]
    python.alter_configs(change)
    resources = [ConfigResource("BROKER", "3", ["log.cleaner.threads"])]

    def sources() -> list[tuple[str, str]]:
        found = python.describe_configs(resources, include_synonyms=True, config_filter="all")
        synonyms = found["broker"]["3"]["log.cleaner.threads"]["synonyms"]
        return [(synonym["source"], synonym["value"]) for synonym in synonyms]

    comes_to(sources, [("DYNAMIC_BROKER_CONFIG", "2"), ("DEFAULT_CONFIG", "1")])
    python.reset_configs(resources)
    comes_to(sources, [("DEFAULT_CONFIG", "1")])
    static = python.describe_configs([ConfigResource("BROKER", "3")], config_filter="static")
    assert static["broker"]["3"]["node.id"]["read_only"]
    fixed = [ConfigResource("BROKER", "3", {"node.id": "7"})]
    refused = python.alter_configs(fixed, raise_on_unknown=False)
    assert "InvalidRequestError" in refused["broker"]["3"]


def test_admin_surface__resources_with_configs_are_listed(python: Admin, topic: str) -> None:
    known = [("CLIENT_METRICS", "listed", {"interval.ms": "1000"})]
    known.append(("GROUP", "listed", {"consumer.session.timeout.ms": "50000"}))
    for kind, name, configs in known:
        python.alter_configs([ConfigResource(kind, name, configs)])
        comes_to(partial(python.list_config_resources, [kind]), {kind.lower(): [name]})
    listed = python.list_config_resources()
    assert topic in listed["topic"]
    assert listed["broker"] == listed["broker_logger"] == [str(broker) for broker in BROKERS]
    for kind, name, configs in known:
        python.reset_configs([ConfigResource(kind, name, list(configs))])
        comes_to(partial(python.list_config_resources, [kind]), {})
