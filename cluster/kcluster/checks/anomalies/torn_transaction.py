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
    TransactionalSend,
    anomaly,
)
from kcluster.checks.anomalies.facts import Finding, InTransaction
from kcluster.checks.stories.transactions import story_of_record
from kcluster.clients.ledger import ClientTransaction, Outcome
from kcluster.evidence.history import FinalLog
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
                each for each in history.records if is_lacking(each, run.logs[each.send.partition])
            ]
            if there and lacking and not history.is_open:
                yield self.torn(history.transaction, there[0], lacking[0])

    def torn(
        self, transaction: ClientTransaction, there: TransactionalSend, lacking: TransactionalSend
    ) -> Finding:
        """The finding about a transaction with these two records."""
        fact = InTransaction(transaction.number, transaction.producer)
        missing = lacking.send.value
        return self.about(
            there.send, there.visible_at, fact, other=lacking.hidden_at, other_value=missing
        )

    def explain(self, facts: Facts, anomaly: Anomaly) -> Explanation:
        return story_of_record(facts, anomaly)


def is_lacking(each: TransactionalSend, log: FinalLog) -> bool:
    """Whether read_committed consumers lack a record: it is hidden; or it was acked, neither
    deleted nor compacted away, and has no place in the log."""
    send = each.send
    if each.visible_at >= 0:
        return False
    is_kept = send.offset < 0 or not log.may_have_removed(send.offset)
    return each.hidden_at >= 0 or (send.outcome is Outcome.ACKED and is_kept)
