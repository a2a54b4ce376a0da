"""Histories, and what clients alone can prove about them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kcluster.clients.ledger import Outcome, TransactionOutcome
from kcluster.judge.cycles import CycleName
from kcluster.judge.history import (
    AnyOperation,
    AssignOperation,
    IncompleteOperation,
    Isolation,
    LogEndOperation,
    OperationPlace,
    PollOperation,
    PositionOperation,
    ReadFromStartOperation,
    ReadToEndOperation,
    Received,
    SendOperation,
    TopicOperation,
    TransactionOperation,
    history_of,
)
from kcluster.judge.judgment import Judgment
from kcluster.judge.parts import judge_history
from kcluster.judge.words import judgment_lines


def judged(*operations: AnyOperation) -> Judgment:
    located = ((OperationPlace("h.jsonl", at), each) for at, each in enumerate(operations, 1))
    return judge_history(history_of(located))


def send(value: str, offset: int = -1, **values: object) -> SendOperation:
    operation = SendOperation("shop", "orders", 0, value, Outcome.ACKED, offset, ended_ms=10)
    return replace(operation, **values)


def poll(*values: str, start: int = 0, client: str = "billing", at_ms: int = 20) -> PollOperation:
    records = (Received("orders", 0, start + at, each) for at, each in enumerate(values))
    return PollOperation(client, tuple(records), at_ms=at_ms)


def names(judgment: Judgment) -> list[str]:
    return [proven.anomaly.name for proven in judgment.proven]


def test_judge__all_acked_records_were_read() -> None:
    judgment = judged(send("a", 0), send("b", 1), poll("a", "b"))
    assert judgment.outcome == "valid"
    *_, answer = judgment_lines(judgment)
    assert answer == "valid: no anomaly; 2 records sent, 2 acked, 2 read"


def test_judge__an_acked_record_that_a_consumer_passed_is_lost() -> None:
    judgment = judged(send("a", 0), send("b", 1), send("c", 2), poll("a"), poll("c", start=2))
    assert names(judgment) == ["lost-write"]
    assert list(judgment_lines(judgment)) == [
        "lost-write: orders-0: b, acked (acks=all) at offset 1, is not in the log",
        "    10 ms: shop sent b: acked at offset 1 (h.jsonl:2)",
        "    20 ms: billing read a at offset 0 (h.jsonl:4)",
        "    20 ms: billing read c at offset 2 (h.jsonl:5)",
        "invalid: 1 anomaly; 3 records sent, 3 acked, 2 read",
    ]


def test_judge__a_record_beyond_the_last_read_is_undecided() -> None:
    operations: list[AnyOperation] = [send("a", 0), send("b", 1), poll("a")]
    judgment = judged(*operations)
    assert (judgment.outcome, names(judgment)) == ("unknown", [])
    line, answer = judgment_lines(judgment)
    assert line == (
        "undecided: orders-0: 1 acked record (offsets 1 to 1): no consumer passed them after their"
        " acks; consumers have read up to 0"
    )
    assert answer.startswith("unknown: the history does not show whether 1 acked record")
    assert names(judged(*operations, ReadToEndOperation())) == ["unseen"]


def test_judge__a_pass_before_the_ack_proves_nothing() -> None:
    """The log was read, truncated, and written again up to the record."""
    old = [poll("x"), poll("y", start=3)]
    judgment = judged(send("x", 0), send("y", 3), *old, send("late", 2, ended_ms=30, client="desk"))
    assert (judgment.outcome, names(judgment)) == ("unknown", [])


def test_judge__what_was_read_before_a_truncation_counts_only_if_it_is_read_again() -> None:
    sends = [send("a", 0), send("b", 1), send("c", 2), send("d", 1, sent_ms=25, ended_ms=26)]
    judgment = judged(
        *sends, poll("a", "b", "c"), AssignOperation("billing"), poll("a", "d", at_ms=30)
    )
    # b was passed at its offset; nothing was read after it that shows whether c is still there.
    assert names(judgment) == ["lost-write", "inconsistent-offsets"]
    assert judgment.proven[0].anomaly.values[0] == b"b"
    assert [each.count for each in judgment.undecided] == [1]


def test_judge__a_seek_is_no_skip_and_no_step_back() -> None:
    sends = [send(value, at) for at, value in enumerate("abcd")]
    reads: list[AnyOperation] = [
        poll("a", "b"),
        AssignOperation("billing"),
        poll("d", start=3),
        AssignOperation("billing"),
        poll("b", "c", start=1),
    ]
    assert judged(*sends, *reads).outcome == "valid"
    without = [each for each in reads if isinstance(each, PollOperation)]
    assert names(judged(*sends, *without)) == ["poll-skip", "nonmonotonic-poll"]


def test_judge__after_an_aborted_transaction_a_consumer_reads_its_records_again() -> None:
    sends = [send(value, at) for at, value in enumerate("abcd")]
    aborted = replace(poll("b", "c", start=1), is_rewound=True)
    assert judged(*sends, poll("a"), aborted, poll("b", "c", "d", start=1)).outcome == "valid"
    goes_on = judged(*sends, poll("a"), aborted, poll("d", start=3))
    assert names(goes_on) == ["poll-skip"]
    assert [(each.anomaly.first, each.anomaly.last) for each in goes_on.proven] == [(1, 2)]
    assert names(judged(*sends, poll("a", "b", "c", "d"), aborted)) == ["nonmonotonic-poll"]


def test_judge__several_polls_of_an_aborted_transaction_follow_each_other() -> None:
    sends = [send(value, at) for at, value in enumerate("abc")]
    polls = [
        replace(poll(value, start=at), is_rewound=True, transaction=4)
        for at, value in enumerate("ab")
    ]
    assert judged(*sends, *polls, poll("a", "b", "c")).outcome == "valid"


def test_judge__what_lies_below_the_first_read_is_lost_if_all_began_at_the_beginning() -> None:
    operations: list[AnyOperation] = [send("a", 0), send("b", 1), poll("b", start=1)]
    assert (judged(*operations).outcome, names(judged(*operations))) == ("unknown", [])
    judgment = judged(ReadFromStartOperation(), *operations)
    assert list(judgment_lines(judgment))[:3] == [
        "lost-write: orders-0: a, acked (acks=all) at offset 0, is not in the log",
        "    10 ms: shop sent a: acked at offset 0 (h.jsonl:2)",
        "    20 ms: billing read b at offset 1 (h.jsonl:4)",
    ]


def test_judge__a_log_that_ends_below_an_acked_record_has_lost_it() -> None:
    operations: list[AnyOperation] = [send("a", 0), send("b", 1), poll("a")]
    assert names(judged(*operations, LogEndOperation("orders", 0, 2, at_ms=30))) == []
    judgment = judged(*operations, LogEndOperation("orders", 0, 1, at_ms=30))
    assert list(judgment_lines(judgment))[:3] == [
        "lost-write: orders-0: b, acked (acks=all) at offset 1, is not in the log",
        "    10 ms: shop sent b: acked at offset 1 (h.jsonl:2)",
        "    30 ms: orders-0 ended at offset 1 (h.jsonl:4)",
    ]
    # It was requested before the ack, or the time is unknown.
    for at_ms in (10, -1):
        assert names(judged(*operations, LogEndOperation("orders", 0, 1, at_ms=at_ms))) == []
    # The leader may have the record, above the high watermark.
    weak: list[AnyOperation] = [send("b", 1, acks=1), LogEndOperation("orders", 0, 1, at_ms=30)]
    assert judged(*weak).outcome == "unknown"


def at(offset: int, at_ms: int = 50, client: str = "billing") -> PositionOperation:
    return PositionOperation(client, "orders", 0, offset, at_ms)


def test_judge__a_position_shows_what_a_consumer_passed_behind_its_last_read() -> None:
    operations: list[AnyOperation] = [send("a", 0), send("b", 1), poll("a")]
    assert judged(*operations, at(1)).outcome == "unknown"
    judgment = judged(*operations, at(2))
    assert list(judgment_lines(judgment))[:3] == [
        "lost-write: orders-0: b, acked (acks=all) at offset 1, is not in the log",
        "    10 ms: shop sent b: acked at offset 1 (h.jsonl:2)",
        "    50 ms: billing was at offset 2 of orders-0 (h.jsonl:4)",
    ]
    # It may have begun there.
    assert judged(*operations, at(2, client="desk")).outcome == "unknown"
    assert names(judged(ReadFromStartOperation(), *operations, at(2, client="desk"))) == [
        "lost-write"
    ]


def test_judge__a_last_position_below_a_record_that_was_read_shows_that_it_is_gone() -> None:
    operations: list[AnyOperation] = [send("a", 0), send("b", 1), poll("a", "b"), at(1)]
    # It may still be on its way to the end.
    assert (judged(*operations).outcome, names(judged(*operations))) == ("unknown", [])
    assert judged(*operations[:3], AssignOperation("billing"), at(1)).outcome == "valid"
    judgment = judged(*operations, ReadToEndOperation())
    assert names(judgment) == ["lost-write"]
    assert judgment.proven[0].anomaly.values[0] == b"b"
    later = poll("a", "b", client="desk", at_ms=60)
    assert judged(*operations, later, ReadToEndOperation()).outcome == "valid"


def test_judge__a_consumer_that_was_set_back_knows_more_than_one_that_has_not_noticed() -> None:
    """The log was lost; desk did not fetch again, and billing begins again in an empty log."""
    operations: list[AnyOperation] = [send("a", 0), send("b", 1), poll("a", "b")]
    operations += [poll("a", "b", client="desk"), at(0), at(2, client="desk")]
    judgment = judged(*operations, ReadToEndOperation())
    assert [(each.anomaly.name, each.anomaly.count) for each in judgment.proven] == [
        ("lost-write", 2)
    ]


def test_judge__a_consumer_that_was_set_back_and_read_on_knows_no_more_than_others() -> None:
    """It went on from offset 0; later the log ended at offset 1."""
    operations: list[AnyOperation] = [send("a", 0), send("b", 1), poll("a", "b")]
    operations += [at(0, at_ms=25), AssignOperation("billing"), poll("a", "b", at_ms=30)]
    judgment = judged(*operations, at(1, client="desk"), ReadToEndOperation())
    assert [each.anomaly.values[0] for each in judgment.proven] == [b"b"]


def test_judge__a_consumer_that_was_set_back_before_others_read_on_knows_no_more() -> None:
    """The log was lost and begun again; billing was set back, and has not read since."""
    operations: list[AnyOperation] = [send("a", 0), poll("a")]
    operations += [send("b", 0, sent_ms=30, ended_ms=31), poll("b", client="desk", at_ms=40)]
    operations += [at(0), at(1, client="desk"), ReadToEndOperation()]
    judgment = judged(*operations)
    assert sorted(names(judgment)) == ["inconsistent-offsets", "lost-write"]
    assert all(b"b" not in each.anomaly.values for each in judgment.proven)


def test_judge__a_position_before_the_beginning_of_a_consumer_that_read_nothing() -> None:
    judgment = judged(send("a", 0), poll("a"), at(-1, client="desk"), ReadToEndOperation())
    assert judgment.outcome == "valid"


def test_judge__a_last_position_at_a_transaction_does_not_show_that_the_log_ends_there() -> None:
    """A truncation may have removed the marker, so that the transaction is open again."""
    operations: list[AnyOperation] = [
        send("a", 0),
        send("b", 1, transaction=1),
        send("c", 2),
        TransactionOperation("shop", 1, TransactionOutcome.COMMITTED, 5, 15),
        replace(poll("a", "b", "c"), isolation=Isolation.READ_COMMITTED),
        replace(poll("a", client="desk", at_ms=30), isolation=Isolation.READ_COMMITTED),
        ReadToEndOperation(),
    ]
    judgment = judged(*operations, at(1, client="desk"))
    assert (judgment.outcome, names(judgment)) == ("unknown", [])
    uncommitted = [*operations, poll("a", client="audit", at_ms=30), at(1, client="audit")]
    assert names(judged(*uncommitted)) == ["lost-write"]
    before = replace(operations[1], transaction=0)
    assert isinstance(before, SendOperation)
    operations[1] = before
    assert names(judged(*operations, at(1, client="desk"))) == ["lost-write"]


def test_judge__of_equal_positions_that_of_a_read_uncommitted_consumer_shows_more() -> None:
    """A read_committed consumer may be kept back by an open transaction."""
    operations: list[AnyOperation] = [
        send("a", 0),
        send("b", 1, transaction=1),
        TransactionOperation("shop", 1, TransactionOutcome.UNKNOWN, 5, 15),
        replace(poll("a"), isolation=Isolation.READ_COMMITTED),
        at(1),
        poll("a", "b", client="audit"),
        ReadToEndOperation(),
    ]
    assert names(judged(*operations)) == []
    assert names(judged(*operations, at(1, client="audit"))) == ["lost-write"]


def test_judge__a_compacted_topic_has_lost_what_another_record_replaced() -> None:
    operations: list[AnyOperation] = [
        TopicOperation("orders", is_compacted=True),
        send("a", 0, sent_ms=5),
        poll("a"),
        send("b", 0, sent_ms=30, ended_ms=31),
        AssignOperation("billing"),
        poll("b", at_ms=40),
    ]
    judgment = judged(*operations)
    assert names(judgment) == ["inconsistent-offsets", "lost-write"]
    assert judgment.proven[1].anomaly.values[0] == b"a"


def test_judge__a_pass_in_the_time_of_the_ack_counts_if_the_record_behind_is_still_there() -> None:
    reads = [poll("a"), poll("c", start=2)]
    same_ms = send("b", 1, sent_ms=15, ended_ms=20)
    assert names(judged(send("a", 0), same_ms, send("c", 2), *reads)) == ["lost-write"]
    not_yet_sent = send("b", 1, sent_ms=25, ended_ms=30)
    assert names(judged(send("a", 0), not_yet_sent, send("c", 2), *reads)) == []


def test_judge__a_record_withheld_from_read_committed_consumers_tears_its_transaction() -> None:
    """The marker in the second partition was of an abort; a read_uncommitted consumer sees both."""
    sends: list[AnyOperation] = [
        send("a", 0, transaction=1),
        send("b", 0, topic="bills", transaction=1),
        TransactionOperation("shop", 1, TransactionOutcome.COMMITTED, 5, 15),
    ]
    got = replace(poll("a"), isolation=Isolation.READ_COMMITTED)
    other = PollOperation("audit", (Received("bills", 0, 0, "b"),), at_ms=20)
    assert judged(*sends, got, other).outcome == "valid"
    # The consumer passes the marker at the earliest when the producer gets its answer.
    for at_ms, expected in ((30, ["torn-transaction"]), (15, ["torn-transaction"]), (14, [])):
        passed = PositionOperation("billing", "bills", 0, 2, at_ms)
        assert names(judged(ReadFromStartOperation(), *sends, got, other, passed)) == expected


def test_judge__acks_contradict_each_other_although_nothing_was_read() -> None:
    """Without times the history does not show which of the records replaced the other."""
    same = judged(send("a", 5, ended_ms=-1), send("b", 5, ended_ms=-1, client="desk"))
    assert [str(each.anomaly) for each in same.proven] == [
        "inconsistent-offsets: orders-0: offset 5: a and b were acked there"
    ]
    back = judged(send("a", 5), send("b", 3))
    assert [str(each.anomaly) for each in back.proven] == [
        "nonmonotonic-send: orders-0: b, sent after a, was acked at offset 3, before 5"
    ]
    assert judged(send("a", 5), send("b", 3, life=2)).proven == ()


def test_judge__acks_say_nothing_more_of_a_record_that_reads_have_shown_to_be_lost() -> None:
    later = send("b", 0, sent_ms=30, ended_ms=31)
    judgment = judged(send("a", 0, sent_ms=9), later, poll("b", at_ms=40))
    assert names(judgment) == ["lost-write"]
    assert judgment.proven[0].anomaly.values[0] == b"a"


def test_judge__a_missing_part_makes_a_judgement_unknown() -> None:
    operations: list[AnyOperation] = [send("a", 0), poll("a")]
    judgment = judged(*operations, IncompleteOperation("rows were dropped"))
    assert list(judgment_lines(judgment)) == [
        "incomplete: rows were dropped",
        "unknown: parts of the history are missing; 1 record sent, 1 acked, 1 read",
    ]


def test_judge__a_transaction_of_which_the_rest_was_not_passed_is_not_torn() -> None:
    """Its end is unknown, and nobody has read on to where the second record is."""
    sends = [send("a", 0, transaction=1), send("b", 1, transaction=1)]
    end = TransactionOperation("shop", 1, TransactionOutcome.UNKNOWN)
    read = replace(poll("a"), isolation=Isolation.READ_COMMITTED)
    assert names(judged(*sends, end, read)) == []


def test_judge__a_transaction_must_not_read_its_own_records() -> None:
    sends: list[AnyOperation] = [
        send("a", 0, transaction=1),
        TransactionOperation("shop", 1, TransactionOutcome.COMMITTED),
    ]
    own = replace(poll("a", client="shop"), transaction=1)
    assert judged(*sends, own).outcome == "valid"
    judgment = judged(*sends, replace(own, isolation=Isolation.READ_COMMITTED))
    assert judgment.outcome == "invalid"
    first, *_ = judgment_lines(judgment)
    assert first == "precommitted-read: transaction 1 of shop -> transaction 1 of shop"


def test_judge__duplicates_order_and_aborted_records() -> None:
    duplicate = judged(send("a", 0, idempotent=False), poll("a", "a"))
    assert names(duplicate) == ["duplicate"]
    assert names(judged(send("a", 1), send("b", 0), poll("b", "a"))) == ["nonmonotonic-send"]
    assert names(judged(send("a", 1), send("b", 0, life=2), poll("b", "a"))) == []
    assert names(judged(send("a", outcome=Outcome.FAILED), poll("a"))) == ["aborted-read"]


def test_judge__equal_values_are_told_apart() -> None:
    twice = [send("tick", 0), send("tick", 1)]
    assert judged(*twice, poll("tick", "tick")).outcome == "valid"
    assert names(judged(*twice, poll("tick", "tick", "tick"))) == ["duplicate"]
    assert names(judged(*twice, send("end", 2), poll("tick"), poll("end", start=2))) == [
        "lost-write"
    ]


def test_judge__a_compacted_topic_loses_nothing() -> None:
    operations: list[AnyOperation] = [
        send("a", 0),
        send("b", 1),
        send("c", 2),
        poll("a"),
        poll("c", start=2),
    ]
    assert names(judged(TopicOperation("orders", is_compacted=True), *operations)) == []


def test_judge__a_transaction_is_torn_or_whole() -> None:
    def history(*read: str) -> Judgment:
        reads = PollOperation(
            "billing",
            tuple(Received("orders", 0, "a-b".index(x), x) for x in read),
            Isolation.READ_COMMITTED,
            20,
        )
        end: list[AnyOperation] = [
            send("c", 3),
            PollOperation(
                "billing", (Received("orders", 0, 3, "c"),), Isolation.READ_COMMITTED, 30
            ),
        ]
        sends: list[AnyOperation] = [send("a", 0, transaction=1), send("b", 2, transaction=1)]
        return judged(
            *sends, TransactionOperation("shop", 1, TransactionOutcome.UNKNOWN), reads, *end
        )

    assert history("a", "b").outcome == "valid"
    assert names(history("a")) == ["torn-transaction"]


def test_judge__cycles_of_writes_are_allowed_and_cycles_of_reads_are_not() -> None:
    def sent(client: str, value: str, topic: str, offset: int) -> SendOperation:
        return SendOperation(client, topic, 0, value, Outcome.ACKED, offset, transaction=1)

    def read(
        client: str, value: str, topic: str, offset: int, transaction: int = 0
    ) -> PollOperation:
        return PollOperation(client, (Received(topic, 0, offset, value),), transaction=transaction)

    writes: list[AnyOperation] = [
        sent("p", "p1", "x", 0),
        sent("q", "q1", "x", 1),
        sent("q", "q2", "y", 0),
        sent("p", "p2", "y", 1),
    ]
    seen: list[AnyOperation] = [
        read("c", "p1", "x", 0),
        read("c", "q1", "x", 1),
        read("c", "q2", "y", 0),
        read("c", "p2", "y", 1),
    ]
    ends: list[AnyOperation] = [
        TransactionOperation("p", 1, TransactionOutcome.COMMITTED),
        TransactionOperation("q", 1, TransactionOutcome.COMMITTED),
    ]
    overlapping = judged(*writes, *ends, *seen)
    assert [cycle.name for cycle in overlapping.cycles] == [CycleName.G0]
    assert overlapping.outcome == "valid"
    circular = judged(*writes, *ends, *seen, read("p", "q1", "x", 1, 1), read("q", "p2", "y", 1, 1))
    assert [cycle.name for cycle in circular.cycles] == [CycleName.G0, CycleName.G1C]
    assert circular.outcome == "invalid"
    lines = list(judgment_lines(circular))
    assert "G1c: transaction 1 of p -> transaction 1 of q -> transaction 1 of p" in lines


def test_judge__no_history_is_unknown() -> None:
    judgment = judged()
    assert judgment.outcome == "unknown"
    assert list(judgment_lines(judgment)) == [
        "unknown: the history has neither sends nor reads; 0 records sent, 0 acked, 0 read"
    ]


@pytest.mark.parametrize("count", [20_000])
def test_judge__a_long_history_with_a_long_gap(count: int) -> None:
    sends = [send(str(at), at) for at in range(count)]
    judgment = judged(*sends, poll("0"), poll(str(count - 1), start=count - 1))
    assert [proven.anomaly.count for proven in judgment.proven] == [count - 2]


def test_judge__an_ack_shows_that_the_log_was_truncated() -> None:
    """b was read at offset 1; then another record was acked there, and nobody read it."""
    later = send("x", 1, sent_ms=30, ended_ms=31)
    judgment = judged(send("a", 0), send("b", 1), send("c", 2), poll("a", "b", "c"), later)
    assert names(judgment) == ["lost-write"]
    assert judgment.proven[0].anomaly.values[0] == b"b"
    # Neither c, which was behind b, nor x was read since.
    assert [each.count for each in judgment.undecided] == [2]


def test_judge__a_record_below_older_ones_shows_that_the_log_was_truncated() -> None:
    """No consumer ever got a record at offset 1: it was a transaction's marker."""
    sends = [send("a", 0), send("b", 2), send("c", 1, sent_ms=30, ended_ms=31)]
    reads: list[AnyOperation] = [poll("a"), poll("b", start=2), AssignOperation("billing")]
    judgment = judged(*sends, *reads, poll("a", "c", at_ms=40), ReadToEndOperation())
    assert names(judgment) == ["lost-write"]
    assert judgment.proven[0].anomaly.values[0] == b"b"


