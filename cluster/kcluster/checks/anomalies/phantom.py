"""phantom: the log holds a record that no producer sent.

Owns: the check; stories/offsets.py tells the story of the offset.  Never: looks into a
node.  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator

from kcluster.checks.anomalies.base import (
    Anomaly,
    Explanation,
    PartitionAnomaly,
    PartitionHistory,
    anomaly,
)
from kcluster.checks.anomalies.facts import Finding
from kcluster.checks.stories.offsets import offset_story
from kcluster.evidence.lookups import Facts


@anomaly("phantom", "the log holds a record that nobody sent")
class Phantom(PartitionAnomaly):
    """The log holds a record that no producer sent.

    phantom: orders-0: x at offset 0 was sent by nobody
    """

    def find(self, history: PartitionHistory) -> Iterator[Finding]:
        sent = {send.value for send in history.sends}
        for value, at in history.places.items():
            if value not in sent:
                yield Finding(self.NAME, history.partition, "", at[0], value)

    def explain(self, facts: Facts, anomaly: Anomaly) -> Explanation:
        return offset_story(facts, anomaly)
