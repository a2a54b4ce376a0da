"""delivered-after-ack: a record that a share group has acknowledged was delivered again.

Owns: the check and the text; the story is what became of the partition.  Never: looks into a node.
Kafka: no counterpart; KIP-932.
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


@anomaly("delivered-after-ack", "a record that a share group has acknowledged was delivered again")
class DeliveredAfterAck(CommitAnomaly):
    """A member of a share group accepted a record, the leader answered that it took that, and a
    member received the record again.

        delivered-after-ack: orders-0: group g accepted offset 3, and b received it again
    """

    def find(self, ledger: Ledger) -> Iterator[tuple[Partition, Finding]]:
        accepted: dict[tuple[str, Partition, int], SharedRecord] = {}
        for delivery in ledger.deliveries:
            key = (delivery.group, delivery.partition, delivery.offset)
            before = accepted.get(key)
            if before is not None and before.is_acknowledged and before.ended_ms <= delivery.at_ms:
                yield (
                    delivery.partition,
                    Finding(
                        name=self.NAME,
                        client=delivery.consumer,
                        offset=delivery.offset,
                        value=delivery.value,
                        detail=f"group {delivery.group} accepted offset {delivery.offset}, and"
                        f" {delivery.consumer} received it again",
                        at_ms=delivery.at_ms,
                    ),
                )
            if before is None or not before.is_acknowledged:
                accepted[key] = delivery

    def text(self, group: Group) -> str:
        return group[0].detail

    def explain(self, facts: Facts, anomaly: Anomaly) -> Explanation:
        began_ms = facts.recorder.began_ms
        return Explanation(changes_between(facts, anomaly.partition, began_ms, anomaly.at_ms))
