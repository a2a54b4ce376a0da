"""The story of a transaction: its producer's calls, its coordinator's decision, delayed requests.

Owns: the story of one transaction.  Never: guesses: each link is a note, an answer, or an entry of
a client's ledger.  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from kcluster.checks.anomalies.base import Anomaly, Explanation
from kcluster.checks.chain.facts import EndTxnTaken, TransactionBegan, TransactionOver
from kcluster.checks.chain.links import Link, link
from kcluster.checks.settings import Setting
from kcluster.checks.stories.reads import errors_between
from kcluster.clients.ledger import ClientTransaction, SentRecord, TransactionOutcome
from kcluster.clients.producer.settings import TRANSACTIONS_V1
from kcluster.events.transactions import TransactionEnded, TransactionEvent
from kcluster.evidence.lookups import Facts, of_type
from kcluster.invariants.observed import ObservedPartition
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.markers import Marker, read_marker

_MAY_HAVE_ENDED: Final = (ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE)


def group_of(transaction: ClientTransaction) -> str:
    """The group whose offsets a transaction commits; "" for none."""
    return "" if transaction.offsets is None else transaction.offsets.group


def transaction_story(facts: Facts, transaction: ClientTransaction) -> Iterator[Link]:
    """The story of a transaction from its beginning to its end, with the coordinator's decisions
    during it and later."""
    name = (transaction.number, transaction.producer)
    began_ms = transaction.began_ms
    ended_ms = (
        transaction.ended_ms if transaction.ended_ms >= 0 else facts.recorder.dispatcher.now_ms
    )
    yield _began(transaction)
    error = _error_of(transaction)
    yield Link(ended_ms, TransactionOver(error, *name, transaction.outcome))
    yield from errors_between(facts, transaction.producer, began_ms, ended_ms)
    for note, event in of_type(facts.notes, TransactionEvent):
        is_same = event.transactional_id == transaction.transactional_id
        if is_same and began_ms <= note.at_ms <= ended_ms:
            yield link(note)
    yield from _end_requests(facts, transaction, began_ms, ended_ms)


def story_of_record(facts: Facts, anomaly: Anomaly) -> Explanation:
    """The story of the transaction of an anomaly's first record."""
    send = facts.send(anomaly.partition, anomaly.values[0])
    if send is None or send.transaction is None:
        return Explanation(())
    return explained_by(facts, send.transaction, [])


def explained_by(
    facts: Facts, transaction: ClientTransaction, links: Iterable[Link]
) -> Explanation:
    """The story of a transaction, after `links`.  In version 1 a late EndTxn or a late marker may
    end the wrong transaction, and a late batch may join it; if one did, version 1 is the setting
    that allows the anomaly."""
    story = [*links, *transaction_story(facts, transaction)]
    if transaction.version != TRANSACTIONS_V1:
        return Explanation(story)
    if _took_late_end(facts, transaction) or _took_late_marker(facts, transaction):
        return Explanation(story, Setting.TRANSACTIONS_V1)
    later = _joined_by_late_batch(facts, transaction)
    if later is None:
        return Explanation(story)
    return Explanation([*story, *joined(later).links], Setting.TRANSACTIONS_V1)


def joined_later(facts: Facts, send: SentRecord) -> ClientTransaction | None:
    """The later transaction that a late batch with this record has joined, as a broker could not
    tell them apart: the client has transactions of version 1, and the same epoch for both
    (KIP-890)."""
    own = send.transaction
    if own is None or own.version != TRANSACTIONS_V1:
        return None
    for _, append, _ in facts.places(send.partition, send.value):
        for later in facts.ledger.transactions:
            is_open = later.ended_ms < 0 or append.at_ms <= later.ended_ms
            if follows_in_epoch(later, own) and later.began_ms <= append.at_ms and is_open:
                return later
    return None


