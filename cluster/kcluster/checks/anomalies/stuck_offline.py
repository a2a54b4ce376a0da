"""stuck-offline: a partition never gets a leader again, though every broker runs.

Owns: the check and the story of its last leaders.  Never: looks into a node.
Kafka: no counterpart; OfflinePartitionsCount stays above 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from kcluster.checks.anomalies.base import Anomaly, Explanation, RunAnomaly, RunHistory, anomaly
from kcluster.checks.anomalies.facts import Finding, WithoutLeader
from kcluster.checks.chain.links import Link, link, with_causes
from kcluster.checks.settings import Setting
from kcluster.contract import Note
from kcluster.events.brokers import BrokerStarted
from kcluster.events.partitions import IsrChange, PartitionOffline, ReassignmentCompleted
from kcluster.events.topics import ConfigChanged, ResourceType
from kcluster.evidence.lookups import Facts, of_type

_MIN_ISR: Final = "min.insync.replicas"


@anomaly("stuck-offline", "every broker runs, and a partition stays without a leader")
class StuckOffline(RunAnomaly):
    """Everything is repaired and every broker runs, yet the controller elects no leader.

        stuck-offline: orders-0: no broker is elected leader; ISR [], ELR [2], replicas [1, 3]

    After a reassignment Kafka's ELR keeps replicas that were removed.  If only they are left in
    it, none of the replicas is eligible, nor is the last known leader elected (4.4.0).  A change of
    min.insync.replicas clears the ELR and the last known leader, also when no replica is in sync.
    """

    def find(self, run: RunHistory) -> Iterator[Finding]:
        for partition, found in run.left_offline:
            sets = WithoutLeader(tuple(found.isr), tuple(found.elr), tuple(found.replicas))
            yield Finding(self.NAME, partition, "", -1, None, fact=sets)

    def explain(self, facts: Facts, anomaly: Anomaly) -> Explanation:
        fact = anomaly.fact
        assert isinstance(fact, WithoutLeader)
        removed = [member for member in fact.elr if member not in fact.replicas]
        clearing = _clearing(facts, anomaly) if not fact.isr and not fact.elr else []
        links = [
            *_removals(facts, anomaly, removed),
            *_last_leader(facts, anomaly, fact),
            *map(link, clearing),
        ]
        allowed = Setting.ELR_CLEARED if clearing else Setting.NONE
        if removed and len(removed) == len(fact.elr) and not fact.isr:
            allowed = Setting.REMOVED_IN_ELR
        return Explanation(links, allowed)


def _clearing(facts: Facts, anomaly: Anomaly) -> list[Note]:
    """The changes of min.insync.replicas that cleared the partition's ELR, or its last known
    leader, while no replica was in sync."""
    moments = set()
    for observed in facts.recorder.of_partition(anomaly.partition):
        for (_, old), (at_ms, new) in pairwise(observed.registrations):
            is_cleared = (old.elr or old.last_known_elr) and not (new.elr or new.last_known_elr)
            if is_cleared and not old.isr and not new.isr:
                moments.add(at_ms)
    return [
        note
        for note, changed in of_type(facts.notes, ConfigChanged)
        if _MIN_ISR in changed.configs
        and note.at_ms in moments
        and (changed.resource_type, changed.resource)
        in ((ResourceType.TOPIC, anomaly.partition[0]), (ResourceType.BROKER, ""))
    ]


def _removals(facts: Facts, anomaly: Anomaly, removed: list[int]) -> Iterator[Link]:
    """The reassignments that removed these replicas, and the changes that put them in the ELR."""
    for note, done in facts.of_partition(anomaly.partition, ReassignmentCompleted):
        if any(member in done.removed for member in removed):
            yield link(note)
    for note, changed in facts.of_partition(anomaly.partition, IsrChange):
        if any(member in changed.elr and member in changed.removed for member in removed):
            yield link(note)


def _last_leader(facts: Facts, anomaly: Anomaly, now: WithoutLeader) -> Iterator[Link]:
    """The loss of the partition's last leader, with its causes; and the starts by which replicas
    lost their places in the ELR."""
    for note, offline in facts.of_partition(anomaly.partition, PartitionOffline)[-1:]:
        yield from with_causes(facts, note)
        for member in offline.elr:
            if member not in now.elr:
                for started, _ in facts.of_broker(member, BrokerStarted)[-1:]:
                    yield link(started)
