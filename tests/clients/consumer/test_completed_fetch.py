"""The records of a fetch that an application may see, and the states of positions."""

from __future__ import annotations

import pytest

from kcluster.clients.consumer.completed_fetch import CompletedFetch, Segment, open_records
from kcluster.clients.consumer.positions import FetchState, Position, Positions
from kcluster.protocol import messages as m
from kcluster.protocol.records.batches import InvalidRecords
from kcluster.protocol.records.records import Record, build_batch

Aborted = m.FetchResponse.AbortedTransaction
KEY = ("orders", 0)


def batch(base_offset: int, *values: str, producer_id: int = -1, epoch: int = 0) -> bytes:
    return bytes(
        build_batch(
            [Record(0, 0, None, value.encode()) for value in values],
            base_offset=base_offset,
            producer_id=producer_id,
            transactional=producer_id >= 0,
            leader_epoch=epoch,
        )
    )


def marker(offset: int, producer_id: int, *, commit: bool) -> bytes:
    key = b"\x00\x00" + (b"\x00\x01" if commit else b"\x00\x00")
    records = [Record(0, 0, key, b"\x00\x00\x00\x00\x00\x00")]
    return bytes(
        build_batch(
            records, base_offset=offset, producer_id=producer_id, transactional=True, control=True
        )
    )


def answer(*batches: bytes, aborted: list[tuple[int, int]] | None = None) -> object:
    entries = None if aborted is None else [Aborted(who, first) for who, first in aborted]
    return m.FetchResponse.PartitionData(
        0, records=memoryview(b"".join(batches)), aborted_transactions=entries
    )


def values(segments: list[Segment]) -> list[str]:
    records = [record for opened, *_ in segments for record in opened]
    return [record.value.decode() for record in records if record.value is not None]


def at(offset: int) -> Position:
    positions = Positions()
    positions.assign([KEY])
    positions[KEY].seek(offset, -1, 1, 0)
    return positions[KEY]


def test_completed_fetch__records_below_the_position_are_skipped() -> None:
    data = answer(batch(0, "a", "b", "c"), batch(3, "d", epoch=2))
    segments = open_records(data, 1, read_committed=False, check_crcs=True)
    assert values(segments) == ["b", "c", "d"]
    position = at(1)
    fetched = CompletedFetch(position, 1, segments)
    assert [record.offset for record in fetched.take(1)] == [1]
    assert (position.offset, fetched.is_empty) == (2, False)
    assert [record.offset for record in fetched.take(10)] == [2, 3]
    assert (position.offset, position.offset_epoch, fetched.is_empty) == (4, 2, True)


def test_completed_fetch__the_position_moves_past_a_compacted_batch() -> None:
    whole = bytes(build_batch([Record(5, 0, b"k", b"v")], base_offset=2, last_offset=9))
    position = at(0)
    fetched = CompletedFetch(position, 1, open_records(answer(whole), 0, False, True))
    assert [record.offset for record in fetched.take(500)] == [5]
    assert position.offset == 10


def test_completed_fetch__aborted_transactions_are_hidden_from_read_committed() -> None:
    data = answer(
        batch(0, "a", producer_id=7),
        batch(1, "b", producer_id=8),
        batch(2, "plain"),
        marker(3, 7, commit=False),
        batch(4, "c", producer_id=7),
        marker(5, 8, commit=True),
        marker(6, 7, commit=True),
        aborted=[(7, 0)],
    )
    assert values(open_records(data, 0, read_committed=True, check_crcs=True)) == [
        "b",
        "plain",
        "c",
    ]
    everything = open_records(data, 0, read_committed=False, check_crcs=True)
    assert values(everything) == ["a", "b", "plain", "c"]
    assert everything[-1] == ([], -1, 7)


def test_completed_fetch__a_wrong_crc_is_refused() -> None:
    broken = bytearray(batch(0, "abc"))
    broken[-2] ^= 1
    with pytest.raises(InvalidRecords):
        open_records(answer(bytes(broken)), 0, read_committed=False, check_crcs=True)


# ------------------------------------------------------------------------------------ positions


def test_position__is_validated_when_the_leader_or_its_epoch_is_new() -> None:
    position = at(5)
    assert position.state is FetchState.FETCHING
    position.advance(6, 0)
    position.follow_leader(1, 0)
    assert position.state is FetchState.FETCHING
    position.follow_leader(-1, 0)
    assert position.leader == 1
    position.follow_leader(2, 1)
    assert (position.state, position.leader, position.offset) == (FetchState.AWAIT_VALIDATION, 2, 6)
    position.validated()
    assert (position.state, position.restarted) == (FetchState.FETCHING, True)


def test_position__without_an_epoch_there_is_nothing_to_validate() -> None:
    position = at(5)
    position.follow_leader(2, 1)
    assert (position.state, position.leader) == (FetchState.FETCHING, 2)


def test_position__truncated_continues_where_the_logs_agree() -> None:
    position = at(5)
    position.advance(50, 0)
    position.restarted = False
    position.follow_leader(2, 1)
    position.truncated(40, 0)
    assert (position.state, position.offset, position.restarted) == (FetchState.FETCHING, 40, True)


def test_positions__those_kept_in_an_assignment_do_not_move() -> None:
    positions = Positions()
    positions.assign([KEY, ("orders", 1)])
    positions[KEY].seek(7, -1, 1, 0)
    positions.assign([("orders", 2), KEY])
    assert {key: one.offset for key, one in positions.items()} == {("orders", 2): -1, KEY: 7}
    assert positions.consumed() == {KEY: (7, -1)}
