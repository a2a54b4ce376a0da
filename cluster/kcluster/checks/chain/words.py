"""The words for the links of a chain: the one place where such a fact becomes a sentence.

Owns: the sentence of each fact.  Never: decides anything; finds a fact.  Kafka: no counterpart.
Events have their words in events/words/.
"""

from __future__ import annotations

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


def fact_text(fact: f.Fact) -> str:
    """The sentence of a fact, without its time; an event's sentence comes from events/words/."""
    return _of_cluster(fact) if isinstance(fact, f.ChainFact) else sentence_of(fact)


def transaction_name(number: int, producer: str) -> str:
    """`transaction 3 of shop`."""
    return f"transaction {number} of {producer}"


def _of_cluster(fact: f.ChainFact) -> str:
    match fact:
        case f.ManyLinks(first=first):
            return f"{fact.count} links, from {first.subject} on: {text_of(first)}"
        case f.FoundAgain():
            return f"{fact_text(fact.fact)} ({fact.times} times)"
        case f.TopicRemoved():
            return f"topic {fact.topic} was deleted"
        case f.DiskLost():
            return f"broker {fact.broker} lost its disk"
        case f.ElectedFrom(event=event):
            how = "elected" if event.clean else "elected unclean"
            began_with = f"broker {event.new_leader}, log end {fact.log_end}, {how}"
            return f"{began_with} in epoch {event.leader_epoch}: {election_text(event)}"
    return _of_wait(fact)


def _of_wait(fact: f.ChainFact) -> str:
    """Words for the reasons why clients had to wait."""
    match fact:
        case f.LeaderAway():
            return f"leader {fact.leader} {_went_away(fact.event)}"
        case f.NeverLed():
            return f"{fact.partition} has no leader yet"
        case f.Leaderless():
            return f"no leader since: {text_of(fact.event)}"
        case f.NotNoticed():
            return f"not noticed until: {text_of(fact.event)}"
        case f.ControllerAway():
            return f"the controller is away: {text_of(fact.event)}"
        case f.LeaderCutOff():
            return f"leader {fact.leader} is cut off from {fact.client or 'the controller'}"
        case f.TooFewInSync(event=event):
            text = f"ISR {list(fact.isr)} below min.insync.replicas {fact.min_isr}"
            return text if event is None else f"{text} since: {text_of(event)}"
        case f.FollowerAway():
            return f"broker {fact.broker}, in the ISR, {_went_away(fact.event)}; {_WAITS}"
        case f.FollowerCutOff():
            cut_off = f"is cut off from leader {fact.leader}"
            return f"broker {fact.broker}, in the ISR, {cut_off}; {_WAITS}"
        case f.AllHealthy():
            return "every broker involved was healthy"
        case f.LeaderUnknown(event=election):
            led = f"broker {election.new_leader} led already; its clients had yet to learn it"
            return f"{led}: {text_of(election)}"
    return _of_producer(fact)


def _of_producer(fact: f.ChainFact) -> str:
    """Words for appends and acks."""
    match fact:
        case f.RecordAppended():
            return _appended(fact)
        case f.RangeAppended():
            by = f"broker {fact.broker}, leader in epoch {fact.epoch}, ISR {list(fact.isr)}"
            return f"{_offsets(fact.first, fact.last)} appended by {by}"
        case f.RangeAcked():
            text = f"{_offsets(fact.first, fact.last)} {_ack(fact)}"
            ends = ", ".join(f"broker {broker} ended at {end}" for broker, end in fact.ends)
            return f"{text}; {ends}" if ends else text
        case f.RecordSent():
            return f"{_value(fact.value)} was sent"
        case f.NeverAppended():
            return f"{shown(fact.value)} was sent (acks={fact.acks}); no broker has appended it"
        case f.RecordAcked():
            return f"{shown(fact.value)} was acked"
        case f.ErrorAnswered():
            return f"its producer got {fact.error}"
        case f.RequestFailed():
            return f"broker {fact.broker} refused request {fact.correlation_id}: {fact.error}"
        case f.NeverAnswered():
            return f"request {fact.correlation_id} was never answered"
        case f.AckLost():
            acked = f"broker {fact.broker} acked request {fact.correlation_id}"
            return f"{acked}; its producer did not get the answer"
        case f.FirstTaken():
            took = f"broker {fact.broker} took sequence {fact.sequence} of {fact.client}"
            return f"{took} as its first, as the log had no record of this producer"
        case f.SentInNewEpoch():
            again = f"{fact.client} sent its batches of producer epoch {fact.older} again"
            return f"{again} in epoch {fact.newer}: to a leader they are other batches"
        case f.ErrorOfClient():
            got = f"{fact.client} got {fact.error} for its {fact.api}"
            times = f" ({fact.times} times in {fact.span_ms:,} ms)"
            return got if fact.times == 1 else f"{got}{times}"
    return _of_group(fact)


