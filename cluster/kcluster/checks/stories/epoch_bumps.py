"""Batches that an idempotent producer sent again in a new epoch, after it had bumped its own.

Owns: the proof that a bump explains a copy or a change of order.  Never: guesses: each link is an
append, or an error in a client's ledger.
Kafka: TransactionManager.requestIdempotentEpochBumpForPartition, TxnPartitionEntry
.startSequencesAtBeginning, ProducerAppendInfo.checkSequence; KIP-360.

Without transactions the producer bumps its epoch by itself, and gives all of its batches of that
partition without an outcome the new epoch, with sequences from 0.  A leader cannot recognise a
batch that it has in the older epoch.  Kafka 4.4.0 has two ways to it:

- A batch fails for good, because its delivery timeout is over or no retry helps, while others of
  the partition have been appended, and their answers are missing (KAFKA-14034, KAFKA-14397).
- A leader whose log has no record of the producer takes any sequence as the first.  If the first
  batch was lost and the second was not, the first is refused as out of order from then on; its
  producer bumps the epoch, and the first comes behind the second (KAFKA-15591: from Kafka 4.5 on a
  log that was never written takes sequence 0 only).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kcluster.checks.anomalies.base import Anomaly, Explanation
from kcluster.checks.anomalies.facts import Finding
from kcluster.checks.chain.facts import FirstTaken, SentInNewEpoch
from kcluster.checks.chain.links import Link
from kcluster.checks.settings import Setting
from kcluster.clients.ledger import Outcome, Partition
from kcluster.evidence.lookups import Facts
from kcluster.invariants.observed import Append, ObservedPartition
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.batches import TRANSACTIONAL_BIT
from kcluster.timers import NEVER_MS

_SEQUENCE_ERRORS: Final = (
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER.name,
    ErrorCode.UNKNOWN_PRODUCER_ID.name,
)


def explained_by_bump(facts: Facts, anomaly: Anomaly, links: Iterable[Link]) -> Explanation:
    """The story of records that are in the log too late, or again.  If an epoch bump of their
    producer made each of them so, and no leader has broken a promise by it, the bump allows the
    anomaly."""
    found = [_bump(facts, finding) for finding in anomaly.findings]
    if not found or not all(found):
        return Explanation(links)
    return Explanation([*links, *found[0]], Setting.EPOCH_BUMP)


def _bump(facts: Facts, finding: Finding) -> list[Link]:
    """The links of an epoch bump between a record in its place and what is behind it in the log,
    its copy or a record that was sent before it; none if a bump does not explain it."""
    partition, client = finding.partition, finding.client
    behind = finding.value if finding.other_value is None else finding.other_value
    in_place = facts.place(partition, finding.value, finding.offset)
    place_behind = facts.place(partition, behind, finding.other)
    if in_place is None or place_behind is None:
        return []
    (observed, early, _), late = in_place, place_behind[1]
    older, newer = early.batch, late.batch
    if (
        older.producer_id != newer.producer_id
        or older.producer_id < 0
        or older.producer_epoch >= newer.producer_epoch
        or (older.attributes | newer.attributes) & TRANSACTIONAL_BIT
    ):
        return []
    epochs = older.producer_epoch, newer.producer_epoch
    sent = Link(late.at_ms, SentInNewEpoch(client, *epochs))
    first = _first_of_producer(observed, early)
    if first.batch.base_sequence > 0:
        taken = FirstTaken(first.broker, client, first.batch.base_sequence)
        return [Link(first.at_ms, taken), sent]
    send = facts.send(partition, finding.value)
    from_ms = early.at_ms if send is None else send.sent_ms
    return [sent] if _has_failed(facts, partition, client, from_ms, late.at_ms) else []


def _first_of_producer(observed: ObservedPartition, of: Append) -> Append:
    """The first append of a producer in the log that has `of`; what was truncated before does not
    count."""
    log: list[Append] = []
    older = (each for each in observed.appends if each.epoch <= of.epoch)
    for append in sorted(older, key=lambda each: (each.epoch, each.base_offset)):
        while log and log[-1].last_offset >= append.base_offset:
            log.pop()
        log.append(append)
        if append is of:
            break
    return next(each for each in log if each.batch.producer_id == of.batch.producer_id)


def _has_failed(facts: Facts, partition: Partition, client: str, from_ms: int, to_ms: int) -> bool:
    """Whether a record of the producer failed between two times, and no leader had refused a
    sequence by then, which could be the leader's error."""
    failed_ms = min(
        (
            send.ended_ms
            for send in facts.ledger.sends
            if send.producer == client
            and send.partition == partition
            and send.outcome in (Outcome.FAILED, Outcome.UNKNOWN)
            and from_ms <= send.ended_ms <= to_ms
        ),
        default=NEVER_MS,
    )
    return failed_ms < NEVER_MS and not any(
        error.client == client
        and error.error in _SEQUENCE_ERRORS
        and from_ms <= error.at_ms <= failed_ms
        and error.partition in (None, partition)
        for error in facts.ledger.errors
    )
