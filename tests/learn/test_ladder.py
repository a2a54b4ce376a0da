"""The ladder of a client: what differs from the request before gets a line."""

from __future__ import annotations

from kcluster.evidence.rows import ExchangeRow
from kcluster.learn.ladder import MAX_RUNGS, ladder_lines, rungs_of


def produced(at_ms: int, broker: int = 1, error: str = "", first: int = -1) -> ExchangeRow:
    return ExchangeRow(
        at_ms=at_ms,
        client="shop",
        broker=broker,
        api="Produce",
        asked_ms=at_ms,
        answered_ms=at_ms,
        error=error,
        first=first,
        last=first,
    )


def metadata(at_ms: int, leader: int) -> ExchangeRow:
    return ExchangeRow(
        at_ms=at_ms,
        client="shop",
        broker=3,
        api="Metadata",
        asked_ms=at_ms,
        answered_ms=at_ms,
        leader=leader,
        leader_epoch=leader - 1,
    )


def test_ladder__a_refusal_new_metadata_and_the_new_leader_get_a_line() -> None:
    rows = [
        metadata(10, 1),
        produced(11, first=0),
        produced(12, first=1),
        produced(13, error="NOT_LEADER_OR_FOLLOWER"),
        metadata(14, 2),
        metadata(15, 2),
        produced(16, broker=2, first=2),
        produced(17, broker=2, first=3),
    ]
    assert list(ladder_lines(rungs_of(rows, "shop"), 10)) == [
        "      +0 ms  shop -> broker 3  Metadata   leader 1, epoch 0",
        "      +1 ms  shop -> broker 1  Produce    offset 0",
        "      +3 ms  shop -> broker 1  Produce    NOT_LEADER_OR_FOLLOWER",
        "      +4 ms  shop -> broker 3  Metadata   leader 2, epoch 1",
        "      +6 ms  shop -> broker 2  Produce    offset 2",
    ]


def test_ladder__requests_of_others_are_left_out() -> None:
    assert rungs_of([produced(1)], "billing") == []


def test_ladder__a_long_one_is_cut() -> None:
    rows = [produced(at, broker=at % 3) for at in range(20)]
    assert list(ladder_lines(rungs_of(rows, "shop"), 0))[MAX_RUNGS:] == ["... and 6 more requests"]