def follows_in_epoch(later: ClientTransaction, earlier: ClientTransaction) -> bool:
    """Whether a producer began a transaction after another one, and had the same epoch in both."""
    return (
        later.producer == earlier.producer
        and later.number > earlier.number
        and (later.producer_id, later.producer_epoch)
        == (earlier.producer_id, earlier.producer_epoch)
    )


def joined(later: ClientTransaction) -> Explanation:
    """The explanation of an anomaly by a late batch that has joined this transaction."""
    return Explanation((_began(later),), Setting.TRANSACTIONS_V1)


def _began(transaction: ClientTransaction) -> Link:
    name = (transaction.number, transaction.producer)
    epochs = (transaction.producer_id, transaction.producer_epoch)
    return Link(transaction.began_ms, TransactionBegan(*name, transaction.version, *epochs))


def _took_late_end(facts: Facts, transaction: ClientTransaction) -> bool:
    """Whether the coordinator accepted, during the transaction, an EndTxn that was sent before
    it.  If its write was late, the client was told that there is no coordinator."""
    for at_ms, _, reply in facts.recorder.answers:
        request = reply.request
        if (
            request.api_key == ApiKey.END_TXN
            and request.body.transactional_id == transaction.transactional_id
            and transaction.began_ms <= at_ms
            and reply.body.error_code in _MAY_HAVE_ENDED
        ):
            hit = facts.rule_hit(request)
            if hit is not None and hit.at_ms < transaction.began_ms:
                return True
    return False


def _joined_by_late_batch(facts: Facts, transaction: ClientTransaction) -> ClientTransaction | None:
    """The transaction that a late batch has joined, if it is this one, or the batch is of this
    one."""
    for send in facts.ledger.sends:
        if send.producer == transaction.producer:
            later = joined_later(facts, send)
            if later is not None and transaction in (send.transaction, later):
                return later
    return None


def _took_late_marker(facts: Facts, transaction: ClientTransaction) -> bool:
    """Whether the first marker of the producer behind a record of the transaction is that of an
    earlier one: it came before any decision about this transaction, or says something else."""
    is_commit = transaction.outcome is TransactionOutcome.COMMITTED
    decided_ms = min(
        (
            note.at_ms
            for note, event in of_type(facts.notes, TransactionEnded)
            if event.transactional_id == transaction.transactional_id
            and note.at_ms >= transaction.began_ms
        ),
        default=facts.recorder.dispatcher.now_ms + 1,
    )
    for send in facts.ledger.sends:
        if send.transaction is not transaction:
            continue
        for observed, _, offset in facts.places(send.partition, send.value):
            found = _first_marker(observed, transaction, offset)
            if found is not None:
                at_ms, marker = found
                if at_ms < decided_ms or marker.is_commit != is_commit:
                    return True
    return False


def _first_marker(
    observed: ObservedPartition, transaction: ClientTransaction, offset: int
) -> tuple[int, Marker] | None:
    """The first marker of a transaction's producer behind an offset, with its time."""
    epochs = (transaction.producer_id, transaction.producer_epoch)
    for append in observed.appends:
        batch = append.batch
        if (
            batch.is_control
            and append.base_offset > offset
            and (batch.producer_id, batch.producer_epoch) == epochs
        ):
            marker = read_marker(batch)
            if marker is not None:
                return append.at_ms, marker
    return None


def _error_of(transaction: ClientTransaction) -> str:
    return transaction.error if transaction.outcome is not TransactionOutcome.COMMITTED else ""


def _end_requests(
    facts: Facts, transaction: ClientTransaction, from_ms: int, to_ms: int
) -> Iterator[Link]:
    """The answers to EndTxn of the transaction's transactional id between two times."""
    for at_ms, broker, reply in facts.recorder.answers:
        request = reply.request
        if request.api_key != ApiKey.END_TXN or not from_ms <= at_ms <= to_ms:
            continue
        body = request.body
        if body.transactional_id == transaction.transactional_id and not reply.body.error_code:
            hit = facts.rule_hit(request)
            if hit is not None:
                yield link(hit)
            yield Link(at_ms, EndTxnTaken(broker, body.committed, body.producer_epoch))
