"""poll-skip: a consumer skipped an offset that holds a record.

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
from kcluster.checks.anomalies.facts import Finding, SkippedTo
from kcluster.checks.anomalies.positions import followed
from kcluster.checks.stories.reads import reads_story
from kcluster.evidence.lookups import Facts


@anomaly("poll-skip", "a consumer skipped an offset that holds a record")
class PollSkip(PartitionAnomaly):
    """A consumer that did not choose a new position received an offset beyond a record that it had
    not received.  With read_committed it must skip the records of aborted transactions.  Each
    replica compacts its own log, so an earlier leader may have lacked records that the last leader
    still has.

        poll-skip: orders-0: c0 received 2 after 0, not 1
    """

    def find(self, history: PartitionHistory) -> Iterator[Finding]:
        reads = history.reads
        for read, number in zip(reads, followed(reads), strict=True):
            offset = read.offset
            if number < 0 or offset <= reads[number].offset + 1:
                continue
            before = reads[number].offset
            is_hidden = read.consumer in history.read_committed
            for between, value in history.log.records:
                if between >= offset:
                    break
                if between <= before or between < history.log.clean_offset:
                    continue
                if not (is_hidden and between in history.log.hidden):
                    if history.value_at(offset) != read.value:
                        break  # the log has been lost; other records have these offsets now
                    yield Finding(
                        name=self.NAME,
                        partition=read.partition,
                        client=read.consumer,
                        offset=between,
                        value=value,
                        other=before,
                        fact=SkippedTo(offset),
                        at_ms=read.at_ms,
                    )

    def explain(self, facts: Facts, anomaly: Anomaly) -> Explanation:
        return reads_story(facts, anomaly)
