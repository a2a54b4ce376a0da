"""nonmonotonic-poll: a consumer received an offset again, or an earlier one.

Owns: the check; stories/reads.py tells the story of the reads.  Never: looks into a
node.  Kafka: no counterpart; jepsen.tests.kafka.
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
from kcluster.checks.anomalies.positions import followed
from kcluster.checks.stories.reads import reads_story
from kcluster.evidence.lookups import Facts


@anomaly("nonmonotonic-poll", "a consumer received an offset again, or an earlier one")
class NonmonotonicPoll(PartitionAnomaly):
    """A consumer that did not choose a new position received an offset again, or an earlier one.

    nonmonotonic-poll: orders-0: c0 received 0 after 1
    """

    def find(self, history: PartitionHistory) -> Iterator[Finding]:
        reads = history.reads
        for read, number in zip(reads, followed(reads), strict=True):
            if number >= 0 and read.offset <= reads[number].offset:
                yield self.about(read, read.offset, other=reads[number].offset)

    def explain(self, facts: Facts, anomaly: Anomaly) -> Explanation:
        return reads_story(facts, anomaly)
