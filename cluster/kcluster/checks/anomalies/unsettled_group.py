"""unsettled-group: a group never settles, and leaves a partition without a member that reads it.

Owns: the check and the story of the group's coordinator.  Never: looks into a node.
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator

from kcluster.checks.anomalies.base import Anomaly, Explanation, RunAnomaly, RunHistory, anomaly
from kcluster.checks.anomalies.facts import Finding
from kcluster.checks.settings import Setting
from kcluster.checks.stories.groups import lost_tasks, missing_topic
from kcluster.checks.stories.reads import changes_between
from kcluster.evidence.group_history import group_home
from kcluster.evidence.lookups import Facts


@anomaly("unsettled-group", "a partition stays without a member of its group that owns it")
class UnsettledGroup(RunAnomaly):
    """Everything is repaired and the group has members, yet no member ever owns this partition.

        unsettled-group: orders-0: no member of group g owns it

    Kafka's coordinator sends a streams member its tasks when they change, and not again if that
    answer is lost (conversation "streams: a lost answer", 4.4.0).  And no group is served while the
    topic with its state cannot be created.
    """

    def find(self, run: RunHistory) -> Iterator[Finding]:
        for unowned in run.ledger.unowned:
            yield Finding(self.NAME, unowned.partition, unowned.group, -1, None)

    def explain(self, facts: Facts, anomaly: Anomaly) -> Explanation:
        subject = anomaly.client, anomaly.partition
        unowned = next(one for one in facts.ledger.unowned if one[:2] == subject)
        missing = missing_topic(facts, unowned)
        if missing:
            return Explanation(missing, Setting.TOO_FEW_BROKERS)
        home = group_home(facts.recorder, anomaly.client)
        if home is None:
            return Explanation(())
        now_ms = facts.recorder.dispatcher.now_ms
        links = changes_between(facts, home, facts.recorder.began_ms, now_ms)
        lost = lost_tasks(facts, unowned)
        if not lost:
            return Explanation(links)
        return Explanation([*links, *lost], Setting.TASKS_SENT_ONCE)
