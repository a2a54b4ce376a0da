"""The words for broken invariants: the one place where what was observed becomes a sentence.

Owns: these sentences.  Never: decides anything.  Kafka: no counterpart.
"""

from __future__ import annotations

from kcluster.invariants import facts as f


def observed_text(fact: f.Observed) -> str:
    """The sentence about what was observed, without its time and subject."""
    match fact:
        case f.WentBack():
            return f"{fact.what} {fact.before} -> {fact.after}"
        case f.OutOfBounds():
            return f"{fact.what} {fact.value}, {fact.bound} {fact.limit}"
        case f.MemberBehind():
            ends = f"broker {fact.broker} of the ISR {list(fact.isr)} ends at {fact.log_end}"
            return f"{ends}, {fact.bound} {fact.limit}"
        case f.Misplaced():
            return f"{list(fact.brokers)} {fact.fault} {list(fact.others)}"
        case f.LeaderOutside(elr=None):
            return f"leader {fact.leader}, ISR {list(fact.isr)}"
        case f.LeaderOutside(elr=elr):
            return f"leader {fact.leader}, ISR and ELR were {[*fact.isr, *(elr or ())]}"
        case f.LeaderReplaced():
            return f"leader {fact.before} -> {fact.after}, epoch {fact.leader_epoch}"
        case f.LedBefore():
            led_by = f"broker {fact.broker}, life {fact.life}"
            return f"epoch {fact.leader_epoch} was led by {led_by}"
        case f.BeganWithout():
            without = f"without what is committed from {fact.offset} on"
            return f"epoch {fact.leader_epoch} begins {without}"
        case f.RecordDiffers(leader=by):
            where = "where it was committed" if by is None else f"on broker {by} at the end"
            here = f"offset {fact.offset} is of epoch {fact.leader_epoch} here"
            return f"{here}, of epoch {fact.committed_epoch} {where}"
        case f.ProducerDiffers(producer_id=own):
            in_table, in_log = _end_text(fact.table), _end_text(fact.log)
            return f"producer {own}: the table has {in_table}, the log {in_log}"
        case f.TransactionDiffers(producer_id=own):
            in_table, in_log = _span_text(fact.table), _span_text(fact.log)
            return f"producer {own}: the table has {in_table}, the log {in_log}"
        case f.NewestRemoved():
            return f"the newest record of its key is gone: {_some(fact)}"
        case f.OlderKept():
            return f"an older record of its key is still there: {_some(fact)}"
        case f.GroupWentBack() | f.AssignedTwice() | f.StaleCommit() | f.FencedAlone():
            return _promise_text(fact)
        case f.AnsweredTwice():
            return f"request {fact.correlation_id} of connection {fact.connection_id}"
        case f.Unanswered():
            return f"{fact.request} of {fact.asked_ms} ms"
        case f.Stall():
            watermark = f"watermark {fact.high_watermark} of leader {fact.leader}"
            stood = f"{watermark} stood still for {fact.duration_ms} ms"
            return f"{stood}; its log ends at {fact.log_end_offset}"
        case f.OverdueTransaction(is_decided=is_decided):
            was = "decided, without its markers," if is_decided else "open beyond its timeout"
            producer = f"producer {fact.producer_id}, epoch {fact.producer_epoch}"
            which = f"transaction {fact.transactional_id} ({producer})"
            return f"{which} was {was} for {fact.duration_ms} ms"
        case f.TimeStoodStill():
            return fact.steps
    raise AssertionError(f"no words for {fact}")


def _promise_text(fact: f.GroupWentBack | f.AssignedTwice | f.StaleCommit | f.FencedAlone) -> str:
    match fact:
        case f.GroupWentBack(member=member):
            of = f" of {member}" if member else ""
            return f"{fact.what}{of} {fact.before} -> {fact.after}"
        case f.AssignedTwice():
            return f"{fact.member} got two assignments in generation {fact.generation}"
        case f.StaleCommit():
            stale = f"a commit of {fact.member} in generation {fact.generation}"
            return f"{stale}, after one of {fact.other} in generation {fact.later}"
        case f.FencedAlone():
            producer = f"producer {fact.producer_id}, epoch {fact.producer_epoch}"
            return f"{fact.error} to {producer}, whose transactional id no other producer has"


def _end_text(end: f.ProducerEnd | None) -> str:
    if end is None:
        return "none of it"
    if end.offset < 0:
        return f"epoch {end.epoch} without batches"
    return f"epoch {end.epoch}, sequences up to {end.sequence} at offset {end.offset}"


def _some(fact: f.NewestRemoved | f.OlderKept) -> str:
    first = f"offset {fact.offset}"
    return first if fact.count == 1 else f"{first} and {fact.count - 1} more"


def _span_text(span: f.TransactionSpan | None) -> str:
    if span is None:
        return "none"
    if span.marker_offset < 0:
        return f"one open since offset {span.first_offset}"
    return f"one from {span.first_offset}, aborted at {span.marker_offset}"
