"""What anomalies of share groups have in common.

Owns: their findings, text and story.  Never: finds one (delivered_after_ack.py,
delivered_too_often.py).  Kafka: no counterpart; KIP-932.
"""

from __future__ import annotations

from kcluster.checks.anomalies.base import Anomaly, CommitAnomaly, Explanation, Finding, Group
from kcluster.checks.stories.reads import changes_between
from kcluster.clients.ledger import Partition, SharedRecord
from kcluster.evidence.lookups import Facts


class DeliveryAnomaly(CommitAnomaly):
    """An anomaly of what a share group was delivered.  Its text is the detail of its finding, its
    story what became of the partition until then."""

    def of_delivery(self, delivery: SharedRecord, detail: str) -> tuple[Partition, Finding]:
        """A finding about one delivery."""
        return (
            delivery.partition,
            Finding(
                name=self.NAME,
                client=delivery.consumer,
                offset=delivery.offset,
                value=delivery.value,
                detail=detail,
                at_ms=delivery.at_ms,
            ),
        )

    def text(self, group: Group) -> str:
        return group[0].detail

    def explain(self, facts: Facts, anomaly: Anomaly) -> Explanation:
        began_ms = facts.recorder.began_ms
        return Explanation(changes_between(facts, anomaly.partition, began_ms, anomaly.at_ms))
