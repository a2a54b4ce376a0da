"""aborted-read: a record can be read, or was, although its send or its transaction failed for
certain.

Owns: the check; stories/offsets.py and stories/transactions.py tell the story.  Never:
looks into a node. Kafka: no counterpart; Jepsen's G1a.
"""

from __future__ import annotations

from collections.abc import Iterator

from kcluster.checks.anomalies.base import (
    Anomaly,
    Explanation,
    LogAnomaly,
    PartitionHistory,
    anomaly,
)
from kcluster.checks.anomalies.facts import FailedForCertain, Finding
from kcluster.checks.stories.offsets import offset_story
from kcluster.checks.stories.sends import error_met
from kcluster.checks.stories.transactions import explained_by
from kcluster.clients.ledger import Outcome, SentRecord
from kcluster.evidence.causes import SendCause
from kcluster.evidence.lookups import Facts


@anomaly("aborted-read", "a record whose send or transaction failed for certain can be read")
class AbortedRead(LogAnomaly):
    """A record whose send failed for certain, or whose transaction was aborted, is visible to
    read_committed consumers, or such a consumer has read it.  A late batch of a client with
    transactions of version 1 may have joined the next one (`allowed`).

        aborted-read: orders-0: a, whose send failed for certain, is there at offset 0
    """

    def find(self, history: PartitionHistory) -> Iterator[Finding]:
        refused: dict[bytes | None, SentRecord] = {}
        for send in history.sends:
            if not send.is_refused or send.value not in history.places:
                continue
            at = history.visible(send.value)
            if at:
                yield self._finding(send, at[0], "")
            elif history.read_committed:
                refused[send.value] = send
        if not refused:
            return
        for read in history.reads:
            found = refused.get(read.value)
            if found is not None and read.consumer in history.read_committed:
                yield self._finding(found, read.offset, read.consumer)

    def _finding(self, send: SentRecord, offset: int, reader: str) -> Finding:
        is_aborted = send.outcome is not Outcome.FAILED
        return self.about(send, offset, FailedForCertain(is_aborted, reader))

    def causes(self, facts: Facts, anomaly: Anomaly) -> Iterator[SendCause]:
        """The causes of the findings: the error of the transaction, else of the send."""
        for finding in anomaly.findings:
            send = facts.send(anomaly.partition, finding.value)
            transaction = None if send is None else send.transaction
            yield error_met(transaction, send)

    def explain(self, facts: Facts, anomaly: Anomaly) -> Explanation:
        story = offset_story(facts, anomaly)
        send = facts.send(anomaly.partition, anomaly.values[0])
        if send is None or send.transaction is None:
            return story
        return explained_by(facts, send.transaction, story.links)
