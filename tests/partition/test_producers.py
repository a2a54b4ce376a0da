"""Idempotent producers: sequences, duplicates, epochs.  The table is what Kafka 4.3.1 answers."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.partition.producers import (
    NO_STATE,
    SNAPSHOT_INTERVAL_BATCHES,
    AppendedBatch,
    ProducerState,
    ProducerStates,
    SequenceRefusal,
    advance,
    check,
    check_marker,
)
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.markers import Marker, build_marker
from kcluster.protocol.records.records import Batch, Record, build_batch, parse_batches


def batch(
    sequence: int, count: int = 1, *, epoch: int = 0, offset: int = 0, pid: int = 7, **more: Any
) -> Batch:
    data = build_batch(
        [Record(0, 1_000, b"k", b"v")] * count,
        base_offset=offset,
        producer_id=pid,
        producer_epoch=epoch,
        base_sequence=sequence,
        **more,
    )
    return parse_batches(data)[0]


def marker(
    *, offset: int, commit: bool = True, epoch: int = 0, pid: int = 7, coordinator: int = 0
) -> Batch:
    built = parse_batches(build_marker(pid, epoch, Marker(commit, coordinator), 1_000))[0]
    built.base_offset = built.last_offset = offset
    return built


def after(*batches: Batch) -> ProducerState:
    state = NO_STATE
    for appended in batches:
        state = advance(state, appended)
    return state


FIVE_TO_ELEVEN = after(*(batch(n, offset=n - 5) for n in range(5, 12)))


def test_check__an_unknown_producer_may_start_at_any_sequence() -> None:
    assert check(NO_STATE, batch(5)) is None


def test_check__the_next_sequence_is_accepted() -> None:
    assert check(FIVE_TO_ELEVEN, batch(12, 3)) is None


@pytest.mark.parametrize("sequence", [7, 11])
def test_check__the_last_five_batches_are_recognized_as_duplicates(sequence: int) -> None:
    known = check(FIVE_TO_ELEVEN, batch(sequence))
    assert known == AppendedBatch(sequence, sequence, sequence - 5, sequence - 5, 1_000)


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        (batch(13), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),  # a gap
        (
            batch(6),
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ),  # a duplicate older than the last five batches
        (batch(11, 2), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),  # half a duplicate
        (batch(12, epoch=1), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),  # new epochs begin at 0
        (batch(12, epoch=-5), ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
def test_check__refuses(sent: Batch, error: ErrorCode) -> None:
    refusal = check(FIVE_TO_ELEVEN, sent)
    assert isinstance(refusal, SequenceRefusal)
    assert refusal.error == error


def test_check__a_new_epoch_begins_at_zero_and_fences_the_old() -> None:
    fresh = batch(0, epoch=1, offset=9)
    assert check(FIVE_TO_ELEVEN, fresh) is None
    state = advance(FIVE_TO_ELEVEN, fresh)
    assert len(state.batches) == 1
    for old in (batch(11), batch(12)):
        refusal = check(state, old)
        assert isinstance(refusal, SequenceRefusal)
        assert refusal.error == ErrorCode.INVALID_PRODUCER_EPOCH


def test_check__sequences_wrap_between_batches_and_inside() -> None:
    assert check(after(batch(2**31 - 2, 2)), batch(0)) is None
    wrapped = after(batch(2**31 - 2, 4))
    assert check(wrapped, batch(2)) is None
    assert isinstance(check(wrapped, batch(2**31 - 2, 4)), AppendedBatch)


def test_check__without_an_epoch_any_sequence_is_accepted() -> None:
    assert check(after(batch(0, epoch=-1)), batch(7, epoch=-1)) is None


def test_check__an_open_transaction_takes_only_its_own() -> None:
    state = after(batch(0, transactional=True))
    assert check(state, batch(1, transactional=True)) is None
    refusal = check(state, batch(1))
    assert isinstance(refusal, SequenceRefusal)
    assert refusal.error == ErrorCode.INVALID_TXN_STATE


def test_states__a_transaction_is_unstable_until_its_marker() -> None:
    states = ProducerStates()
    states.update(batch(0, offset=10, transactional=True))
    states.update(batch(0, offset=11, transactional=True, pid=8))
    states.update(batch(1, offset=12, transactional=True))
    assert states.first_unstable_offset == 10
    assert states.has_transaction(7)
    states.update(marker(offset=13))
    assert states.first_unstable_offset == 11
    assert not states.has_transaction(7)
    assert states.check(batch(2)) is None


def test_states__stable_offset_waits_for_the_marker_to_be_replicated() -> None:
    states = ProducerStates()
    states.update(batch(0, offset=10, transactional=True))
    states.update(marker(offset=11))
    assert states.last_stable_offset(11) == 10
    assert states.last_stable_offset(12) == 12
    assert not states.has_unstable


def test_states__aborted_transactions_are_found_by_the_range_that_is_read() -> None:
    states = ProducerStates()
    for offset in (10, 20, 30):
        states.update(batch(offset, offset=offset, transactional=True))
        states.update(marker(offset=offset + 1, commit=offset == 20))
    assert [one.first_offset for one in states.aborted_within(0, 100)] == [10, 30]
    assert [one.first_offset for one in states.aborted_within(11, 30)] == [10]
    assert states.aborted_within(12, 30) == []


def test_states__truncation_opens_a_transaction_again() -> None:
    states = ProducerStates()
    states.update(batch(0, offset=10, transactional=True))
    states.take_snapshot(11)
    states.update(marker(offset=11, commit=False))
    assert states.aborted
    assert states.rewind(11) == 11
    assert (states.first_unstable_offset, states.aborted) == (10, [])


@pytest.mark.parametrize(
    ("epoch", "coordinator", "version", "is_open", "error"),
    [
        (0, 5, 0, True, None),
        (0, 5, 2, True, ErrorCode.INVALID_PRODUCER_EPOCH),
        (0, 5, 2, False, None),
        (1, 5, 2, True, None),
        (-1, 5, 0, True, ErrorCode.INVALID_PRODUCER_EPOCH),
        (1, 4, 2, False, ErrorCode.TRANSACTION_COORDINATOR_FENCED),
    ],
)
def test_check_marker__epochs_decide(
    epoch: int, coordinator: int, version: int, is_open: bool, error: ErrorCode | None
) -> None:
    states = ProducerStates()
    states.update(batch(0, transactional=True))
    states.update(marker(offset=1, coordinator=5))
    if is_open:
        states.update(batch(1, offset=2, transactional=True))
    refusal = check_marker(states.states[7], epoch, coordinator, version)
    assert (None if refusal is None else refusal.error) == error


def test_states__marker_makes_a_verification_void() -> None:
    states = ProducerStates()
    guard = states.verification(7, 0, 0, is_epoch_bumped=False)
    assert guard is not None
    assert states.verification(7, 0, 0, is_epoch_bumped=False) is guard
    states.update(marker(offset=0))
    assert not states.is_verified(7, guard)


def test_states__silent_producers_expire_unless_in_a_transaction() -> None:
    states = ProducerStates()
    states.update(batch(0))
    states.update(batch(0, pid=8, transactional=True))
    states.remove_expired(1_999, 1_000)
    assert list(states.states) == [7, 8]
    states.remove_expired(2_000, 1_000)
    assert list(states.states) == [8]
    assert states.check(batch(44)) is None


def test_states__rewind_goes_to_the_newest_snapshot_not_beyond() -> None:
    states = ProducerStates()
    count = 2 * SNAPSHOT_INTERVAL_BATCHES + 3
    batches = [batch(n, offset=n) for n in range(count)]
    for appended in batches:
        states.update(appended)
    end_offset = count - 5
    replay_from = states.rewind(end_offset)
    assert replay_from == SNAPSHOT_INTERVAL_BATCHES
    for appended in batches[replay_from:end_offset]:
        states.update(appended)
    assert states.states[7] == after(*batches[:end_offset])
    assert states.rewind(3) is None
    assert states.states == {}
