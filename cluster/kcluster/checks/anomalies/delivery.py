"""What anomalies of share groups have in common.

Owns: their findings, text and story; which leader gave a record.  Never: finds one
(accepted_twice.py, delivered_after_ack.py, delivered_too_often.py).
Kafka: no counterpart; KIP-932.
"""

from __future__ import annotations

from collections.abc import Sequence

from kcluster.checks.anomalies.base import Anomaly, CommitAnomaly, Explanation, Finding, Group
from kcluster.checks.stories.reads import changes_between
from kcluster.clients.ledger import Ledger, Partition, SharedRecord, ShareLeadership
from kcluster.evidence.lookups import Facts


class Leaderships:
    """In which leader epoch a broker led a partition for a share group.  What the group has taken
    is stored, so a leader of a later epoch knows it; what was delivered is not, and a leader that
    was replaced may go on for a while."""

    def __init__(self, ledger: Ledger) -> None:
        self._loads: dict[tuple[str, Partition], list[ShareLeadership]] = {}
        for one in ledger.share_leaderships:
            self._loads.setdefault((one.group, one.partition), []).append(one)
        self._lock_ms = ledger.lock_duration_ms

    def at_least(self, delivery: SharedRecord) -> int:
        """The epoch in which the record was delivered, or an older one; -1 if it is not known."""
        return self._epoch(delivery, delivery.asked_ms - 1)

    def at_most(self, delivery: SharedRecord) -> int:
        """The epoch in which its acknowledgement was taken, or a later one."""
        return self._epoch(delivery, delivery.ended_ms)

    def was_its(self, delivery: SharedRecord, every: Sequence[SharedRecord]) -> bool:
        """Whether the leader took an acceptance by the member that still had the record; `every`:
        all deliveries of it.  After the end of a lock, or of a leader, an acceptance of what others
        have settled there is answered without an error, too."""
        return (
            delivery.is_acknowledged
            and self.at_least(delivery) == self.at_most(delivery)
            and (
                delivery.ended_ms - delivery.asked_ms < self._lock_ms
                or sum(one.broker == delivery.broker for one in every) == 1
            )
        )

    def _epoch(self, delivery: SharedRecord, until_ms: int) -> int:
        loads = self._loads.get((delivery.group, delivery.partition))
        if loads is None:
            return 0
        own = [one for one in loads if one.broker == delivery.broker]
        before = [one for one in own if one.at_ms <= until_ms]
        # It delivers nothing before it has loaded the state.
        return (before or own[:1])[-1].leader_epoch if own else -1


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
