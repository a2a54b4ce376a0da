"""delivered-after-ack: a record that a share group has acknowledged was delivered again.

Owns: the check; delivery.py has the story.  Never: looks into a node.
Kafka: no counterpart; KIP-932.
"""

from __future__ import annotations

from collections.abc import Iterator

from kcluster.checks.anomalies.base import RunHistory, anomaly
from kcluster.checks.anomalies.delivery import DeletedRecords, DeliveryAnomaly, Leaderships
from kcluster.checks.anomalies.facts import AcceptedBy, Finding
from kcluster.clients.ledger import Partition, SharedRecord


@anomaly("delivered-after-ack", "a record that a share group has acknowledged was delivered again")
class DeliveredAfterAck(DeliveryAnomaly):
    """A member of a share group accepted a record, the leader confirmed the acceptance, and a later
    fetch from this leader, or from its successor, returned the record again.

        delivered-after-ack: orders-0: group g accepted offset 3, and b received it again
    """

    def find(self, run: RunHistory) -> Iterator[Finding]:
        accepted: dict[tuple[str, Partition, int], SharedRecord] = {}
        leaders, deleted = Leaderships(run.ledger), DeletedRecords(run)
        for delivery in run.ledger.deliveries:
            key = (delivery.group, delivery.partition, delivery.offset)
            before = accepted.get(key)
            if (
                before is not None
                and before.is_acknowledged
                and delivery.is_behind(before)
                and leaders.at_least(delivery) >= leaders.at_most(before)
                and not deleted.had(delivery)
            ):
                accepted_by = AcceptedBy(delivery.group)
                yield self.about(delivery, delivery.offset, accepted_by)
            if before is None or not before.is_acknowledged:
                accepted[key] = delivery