def _of_group(fact: f.ChainFact) -> str:
    """Words for reads and commits."""
    match fact:
        case f.RecordRead():
            broker = f" from broker {fact.broker}" if fact.broker >= 0 else ""
            how = ", a position it chose itself" if fact.is_restart else ""
            return f"{fact.consumer} received offset {fact.offset}{broker}{how}"
        case f.GroupCommitted():
            return f"group {fact.group} committed {fact.offset}"
        case f.CommitAcked():
            return f"broker {fact.broker} acked the commit of {fact.offset} by group {fact.group}"
        case f.CommitWritten():
            return f"broker {fact.broker} wrote a commit of {fact.offset} by group {fact.group}"
        case f.OffsetAnswered():
            return f"broker {fact.broker} answered offset {fact.offset} to group {fact.group}"
        case f.PartitionGiven():
            what = "it to another member" if fact.to_another else "the partition to its holder"
            return f"group {fact.group} gave {what}"
        case f.GroupMadeClassic():
            return f"group {fact.group} became classic, with {fact.member}'s target as what it has"
        case f.TopicNeedsBrokers():
            needs = f"{fact.topic} needs {fact.replication_factor} replicas"
            return f"{needs}, and the cluster has {counted(fact.brokers, 'broker')}"
        case f.Archived():
            times = counted(fact.deliveries, "delivery")
            return f"share group {fact.group}: archived after {times}; answers were lost"
    return _of_transaction(fact)


def _of_transaction(fact: f.ChainFact) -> str:
    match fact:
        case f.TransactionBegan():
            name = transaction_name(fact.number, fact.producer)
            producer = f"producer {fact.producer_id}, epoch {fact.producer_epoch}"
            return f"{name} began (protocol V{fact.version}, {producer})"
        case f.TransactionOver():
            return f"{transaction_name(fact.number, fact.producer)} {SEEN[fact.outcome]}"
        case f.EndTxnTaken():
            what = "commit" if fact.committed else "abort"
            return f"broker {fact.broker} took the EndTxn ({what}) of epoch {fact.producer_epoch}"
    raise AssertionError(f"no words for {fact}")


# ------------------------------------------------------------------------------------ phrases


def _went_away(event: Event) -> str:
    return "was paused" if isinstance(event, BrokerPaused) else f"went down: {text_of(event)}"


def _appended(fact: f.RecordAppended) -> str:
    who = f"{_value(fact.value)}{', sent after it,' if fact.is_overtaking else ''} was"
    what = f"{who} again appended" if fact.is_again else f"{who} appended"
    epoch = f", leader in epoch {fact.epoch}" if fact.epoch >= 0 else ""
    isr = "" if fact.isr is None else f", ISR {list(fact.isr)}"
    return f"{what} at offset {fact.offset} by broker {fact.broker}{epoch}{isr}" + (
        f" (request {fact.request.correlation_id} of {fact.request.client_id})"
        if fact.request is not None
        else ""
    )


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


def _value(value: f.Value) -> str:
    return "a record" if value is f.UNKNOWN else shown(value)


def _offsets(first: int, last: int) -> str:
    return f"offset {first} was" if first == last else f"offsets {first} to {last} were"
