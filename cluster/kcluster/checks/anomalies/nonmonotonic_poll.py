"""nonmonotonic-poll: a consumer received an offset again, or an earlier one.

Owns: the check and the text; stories/reads.py tells the story of the reads.  Never: looks into a
node.  Kafka: no counterpart; jepsen.tests.kafka.
"""

from __future__ import annotations

from collections.abc import Iterator

from kcluster.checks.anomalies.base import (
    Anomaly,
    Explanation,
    Finding,
    Group,
    PartitionAnomaly,
    PartitionHistory,
    anomaly,
)
from kcluster.checks.anomalies.wording import offsets_of
from kcluster.checks.stories.reads import reads_story
from kcluster.evidence.lookups import Facts


@anomaly("nonmonotonic-poll", "a consumer received an offset again, or an earlier one")
class NonmonotonicPoll(PartitionAnomaly):
    """A consumer that did not choose a new position received an offset again, or an earlier one.

    nonmonotonic-poll: orders-0: c0 received 0 after 1
    """

    def find(self, history: PartitionHistory) -> Iterator[Finding]:
        last: dict[str, int] = {}
        for read in history.reads:
            before = last.get(read.consumer)
            if before is not None and not read.restarted and read.offset <= before:
                yield Finding(
                    name=self.NAME,
                    client=read.consumer,
                    offset=read.offset,
                    value=read.value,
                    other=before,
                    at_ms=read.at_ms,
                )
            last[read.consumer] = read.offset

    def text(self, group: Group) -> str:
        first = group[0]
        return f"{first.client} received {offsets_of(group)} after {first.other}"

    def explain(self, facts: Facts, anomaly: Anomaly) -> Explanation:
        return reads_story(facts, anomaly)
