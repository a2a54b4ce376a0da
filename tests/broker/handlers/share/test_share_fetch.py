"""Share groups at the share-partition leader: who gets which record, how often, for how long."""

from __future__ import annotations

from typing import Any

from kcluster.broker.coordinator.share_state.state import ReadState, StateBatch
from kcluster.broker.share.acquisition import Acquirer, acquire
from kcluster.broker.share.in_flight import RecordState
from kcluster.broker.share.window import InFlightWindow, ShareLimits
from kcluster.contract import ConnectionClosed
from kcluster.metadata.records import FeatureLevelRecord
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.records.batches import Batch
from tests.broker.share.share_rig import (
    ACCEPT,
    REJECT,
    RELEASE,
    RENEW,
    ShareMember,
    acknowledged,
    acquired,
    configure,
    error,
    errors,
    partitions_of,
    shared,
)
from tests.rig.one_broker import TOPIC, OneBroker, leader, produce_body
from tests.rig.requests import batch

LOCK_MS = 30_000


def with_records(*sizes: int, partitions: int = 1, **more: str) -> OneBroker:
    """A broker whose partition 0 has batches with so many records each."""
    broker = shared(partitions, **more)
    for size in sizes:
        broker.produce(batch(*[b"v"] * size))
    return broker


# ------------------------------------------------------------------------------------ delivery


def test_records_go_to_one_member_each() -> None:
    broker = with_records(2, 3)
    first, second = ShareMember(broker, "a"), ShareMember(broker, "b", connection=2)
    answer = first.fetch(0, max_records=2)
    assert acquired(answer) == [(0, 1, 1)]
    assert answer.acquisition_lock_timeout_ms == LOCK_MS
    assert sum(some.record_count for some in partitions_of(answer)[0].records) == 2
    assert acquired(second.fetch(0)) == [(2, 4, 1)]
    assert second.fetch(max_wait_ms=100) is None, "nothing is left"


def test_a_released_record_is_delivered_again_a_rejected_one_is_not() -> None:
    broker = with_records(3)
    member = ShareMember(broker)
    member.fetch(0)
    answer = member.fetch(acks={0: [(0, 2, [ACCEPT, RELEASE, REJECT])]})
    assert acknowledged(answer) == {0: "NONE"}
    assert acquired(answer) == [(1, 1, 2)]


def test_a_lock_that_ends_gives_the_records_to_whoever_waits() -> None:
    broker = with_records(2)
    ShareMember(broker, "a").fetch(0)
    other = ShareMember(broker, "b", connection=2)
    waiting = other.send_fetch(0, max_wait_ms=LOCK_MS)
    broker.at(broker.now_ms + LOCK_MS)
    assert acquired(broker.answer(waiting)) == [(0, 1, 2)]


def test_a_renewed_lock_holds_on() -> None:
    broker = with_records(2)
    member = ShareMember(broker)
    member.fetch(0)
    broker.pass_time(LOCK_MS - 1)
    assert errors(member.acknowledge({0: [(0, 0, RENEW)]}, renew=True)) == {0: "NONE"}
    broker.pass_time(1)
    assert acquired(ShareMember(broker, "b", connection=2).fetch(0)) == [(1, 1, 2)]


def test_a_group_can_forbid_renewal() -> None:
    broker = with_records(1)
    configure(broker, "share.renew.acknowledge.enable", "false")
    member = ShareMember(broker)
    member.fetch(0)
    answer = member.acknowledge({0: [(0, 0, RENEW)]}, renew=True)
    assert errors(answer) == {0: "INVALID_RECORD_STATE"}


def test_near_the_limit_of_deliveries_a_batch_is_halved_down_to_single_records() -> None:
    broker = with_records(8, 1)
    member = ShareMember(broker)
    got = [acquired(member.fetch(0))]
    for _ in range(4):
        held = [(first, last, RELEASE) for first, last, _ in got[-1]]
        got.append(acquired(member.fetch(acks={0: held})))
    assert got == [[(0, 8, 1)], [(0, 8, 2)], [(0, 8, 3)], [(0, 3, 4)], [(0, 0, 5)]]
    # The fifth delivery was the last.
    assert acquired(member.fetch(acks={0: [(0, 0, RELEASE)]})) == [(1, 1, 5)]


