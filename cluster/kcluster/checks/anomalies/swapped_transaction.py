"""swapped-transaction: a transaction was reported as committed, but it is aborted.

Owns: the check and the text; stories/transactions.py tells the story of the transaction. Never:
looks into a node.  Kafka: no counterpart; Jepsen found it in Bufstream 0.1.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kcluster.checks.anomalies.base import (
    Anomaly,
    Explanation,
    Finding,
    TransactionAnomaly,
    TransactionHistory,
    anomaly,
)
from kcluster.checks.chain.words import transaction_name
from kcluster.checks.stories.transactions import story_of_record
from kcluster.clients.ledger import Partition, TransactionOutcome
from kcluster.evidence.history import FinalLog, shown
from kcluster.evidence.lookups import Facts


@anomaly("swapped-transaction", "a transaction was reported as committed, and it is aborted")
class SwappedTransaction(TransactionAnomaly):
    """A producer's transaction was reported as committed, and all of its records are hidden: the
    answer, or the abort, belonged to another transaction.

        swapped-transaction: orders-0: transaction 2 of shop is aborted, a among its records
    """

    def find(
        self, transactions: Sequence[TransactionHistory], logs: Mapping[Partition, FinalLog]
    ) -> Iterator[tuple[Partition, Finding]]:
        for history in transactions:
            if history.transaction.outcome is not TransactionOutcome.COMMITTED:
                continue
            hidden = [entry for entry in history.records if entry[2] >= 0]
            if (
                hidden
                and not history.is_open
                and not any(entry[1] >= 0 for entry in history.records)
            ):
                send, _, at = hidden[0]
                name = transaction_name(history.transaction)
                detail = f"{name} is aborted, {shown(send.value)} among its records"
                yield self.of_record(send, at, detail)

    def explain(self, facts: Facts, anomaly: Anomaly) -> Explanation:
        return story_of_record(facts, anomaly)
