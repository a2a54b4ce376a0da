"""torn-transaction: some records of a transaction can be read, and others cannot.

Owns: the check; stories/transactions.py tells the story of the transaction. Never:
looks into a node.  Kafka: no counterpart; Jepsen calls it a torn transaction.
"""

from __future__ import annotations

from collections.abc import Iterator

from kcluster.checks.anomalies.base import (
    Anomaly,
    Explanation,
    RunAnomaly,
    RunHistory,
    anomaly,
    in_transaction,
)
from kcluster.checks.anomalies.facts import Finding
from kcluster.checks.stories.transactions import story_of_record
from kcluster.clients.ledger import Outcome, SentRecord
from kcluster.evidence.lookups import Facts


@anomaly("torn-transaction", "a part of a transaction can be read, and the rest cannot")
class TornTransaction(RunAnomaly):
    """A transaction is not atomic: read_committed consumers get some of its records and not others.
    The producer's knowledge of it does not matter.  A record that compaction may have removed, for
    a newer one of its key, does not count as missing.

        torn-transaction: orders-0: transaction 2 of shop: a is there, and b is not
    """

    def find(self, run: RunHistory) -> Iterator[Finding]:
        for history in run.transactions:
            there = [each for each in history.records if each.visible_at >= 0]
            lacking = [
                each
                for each in history.records
                if each.visible_at < 0 and (each.hidden_at >= 0 or _must_be_there(each.send, run))
            ]
            if there and lacking and not history.is_open:
                (first, at, _), (missing, _, hidden_at) = there[0], lacking[0]
                torn = in_transaction(history)
                yield self.about(first, at, torn, other=hidden_at, other_value=missing.value)

    def explain(self, facts: Facts, anomaly: Anomaly) -> Explanation:
        return story_of_record(facts, anomaly)


def _must_be_there(send: SentRecord, run: RunHistory) -> bool:
    """Whether a record without a place was acked, and neither deleted nor compacted away."""
    log = run.logs[send.partition]
    is_kept = send.offset < 0 or send.offset >= max(log.deleted_before, log.clean_offset)
    return send.outcome is Outcome.ACKED and is_kept