def test_the_limit_of_records_in_flight_holds_until_the_start_offset_moves() -> None:
    """KAFKA-19227: the acknowledgement that makes room answers a fetch that waits for it."""
    broker = shared()
    configure(broker, "share.partition.max.record.locks", "100")
    for _ in range(12):
        broker.produce(batch(*[b"v"] * 10))
    member, other = ShareMember(broker, "a"), ShareMember(broker, "b", connection=2)
    assert acquired(member.fetch(0)) == [(0, 99, 1)]
    waiting = other.send_fetch(0, max_wait_ms=1_000)
    member.acknowledge({0: [(10, 99, ACCEPT)]})
    assert broker.answer(waiting) is None, "the first ten are still in flight"
    member.acknowledge({0: [(0, 9, ACCEPT)]})
    assert acquired(broker.answer(waiting)) == [(100, 119, 1)]


def test_record_limit_divides_batches_batch_optimized_does_not() -> None:
    broker = with_records(10)
    assert acquired(ShareMember(broker).fetch(0, max_records=3, share_acquire_mode=1)) == [
        (0, 2, 1)
    ]
    other = ShareMember(broker, "b", connection=2)
    assert acquired(other.fetch(0, max_records=3)) == [(3, 9, 1)]


def test_a_member_that_leaves_releases_its_part_of_a_batch() -> None:
    """KAFKA-19953: the batch begins with records of another member."""
    broker = with_records(6)
    first, second = ShareMember(broker, "a"), ShareMember(broker, "b", connection=2)
    assert acquired(first.fetch(0, max_records=2, share_acquire_mode=1)) == [(0, 1, 1)]
    assert acquired(second.fetch(0, max_records=2, share_acquire_mode=1)) == [(2, 3, 1)]
    second.leave()
    assert acquired(ShareMember(broker, "c", connection=3).fetch(0)) == [(2, 3, 2), (4, 5, 1)]


def test_a_batch_of_the_log_is_acquired_around_what_was_stored_of_it() -> None:
    """KAFKA-19954: its records are not acquired twice."""
    stored = StateBatch(5, 9, RecordState.ACKNOWLEDGED, 1)
    window = InFlightWindow.load(ReadState(0, 0, (stored,)), 0)
    assert window is not None
    whole = [Batch(0, 14, 0, 0, 0, 0, -1, -1, -1, 15, 100, b"")]
    got = []
    while window.next_fetch_offset() < 15:
        offset = window.next_fetch_offset()
        got += acquire(window, Acquirer("a", 1, 500), ShareLimits(), offset, whole, 0)
    assert got == [(0, 4, 1), (10, 14, 1)]


# -------------------------------------------------------------------------------- beginnings


def test_a_new_group_reads_from_the_end_unless_it_is_told_otherwise() -> None:
    broker = with_records(3, reset="")
    member = ShareMember(broker)
    assert acquired(member.fetch(0)) == []
    broker.produce(batch(b"v"))
    assert acquired(member.fetch(0)) == [(3, 3, 1)]


def test_a_duration_begins_with_the_records_of_that_time() -> None:
    broker = shared(reset="by_duration:PT2S")
    broker.at(10_000)
    for timestamp_ms in (7_000, 8_000, 9_000):
        broker.produce(batch(b"v", timestamp_ms=timestamp_ms))
    assert acquired(ShareMember(broker).fetch(0)) == [(1, 2, 1)]


# ------------------------------------------------------------------------------ transactions


def test_a_read_committed_group_sees_neither_open_nor_aborted_transactions() -> None:
    unverified: dict[str, Any] = {"transaction.partition.verification.enable": False}
    broker = shared(**unverified)
    configure(broker, "share.isolation.level", "read_committed")
    broker.produce(batch(b"v"))
    in_transaction: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
    body = produce_body(batch(b"x", b"y", base_sequence=0, **in_transaction))
    body.transactional_id = "t"
    broker.ask(ApiKey.PRODUCE, 9, body)
    broker.produce(batch(b"v"))
    member = ShareMember(broker)
    assert acquired(member.fetch(0)) == [(0, 0, 1)]
    end_transaction(broker, is_commit=False)
    broker.produce(batch(b"v"))
    assert acquired(member.fetch()) == [(3, 5, 1)], "4 is the marker"


def end_transaction(broker: OneBroker, is_commit: bool) -> None:
    """As the coordinator of producer 7's transaction."""
    request = m.WriteTxnMarkersRequest
    topic = request.WritableTxnMarkerTopic(TOPIC, [0])
    marker = request.WritableTxnMarker(7, 0, is_commit, [topic], 0)
    broker.ask(ApiKey.WRITE_TXN_MARKERS, 1, request([marker]))


