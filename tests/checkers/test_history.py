"""Each anomaly by its smallest example, as it is printed."""

from __future__ import annotations

import pytest

from cluster.checkers.history import ANOMALIES, FinalLog, Ledger, Outcome, Read, Send

P = ("orders", 0)
ACKED, FAILED, UNKNOWN = Outcome.ACKED, Outcome.FAILED, Outcome.UNKNOWN


def send(value: bytes, outcome: Outcome = ACKED, offset: int = -1) -> Send:
    return Send("i0", P, value, -1, True, outcome, offset)


def read(offset: int, value: bytes, consumer: str = "c0") -> Read:
    return Read(consumer, P, offset, value)


A, B = send(b"a", ACKED, 0), send(b"b", ACKED, 1)
AB = [(0, b"a"), (1, b"b")]

CASES = [
    ([A, B], [], AB[:1], "lost-write: orders-0: b, acked at offset 1"),
    ([A], [], [(0, b"a"), (3, b"a")], "duplicate: orders-0: a is at offsets 0 and 3"),
    (
        [send(b"a", UNKNOWN), send(b"b", UNKNOWN)], [], [(0, b"b"), (1, b"a")],
        "reordered: orders-0: b, sent after a, is at offset 0, before 1",
    ),
    ([send(b"a", FAILED)], [], AB[:1], "failed-write: orders-0: a is at offset 0"),
    ([A], [], [(4, b"a")], "moved-write: orders-0: a, acked at 0, is at 4"),
    ([], [], [(0, b"x")], "phantom: orders-0: x at offset 0"),
    ([A], [read(0, b"a"), read(1, b"z")], AB[:1], "lost-read: orders-0: c0 read z at 1"),
    (
        [A, B], [read(0, b"a"), read(0, b"b", "c1")], AB,
        "inconsistent-read: orders-0: offset 0: c0 read a, c1 b",
    ),
    (
        [A, B], [read(1, b"b"), read(0, b"a")], AB,
        "offset-back: orders-0: c0 was given 0 after 1",
    ),
    (
        [A, B, send(b"c", UNKNOWN)], [read(0, b"a"), read(2, b"c")], [*AB, (2, b"c")],
        "skipped: orders-0: c0 was given 2 after 0, not 1",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("sends", "reads", "log", "printed"), CASES)
def test_history__an_anomaly_is_named(sends, reads, log, printed):
    ledger = Ledger()
    ledger.sends, ledger.reads = sends, reads
    assert [str(anomaly) for anomaly in ledger.check({P: FinalLog(0, log)})] == [printed]


def test_history__a_committed_offset_that_goes_back_is_named():
    ledger = Ledger()
    ledger.commits = [("g", P, 5, True), ("g", P, 5, False), ("g", P, 3, False)]
    (lost,) = ledger.check({})
    assert str(lost) == "lost-commit: orders-0: group g committed 5 and was told 3 later"


def test_history__every_anomaly_has_an_example():
    assert {printed.split(":")[0] for *_, printed in CASES} | {"lost-commit"} == set(ANOMALIES)


def test_history__unknown_sends_may_be_there_or_not():
    for log in (AB, AB[:1]):
        ledger = Ledger()
        ledger.sends = [A, send(b"b", UNKNOWN)]
        assert ledger.check({P: FinalLog(0, log)}) == []


def test_history__what_was_deleted_or_may_be_lost_is_not_missed():
    for final in (FinalLog(2, []), FinalLog(0, [], loss_allowed=True)):
        ledger = Ledger()
        ledger.sends, ledger.reads = [A, B], [read(0, b"a")]
        assert ledger.check({P: final}) == []
