"""accepted-twice: a leader took two members' acceptances of one record of a share group.

Owns: the check; delivery.py has the story.  Never: looks into a node.
Kafka: no counterpart; KAFKA-19954 let two members have a record at once.
"""

from __future__ import annotations

from collections.abc import Iterator

from kcluster.checks.anomalies.base import RunHistory, anomaly
from kcluster.checks.anomalies.delivery import DeliveryAnomaly, Leaderships
from kcluster.checks.anomalies.facts import AcceptedBy, Finding
from kcluster.clients.ledger import Partition, SharedRecord


@anomaly("accepted-twice", "a share group's record was accepted by two members that had it at once")
class AcceptedTwice(DeliveryAnomaly):
    """A record was delivered to a member while another one still had it: both accepted it, and the
    leader, or two leaders at once, confirmed both acceptances.  (A delivery after the first
    acceptance was confirmed is delivered-after-ack.)  An acceptance does not count after the end of
    the member's lock: other members may have settled the record.

        accepted-twice: orders-0: group g: a and b both accepted offset 3
    """

    def find(self, run: RunHistory) -> Iterator[Finding]:
        every: dict[tuple[str, Partition, int], list[SharedRecord]] = {}
        for delivery in run.ledger.deliveries:
            key = (delivery.group, delivery.partition, delivery.offset)
            every.setdefault(key, []).append(delivery)
        accepted: dict[tuple[str, Partition, int], SharedRecord] = {}
        leaders = Leaderships(run.ledger)
        for delivery in run.ledger.deliveries:
            key = (delivery.group, delivery.partition, delivery.offset)
            if len(every[key]) == 1 or not leaders.was_its(delivery, every[key]):
                continue
            before = accepted.setdefault(key, delivery)
            if before is delivery:
                continue
            is_later = leaders.at_least(delivery) >= leaders.at_most(before)
            if not (is_later and delivery.is_behind(before)):
                accepted_by = AcceptedBy(delivery.group, before.consumer)
                yield self.about(delivery, delivery.offset, accepted_by)
