"""delivered-too-often: a share group's record was delivered more often than its limit allows.

Owns: the check and the text; the story is what became of the partition.  Never: looks into a node.
Kafka: no counterpart; group.share.delivery.count.limit, KIP-932.
"""

from __future__ import annotations

from collections.abc import Iterator

from kcluster.checks.anomalies.base import (
    Anomaly,
    CommitAnomaly,
    Explanation,
    Finding,
    Group,
    anomaly,
)
from kcluster.checks.stories.reads import changes_between
from kcluster.clients.ledger import Ledger, Partition, SharedRecord
from kcluster.evidence.lookups import Facts


@anomaly("delivered-too-often", "a share group's record was delivered more often than allowed")
class DeliveredTooOften(CommitAnomaly):
    """A record was delivered with a count above the group's limit; or it was released, the leader
    took that, and the count of the next delivery is not higher, so that the limit is never reached.

        delivered-too-often: orders-0: group g: a received offset 3 with count 6, the limit is 5
    """

    def find(self, ledger: Ledger) -> Iterator[tuple[Partition, Finding]]:
        last: dict[tuple[str, Partition, int], SharedRecord] = {}
        for delivery in ledger.deliveries:
            key = (delivery.group, delivery.partition, delivery.offset)
            before, last[key] = last.get(key), delivery
            limit = ledger.delivery_limit
            is_released = before is not None and not before.is_accepted and before.ended_ms >= 0
            stands = is_released and before is not None and delivery.count <= before.count
            if delivery.count <= limit and not stands:
                continue
            again = "again " if stands else ""
            yield (
                delivery.partition,
                Finding(
                    name=self.NAME,
                    client=delivery.consumer,
                    offset=delivery.offset,
                    value=delivery.value,
                    detail=f"group {delivery.group}: {delivery.consumer} received offset"
                    f" {delivery.offset} {again}with count {delivery.count}, the limit is {limit}",
                    at_ms=delivery.at_ms,
                ),
            )

    def text(self, group: Group) -> str:
        return group[0].detail

    def explain(self, facts: Facts, anomaly: Anomaly) -> Explanation:
        began_ms = facts.recorder.began_ms
        return Explanation(changes_between(facts, anomaly.partition, began_ms, anomaly.at_ms))
