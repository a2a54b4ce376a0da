"""The common part of anomalies of share groups.

Owns: their story; finding the leader of a delivery.  Never: finds one
(accepted_twice.py, delivered_after_ack.py, delivered_too_often.py). Kafka: no counterpart; KIP-932.
"""

from __future__ import annotations

from collections.abc import Sequence

from kcluster.checks.anomalies.base import Anomaly, Explanation, RunAnomaly, RunHistory
from kcluster.checks.anomalies.facts import AcceptedBy, DeliveryCount
from kcluster.checks.chain.links import link
from kcluster.checks.stories.administered import changes_within
from kcluster.checks.stories.reads import changes_between
from kcluster.clients.ledger import Ledger, Partition, SharedRecord, ShareLeadership
from kcluster.events.partitions import RecordsDeleted
from kcluster.evidence.group_history import share_state_begun_ms
from kcluster.evidence.lookups import Facts


class Leaderships:
    """The leader epochs in which brokers led partitions for a share group.  Acknowledgements are
    stored, so a leader of a later epoch knows them.  Deliveries are not, and a replaced leader may
    go on delivering for a while."""

    def __init__(self, ledger: Ledger) -> None:
        self._loads: dict[tuple[str, Partition], list[ShareLeadership]] = {}
        for one in ledger.share_leaderships:
            self._loads.setdefault((one.group, one.partition), []).append(one)
        self._lock_ms: dict[str, int] = {}
        """The shortest lock that members of a group were told of.  Its configs may have changed
        between a delivery and its answer."""
        for each in ledger.deliveries:
            shortest_ms = self._lock_ms.get(each.group, ledger.lock_duration_ms)
            told_ms = each.lock_ms if each.lock_ms >= 0 else shortest_ms
            self._lock_ms[each.group] = min(shortest_ms, told_ms)

    def at_least(self, delivery: SharedRecord) -> int:
        """The epoch of the delivery, or an older one; -1 if unknown."""
        return self._epoch(delivery, delivery.asked_ms - 1)

    def at_most(self, delivery: SharedRecord) -> int:
        """The epoch of the confirmed acknowledgement, or a later one."""
        return self._epoch(delivery, delivery.ended_ms)

    def was_its(self, delivery: SharedRecord, every: Sequence[SharedRecord]) -> bool:
        """Whether the leader confirmed an acceptance by the member that still had the record;
        `every`: all deliveries of the record.  After the end of a lock or of a leadership, an
        acceptance is answered without an error even if other members have settled the record."""
        return (
            delivery.is_acknowledged
            and self.at_least(delivery) == self.at_most(delivery)
            and (
                delivery.ended_ms - delivery.asked_ms < self._lock_ms[delivery.group]
                or sum(one.broker == delivery.broker for one in every) == 1
            )
        )

    def _epoch(self, delivery: SharedRecord, until_ms: int) -> int:
        loads = self._loads.get((delivery.group, delivery.partition))
        if loads is None:
            return 0
        own = [one for one in loads if one.broker == delivery.broker]
        before = [one for one in own if one.at_ms <= until_ms]
        # A leader delivers nothing before it has loaded the state.
        return (before or own[:1])[-1].leader_epoch if own else -1


class DeletedRecords:
    """The records that DeleteRecords has removed.  Members still get those of a batch of which
    something is left, and acknowledge them in vain."""

    def __init__(self, run: RunHistory) -> None:
        self._before: dict[Partition, list[tuple[int, int]]] = {}
        """(time, low watermark), by partition."""
        for note in run.recorder.notes if run.recorder is not None else ():
            if isinstance(note.event, RecordsDeleted):
                partition = (note.event.topic, note.event.partition)
                watermark = note.event.low_watermark
                self._before.setdefault(partition, []).append((note.at_ms, watermark))

    def had(self, delivery: SharedRecord) -> bool:
        """Whether the record was deleted before it was delivered."""
        return any(
            at_ms <= delivery.at_ms and delivery.offset < watermark
            for at_ms, watermark in self._before.get(delivery.partition, ())
        )


class DeliveryAnomaly(RunAnomaly):
    """An anomaly of deliveries to a share group.  Its story is the history of the partition up to
    the deliveries.  An administrator may have reset the group's offsets, or deleted the group,
    since the record was settled; a coordinator that dies meanwhile leaves it to the next one to
    begin the state anew, which may take a while."""

    def explain(self, facts: Facts, anomaly: Anomaly) -> Explanation:
        began_ms = facts.recorder.began_ms
        links = [*changes_between(facts, anomaly.partition, began_ms, anomaly.at_ms)]
        assert isinstance(anomaly.fact, AcceptedBy | DeliveryCount)
        group = anomaly.fact.group
        # The answer may have come late: what counts is that the member had the record.
        settled_ms = [
            one.at_ms
            for one in facts.ledger.deliveries
            if (one.group, one.partition, one.offset) == (group, anomaly.partition, anomaly.first)
            and (one.is_acknowledged or one.is_released)
            and one.at_ms < anomaly.at_ms
        ]
        last_ms = max(settled_ms, default=began_ms)
        begun_ms = share_state_begun_ms(facts.recorder, group, anomaly.partition)
        if any(last_ms <= at_ms <= anomaly.at_ms for at_ms in begun_ms):
            last_ms = began_ms
        for change in changes_within(facts, group, anomaly.partition, last_ms, anomaly.at_ms):
            if change.comes_again(anomaly.first):
                return Explanation([*links, link(change.note)], change.setting)
        return Explanation(links)
