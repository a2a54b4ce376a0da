"""delivered-too-often: a share group's record was delivered more often than its limit allows.

Owns: the check; delivery.py has the story.  Never: looks into a node.
Kafka: no counterpart; group.share.delivery.count.limit, KIP-932.
"""

from __future__ import annotations

from collections.abc import Iterator

from kcluster.checks.anomalies.base import RunHistory, anomaly
from kcluster.checks.anomalies.delivery import DeletedRecords, DeliveryAnomaly, Leaderships
from kcluster.checks.anomalies.facts import DeliveryCount, Finding
from kcluster.clients.ledger import UNCHANGED_LIMITS, Partition, SharedRecord


@anomaly("delivered-too-often", "a share group's record was delivered more often than allowed")
class DeliveredTooOften(DeliveryAnomaly):
    """A record was delivered with a count above the group's limit.  Or its count does not grow: the
    leader confirmed its release, and delivered it again, itself or by its successor, with a count
    that is not higher.  Then the limit is never reached.

        delivered-too-often: orders-0: group g: a received offset 3 with count 6, the limit is 5
    """

    def find(self, run: RunHistory) -> Iterator[Finding]:
        ledger = run.ledger
        released: dict[tuple[str, Partition, int], SharedRecord] = {}
        leaders, deleted = Leaderships(ledger), DeletedRecords(run)
        for delivery in ledger.deliveries:
            key = (delivery.group, delivery.partition, delivery.offset)
            before = released.get(key)
            stands = (
                before is not None
                and delivery.count <= before.count
                and delivery.is_behind(before)
                and leaders.at_least(delivery) >= leaders.at_most(before)
                and not deleted.had(delivery)
            )
            if delivery.is_released and (before is None or before.count < delivery.count):
                released[key] = delivery
            limit = ledger.delivery_limits.get(delivery.group, UNCHANGED_LIMITS).highest
            if delivery.count <= limit and not stands:
                continue
            count = DeliveryCount(delivery.group, delivery.count, limit, stands)
            yield self.about(delivery, delivery.offset, count)
