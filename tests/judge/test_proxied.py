"""The record of a proxy, judged by the headers of batches."""

from __future__ import annotations

from itertools import chain

from msgspec.structs import replace

from kcluster.judge.history import history_of
from kcluster.judge.judgment import Judgment
from kcluster.judge.parts import judge_history
from kcluster.judge.proxied import CONTROL_BIT, AppendedBatches, EndedTransactions, received, sent
from kcluster.runs.proxied_rows import BatchHead, FetchedRow, ProducedRow, TransactionRequestRow


def head(
    first: int, count: int, sequence: int = -1, producer_id: int = 7, crc: int = 1
) -> BatchHead:
    who = (producer_id, 0, sequence) if sequence >= 0 else (-1, -1, -1)
    return BatchHead(first, first + count - 1, count, *who, 0, 100, crc)


def produce(
    sequence: int, count: int, offset: int, at_ms: int = 10, **values: object
) -> ProducedRow:
    batches = [head(0, count, sequence)]
    row = ProducedRow(
        at_ms, at_ms - 1, at_ms, "shop", 1, sequence, 1, "orders", 0, -1, None, batches, offset
    )
    return replace(row, **values)


def fetch(fetch_offset: int, *batches: BatchHead, at_ms: int = 20, **values: object) -> FetchedRow:
    row = FetchedRow(
        at_ms, at_ms - 1, at_ms, "billing", 2, 1, 1, "orders", 0, False, fetch_offset, 99, 99,
        list(batches), [],
    )  # fmt: skip
    return replace(row, **values)


def judged(
    produced: list[ProducedRow],
    fetched: list[FetchedRow],
    ended: list[TransactionRequestRow] = [],  # noqa: B006 (not changed)
) -> Judgment:
    ends, appended = EndedTransactions(ended), AppendedBatches(produced)
    reads = received("f", fetched, appended)
    return judge_history(history_of(chain(ends.operations("t"), sent("p", produced, ends), reads)))


def names(judgment: Judgment) -> list[str]:
    return [proven.anomaly.name for proven in judgment.proven]


def test_proxied__what_was_acked_was_fetched() -> None:
    judgment = judged(
        [produce(0, 2, 0), produce(2, 1, 2)], [fetch(0, head(0, 2, 0), head(2, 1, 2))]
    )
    assert (judgment.outcome, judgment.acked, judgment.read) == ("valid", 3, 3)


def test_proxied__an_acked_batch_that_consumers_passed_is_lost() -> None:
    produced = [produce(0, 2, 0), produce(2, 3, 2), produce(5, 1, 5)]
    fetched = [fetch(0, head(0, 2, 0)), fetch(2, head(5, 1, 5))]
    (proven,) = judged(produced, fetched).proven
    assert (proven.anomaly.name, proven.anomaly.first, proven.anomaly.last) == ("lost-write", 2, 4)


def test_proxied__a_retry_is_the_same_send() -> None:
    unanswered = produce(0, 1, -1, at_ms=5, answered_ms=-1)
    refused = produce(0, 1, -1, at_ms=6, error="NOT_LEADER_OR_FOLLOWER")
    judgment = judged([unanswered, refused, produce(0, 1, 0)], [fetch(0, head(0, 1, 0))])
    assert (judgment.outcome, judgment.sent) == ("valid", 1)


def test_proxied__a_batch_without_idempotence_is_there_twice() -> None:
    def plain(first: int) -> BatchHead:
        return head(first, 1, crc=5)

    tried = [
        produce(0, 1, -1, at_ms=5, answered_ms=-1, batches=[plain(0)]),
        produce(0, 1, 1, batches=[plain(0)]),
    ]
    assert names(judged(tried, [fetch(0, plain(0), plain(1))])) == ["duplicate"]


def test_proxied__a_batch_that_the_broker_has_rewritten_is_the_acked_one() -> None:
    """With LogAppendTime, or another compression.type than the producer's, the CRC changes."""
    sent_batch = replace(head(0, 3, crc=5), base_timestamp_ms=1_000)
    stored = replace(head(4, 3, crc=6), base_timestamp_ms=1_000)
    produced = [produce(0, 3, 4, batches=[sent_batch])]
    assert judged(produced, [fetch(4, stored)]).outcome == "valid"
    for other in (
        replace(stored, base_timestamp_ms=1_001),
        replace(stored, count=2, last=5),
        replace(stored, base_timestamp_ms=-1),
    ):
        assert names(judged(produced, [fetch(4, other)])) == ["lost-write"]


def test_proxied__an_aborted_transaction_is_not_read() -> None:
    end = TransactionRequestRow(15, 14, 15, "shop", 1, 9, 1, "EndTxn", "", "till", 7, 0, False)
    produced = [produce(0, 1, 0, transactional_id="till")]
    marker = replace_attributes(head(1, 1, 1), CONTROL_BIT)
    hidden = fetch(0, head(0, 1, 0), marker, read_committed=True, aborted=[(7, 0)])
    assert judged(produced, [hidden], [end]).outcome == "valid"
    shown = replace(hidden, aborted=[])
    assert names(judged(produced, [shown], [end])) == ["aborted-read"]


def test_proxied__a_new_position_is_no_step_back() -> None:
    fetched = [fetch(0, head(0, 2, 0)), fetch(0, head(0, 2, 0), at_ms=30)]
    assert judged([produce(0, 2, 0)], fetched).outcome == "valid"


def test_proxied__what_lies_below_the_fetches_of_all_was_received_by_some() -> None:
    """A second consumer goes on where the first one was: the record at offset 0 is in no answer."""
    produced = [produce(0, 1, 0), produce(1, 1, 1), produce(2, 1, 2)]
    other = fetch(2, head(2, 1, 2), client_id="desk")
    assert names(judged(produced, [fetch(0, head(1, 1, 1)), other])) == ["lost-write"]
    # Without the first one, nobody knows what was there.
    assert judged(produced, [fetch(1, head(1, 1, 1)), other]).outcome == "unknown"


def test_proxied__a_marker_behind_the_last_record_is_passed() -> None:
    """The batch that was acked at offset 1 is gone; a marker has its place."""
    produced = [produce(0, 1, 0), produce(1, 1, 1)]
    marker = replace_attributes(head(1, 1, 1, producer_id=9), CONTROL_BIT)
    assert names(judged(produced, [fetch(0, head(0, 1, 0), marker)])) == ["lost-write"]


def replace_attributes(batch: BatchHead, attributes: int) -> BatchHead:
    return replace(batch, attributes=attributes)
