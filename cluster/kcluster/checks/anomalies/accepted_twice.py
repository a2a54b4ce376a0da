"""accepted-twice: a leader took two members' acceptances of one record of a share group.

Owns: the check and its words; delivery.py has the story.  Never: looks into a node.
Kafka: no counterpart; KAFKA-19954 let two members have a record at once.
"""

from __future__ import annotations

from collections.abc import Iterator

from kcluster.checks.anomalies.base import Finding, anomaly
from kcluster.checks.anomalies.delivery import DeliveryAnomaly
from kcluster.clients.ledger import Ledger, Partition, SharedRecord


@anomaly("accepted-twice", "a share group's record was accepted by two members that had it at once")
class AcceptedTwice(DeliveryAnomaly):
    """A record was delivered to a member while another one still had it: both accepted it, and the
    leader took both.  (Delivered after the first acceptance was taken: delivered-after-ack.)

        accepted-twice: orders-0: group g: a and b both accepted offset 3
    """

    def find(self, ledger: Ledger) -> Iterator[tuple[Partition, Finding]]:
        accepted: dict[tuple[str, Partition, int], SharedRecord] = {}
        for delivery in ledger.deliveries:
            if not delivery.is_acknowledged:
                continue
            key = (delivery.group, delivery.partition, delivery.offset)
            before = accepted.setdefault(key, delivery)
            if before is not delivery and delivery.at_ms < before.ended_ms:
                detail = (
                    f"group {delivery.group}: {before.consumer} and {delivery.consumer} both"
                    f" accepted offset {delivery.offset}"
                )
                yield self.of_delivery(delivery, detail)
