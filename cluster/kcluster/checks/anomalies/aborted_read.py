"""aborted-read: a record can be read although its send failed for certain.

Owns: the check and the text; the story is that of the offset (stories/offsets.py).  Never: looks
into a node.  Kafka: no counterpart; Jepsen's G1a.
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
from kcluster.checks.anomalies.wording import are, place_of, records_of
from kcluster.checks.stories.offsets import offset_story
from kcluster.clients.ledger import Outcome
from kcluster.evidence.lookups import Facts


@anomaly("aborted-read", "a record whose send failed for certain is there for all to read")
class AbortedRead(PartitionAnomaly):
    """A send failed for certain, its producer received the error, and the record can be read all
    the same.

        aborted-read: orders-0: a, whose send failed for certain, is there at offset 0
    """

    def find(self, history: PartitionHistory) -> Iterator[Finding]:
        for send in history.sends:
            if send.outcome is Outcome.FAILED and send.value in history.places:
                at = history.places[send.value][0]
                yield Finding(self.NAME, send.producer, at, send.value, at_ms=send.sent_ms)

    def text(self, group: Group) -> str:
        records = records_of(group)
        return f"{records}, whose send failed for certain, {are(group)} there{place_of(group)}"

    def explain(self, facts: Facts, anomaly: Anomaly) -> Explanation:
        return offset_story(facts, anomaly)
