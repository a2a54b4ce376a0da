"""The words for the links of a chain: the one place where such a fact becomes a sentence.

Owns: the sentence of each fact.  Never: decides anything; finds a fact.  Kafka: no counterpart.
The words for events are those of events/words/.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Final

from kcluster.checks.chain import facts as f
from kcluster.clients.ledger import TransactionOutcome
from kcluster.contract import Event
from kcluster.events.brokers import BrokerPaused
from kcluster.events.words import election_text, sentence_of, text_of
from kcluster.events.words.base import counted
from kcluster.evidence.history import shown

SEEN: Final = {
    TransactionOutcome.COMMITTED: "was reported as committed",
    TransactionOutcome.ABORTED: "is aborted as its producer knows",
    TransactionOutcome.UNKNOWN: "has an outcome that its producer does not know",
    TransactionOutcome.OPEN: "did not end",
}
_WAITS: Final = "acks=all waits until it has left"


@singledispatch
def fact_text(fact: f.Fact) -> str:
    """The sentence of a fact, without its time: of an event, that of its own words."""
    assert not isinstance(fact, f.ChainFact), f"no words for {type(fact).__name__}"
    return sentence_of(fact)


def transaction_name(number: int, producer: str) -> str:
    """`transaction 3 of shop`."""
    return f"transaction {number} of {producer}"


# ------------------------------------------------------------------------------- the cluster


@fact_text.register
def _(fact: f.ManyLinks) -> str:
    return f"{fact.count} links, from {fact.first.subject} on: {text_of(fact.first)}"


@fact_text.register
def _(fact: f.FoundAgain) -> str:
    return f"{fact_text(fact.fact)} ({fact.times} times)"


@fact_text.register
def _(fact: f.TopicRemoved) -> str:
    return f"topic {fact.topic} was deleted"


@fact_text.register
def _(fact: f.DiskLost) -> str:
    return f"broker {fact.broker} lost its disk"


@fact_text.register
def _(fact: f.ElectedFrom) -> str:
    event = fact.event
    how = "elected" if event.clean else "elected unclean"
    began_with = f"broker {event.new_leader}, log end {fact.log_end}, {how}"
    return f"{began_with} in epoch {event.leader_epoch}: {election_text(event)}"


# ------------------------------------------------------------------- why clients had to wait


@fact_text.register
def _(fact: f.LeaderAway) -> str:
    return f"leader {fact.leader} {_went_away(fact.event)}"


@fact_text.register
def _(fact: f.NeverLed) -> str:
    return f"{fact.partition} has no leader yet"


@fact_text.register
def _(fact: f.Leaderless) -> str:
    return f"no leader since: {text_of(fact.event)}"


@fact_text.register
def _(fact: f.NotNoticed) -> str:
    return f"not noticed until: {text_of(fact.event)}"


@fact_text.register
def _(fact: f.ControllerAway) -> str:
    return f"the controller is away: {text_of(fact.event)}"


@fact_text.register
def _(fact: f.LeaderCutOff) -> str:
    return f"leader {fact.leader} is cut off from {fact.client or 'the controller'}"


@fact_text.register
def _(fact: f.TooFewInSync) -> str:
    text = f"ISR {list(fact.isr)} below min.insync.replicas {fact.min_isr}"
    return text if fact.event is None else f"{text} since: {text_of(fact.event)}"


@fact_text.register
def _(fact: f.FollowerAway) -> str:
    return f"broker {fact.broker}, in the ISR, {_went_away(fact.event)}; {_WAITS}"


@fact_text.register
def _(fact: f.FollowerCutOff) -> str:
    return f"broker {fact.broker}, in the ISR, is cut off from leader {fact.leader}; {_WAITS}"


@fact_text.register
def _(_fact: f.AllHealthy) -> str:
    return "every broker involved was healthy"


@fact_text.register
def _(fact: f.LeaderUnknown) -> str:
    led = f"broker {fact.event.new_leader} led already; its clients had yet to learn it"
    return f"{led}: {text_of(fact.event)}"


def _went_away(event: Event) -> str:
    return "was paused" if isinstance(event, BrokerPaused) else f"went down: {text_of(event)}"


# --------------------------------------------------------------------------- appends and acks


@fact_text.register
def _(fact: f.RecordAppended) -> str:
    who = f"{_value(fact.value)}{', sent after it,' if fact.is_overtaking else ''} was"
    what = f"{who} again appended" if fact.is_again else f"{who} appended"
    epoch = f", leader in epoch {fact.epoch}" if fact.epoch >= 0 else ""
    isr = "" if fact.isr is None else f", ISR {list(fact.isr)}"
    return f"{what} at offset {fact.offset} by broker {fact.broker}{epoch}{isr}" + (
        f" (request {fact.request.correlation_id} of {fact.request.client_id})"
        if fact.request is not None
        else ""
    )


@fact_text.register
def _(fact: f.RangeAppended) -> str:
    by = f"broker {fact.broker}, leader in epoch {fact.epoch}, ISR {list(fact.isr)}"
    return f"{_offsets(fact.first, fact.last)} appended by {by}"


@fact_text.register
def _(fact: f.RangeAcked) -> str:
    text = f"{_offsets(fact.first, fact.last)} {_ack(fact)}"
    ends = ", ".join(f"broker {broker} ended at {end}" for broker, end in fact.ends)
    return f"{text}; {ends}" if ends else text


def _ack(fact: f.RangeAcked) -> str:
    if fact.acks == 0:
        return "sent without asking for an ack (acks=0)"
    by = fact.leader if fact.by < 0 and fact.acks == 1 else fact.by
    who = "" if by < 0 else f" by broker {by}"
    if by >= 0 and by != fact.leader:
        who += ", as a duplicate"
    if fact.acks == 1:
        return f"acked{who} alone (acks=1)"
    alone = " alone" if fact.isr == (by,) else ""
    return f"acked{who}{alone} (acks=all, ISR {list(fact.isr)})"


@fact_text.register
def _(fact: f.RecordSent) -> str:
    return f"{_value(fact.value)} was sent"


@fact_text.register
def _(fact: f.NeverAppended) -> str:
    return f"{shown(fact.value)} was sent (acks={fact.acks}); no broker has appended it"


@fact_text.register
def _(fact: f.RecordAcked) -> str:
    return f"{shown(fact.value)} was acked"


@fact_text.register
def _(fact: f.ErrorAnswered) -> str:
    return f"its producer got {fact.error}"


@fact_text.register
def _(fact: f.RequestFailed) -> str:
    return f"broker {fact.broker} refused request {fact.correlation_id}: {fact.error}"


@fact_text.register
def _(fact: f.NeverAnswered) -> str:
    return f"request {fact.correlation_id} was never answered"


@fact_text.register
def _(fact: f.AckLost) -> str:
    acked = f"broker {fact.broker} acked request {fact.correlation_id}"
    return f"{acked}; its producer did not get the answer"


@fact_text.register
def _(fact: f.ErrorOfClient) -> str:
    text = f"{fact.client} got {fact.error} for its {fact.api}"
    return text if fact.times == 1 else f"{text} ({fact.times} times in {fact.span_ms:,} ms)"


# ------------------------------------------------------------------------- reads and commits


@fact_text.register
def _(fact: f.RecordRead) -> str:
    broker = f" from broker {fact.broker}" if fact.broker >= 0 else ""
    how = ", a position it chose itself" if fact.is_restart else ""
    return f"{fact.consumer} received offset {fact.offset}{broker}{how}"


@fact_text.register
def _(fact: f.GroupCommitted) -> str:
    return f"group {fact.group} committed {fact.offset}"


@fact_text.register
def _(fact: f.CommitAcked) -> str:
    return f"broker {fact.broker} acked the commit of {fact.offset} by group {fact.group}"


@fact_text.register
def _(fact: f.CommitWritten) -> str:
    return f"broker {fact.broker} wrote a commit of {fact.offset} by group {fact.group}"


@fact_text.register
def _(fact: f.OffsetAnswered) -> str:
    return f"broker {fact.broker} answered offset {fact.offset} to group {fact.group}"


@fact_text.register
def _(fact: f.PartitionGiven) -> str:
    what = "it to another member" if fact.to_another else "the partition to its holder"
    return f"group {fact.group} gave {what}"


@fact_text.register
def _(fact: f.Archived) -> str:
    times = counted(fact.deliveries, "delivery")
    return f"share group {fact.group}: archived after {times}; answers were lost"


# ------------------------------------------------------------------------------ transactions


@fact_text.register
def _(fact: f.TransactionBegan) -> str:
    name = transaction_name(fact.number, fact.producer)
    producer = f"producer {fact.producer_id}, epoch {fact.producer_epoch}"
    return f"{name} began (protocol V{fact.version}, {producer})"


@fact_text.register
def _(fact: f.TransactionOver) -> str:
    return f"{transaction_name(fact.number, fact.producer)} {SEEN[fact.outcome]}"


@fact_text.register
def _(fact: f.EndTxnTaken) -> str:
    what = "commit" if fact.committed else "abort"
    return f"broker {fact.broker} took the EndTxn ({what}) of epoch {fact.producer_epoch}"


# ------------------------------------------------------------------------------------ phrases


def _value(value: f.Value) -> str:
    return "a record" if value is f.UNKNOWN else shown(value)


def _offsets(first: int, last: int) -> str:
    return f"offset {first} was" if first == last else f"offsets {first} to {last} were"
