"""duplicate: the first append, the fate of its answer, and the second append.

Owns: the check and the story of records that are in the log twice.  Never: guesses: each
link is a note, an append, an answer or an entry of a client's ledger.  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator

from kcluster.checks.anomalies.base import (
    Anomaly,
    Explanation,
    LogAnomaly,
    PartitionHistory,
    anomaly,
    is_next_pair,
)
from kcluster.checks.anomalies.facts import Finding
from kcluster.checks.chain.facts import AckLost, NeverAnswered, RecordAppended, RequestFailed
from kcluster.checks.chain.links import Link, link
from kcluster.checks.settings import Setting, retry_setting
from kcluster.checks.stories.epoch_bumps import explained_by_bump
from kcluster.checks.stories.sends import code_of, error_met, errors_of, meanwhile, request_of
from kcluster.clients.ledger import Partition
from kcluster.events.network import RuleHit
from kcluster.events.rule_effects import DuplicateRecords
from kcluster.evidence.causes import SendCause
from kcluster.evidence.lookups import Facts
from kcluster.invariants.observed import Append
from kcluster.protocol.errors import error_of


@anomaly("duplicate", "a record is in the log twice")
class Duplicate(LogAnomaly):
    """A record that was sent once is in the log twice: a retry was appended too.  A record that an
    aborted transaction hides does not count.

    A producer that is not idempotent must expect duplicates, and `allowed` names that setting: the
    answer to the first attempt was lost, the producer retried, and the leader cannot recognise the
    batch.  Nor can it recognise one that an idempotent producer sends again in a new epoch, after
    it has bumped its own (`allowed`, stories/epoch_bumps.py).  A fault rule can copy the records of
    any producer, and `allowed` then names the rule.

        duplicate: orders-0: a is at offsets 0 and 3
    """

    def find(self, history: PartitionHistory) -> Iterator[Finding]:
        for send in history.sends:
            at = history.visible(send.value)
            if len(at) > 1:
                allowed = retry_setting(send.idempotent)
                yield from (self.about(send, at[0], other=x, allowed=allowed) for x in at[1:])

    def follows(self, finding: Finding, before: Finding) -> bool:
        return is_next_pair(finding, before)

    def causes(self, facts: Facts, anomaly: Anomaly) -> Iterator[SendCause]:
        for finding in anomaly.findings:
            place = facts.place(anomaly.partition, finding.value, finding.offset)
            request = None if place is None else place[1].request
            copied = None if request is None else facts.rule_hit(request)
            if copied is not None and isinstance(copied.event, RuleHit) and _copies(copied.event):
                yield copied.event
            else:
                yield error_met(facts.send(anomaly.partition, finding.value))

    def explain(self, facts: Facts, anomaly: Anomaly) -> Explanation:
        links = [*_both_appends(facts, anomaly)]
        if any(_copies(entry.fact) for entry in links):
            return Explanation(links, Setting.COPIED)
        return explained_by_bump(facts, anomaly, links)


def _both_appends(facts: Facts, anomaly: Anomaly) -> Iterator[Link]:
    partition, value = anomaly.partition, anomaly.values[0]
    of_both = (facts.place(partition, value, at) for at in (anomaly.first, anomaly.other))
    places = [place for place in of_both if place is not None]
    for number, (_, append, offset) in enumerate(places):
        appended = RecordAppended(
            value=value,
            offset=offset,
            broker=append.broker,
            epoch=append.epoch,
            request=request_of(append),
            is_again=number > 0,
        )
        yield Link(append.at_ms, appended)
        if not number:
            yield from _fate_of_answer(facts, append, partition)
    if len(places) > 1:
        from_ms, to_ms = places[0][1].at_ms, places[-1][1].at_ms
        yield from errors_of(facts, anomaly.client, from_ms, to_ms, partition)
        yield from meanwhile(facts, partition, from_ms, to_ms)


def _copies(event: object) -> bool:
    """Whether a fault rule copied the records of a request."""
    return isinstance(event, RuleHit) and isinstance(event.effect, DuplicateRecords)


def _fate_of_answer(facts: Facts, append: Append, partition: Partition) -> Iterator[Link]:
    """The reason why the producer did not learn of its first append."""
    request = append.request
    if request is None:
        return
    answer = facts.answer(request)
    which = request.correlation_id
    hit = facts.rule_hit(request)
    if hit is not None:
        yield link(hit)
        if _copies(hit.event):
            return
    if answer is None:
        operation = facts.fault_of(append.broker, facts.recorder.dispatcher.now_ms)
        yield Link(append.at_ms, NeverAnswered(which))
        if hit is None and operation is not None and operation.at_ms >= append.at_ms:
            yield link(operation)
        return
    at_ms, broker, reply = answer
    code = code_of(facts, reply.body, partition)
    if code:
        yield Link(at_ms, RequestFailed(error_of(code).name, broker, which))
    else:
        yield Link(at_ms, AckLost(broker, which))