# ---------------------------------------------------------------------------------- sessions


def test_a_session_counts_its_requests() -> None:
    broker = with_records(1)
    member = ShareMember(broker)
    assert error(member.fetch(0, epoch=3)) == "SHARE_SESSION_NOT_FOUND"
    assert error(member.acknowledge({}, epoch=1)) == "SHARE_SESSION_NOT_FOUND"
    assert error(member.acknowledge({}, epoch=0)) == "INVALID_SHARE_SESSION_EPOCH"
    assert acquired(member.fetch(0)) == [(0, 0, 1)]
    assert error(member.fetch(epoch=2)) == "INVALID_SHARE_SESSION_EPOCH"
    assert errors(member.acknowledge({0: [(0, 0, ACCEPT)]}, epoch=1)) == {0: "NONE"}
    assert error(member.fetch(epoch=1)) == "INVALID_SHARE_SESSION_EPOCH"
    assert error(member.fetch(epoch=2)) == "NONE"


def test_acknowledgements_need_a_session() -> None:
    broker = with_records(1)
    answer = ShareMember(broker).fetch(0, acks={0: [(0, 0, ACCEPT)]})
    assert error(answer) == "INVALID_REQUEST"


def test_the_final_epoch_and_a_closed_connection_release_what_a_member_holds() -> None:
    broker = with_records(2)
    first, second = ShareMember(broker, "a"), ShareMember(broker, "b", connection=2)
    second.fetch()
    first.fetch(0)
    first.leave()
    assert acquired(second.fetch(0)) == [(0, 1, 2)]
    broker._step(ConnectionClosed(2))
    assert acquired(ShareMember(broker, "c", connection=3).fetch(0)) == [(0, 1, 1)], (
        "nobody of the group was left: it starts afresh, for nothing is persisted here"
    )


def test_an_answer_names_what_is_new() -> None:
    broker = with_records(1, partitions=3)
    member = ShareMember(broker)
    assert errors(member.fetch(0, 1)) == {0: "NONE", 1: "NONE"}
    assert errors(member.fetch()) == {}
    assert errors(member.fetch(2)) == {2: "NONE"}
    assert errors(member.fetch(7)) == {7: "UNKNOWN_TOPIC_OR_PARTITION"}
    assert errors(member.fetch(forget=(7,))) == {}


def test_without_the_feature_there_are_no_share_groups() -> None:
    broker = with_records(1)
    member = ShareMember(broker)
    member.fetch(0)
    broker.publish([FeatureLevelRecord("metadata.version", 30)])
    broker.publish([FeatureLevelRecord("share.version", 0)])
    assert error(member.fetch()) == "UNSUPPORTED_VERSION"
    assert error(member.acknowledge({0: [(0, 0, ACCEPT)]})) == "UNSUPPORTED_VERSION"


def test_a_broker_without_metadata_is_asked_again() -> None:
    member = ShareMember(leader())
    assert error(member.fetch(0)) == "SHARE_SESSION_NOT_FOUND"
    assert error(member.acknowledge({})) == "SHARE_SESSION_NOT_FOUND"


# ------------------------------------------------------------------------------- bad requests


def test_an_acknowledgement_of_what_a_member_does_not_hold_changes_nothing() -> None:
    broker = with_records(4)
    first, second = ShareMember(broker, "a"), ShareMember(broker, "b", connection=2)
    first.fetch(0)
    second.fetch()
    for acks, expected in (
        ([(0, 3, ACCEPT)], "INVALID_RECORD_STATE"),
        ([(0, 9, ACCEPT)], "INVALID_REQUEST"),
        ([(7, 9, ACCEPT)], "INVALID_REQUEST"),
        ([(3, 0, ACCEPT)], "INVALID_REQUEST"),
        ([(0, 2, ACCEPT), (1, 3, ACCEPT)], "INVALID_REQUEST"),
        ([(0, 3, [])], "INVALID_REQUEST"),
        ([(0, 3, [ACCEPT, ACCEPT])], "INVALID_REQUEST"),
        ([(0, 3, 9)], "INVALID_REQUEST"),
        ([(0, 3, RENEW)], "INVALID_REQUEST"),
    ):
        assert errors(second.acknowledge({0: acks})) == {0: expected}, acks
    assert errors(first.acknowledge({0: [(0, 3, ACCEPT)]})) == {0: "NONE"}
    assert errors(first.acknowledge({5: [(0, 3, ACCEPT)]})) == {5: "UNKNOWN_TOPIC_OR_PARTITION"}
