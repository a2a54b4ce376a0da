"""inconsistent-offsets: one offset stands for two records.

Owns: the check; stories/offsets.py tells the story.  Never: looks into a node.  Kafka:
no counterpart; jepsen.tests.kafka.
"""

from __future__ import annotations

from collections.abc import Iterator

from kcluster.checks.anomalies.base import (
    Anomaly,
    Explanation,
    PartitionAnomaly,
    PartitionHistory,
    anomaly,
    is_next_pair,
)
from kcluster.checks.anomalies.facts import Finding, ReadDifferently
from kcluster.checks.chain.links import link
from kcluster.checks.settings import Setting, acks_setting
from kcluster.checks.stories.offsets import offset_story
from kcluster.clients.ledger import Outcome, ReadRecord
from kcluster.evidence.lookups import Facts


@anomaly(
    "inconsistent-offsets", "an offset stands for two records, or an acked record is elsewhere"
)
class InconsistentOffsets(PartitionAnomaly):
    """One offset stands for two records: an acked record is in the log, but not at the acked
    offset; or two consumers read different records at one offset; or the log holds a different
    record at an offset than the one that a consumer has read there.

        inconsistent-offsets: orders-0: offset 0: c0 read a, c1 read b
    """

    def find(self, history: PartitionHistory) -> Iterator[Finding]:
        yield from self._acked_elsewhere(history)
        first: dict[int, ReadRecord] = {}
        differ: dict[int, None] = {}
        for read in history.reads:
            other = first.setdefault(read.offset, read)
            if other.value != read.value:
                differ[read.offset] = None
                yield Finding(
                    name=self.NAME,
                    partition=read.partition,
                    client=other.consumer,
                    offset=read.offset,
                    value=other.value,
                    fact=ReadDifferently(read.consumer),
                    other_value=read.value,
                    at_ms=read.at_ms,
                )
        held = dict(history.log.records)
        for offset, read in first.items():
            if offset not in differ and offset in held and held[offset] != read.value:
                yield self.about(read, offset, ReadDifferently(""), other_value=held[offset])

    def _acked_elsewhere(self, history: PartitionHistory) -> Iterator[Finding]:
        for send in history.sends:
            if send.outcome is Outcome.ACKED and send.offset >= 0:
                at = history.places.get(send.value)
                if at is not None and send.offset not in at:
                    allowed = acks_setting(send.acks)
                    yield self.about(send, at[0], other=send.offset, allowed=allowed)

    def follows(self, finding: Finding, before: Finding) -> bool:
        return is_next_pair(finding, before)

    def explain(self, facts: Facts, anomaly: Anomaly) -> Explanation:
        story = offset_story(facts, anomaly)
        altered = None
        if isinstance(anomaly.fact, ReadDifferently):
            readers = [name for name in (anomaly.client, anomaly.fact.consumer) if name]
            notes = [facts.altered_fetch(name, anomaly.at_ms) for name in readers]
            altered = next((note for note in notes if note is not None), None)
        if altered is None:
            return story
        return Explanation([*story.links, link(altered)], Setting.ALTERED)
