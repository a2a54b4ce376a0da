"""Records of __consumer_offsets: ours are byte for byte those of Apache Kafka 4.3.1."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from kcluster.broker.coordinator.classic_group import ClassicGroup
from kcluster.broker.coordinator.classic_members import ClassicMember, Roster
from kcluster.broker.coordinator.group_log import (
    ClassicGroupRecord,
    CommittedOffset,
    LogRecord,
    OffsetRecord,
)
from kcluster.broker.coordinator.group_records import decode_batch
from kcluster.broker.coordinator.records import encode_records
from kcluster.broker.coordinator.share_state.share_state_log import decode_states
from kcluster.broker.coordinator.transactions.transaction_log import decode_transactions
from kcluster.protocol.records.batches import Batch
from kcluster.protocol.records.records import Record, build_batch, parse_batches, read_records
from tests.broker.coordinator.group_broker import fresh_broker
from tests.broker.coordinator.members import subscription
from tests.rig.requests import batch_with_wrong_lengths

SEEN = {
    "a group of nobody": ("0002000467673273", "0003000000000000ffffffff000001a1fbd751ed00000000"),
    "a group deleted": ("0002000467673273", None),
    "an offset, with the topic's id": (
        "0001000367673200056772702d7400000000",
        "00040000000000000005ffffffff01000001a1fbd75010010010324784d1327b4bdbbc1cb513211cd062",
    ),
    "an offset deleted": ("0001000367673200056772702d7500000000", None),
}
"""Key and value, as read from a real broker's partition."""


def decoded(batch: bytearray) -> list[LogRecord]:
    return [record for one in parse_batches(batch) for record in decode_batch(one)]


@pytest.mark.parametrize("what", SEEN)
def test_group_log__reads_and_writes_what_kafka_wrote(what: str) -> None:
    key, value = SEEN[what]
    record = Record(0, 7, bytes.fromhex(key), None if value is None else bytes.fromhex(value))
    (found,) = decoded(build_batch([record]))
    (again,) = read_records(parse_batches(encode_records([found], 7))[0])
    assert (again.key, again.value) == (record.key, record.value)


def test_group_log__offset_that_expires_is_of_version_1() -> None:
    committed = CommittedOffset(5, -1, "note", 1000, expire_timestamp_ms=2000)
    record = OffsetRecord("g", "orders", 3, committed)
    batch = encode_records([record], 1000)
    (raw,) = read_records(parse_batches(batch)[0])
    assert raw.value is not None
    assert raw.value[:2] == b"\0\1"
    assert decoded(batch) == [record]


def test_group_log__group_comes_back_with_its_members() -> None:
    roster = Roster(generation=4, protocol_name="range")
    roster.add(
        ClassicMember(
            member_id="m-1",
            instance_id="i",
            client_id="client",
            client_host="/host",
            rebalance_timeout_ms=60_000,
            session_timeout_ms=10_000,
            protocol_type="consumer",
            protocols={"range": subscription("orders", "audit"), "sticky": b"x"},
        )
    )
    record = ClassicGroupRecord("g", roster.saved({"m-1": b"part"}, 7))
    (found,) = decoded(encode_records([record], 9))
    again = ClassicGroup("g", fresh_broker().coordinator.shards[0])
    assert again.replay(found)
    member = again.roster.members["m-1"]
    assert (again.state, again.state_since_ms) == ("Stable", 7)
    assert (again.roster.generation, again.roster.leader) == (4, "m-1")
    assert again.roster.subscribed_topics == frozenset(("orders", "audit"))
    assert again.roster.static_members == {"i": "m-1"}
    assert (member.assignment, member.rebalance_timeout_ms) == (b"part", 60_000)
    assert list(member.protocols) == ["range"], "only the chosen one is written"


def test_group_log__kinds_of_other_coordinators_are_skipped() -> None:
    unknown = Record(0, 7, b"\0\x63\0\1g", b"\0\0")
    assert decoded(build_batch([unknown, Record(0, 7, None, b"x")])) == []


def test_group_log__unreadable_subscription_is_no_subscription() -> None:
    for metadata in (b"", b"\0\0", b"\0\0\0\0\0\2\0\1a", b"\0\0\0\0\0\1\0\x09a"):
        roster = Roster(protocol_name="range")
        roster.add(ClassicMember("m", None, "", "", 1, 1, "consumer", {"range": metadata}))
        assert Roster.restored(roster.saved({}, 0)).subscribed_topics is None


DECODERS = (decode_batch, decode_transactions, decode_states)


@pytest.mark.parametrize("decode", DECODERS)
@pytest.mark.parametrize(
    "key", [None, b"", b"\0", b"\0\0", b"\0\1", b"\0\1\0\5g", b"\xff\xff", b"\0\1\0\1\xff"]
)
def test_log__what_a_stranger_wrote_is_skipped(
    decode: Callable[[Batch], Iterable[object]], key: bytes | None
) -> None:
    """Any client that calls itself __admin_client may write to the coordinators' topics."""
    values = (None, b"", b"\0", b"\x7f\xff", b"\0\1", b"\0\3\0\xff", bytes(range(40)))
    records = [Record(0, 5, key, value) for value in values]
    (batch,) = parse_batches(build_batch(records))
    assert len(list(decode(batch))) <= 2  # a key alone may be a tombstone, or an empty value


@pytest.mark.parametrize("decode", DECODERS)
def test_log__a_batch_that_nobody_can_read_is_skipped(
    decode: Callable[[Batch], Iterable[object]],
) -> None:
    (batch,) = parse_batches(batch_with_wrong_lengths([Record(0, 5, b"k", b"v")]))
    assert list(decode(batch)) == []
