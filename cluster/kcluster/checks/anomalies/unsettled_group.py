"""unsettled-group: a group never settles, and leaves a partition without a member that reads it.

Owns: the check and the story of the group's coordinator.  Never: looks into a node.
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator

from kcluster.checks.anomalies.base import Anomaly, Explanation, RunAnomaly, RunHistory, anomaly
from kcluster.checks.anomalies.facts import Finding
from kcluster.checks.stories.reads import changes_between
from kcluster.evidence.group_history import group_home
from kcluster.evidence.lookups import Facts


@anomaly("unsettled-group", "a partition stays without a member of its group that owns it")
class UnsettledGroup(RunAnomaly):
    """Everything is repaired and the group has members, yet no member ever owns this partition.

    unsettled-group: orders-0: no member of group g owns it
    """

    def find(self, run: RunHistory) -> Iterator[Finding]:
        for group, partition in run.ledger.unowned:
            yield Finding(self.NAME, partition, group, -1, None)

    def explain(self, facts: Facts, anomaly: Anomaly) -> Explanation:
        home = group_home(facts.recorder, anomaly.client)
        if home is None:
            return Explanation(())
        now_ms = facts.recorder.dispatcher.now_ms
        return Explanation(changes_between(facts, home, facts.recorder.began_ms, now_ms))
