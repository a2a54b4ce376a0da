"""Metadata: the response made from an image, and auto-created topics."""

from __future__ import annotations

import pytest

from kcluster.broker.handlers.metadata.metadata import (
    ALL_CLUSTER_OPERATIONS,
    ALL_TOPIC_OPERATIONS,
    build_metadata,
)
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from tests.rig.one_broker import (
    CLUSTER_ID,
    OneBroker,
    broker_records,
    image_of,
    topic_id,
    topic_records,
)

INT_MIN = -(2**31)


def ask_for(*names: str | None, ids: tuple[bytes, ...] = (), **more: bool) -> m.MetadataRequest:
    new = m.MetadataRequest.MetadataRequestTopic
    topics = [new(name=name) for name in names] + [new(topic_id=id_, name=None) for id_ in ids]
    return m.MetadataRequest(topics=topics, **more)


def topic_errors(response: m.MetadataResponse) -> list[tuple[str | None, ErrorCode]]:
    return [(topic.name, ErrorCode(topic.error_code)) for topic in response.topics]


IMAGE = image_of(
    broker_records(1, 2, 3),
    topic_records("orders", (1, 2, 3), (2, 3, 1)),
    topic_records("audit", (3,)),
)


def test_metadata__null_is_all_topics_and_empty_is_none() -> None:
    every = build_metadata(IMAGE, m.MetadataRequest(topics=None), 1, CLUSTER_ID)
    none = build_metadata(IMAGE, m.MetadataRequest(topics=[]), 1, CLUSTER_ID)
    assert [topic.name for topic in every.topics] == ["orders", "audit"]
    assert none.topics == []
    assert [broker.node_id for broker in none.brokers] == [1, 2, 3]


def test_metadata__an_empty_list_is_all_topics_in_version_0() -> None:
    response = build_metadata(IMAGE, m.MetadataRequest(topics=[]), 0, CLUSTER_ID)
    assert [topic.name for topic in response.topics] == ["orders", "audit"]


def test_metadata__lists_each_topic_once_with_unknown_ones_last() -> None:
    request = ask_for("nope", "audit", "bad name", "orders", "audit")
    assert topic_errors(build_metadata(IMAGE, request, 13, CLUSTER_ID)) == [
        ("audit", ErrorCode.NONE),
        ("orders", ErrorCode.NONE),
        ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("bad name", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ]


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "ü", "x" * 250])
def test_metadata__an_illegal_name_is_an_invalid_topic(name: str) -> None:
    response = build_metadata(IMAGE, ask_for(name), 13, CLUSTER_ID)
    assert topic_errors(response) == [(name, ErrorCode.INVALID_TOPIC_EXCEPTION)]


def test_metadata__names_are_ignored_if_an_id_is_present() -> None:
    unknown = bytes(15) + b"\x01"
    request = ask_for("audit", ids=(topic_id("orders"), unknown))
    response = build_metadata(IMAGE, request, 12, CLUSTER_ID)
    assert topic_errors(response) == [
        (None, ErrorCode.UNKNOWN_TOPIC_ID),
        ("orders", ErrorCode.NONE),
    ]
    assert response.topics[0].topic_id == unknown


@pytest.mark.parametrize(
    ("version", "error"),
    [
        (10, ErrorCode.INVALID_REQUEST),
        (11, ErrorCode.INVALID_REQUEST),
        (12, ErrorCode.NONE),
        (13, ErrorCode.NONE),
    ],
)
def test_metadata__topic_ids_need_version_12(version: int, error: ErrorCode) -> None:
    response = build_metadata(IMAGE, ask_for(ids=(topic_id("audit"),)), version, CLUSTER_ID)
    assert response.topics[0].error_code == error


def test_metadata__neither_name_nor_id_fails_the_whole_request() -> None:
    response = build_metadata(IMAGE, ask_for(None, "audit"), 13, CLUSTER_ID)
    assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert (response.cluster_id, response.controller_id, response.brokers) == (None, -1, [])
    assert topic_errors(response) == [
        ("", ErrorCode.UNKNOWN_SERVER_ERROR),
        ("audit", ErrorCode.UNKNOWN_SERVER_ERROR),
    ]


def test_metadata__partitions_have_leader_epoch_replicas_and_isr() -> None:
    partition = build_metadata(IMAGE, ask_for("orders"), 13, CLUSTER_ID).topics[0].partitions[1]
    assert (partition.partition_index, partition.leader_id, partition.leader_epoch) == (1, 2, 5)
    assert (partition.replica_nodes, partition.isr_nodes) == ([2, 3, 1], [2, 3, 1])
    assert partition.offline_replicas == []


