"""The story of a transaction: its producer's calls, its coordinator's decision, delayed requests.

Owns: the story of one transaction.  Never: guesses: each link is a note, an answer, or an entry of
a client's ledger.  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kcluster.checks.anomalies.base import Anomaly, Explanation
from kcluster.checks.chain.facts import EndTxnTaken, TransactionBegan, TransactionOver
from kcluster.checks.chain.links import Link, link
from kcluster.checks.settings import Setting
from kcluster.checks.stories.reads import errors_between
from kcluster.clients.ledger import ClientTransaction, TransactionOutcome
from kcluster.clients.producer.settings import TRANSACTIONS_V1
from kcluster.events.transactions import TransactionEvent
from kcluster.evidence.lookups import Facts, of_type
from kcluster.protocol.apis import ApiKey


def group_of(transaction: ClientTransaction) -> str:
    """The group whose offsets a transaction commits; "" for none."""
    return "" if transaction.offsets is None else transaction.offsets.group


def transaction_story(facts: Facts, transaction: ClientTransaction) -> Iterator[Link]:
    """The story of a transaction from its beginning to its end, with the coordinator's decisions
    during it and later."""
    name = (transaction.number, transaction.producer)
    epochs = (transaction.producer_id, transaction.producer_epoch)
    began_ms = transaction.began_ms
    ended_ms = (
        transaction.ended_ms if transaction.ended_ms >= 0 else facts.recorder.dispatcher.now_ms
    )
    yield Link(began_ms, TransactionBegan(*name, transaction.version, *epochs))
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
    """The story of a transaction, after `links`.  In version 1 a late EndTxn may end the wrong
    transaction; if one did, version 1 is the setting that allows the anomaly."""
    story = [*links, *transaction_story(facts, transaction)]
    is_late = transaction.version == TRANSACTIONS_V1 and _took_late_end(facts, transaction)
    return Explanation(story, Setting.TRANSACTIONS_V1 if is_late else Setting.NONE)


def _took_late_end(facts: Facts, transaction: ClientTransaction) -> bool:
    """Whether the coordinator accepted, during the transaction, an EndTxn that was sent before
    it."""
    for at_ms, _, reply in facts.recorder.answers:
        request = reply.request
        if (
            request.api_key == ApiKey.END_TXN
            and request.body.transactional_id == transaction.transactional_id
            and transaction.began_ms <= at_ms
            and not reply.body.error_code
            and facts.rule_hit(request) is not None
        ):
            hit = facts.rule_hit(request)
            return hit is not None and hit.at_ms < transaction.began_ms
    return False


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
