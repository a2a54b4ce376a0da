"""inconsistent-offsets: one offset stands for two records.

Owns: the check and the text; stories/offsets.py tells the story.  Never: looks into a node.  Kafka:
no counterpart; jepsen.tests.kafka.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kcluster.checks.anomalies.base import (
    Anomaly,
    Explanation,
    Finding,
    Group,
    PartitionAnomaly,
    PartitionHistory,
    anomaly,
    is_next_pair,
)
from kcluster.checks.anomalies.wording import and_more, are, records_of
from kcluster.checks.settings import acks_setting
from kcluster.checks.stories.offsets import offset_story
from kcluster.clients.ledger import Outcome, ReadRecord
from kcluster.evidence.history import shown
from kcluster.evidence.lookups import Facts

ACKED_ELSEWHERE: Final = "acked"
"""The detail of a finding about an ack; the detail of a finding about a read names the other
record."""


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
                    client=other.consumer,
                    offset=read.offset,
                    value=other.value,
                    detail=f"{read.consumer} read",
                    value_before=read.value,
                    at_ms=read.at_ms,
                )
        held = dict(history.log.records)
        for offset, read in first.items():
            if offset not in differ and offset in held and held[offset] != read.value:
                yield Finding(
                    name=self.NAME,
                    client=read.consumer,
                    offset=offset,
                    value=read.value,
                    detail="the log holds",
                    value_before=held[offset],
                    at_ms=read.at_ms,
                )

    def _acked_elsewhere(self, history: PartitionHistory) -> Iterator[Finding]:
        for send in history.sends:
            if send.outcome is Outcome.ACKED and send.offset >= 0:
                at = history.places.get(send.value)
                if at is not None and send.offset not in at:
                    yield Finding(
                        name=self.NAME,
                        client=send.producer,
                        offset=at[0],
                        value=send.value,
                        other=send.offset,
                        detail=ACKED_ELSEWHERE,
                        allowed=acks_setting(send.acks),
                        at_ms=send.sent_ms,
                    )

    def follows(self, finding: Finding, before: Finding) -> bool:
        return is_next_pair(finding, before)

    def text(self, group: Group) -> str:
        first = group[0]
        if first.detail == ACKED_ELSEWHERE:
            return f"{records_of(group)}, acked at {first.other}, {are(group)} at {first.offset}"
        return (
            f"offset {first.offset}: {first.client} read {shown(first.value)}, {first.detail}"
            f" {shown(first.value_before)}{and_more(group)}"
        )

    def explain(self, facts: Facts, anomaly: Anomaly) -> Explanation:
        return offset_story(facts, anomaly)