BROKEN = image_of(
    broker_records(1, 2, 3, fenced=(3,)),
    topic_records("half", (1, 3, 9), isr=(1,)),
    topic_records("gone", (3,), leader=-1),
)


def test_metadata__fenced_brokers_are_not_listed_and_their_replicas_are_offline() -> None:
    response = build_metadata(BROKEN, ask_for("half"), 13, CLUSTER_ID)
    assert [broker.node_id for broker in response.brokers] == [1, 2]
    partition = response.topics[0].partitions[0]
    assert (partition.error_code, partition.replica_nodes) == (ErrorCode.NONE, [1, 3, 9])
    assert partition.offline_replicas == [3, 9]


def test_metadata__a_partition_without_a_leader_has_an_error() -> None:
    partition = build_metadata(BROKEN, ask_for("gone"), 13, CLUSTER_ID).topics[0].partitions[0]
    assert partition.error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert (partition.leader_id, partition.leader_epoch) == (-1, 5)


def test_metadata__version_0_omits_dead_replicas_with_an_error() -> None:
    half, gone = build_metadata(BROKEN, m.MetadataRequest(topics=[]), 0, CLUSTER_ID).topics
    assert half.partitions[0].error_code == ErrorCode.REPLICA_NOT_AVAILABLE
    assert half.partitions[0].replica_nodes == [1]
    assert gone.partitions[0].error_code == ErrorCode.LEADER_NOT_AVAILABLE


def test_metadata__the_controller_is_a_broker_that_is_alive() -> None:
    assert build_metadata(BROKEN, ask_for(), 13, CLUSTER_ID).controller_id in (1, 2)
    nobody = image_of(broker_records(1, fenced=(1,)))
    assert build_metadata(nobody, ask_for(), 13, CLUSTER_ID).controller_id == -1


def test_metadata__operations_are_included_on_request() -> None:
    request = ask_for(
        "audit",
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    response = build_metadata(IMAGE, request, 10, CLUSTER_ID)
    assert response.topics[0].topic_authorized_operations == ALL_TOPIC_OPERATIONS == 3576
    assert response.cluster_authorized_operations == ALL_CLUSTER_OPERATIONS == 8096
    silent = build_metadata(IMAGE, ask_for("audit"), 10, CLUSTER_ID)
    assert silent.topics[0].topic_authorized_operations == INT_MIN
    assert silent.cluster_authorized_operations == INT_MIN


def test_metadata__internal_topics_are_marked() -> None:
    image = image_of(broker_records(1), topic_records("__consumer_offsets", (1,)))
    response = build_metadata(image, ask_for("__consumer_offsets"), 13, CLUSTER_ID)
    assert response.topics[0].is_internal


@pytest.mark.parametrize("version", range(14))
def test_metadata__every_version_is_answered(version: int) -> None:
    one = OneBroker(broker_records(1), topic_records("mine", (1,)))
    response = one.ask(ApiKey.METADATA, version, ask_for("mine", "other"))
    assert response.topics[0].name == "mine"


# ------------------------------------------------------------------------------ auto creation


def test_metadata__asking_for_an_unknown_topic_creates_it() -> None:
    one = OneBroker(broker_records(1), num_partitions=6, default_replication_factor=1)
    response = one.ask(ApiKey.METADATA, 12, ask_for("new", "bad name"))
    assert topic_errors(response)[0] == ("new", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    (question,) = one.asked
    (creation,) = question.message.body.topics
    assert (creation.name, creation.num_partitions, creation.replication_factor) == ("new", 6, 1)


def test_metadata__the_offsets_topic_is_created_with_its_own_configs() -> None:
    one = OneBroker(broker_records(1), offsets_topic_num_partitions=7)
    one.ask(ApiKey.METADATA, 12, ask_for("__consumer_offsets"))
    (creation,) = one.asked[0].message.body.topics
    configs = {config.name: config.value for config in creation.configs}
    assert (creation.num_partitions, creation.replication_factor) == (7, 3)
    assert configs["cleanup.policy"] == "compact"


def test_metadata__creates_no_topic_if_client_or_broker_forbids_it() -> None:
    one = OneBroker(broker_records(1))
    one.ask(ApiKey.METADATA, 12, ask_for("new", allow_auto_topic_creation=False))
    forbidding = OneBroker(broker_records(1), auto_create_topics_enable=False)
    forbidding.ask(ApiKey.METADATA, 12, ask_for("new"))
    assert one.asked == forbidding.asked == []
