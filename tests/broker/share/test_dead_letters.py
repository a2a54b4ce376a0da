"""Dead letter queues (KIP-1191): what a share group does not deliver again goes to a topic."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.events.share_groups import DeadLettersDropped, DeadLettersWritten
from kcluster.events.words import text_of
from kcluster.metadata.records import TOPIC_RESOURCE
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.records.records import Record, parse_batches, read_records
from tests.broker.coordinator.share_state.share_state_rig import ShareStateRig
from tests.broker.share.share_rig import (
    ACCEPT,
    GAP,
    REJECT,
    RELEASE,
    ClusterMember,
    acquired,
    cluster,
    configure_group,
    errors,
)
from tests.rig.requests import fetch_partition, fetch_request

QUEUE = "dlq.orders"
ARCHIVING, ARCHIVED = 3, 4
CREATES = {"errors.deadletterqueue.auto.create.topics.enable": True}
LOCK_MS = 30_000


def with_queue(rig: ShareStateRig, name: str = QUEUE, partitions: int = 1) -> ShareStateRig:
    """Create the queue, led by broker 3, and let group g use it."""
    rig.assign_topic(name, [[3]] * partitions)
    rig.run_for(200)
    enable(rig, name)
    configure_group(rig, "errors.deadletterqueue.topic.name", name)
    return rig


def enable(rig: ShareStateRig, name: str = QUEUE, value: str = "true") -> None:
    configure_topic(rig, name, "errors.deadletterqueue.group.enable", value)


def configure_topic(rig: ShareStateRig, topic: str, name: str, value: str) -> None:
    kind = m.IncrementalAlterConfigsRequest
    config = kind.AlterableConfig(name, 0, value)
    body = kind([kind.AlterConfigsResource(TOPIC_RESOURCE, topic, [config])])
    answer = rig.ask_and_wait(1, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, body)
    assert not answer.responses[0].error_code, answer
    rig.run_for(100)


def letters(rig: ShareStateRig, name: str = QUEUE, partition: int = 0) -> list[Record]:
    """The records in the queue."""
    body = fetch_request(name, fetch_partition(partition, 0), max_wait_ms=0)
    leader = rig.partition(name, partition).leader
    assert leader is not None
    data = rig.ask_and_wait(leader, ApiKey.FETCH, 12, body).responses[0].partitions[0]
    batches = data.records if isinstance(data.records, list) else parse_batches(data.records or b"")
    return [record for batch in batches for record in read_records(batch)]


def offsets(records: list[Record]) -> list[int]:
    """The offsets of the original records."""
    return [int(dict(one.headers)["__dlq.errors.offset"] or b"") for one in records]


def states(rig: ShareStateRig) -> dict[int, int]:
    """Offset -> its stored state."""
    return {
        offset: int(one.delivery_state)
        for one in rig.stored.batches
        for offset in range(one.first_offset, one.last_offset + 1)
    }


def problems(rig: ShareStateRig) -> list[tuple[str, str]]:
    return [(one.problem.value, one.error) for one in rig.events_of(DeadLettersDropped)]


def rejecting(rig: ShareStateRig, *ranges: tuple[int, int], to: int = 0) -> ClusterMember:
    """A member that has rejected these records of what it got."""
    member = ClusterMember(rig, at=1)
    member.fetch(0)
    acks: list[tuple[int, int, Any]] = [(*one, REJECT) for one in ranges or [(0, to)]]
    assert errors(member.acknowledge({0: acks})) == {0: "NONE"}
    return member


# ------------------------------------------------------------------------------------- what is sent


def test_a_rejected_record_goes_to_the_queue_with_headers_that_name_it() -> None:
    rig = with_queue(cluster(3))
    rejecting(rig, (1, 1))
    rig.run_for(100)
    (letter,) = letters(rig)
    assert (letter.key, letter.value) == (None, None)
    assert letter.headers == (
        ("__dlq.errors.topic", b"orders"),
        ("__dlq.errors.partition", b"0"),
        ("__dlq.errors.offset", b"1"),
        ("__dlq.errors.group", b"g"),
        ("__dlq.errors.delivery.count", b"1"),
        ("__dlq.errors.message", b"Offset rejected by client."),
    )
    assert [text_of(one) for one in rig.events_of(DeadLettersWritten)] == [
        "offset 1 of orders-0 went to the dead letter queue dlq.orders-0"
    ]


def test_a_topic_is_a_queue_however_its_config_is_spelt() -> None:
    rig = with_queue(cluster(1))
    enable(rig, value=" TRUE ")
    rejecting(rig)
    rig.run_for(100)
    assert (problems(rig), len(letters(rig))) == ([], 1)


def test_a_copy_has_the_key_and_the_value_and_no_header_of_the_record() -> None:
    rig = with_queue(cluster(2))
    configure_group(rig, "errors.deadletterqueue.copy.record.enable", "true")
    rejecting(rig, (0, 1))
    rig.run_for(100)
    assert [(one.key, one.value, len(one.headers)) for one in letters(rig)] == [
        (None, b"v", 6),
        (None, b"v", 6),
    ]


def test_what_was_delivered_too_often_goes_there_however_it_came_back() -> None:
    rig = with_queue(cluster(3))
    configure_group(rig, "share.delivery.count.limit", "2")
    member = ClusterMember(rig, at=1)
    for deliveries in (1, 2):
        got = acquired(member.fetch(0))
        assert {count for _, _, count in got} == {deliveries}
        if deliveries == 1:
            member.acknowledge({0: [(0, 2, RELEASE)]})
    member.acknowledge({0: [(0, 0, RELEASE), (1, 1, ACCEPT)]})
    rig.run_for(LOCK_MS + 1_000)  # the lock on record 2 ends
    assert offsets(letters(rig)) == [0, 2]
    reasons = {dict(one.headers)["__dlq.errors.message"] for one in letters(rig)}
    assert reasons == {b"Offset delivery count exceeded the threshold."}
    assert acquired(member.fetch()) == []
    assert states(rig) == {2: ARCHIVED}, "the others are behind the start offset"


def test_gaps_and_accepted_records_do_not_go_there() -> None:
    rig = with_queue(cluster(3))
    member = ClusterMember(rig, at=1)
    member.fetch(0)
    member.acknowledge({0: [(0, 2, [GAP, ACCEPT, RELEASE])]})
    rig.run_for(100)
    assert letters(rig) == []


def test_records_go_to_the_partition_of_their_number() -> None:
    rig = with_queue(cluster(1), partitions=3)
    rejecting(rig)
    rig.run_for(100)
    assert [len(letters(rig, partition=one)) for one in range(3)] == [1, 0, 0]


def test_a_batch_that_does_not_fit_into_a_message_takes_several() -> None:
    rig = with_queue(cluster(20))
    configure_topic(rig, QUEUE, "max.message.bytes", "500")
    rejecting(rig, (0, 19))
    rig.run_for(500)
    assert offsets(letters(rig)) == list(range(20))
    assert len(rig.events_of(DeadLettersWritten)) == 1


# ------------------------------------------------------------------------------ what is stored


def test_a_record_is_archiving_until_it_is_in_the_queue() -> None:
    rig = with_queue(cluster(2))
    rig.cut(1, 3)
    member = rejecting(rig, (0, 0))
    assert states(rig) == {0: ARCHIVING}
    assert acquired(member.fetch()) == []
    rig.heal(1, 3)
    rig.run_for(60_000)
    assert rig.stored.start_offset == 1
    assert offsets(letters(rig)) == [0]


def test_the_next_leader_sends_what_the_last_one_had_not_finished_with() -> None:
    rig = with_queue(cluster(2))
    rig.cut(1, 3)
    rejecting(rig, (0, 0))
    rig.move("orders", 0, 2)
    rig.run_for(1_000)
    assert acquired(ClusterMember(rig, at=2).fetch(0)) == [(1, 1, 1)]
    rig.run_for(1_000)
    assert offsets(letters(rig)) == [0]
    assert states(rig) == {0: ARCHIVED}


# ------------------------------------------------------------------- what cannot get to the queue


def test_without_a_queue_or_before_share_version_2_a_record_is_archived() -> None:
    for rig in (cluster(1), with_queue(cluster(1, features={"share.version": 1}))):
        rejecting(rig)
        rig.run_for(100)
        assert states(rig) == {0: ARCHIVED}
        assert rig.events_of(DeadLettersDropped) == []
        assert rig.events_of(DeadLettersWritten) == []


@pytest.mark.parametrize(
    ("name", "exists", "problem"),
    [
        ("dlq.new", False, "not created"),
        ("dlq.plain", True, "not enabled"),
        ("letters", True, "not enabled"),
    ],
)
def test_a_queue_that_cannot_be_used_leaves_the_record_archived(
    name: str, exists: bool, problem: str
) -> None:
    rig = cluster(1)
    if exists:
        rig.assign_topic(name, [[3, 1]])
    configure_group(rig, "errors.deadletterqueue.topic.name", name)
    rejecting(rig)
    rig.run_for(100)
    assert problems(rig) == [(problem, "")]
    assert states(rig) == {0: ARCHIVED}


def test_the_name_of_a_queue_has_the_prefix_that_the_brokers_ask_for() -> None:
    rig = with_queue(cluster(1), "letters")
    rejecting(rig)
    rig.run_for(100)
    assert problems(rig) == [("wrong prefix", "")]
    assert [text_of(one) for one in rig.events_of(DeadLettersDropped)] == [
        "offset 0 of orders-0 archived without a record in the dead letter queue letters: its name"
        " does not begin with the brokers' errors.deadletterqueue.topic.name.prefix"
    ]


def test_a_queue_is_created_if_the_brokers_may() -> None:
    rig = cluster(1, of_brokers=CREATES)
    configure_group(rig, "errors.deadletterqueue.topic.name", QUEUE)
    rejecting(rig)
    rig.run_for(5_000)
    assert offsets(letters(rig)) == [0]
    image = rig.node(1).image
    assert image.topic_configs(QUEUE) == {
        "errors.deadletterqueue.group.enable": "true",
        "message.timestamp.type": "CreateTime",
    }


def test_a_queue_that_refuses_the_write_gets_no_second_one() -> None:
    rig = with_queue(cluster(1))
    configure_topic(rig, QUEUE, "max.message.bytes", "90")
    rejecting(rig)
    rig.run_for(100)
    assert problems(rig) == [("produce failed", "MESSAGE_TOO_LARGE")]
    assert states(rig) == {0: ARCHIVED}


def test_a_queue_that_cannot_be_reached_is_given_up_after_five_attempts() -> None:
    rig = with_queue(cluster(1))
    rig.cut(1, 3)
    rejecting(rig)
    rig.run_for(5 * LOCK_MS + 20_000)
    assert problems(rig) == [("produce failed", "NETWORK_EXCEPTION")]
    assert states(rig) == {0: ARCHIVED}
