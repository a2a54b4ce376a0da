"""swapped-transaction: a transaction was reported as committed, but it is aborted.

Owns: the check; stories/transactions.py tells the story of the transaction. Never:
looks into a node.  Kafka: no counterpart; Jepsen found it in Bufstream 0.1.0.
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
from kcluster.clients.ledger import TransactionOutcome
from kcluster.evidence.lookups import Facts


@anomaly("swapped-transaction", "a transaction was reported as committed, and it is aborted")
class SwappedTransaction(RunAnomaly):
    """A producer's transaction was reported as committed, and all of its records are hidden: the
    answer, or the abort, belonged to another transaction.

        swapped-transaction: orders-0: transaction 2 of shop is aborted, a among its records
    """

    def find(self, run: RunHistory) -> Iterator[Finding]:
        for history in run.transactions:
            if history.transaction.outcome is not TransactionOutcome.COMMITTED:
                continue
            hidden = [each for each in history.records if each.hidden_at >= 0]
            is_visible = any(each.visible_at >= 0 for each in history.records)
            if hidden and not is_visible and not history.is_open:
                send, _, at = hidden[0]
                yield self.about(send, at, in_transaction(history))

    def explain(self, facts: Facts, anomaly: Anomaly) -> Explanation:
        return story_of_record(facts, anomaly)
