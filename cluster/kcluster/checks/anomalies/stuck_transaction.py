"""stuck-transaction: a transaction is decided, and its markers are not written.

Owns: the check and the story of the decision.  Never: looks into a node. Kafka: no
counterpart; a last stable offset that stands still, as in KAFKA-16352 and KAFKA-19999.
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
from kcluster.checks.anomalies.facts import Finding
from kcluster.checks.anomalies.hanging_transaction import decisions_before, open_finding
from kcluster.evidence.lookups import Facts

OVERDUE_MS: Final = 1_000
"""The delay after which markers are overdue: they are sent again every 100 ms, and after a
request's timeout."""


@anomaly("stuck-transaction", "a transaction is decided, and its markers are not written")
class StuckTransaction(PartitionAnomaly):
    """A coordinator has decided to commit or abort, every broker can be reached, and the marker is
    not written: the last stable offset never moves, and the producer waits for ever.

        stuck-transaction: orders-0: producer 7 waits for its marker since 30 s, from offset 0 on
    """

    def find(self, history: PartitionHistory) -> Iterator[Finding]:
        for found in history.log.open_transactions:
            if found.overdue_ms >= OVERDUE_MS:
                yield open_finding(self, history, found, other=found.overdue_ms // 1_000)

    def explain(self, facts: Facts, anomaly: Anomaly) -> Explanation:
        return Explanation(decisions_before(facts, anomaly))
