"""Each anomaly by its smallest example, as it is printed and as its docstring shows it."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import pytest

from kcluster.checks.anomalies import ANOMALIES, find_anomalies
from kcluster.checks.anomalies.base import Anomaly
from kcluster.clients.ledger import (
    ClientTransaction,
    Ledger,
    Outcome,
    ReadRecord,
    SentRecord,
    SharedRecord,
    ShareLeadership,
    TransactionOffsets,
    TransactionOutcome,
    Unowned,
)
from kcluster.evidence.history import FinalLog, OfflinePartition, OpenTransaction
from kcluster.metadata.records import NO_LEADER, PartitionRegistration

P = ("orders", 0)
ACKED, FAILED, UNKNOWN = Outcome.ACKED, Outcome.FAILED, Outcome.UNKNOWN


def send(
    value: bytes, outcome: Outcome = ACKED, offset: int = -1, acks: int = -1, producer: str = "i0"
) -> SentRecord:
    return SentRecord(producer, P, value, acks, acks == -1, outcome, offset)


def read(offset: int, value: bytes, consumer: str = "c0", restarted: bool = False) -> ReadRecord:
    return ReadRecord(consumer, P, offset, value, restarted)


A, B = send(b"a", ACKED, 0), send(b"b", ACKED, 1)
AB = [(0, b"a"), (1, b"b")]
ABC = [*AB, (2, b"c")]
C = send(b"c", UNKNOWN)

CASES = [
    (
        [A, B], [], AB[:1],
        "lost-write: orders-0: b, acked (acks=all) at offset 1, is not in the log",
    ),
    (
        [A, send(b"b", ACKED, 1, acks=1)], [], AB[:1],
        "lost-write: orders-0: b, acked (acks=1) at offset 1, is not in the log",
    ),
    (
        [A, send(b"b", acks=0), send(b"c", acks=0)], [], AB[:1],
        "lost-write: orders-0: 2 records, b to c, sent with acks=0, are not in the log",
    ),
    (
        [A, send(b"b", UNKNOWN)], [read(0, b"a"), read(1, b"b")], AB[:1],
        "lost-write: orders-0: b, read by c0 at offset 1, is not in the log",
    ),
    ([A], [], [(0, b"a"), (3, b"a")], "duplicate: orders-0: a is at offsets 0 and 3"),
    (
        [send(b"a", UNKNOWN), send(b"b", UNKNOWN)], [], [(0, b"b"), (1, b"a")],
        "nonmonotonic-send: orders-0: b, sent after a, is at offset 0, before 1",
    ),
    ([A], [], [(4, b"a")], "inconsistent-offsets: orders-0: a, acked at 0, is at 4"),
    (
        [A], [read(0, b"a"), read(0, b"b", "c1")], AB[:1],
        "inconsistent-offsets: orders-0: offset 0: c0 read a, c1 read b",
    ),
    (
        [A, B], [read(0, b"b")], AB,
        "inconsistent-offsets: orders-0: offset 0: c0 read b, the log holds a",
    ),
    (
        [send(b"a", FAILED)], [], AB[:1],
        "aborted-read: orders-0: a, whose send failed for certain, is there at offset 0",
    ),
    ([], [], [(0, b"x")], "phantom: orders-0: x at offset 0 was sent by nobody"),
    (
        [A, B, C], [read(0, b"a"), read(1, b"b", "c1"), read(2, b"c")], ABC,
        "poll-skip: orders-0: c0 received 2 after 0, not 1",
    ),
    (
        [A, B], [read(0, b"a", "c1"), read(1, b"b"), read(0, b"a")], AB,
        "nonmonotonic-poll: orders-0: c0 received 0 after 1",
    ),
    (
        [A, B, C], [read(0, b"a"), read(2, b"c", restarted=True)], ABC,
        "unseen: orders-0: b, acked at offset 1, was read by no consumer",
    ),
]  # fmt: skip


def in_transaction(outcome: TransactionOutcome, *sends: SentRecord) -> Ledger:
    """The ledger of shop, whose second transaction has these records."""
    ledger = Ledger()
    transaction = ClientTransaction("shop", "t", 2, version=2, outcome=outcome, producer_id=7)
    for one in sends:
        one.producer, one.transaction = "shop", transaction
    ledger.sends, ledger.transactions = [*sends], [transaction]
    ledger.read_committed = {"c0": None}
    return ledger


HIDING_ALL = FinalLog(0, AB, hidden={0: None, 1: None})
COMMITTED, ABORTED = TransactionOutcome.COMMITTED, TransactionOutcome.ABORTED
OF_TRANSACTIONS = [
    (
        in_transaction(COMMITTED, send(b"a", ACKED, 0), send(b"b", ACKED, 1)),
        FinalLog(0, AB, hidden={1: None}),
        ["torn-transaction: orders-0: transaction 2 of shop: a is there, and b is not"],
    ),
    (
        in_transaction(COMMITTED, send(b"a", ACKED, 0), send(b"b", ACKED, 1)), HIDING_ALL,
        ["swapped-transaction: orders-0: transaction 2 of shop is aborted, a among its records"],
    ),
    (
        in_transaction(ABORTED, send(b"a", ACKED, 0), send(b"b", ACKED, 1)), FinalLog(0, AB),
        [
            "aborted-read: orders-0: offsets 0 to 1 (2 records, a to b), whose transaction was"
            " aborted, are there"
        ],
    ),
    (in_transaction(COMMITTED, send(b"a", ACKED, 0), send(b"b", ACKED, 1)), FinalLog(0, AB), []),
    (in_transaction(ABORTED, send(b"a", ACKED, 0), send(b"b", ACKED, 1)), HIDING_ALL, []),
    (
        in_transaction(ABORTED, send(b"a", ACKED, 0)),
        FinalLog(0, AB[:1], hidden={0: None}, open_transactions=[OpenTransaction(7, 0, False)]),
        ["hanging-transaction: orders-0: the transaction of producer 7 is open from offset 0 on"],
    ),
    (
        in_transaction(COMMITTED, send(b"a", ACKED, 0)),
        FinalLog(
            0, AB[:1], hidden={0: None}, open_transactions=[OpenTransaction(7, 0, True, 30_000)]
        ),
        [
            "stuck-transaction: orders-0: producer 7 waits for its marker since 30 s, from offset 0"
            " on",
        ],
    ),
    (
        in_transaction(TransactionOutcome.OPEN, send(b"a", ACKED, 0)),
        FinalLog(0, AB[:1], hidden={0: None}, open_transactions=[OpenTransaction(7, 0, True)]),
        [],
    ),
]  # fmt: skip


def processed(*offsets: int, committed: int) -> Ledger:
    """Processor a of group g made an output of each offset, in a transaction of its own."""
    ledger = Ledger()
    for number, offset in enumerate(offsets, 1):
        made = send(b"o%d" % number, ACKED, number, producer="a")
        made.partition, made.source = OUT, (P, offset)
        made.transaction = ClientTransaction("a", "a", number, 2, COMMITTED)
        made.transaction.offsets = TransactionOffsets("g", {P: (committed, 0)})
        ledger.sends.append(made)
        ledger.transactions.append(made.transaction)
    return ledger


OUT = ("invoices", 0)
OF_PROCESSORS = [
    (
        processed(0, 1, 1, committed=2),
        "processed-twice: invoices-0: group g processed orders-0 offset 1 twice, by a and a",
    ),
    (
        processed(1, committed=2),
        "never-processed: orders-0: group g committed 2, and offset 0 has no output",
    ),
    (processed(0, 1, committed=2), None),
    (processed(0, committed=1), None),
]
COMMITTED_BACK = "committed-offset-back: orders-0: group g committed 5 and fetched 3 later"


def check(
    sends: list[SentRecord], reads: list[ReadRecord], log: FinalLog, drained: bool = False
) -> list[Anomaly]:
    ledger = Ledger()
    ledger.sends, ledger.reads = sends, reads
    return find_anomalies(ledger, {P: log}, drained)


@pytest.mark.parametrize(("sends", "reads", "log", "printed"), CASES)
def test_anomalies__an_anomaly_is_named(
    sends: list[SentRecord], reads: list[ReadRecord], log: list[tuple[int, bytes]], printed: str
) -> None:
    found = [str(anomaly) for anomaly in check(sends, reads, FinalLog(0, log))]
    if "inconsistent-offsets: orders-0: offset 0: c0 read a, c1" in printed:
        found = [line for line in found if not line.startswith("lost-write")]
    assert found == [printed]


@pytest.mark.parametrize(("ledger", "printed"), OF_PROCESSORS)
def test_anomalies__of_processors_are_named(ledger: Ledger, printed: str) -> None:
    outputs = FinalLog(0, [(1, b"o1"), (2, b"o2"), (3, b"o3")])
    found = find_anomalies(ledger, {P: FinalLog(0, AB), OUT: outputs})
    names = {"processed-twice", "never-processed"}
    assert [str(anomaly) for anomaly in found if anomaly.name in names] == (
        [printed] if printed else []
    )


@pytest.mark.parametrize("outputs", [FinalLog(3, (), deleted_before=3), FinalLog(0, (), 3)])
def test_anomalies__outputs_that_were_deleted_had_been_there(outputs: FinalLog) -> None:
    """By retention, or by compaction for a newer record of the same key."""
    found = find_anomalies(processed(0, 1, committed=2), {P: FinalLog(0, AB), OUT: outputs})
    assert "never-processed" not in [anomaly.name for anomaly in found]


@pytest.mark.parametrize(("ledger", "log", "printed"), OF_TRANSACTIONS)
def test_anomalies__of_transactions_are_named(
    ledger: Ledger, log: FinalLog, printed: list[str]
) -> None:
    assert [str(anomaly) for anomaly in find_anomalies(ledger, {P: log})] == printed


def test_anomalies__an_aborted_record_that_a_read_committed_consumer_has_read() -> None:
    ledger = in_transaction(ABORTED, send(b"a", ACKED, 0))
    ledger.reads = [read(0, b"a"), read(0, b"a", "c1")]
    (found,) = find_anomalies(ledger, {P: FinalLog(0, AB[:1], hidden={0: None})})
    assert str(found) == (
        "aborted-read: orders-0: a, whose transaction was aborted, is hidden, and was read by c0 at"
        " offset 0"
    )


def test_anomalies__a_committed_offset_that_goes_back_is_named() -> None:
    ledger = Ledger()
    ledger.add_commit("g", P, 5)
    ledger.add_fetched("g", P, 5, known=5)
    ledger.add_fetched("g", P, 3, known=5)
    (back,) = find_anomalies(ledger, {})
    assert str(back) == COMMITTED_BACK


def test_anomalies__a_fetch_may_miss_a_commit_acked_after_it_was_sent() -> None:
    ledger = Ledger()
    known = ledger.acked_offset("g", P)
    ledger.add_commit("g", P, 5)
    ledger.add_fetched("g", P, 3, known)
    assert find_anomalies(ledger, {}) == []


def delivered(
    name: str,
    count: int,
    accepted: bool = True,
    acknowledged: bool = True,
    step: int = 1,
    broker: int = 1,
) -> SharedRecord:
    """A delivery of offset 3, asked for in a step of the ledger, which is also a millisecond; its
    acknowledgement is sent in the next one, and answered in the one after that."""
    return SharedRecord(
        group="g", consumer=name, partition=P, offset=3, value=b"a", count=count,
        is_accepted=accepted, at_ms=step, is_acknowledged=acknowledged and accepted,
        ended_ms=step + 2, is_sent=True, broker=broker, asked_ms=step, asked=step, sent=step + 1,
        ended=step + 2,
    )  # fmt: skip


def led(broker: int, epoch: int, at_ms: int = 0) -> ShareLeadership:
    return ShareLeadership("g", P, broker, epoch, at_ms)


OF_SHARES = [
    (
        [delivered("a", 1), delivered("b", 2, step=5)],
        "delivered-after-ack: orders-0: group g accepted offset 3, and b received it again",
    ),
    (
        [delivered("a", 6)],
        "delivered-too-often: orders-0: group g: a received offset 3 with count 6, the limit is 5",
    ),
    (
        [delivered("a", 1, accepted=False), delivered("b", 1, step=5)],
        "delivered-too-often: orders-0: group g: b received offset 3 again with count 1, the limit"
        " is 5",
    ),
    (
        [delivered("a", 1, accepted=False), delivered("a", 1, step=2)],
        "delivered-too-often: orders-0: group g: a received offset 3 again with count 1, the limit"
        " is 5",
    ),
]


BOTH_ACCEPTED = "accepted-twice: orders-0: group g: a and b both accepted offset 3"
PASSED_OVER = "passed-over: orders-0: b, acked at offset 1, was settled by no member of group g"


def found_in(
    *deliveries: Any, leaders: Sequence[ShareLeadership] = (), lock_ms: int = 30_000
) -> list[str]:
    ledger = Ledger()
    ledger.deliveries = list(deliveries)
    ledger.share_leaderships = list(leaders)
    ledger.lock_duration_ms = lock_ms
    return [str(anomaly) for anomaly in find_anomalies(ledger, {})]


def test_anomalies__two_members_that_had_a_record_at_once_are_named() -> None:
    first, second = delivered("a", 1, step=1), delivered("b", 1, step=10)
    first.ended = first.ended_ms = 11
    assert found_in(first, second) == [BOTH_ACCEPTED]
    second.is_acknowledged = False
    assert found_in(first, second) == []


def test_shares__an_acceptance_after_its_lock_may_get_no_error() -> None:
    """The next member has settled the record meanwhile."""
    first, second = delivered("a", 1, step=1), delivered("b", 2, step=2_010)
    first.ended = first.ended_ms = 2_020
    assert found_in(first, second, lock_ms=2_000) == []


def test_shares__a_group_may_have_shorter_locks_than_its_brokers() -> None:
    first, second = delivered("a", 1, step=1), delivered("b", 2, step=1_010)
    first.ended = first.ended_ms = 1_020
    assert found_in(first, second, lock_ms=2_000) == [BOTH_ACCEPTED]
    second.lock_ms = 1_000
    assert found_in(first, second, lock_ms=2_000) == []


def test_shares__a_leader_that_came_back_may_accept_without_an_error() -> None:
    first, second = delivered("a", 1, step=10), delivered("b", 1, step=40, broker=2)
    first.ended = first.ended_ms = 60
    leaders = [led(1, 0), led(2, 1, 30), led(1, 2, 50)]
    assert found_in(first, second, leaders=leaders) == []
    assert found_in(first, second, leaders=leaders[:2]) == [BOTH_ACCEPTED]


def test_shares__a_leader_that_was_replaced_may_deliver_what_the_next_one_has_taken() -> None:
    """Nothing is stored about deliveries, and it has not heard of its successor."""
    first, second = delivered("a", 1, step=40, broker=2), delivered("b", 1, False, step=50)
    leaders = [led(1, 0), led(2, 1, 30)]
    assert found_in(first, second, leaders=leaders) == []
    assert len(found_in(first, second, leaders=[led(2, 1), led(1, 2, 45)])) == 1


def test_shares__a_record_whose_release_was_refused_may_come_again_with_its_count() -> None:
    first, second = delivered("a", 1, accepted=False), delivered("b", 1, step=5)
    first.error = "NOT_LEADER_OR_FOLLOWER"
    assert found_in(first, second) == []


def test_shares__a_fetch_under_way_may_bring_what_is_accepted_meanwhile() -> None:
    for accepted in (True, False):
        first, second = delivered("a", 1, accepted, step=4), delivered("b", 1, False, step=3)
        second.at_ms = 9
        assert found_in(first, second) == []


def test_anomalies__a_record_that_a_share_group_has_passed_over_is_named() -> None:
    ledger = Ledger()
    ledger.sends = [send(b"a", ACKED, 0), send(b"b", ACKED, 1)]
    ledger.deliveries = [SharedRecord("g", "a", P, 0, b"a", 1, True, 3, True, 3)]
    ledger.present_share_groups = {"g": None}
    log = {P: FinalLog(0, AB)}
    (found,) = find_anomalies(ledger, log, drained=True)
    assert str(found) == PASSED_OVER
    # An acceptance that was refused may have been stored, unless the refusal excludes that.
    refused = SharedRecord("g", "a", P, 1, b"b", 1, True, 3, False, 4, is_sent=True)
    ledger.deliveries.append(refused)
    for error, count in (("NOT_LEADER_OR_FOLLOWER", 0), ("INVALID_RECORD_STATE", 1)):
        refused.error = error
        assert len(find_anomalies(ledger, log, drained=True)) == count
    assert find_anomalies(ledger, log) == []
    lost = SharedRecord("g", "b", P, 1, b"b", 1, True, 3)
    ledger.deliveries += [lost]
    assert [found.name for found in find_anomalies(ledger, log, drained=True)] == ["passed-over"]
    lost.is_sent = True  # and no answer came
    assert find_anomalies(ledger, log, drained=True) == []


@pytest.mark.parametrize(("deliveries", "printed"), OF_SHARES)
def test_anomalies__of_share_groups_are_named(deliveries: Any, printed: str) -> None:
    ledger = Ledger()
    ledger.deliveries = deliveries
    assert [str(anomaly) for anomaly in find_anomalies(ledger, {})] == [printed]


def test_anomalies__a_record_that_was_released_or_timed_out_may_come_again() -> None:
    ledger = Ledger()
    ledger.deliveries = [
        delivered("a", 1, accepted=False),
        delivered("b", 2, acknowledged=False, step=5),
        delivered("c", 3, step=9),
    ]
    assert find_anomalies(ledger, {}) == []


OWNED_TWICE = "owned-twice: orders-0: group g gave it to b while a held it"
UNSETTLED = "unsettled-group: orders-0: no member of group g owns it"


def test_anomalies__a_group_that_does_not_settle_is_named() -> None:
    ledger = Ledger()
    ledger.unowned = [Unowned("g", P, 0)]
    assert [str(anomaly) for anomaly in find_anomalies(ledger, {})] == [UNSETTLED]


STUCK = "stuck-offline: orders-0: no broker is elected leader; ISR [], ELR [2], replicas [1, 3]"


def test_anomalies__a_partition_that_stays_offline_is_named() -> None:
    registration = PartitionRegistration(b"o" * 16, 0, (1, 3), (), NO_LEADER, 3, 9, (2,))
    left = [OfflinePartition(P, registration)]
    found = find_anomalies(Ledger(), {}, left_offline=left)
    assert [str(anomaly) for anomaly in found] == [STUCK]


def test_anomalies__every_anomaly_has_an_example_and_its_class_shows_one() -> None:
    examples = [*(printed for *_, printed in CASES), COMMITTED_BACK]
    examples += [OWNED_TWICE, UNSETTLED, STUCK, BOTH_ACCEPTED, PASSED_OVER]
    examples += [*(printed for _, printed in OF_SHARES)]
    examples += [printed for _, printed in OF_PROCESSORS if printed]
    examples += [line for *_, printed in OF_TRANSACTIONS for line in printed]
    assert {printed.split(":")[0] for printed in examples} == set(ANOMALIES)
    for name, kind in ANOMALIES.items():
        documented = inspect.getdoc(type(kind)) or ""
        assert any(printed in documented for printed in examples if printed.startswith(name)), name


def test_anomalies__are_listed_in_this_order_and_each_is_one_file() -> None:
    assert list(ANOMALIES) == [
        "lost-write",
        "duplicate",
        "nonmonotonic-send",
        "inconsistent-offsets",
        "aborted-read",
        "torn-transaction",
        "swapped-transaction",
        "hanging-transaction",
        "stuck-transaction",
        "processed-twice",
        "never-processed",
        "phantom",
        "poll-skip",
        "nonmonotonic-poll",
        "unseen",
        "committed-offset-back",
        "owned-twice",
        "unsettled-group",
        "stuck-offline",
        "delivered-after-ack",
        "delivered-too-often",
        "accepted-twice",
        "passed-over",
    ]
    for name, kind in ANOMALIES.items():
        assert (kind.NAME, kind.MEANING) != ("", "")
        assert type(kind).__module__ == f"kcluster.checks.anomalies.{name.replace('-', '_')}"


def test_history__unknown_sends_may_be_in_the_log_or_not() -> None:
    for log in (AB, AB[:1]):
        assert check([A, send(b"b", UNKNOWN)], [], FinalLog(0, log)) == []


def test_history__deleted_and_compacted_records_are_not_lost() -> None:
    for log in (FinalLog(2, []), FinalLog(0, [], clean_offset=2)):
        assert check([A, B], [read(0, b"a")], log) == []


def test_history__names_the_setting_that_allowed_an_anomaly() -> None:
    loose = send(b"b", ACKED, 1, acks=1)
    (lost,) = check([A, loose], [], FinalLog(0, AB[:1]))
    assert lost.allowed == "acks=1"
    (twice,) = check([A, loose], [], FinalLog(0, [*AB, (2, b"b")]))
    assert twice.allowed == "enable.idempotence=false"
    (lost,) = check([A, B], [], FinalLog(0, AB[:1]))
    assert lost.allowed == ""


def test_history__adjacent_offsets_are_one_anomaly() -> None:
    sends = [send(b"%d" % i, ACKED, i) for i in range(1_000)]
    (lost,) = check(sends, [], FinalLog(0, [(i, b"%d" % i) for i in range(400)]))
    assert (lost.count, lost.first, lost.last) == (600, 400, 999)
    assert lost.text == (
        "offsets 400 to 999 (600 records, 400 to 999), acked (acks=all), are not in the log"
    )
    (again,) = check(sends[:2], [], FinalLog(0, [(0, b"0"), (1, b"1"), (7, b"0"), (8, b"1")]))
    assert again.text == "offsets 0 to 1 (2 records, 0 to 1) are there again at 7 to 8"


def test_history__the_log_end_is_unseen_only_after_consumers_drained() -> None:
    log = FinalLog(0, AB)
    assert check([A, B], [read(0, b"a")], log) == []
    (unseen,) = check([A, B], [read(0, b"a")], log, drained=True)
    assert unseen.name == "unseen"


def test_history__a_record_is_unseen_though_a_lost_one_was_read_at_its_offset() -> None:
    lost = send(b"x", ACKED, 1)
    found = check([A, lost, B], [read(0, b"a"), read(1, b"x")], FinalLog(0, AB), drained=True)
    assert [one.values for one in found if one.name == "unseen"] == [(b"b", b"b")]


def test_anomalies__what_a_reader_skipped_in_a_log_that_was_lost_since_is_not_known() -> None:
    reads = [read(0, b"a"), read(2, b"z")]
    found = check([A, B, C], reads, FinalLog(0, ABC))
    names = [one.name for one in found]
    assert "inconsistent-offsets" in names
    assert "poll-skip" not in names


def test_anomalies__a_consumer_that_chose_its_position_did_not_go_back() -> None:
    reads = [read(0, b"a"), read(1, b"b"), read(0, b"a", restarted=True)]
    assert check([A, B], reads, FinalLog(0, AB)) == []
