"""nonmonotonic-send: an earlier record was appended after a later one.

Owns: the check and the story of records out of order.  Never: guesses: each link is a
note, an append, an answer or an entry of a client's ledger.  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kcluster.checks.anomalies.base import (
    Anomaly,
    Explanation,
    LogAnomaly,
    PartitionHistory,
    anomaly,
)
from kcluster.checks.anomalies.facts import Finding
from kcluster.checks.chain.facts import RecordAppended, RecordSent, RequestFailed
from kcluster.checks.chain.links import Link
from kcluster.checks.settings import retry_setting
from kcluster.checks.stories.epoch_bumps import explained_by_bump
from kcluster.checks.stories.sends import error_met, errors_of, meanwhile, request_of
from kcluster.clients.ledger import Partition, SentRecord
from kcluster.evidence.causes import SendCause
from kcluster.evidence.lookups import Facts
from kcluster.invariants.observed import Append
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import error_of

MAX_REFUSALS: Final = 4


@anomaly("nonmonotonic-send", "records of a producer are not in the order of their sending")
class NonmonotonicSend(LogAnomaly):
    """Records of one producer are not in the order in which it sent them.  Records of aborted
    transactions do not count.  A producer that is started again is another one: a request of its
    dead process may arrive after those of the new process.

    With several requests in flight and no idempotence, the second batch may be appended although
    the first was refused; the retry of the first batch comes after it.  An idempotent producer does
    so if it bumps its epoch by itself (`allowed`, stories/epoch_bumps.py).

        nonmonotonic-send: orders-0: b, sent after a, is at offset 0, before 1
    """

    def find(self, history: PartitionHistory) -> Iterator[Finding]:
        last: dict[tuple[str, int], tuple[int, SentRecord]] = {}
        for send in history.sends:
            at = history.visible(send.value)
            if not at:
                continue
            process = send.producer, send.life
            before = last.get(process)
            if before is not None and at[0] < before[0]:
                yield self.about(
                    send,
                    at[0],
                    other=before[0],
                    other_value=before[1].value,
                    allowed=retry_setting(send.idempotent),
                )
            else:
                last[process] = (at[0], send)

    def follows(self, finding: Finding, before: Finding) -> bool:
        """Whether two findings are neighbours; records of other producers may stand between
        them."""
        return finding.offset >= before.offset

    def causes(self, facts: Facts, anomaly: Anomaly) -> Iterator[SendCause]:
        """The error of the record that was sent first, else of the record itself."""
        for finding in anomaly.findings:
            yield error_met(
                facts.send(anomaly.partition, finding.other_value),
                facts.send(anomaly.partition, finding.value),
            )

    def explain(self, facts: Facts, anomaly: Anomaly) -> Explanation:
        return explained_by_bump(facts, anomaly, _overtaken(facts, anomaly))


def _overtaken(facts: Facts, anomaly: Anomaly) -> Iterator[Link]:
    """The failed attempts of the record that was sent first, and the appends of both records."""
    partition, value = anomaly.partition, anomaly.values[0]
    first = anomaly.other_value
    late = facts.place(partition, first, anomaly.other)
    early = facts.place(partition, value, anomaly.first)
    if late is None or early is None:
        return
    append, before = late[1], early[1]
    send = facts.send(partition, first)
    from_ms = send.sent_ms if send is not None and send.sent_ms >= 0 else before.at_ms
    yield Link(from_ms, RecordSent(first))
    yield from errors_of(facts, anomaly.client, from_ms, append.at_ms, partition)
    yield from _refusals(facts, append, from_ms, partition)
    overtaking = RecordAppended(
        value, anomaly.first, before.broker, request=request_of(before), is_overtaking=True
    )
    yield Link(before.at_ms, overtaking)
    overtaken = RecordAppended(first, anomaly.other, append.broker, request=request_of(append))
    yield Link(append.at_ms, overtaken)
    yield from meanwhile(facts, partition, from_ms, append.at_ms)


def _refusals(facts: Facts, append: Append, from_ms: int, partition: Partition) -> Iterator[Link]:
    """Produce responses with an error to the client that made `append`, before it."""
    if append.request is None:
        return
    client = append.request.client_id
    count = 0
    for answer in facts.recorder.partition_answers(
        ApiKey.PRODUCE, lambda a: from_ms <= a[0] <= append.at_ms
    ):
        if answer.partition == partition and answer.error_code and answer.client == client:
            name = error_of(answer.error_code).name
            number = answer.reply.request.correlation_id
            yield Link(answer.at_ms, RequestFailed(name, answer.broker, number))
            count += 1
            if count == MAX_REFUSALS:
                return
