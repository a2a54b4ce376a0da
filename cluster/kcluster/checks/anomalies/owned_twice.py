"""owned-twice: a coordinator gave a partition to one member while another one held it.

Owns: the check and the story.  Never: guesses: each link is an answer or a note.
Kafka: no counterpart; KIP-848 promises that it does not happen.
"""

from __future__ import annotations

from collections.abc import Iterator

from kcluster.checks.anomalies.base import Anomaly, Explanation, RunAnomaly, RunHistory, anomaly
from kcluster.checks.anomalies.facts import Finding, GivenTo
from kcluster.checks.chain.facts import PartitionGiven
from kcluster.checks.chain.links import Link
from kcluster.checks.settings import Setting
from kcluster.checks.stories.groups import group_losses, made_classic, revived
from kcluster.evidence.group_holdings import held_twice
from kcluster.evidence.lookups import Facts


@anomaly("owned-twice", "a partition was given to a member of a group while another one held it")
class OwnedTwice(RunAnomaly):
    """A coordinator assigned a partition to a member while another member had neither given it up,
    nor left, nor been fenced: both read it, and both may commit.  A coordinator whose disk has lost
    the group does not know the other member (`allowed`), nor does one whose consumer group became
    classic while the other member still had to revoke, nor one that had removed the member before
    other brokers coordinated the group for a moment.

        owned-twice: orders-0: group g gave it to b while a held it
    """

    def find(self, run: RunHistory) -> Iterator[Finding]:
        for found in () if run.recorder is None else held_twice(run.recorder):
            yield Finding(
                name=self.NAME,
                partition=found.partition,
                client=found.group,
                offset=-1,
                value=None,
                other=found.since_ms,
                fact=GivenTo(found.other, found.holder),
                at_ms=found.at_ms,
            )

    def explain(self, facts: Facts, anomaly: Anomaly) -> Explanation:
        group = anomaly.client
        lost, allowed = group_losses(facts, group, anomaly.other, anomaly.at_ms)
        if not allowed and isinstance(anomaly.fact, GivenTo):
            holder, since_ms, at_ms = anomaly.fact.holder, anomaly.other, anomaly.at_ms
            lost = made_classic(facts, group, anomaly.partition, holder, since_ms, at_ms)
            allowed = Setting.MADE_CLASSIC if lost else allowed
            if not lost:
                lost = revived(facts, group, holder, since_ms, at_ms)
                allowed = Setting.REVIVED if lost else allowed
        return Explanation(
            (
                Link(anomaly.other, PartitionGiven(group, to_another=False)),
                *lost,
                Link(anomaly.at_ms, PartitionGiven(group, to_another=True)),
            ),
            allowed,
        )
