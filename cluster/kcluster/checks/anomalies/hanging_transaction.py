"""hanging-transaction: a transaction is open in a log, and no coordinator will ever end it.

Owns: the check and the story: the writer of its first record, and the decisions before
it.  Never: looks into a node.  Kafka: no counterpart; kafka-transactions find-hanging, KIP-664.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kcluster.checks.anomalies.base import (
    Anomaly,
    Explanation,
    PartitionAnomaly,
    PartitionHistory,
    anomaly,
)
from kcluster.checks.anomalies.facts import Finding, OfProducer
from kcluster.checks.chain.links import Link, link
from kcluster.checks.settings import Setting
from kcluster.checks.stories.offsets import offset_story
from kcluster.events.transactions import TransactionEvent
from kcluster.evidence.history import OpenTransaction
from kcluster.evidence.lookups import Facts, of_type

VERIFICATION: Final = "transaction.partition.verification.enable"


@anomaly("hanging-transaction", "a transaction is open in a log, and no coordinator will end it")
class HangingTransaction(PartitionAnomaly):
    """A batch of a transaction came after its end, and opened it again.  read_committed consumers
    stop before it for ever, and the log is not compacted beyond it.

        hanging-transaction: orders-0: the transaction of producer 7 is open from offset 0 on
    """

    def find(self, history: PartitionHistory) -> Iterator[Finding]:
        for found in history.log.open_transactions:
            if not found.is_owned:
                yield open_finding(self, history, found)

    def explain(self, facts: Facts, anomaly: Anomaly) -> Explanation:
        story = offset_story(facts, anomaly)
        links = [*story.links, *decisions_before(facts, anomaly), *_late_request(facts, anomaly)]
        is_unverified = facts.recorder.plan.topology.config.get(VERIFICATION, "true") != "true"
        return Explanation(links, Setting.UNVERIFIED if is_unverified else story.allowed)


def open_finding(
    kind: PartitionAnomaly, history: PartitionHistory, found: OpenTransaction, other: int = -1
) -> Finding:
    """A finding about the first record of an open transaction."""
    offset = found.first_offset
    value = history.value_at(offset)
    return Finding(
        kind.NAME, history.partition, "", offset, value, other, OfProducer(found.producer_id)
    )


def decisions_before(facts: Facts, anomaly: Anomaly) -> Iterator[Link]:
    """The decisions of coordinators about the producer's transactions before the batch arrived."""
    entries = facts.appends_at(anomaly.partition, anomaly.first)
    if not entries:
        return
    append = entries[-1][1]
    for note, event in of_type(facts.notes, TransactionEvent):
        if event.producer_id == append.batch.producer_id and note.at_ms <= append.at_ms:
            yield link(note)


def _late_request(facts: Facts, anomaly: Anomaly) -> Iterator[Link]:
    """The rule that delayed the batch's request, if one did."""
    for _, append in facts.appends_at(anomaly.partition, anomaly.first):
        hit = None if append.request is None else facts.rule_hit(append.request)
        if hit is not None:
            yield link(hit)
