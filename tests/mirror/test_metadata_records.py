"""Records of a real metadata log."""

from __future__ import annotations

import contextlib
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcluster.metadata.image import MetadataImage
from kcluster.metadata.records import PartitionRegistration
from kcluster.mirror.metadata_records import (
    KafkaRecord,
    MetadataTransactions,
    decode_record,
    merged,
    translated,
)
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ProtocolError
from tests.mirror.captured import batches

OLD = PartitionRegistration(bytes(16), 0, (1, 2), (1, 2), 1, leader_epoch=4, partition_epoch=9)


def test_records__every_record_of_a_real_log_is_known() -> None:
    names = Counter(record.name for records in batches() for record in records)
    assert names["TopicRecord"] == 2
    assert names["RegisterBrokerRecord"] == 5, "each start of a broker"
    assert names["LeaderChangeMessage"] == 1
    assert names["PartitionRecord"] == 4


def test_records__offsets_have_no_gaps() -> None:
    offsets = [record.offset for records in batches() for record in records]
    assert offsets == list(range(len(offsets)))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"", "does not end"),
        (b"\x80\x80\x80\x80\x80", "does not end"),
        (b"\x02\x02\x00", "frame of version 2"),
        (b"\x01\x7f\x00", "metadata record 127"),
        (b"\x01\x02\x09", "TopicRecord of version 9"),
    ],
)
def test_records__other_bytes_are_refused(value: bytes, text: str) -> None:
    with pytest.raises(ProtocolError, match=text):
        decode_record(value)


@given(st.binary(max_size=60))
def test_records__any_bytes_are_a_record_or_refused(value: bytes) -> None:
    with contextlib.suppress(ProtocolError):
        decode_record(value)


def change(
    leader: int = -2, isr: list[int] | None = None, leader_recovery_state: int = -1
) -> m.PartitionChangeRecord:
    return m.PartitionChangeRecord(
        partition_id=0,
        topic_id=bytes(16),
        isr=isr,
        leader=leader,
        leader_recovery_state=leader_recovery_state,
    )


def test_merged__another_leader_is_a_new_epoch() -> None:
    new = merged(OLD, change(leader=2, isr=[2]))
    assert (new.leader, new.leader_epoch, new.isr, new.partition_epoch) == (2, 5, (2,), 10)


def test_merged__what_the_record_leaves_out_stays() -> None:
    new = merged(OLD, change(isr=[1]))
    assert (new.leader, new.leader_epoch, new.replicas) == (1, 4, (1, 2))


def test_merged__the_same_leader_again_is_a_new_epoch_too() -> None:
    assert merged(OLD, change(leader=1)).leader_epoch == 5


def test_merged__an_unclean_leader_is_recovering_until_a_record_says_otherwise() -> None:
    unclean = merged(OLD, change(leader=2, leader_recovery_state=1))
    assert unclean.recovering
    assert merged(unclean, change(isr=[2])).recovering
    assert not merged(unclean, change(leader_recovery_state=0)).recovering


def test_translated__a_change_of_a_deleted_topic_is_none() -> None:
    record = KafkaRecord(0, 0, "PartitionChangeRecord", change(isr=[1]))
    assert translated(record, MetadataImage()) == []


def record(name: str) -> KafkaRecord:
    return KafkaRecord(0, 0, name, m.NoOpRecord())


def test_transactions__records_wait_for_the_end_of_theirs() -> None:
    transactions = MetadataTransactions()
    inner = record("NoOpRecord")
    assert transactions.completed(record("BeginTransactionRecord")) == []
    assert transactions.completed(inner) == []
    assert transactions.completed(record("EndTransactionRecord")) == [inner]
    assert transactions.completed(inner) == [inner]


def test_transactions__an_aborted_one_never_happened() -> None:
    transactions = MetadataTransactions()
    transactions.completed(record("BeginTransactionRecord"))
    transactions.completed(record("NoOpRecord"))
    assert transactions.completed(record("AbortTransactionRecord")) == []