def test_judge__clocks_that_disagree_prove_no_truncation() -> None:
    """The consumer's clock is 15 ms behind: it reads records before they are sent."""
    sends = [send(value, at, sent_ms=10 + at, ended_ms=20 + at) for at, value in enumerate("abc")]
    operations: list[AnyOperation] = [*sends, poll("a", "b", "c", at_ms=-1), ReadToEndOperation()]
    for at_ms in (1, 11):
        operations[-2] = poll("a", "b", "c", at_ms=at_ms)
        assert judged(*operations).outcome == "valid"


def test_judge__unread_records_at_the_end_tear_their_transaction() -> None:
    sends = [send("a", 0, transaction=1), send("b", 1, transaction=1)]
    end = TransactionOperation("shop", 1, TransactionOutcome.COMMITTED)
    judgment = judged(*sends, end, poll("a"), ReadToEndOperation())
    assert names(judgment) == ["unseen", "torn-transaction"]


def test_judge__a_record_without_an_offset_is_lost_if_the_log_was_read_from_its_start() -> None:
    sends = [send("a", 0), send("b", acks=0)]
    assert names(judged(*sends, poll("a"), ReadToEndOperation())) == ["lost-write"]
    assert judged(*sends, poll("a")).outcome == "unknown"
    late = judged(*sends, poll("a", start=5), ReadToEndOperation())
    assert "lost-write" not in names(late)


def test_judge__a_wiped_log_is_not_inconsistent_with_what_was_unread() -> None:
    """The log was lost after offset 2 had been read, and is shorter now."""
    old: list[AnyOperation] = [send("a", 0), send("b", 1), send("c", 2), poll("a", "b", "c")]
    new = [send(value, at, sent_ms=30, ended_ms=31) for at, value in enumerate("xy")]
    again: list[AnyOperation] = [AssignOperation("billing"), poll("x", "y", at_ms=40)]
    judgment = judged(*old, *new, *again, ReadToEndOperation())
    assert names(judgment) == ["lost-write", "inconsistent-offsets"]
    assert [each.anomaly.count for each in judgment.proven] == [3, 2]
