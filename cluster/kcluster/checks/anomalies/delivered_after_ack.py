"""delivered-after-ack: a record that a share group has acknowledged was delivered again.

Owns: the check and its words; delivery.py has the story.  Never: looks into a node.
Kafka: no counterpart; KIP-932.
"""

from __future__ import annotations

from collections.abc import Iterator

from kcluster.checks.anomalies.base import Finding, anomaly
from kcluster.checks.anomalies.delivery import DeliveryAnomaly, Leaderships
from kcluster.clients.ledger import Ledger, Partition, SharedRecord


@anomaly("delivered-after-ack", "a record that a share group has acknowledged was delivered again")
class DeliveredAfterAck(DeliveryAnomaly):
    """A member of a share group accepted a record, the leader confirmed the acceptance, and a later
    fetch from this leader, or from its successor, returned the record again.

        delivered-after-ack: orders-0: group g accepted offset 3, and b received it again
    """

    def find(self, ledger: Ledger) -> Iterator[tuple[Partition, Finding]]:
        accepted: dict[tuple[str, Partition, int], SharedRecord] = {}
        leaders = Leaderships(ledger)
        for delivery in ledger.deliveries:
            key = (delivery.group, delivery.partition, delivery.offset)
            before = accepted.get(key)
            if (
                before is not None
                and before.is_acknowledged
                and delivery.is_behind(before)
                and leaders.at_least(delivery) >= leaders.at_most(before)
            ):
                detail = (
                    f"group {delivery.group} accepted offset {delivery.offset}, and"
                    f" {delivery.consumer} received it again"
                )
                yield self.of_delivery(delivery, detail)
            if before is None or not before.is_acknowledged:
                accepted[key] = delivery
