"""The words for anomalies: the one place where their facts become sentences.

Owns: the text of each anomaly, and the phrases that texts share.  Never: finds anything.  Kafka: no
counterpart.
"""

from __future__ import annotations

from typing import Final

from kcluster.checks.anomalies import facts as f
from kcluster.checks.chain.words import transaction_name
from kcluster.events.network import RuleHit
from kcluster.events.partitions import LeaderChange
from kcluster.events.words import text_of
from kcluster.evidence.causes import SendCause
from kcluster.evidence.history import shown

_ACKED: Final = {-1: "acked (acks=all)", 1: "acked (acks=1)", 0: "sent with acks=0"}


def cause_text(cause: SendCause) -> str:
    """The cause of a finding about a send, in a line."""
    return text_of(cause) if isinstance(cause, LeaderChange | RuleHit) else str(cause)


def anomaly_text(found: f.AnomalyFacts) -> str:
    """The sentence that describes an anomaly, without its name and partition."""
    one = found.count == 1
    are, place, records = "is" if one else "are", _place(found), _records(found)
    value, other, other_value = shown(found.values[0]), found.other, shown(found.other_value)
    match found.name, found.fact:
        case "lost-write", f.AckedInEpoch(epoch=epoch):
            what = f"offset {found.first}," if one else f"{_range(found)}, {found.count:,} records"
            return f"{what} acked in leader epoch {epoch}: not in the log"
        case "lost-write", f.Acked(acks=acks):
            return f"{records}, {_ACKED[acks]}{place}, {are} not in the log"
        case "lost-write", None:
            return f"{records}, read by {found.client}{place}, {are} not in the log"
        case "duplicate", None if one:
            return f"{value} is at offsets {found.first} and {other}"
        case "duplicate", None:
            return f"{records} are there again at {other} to {found.last_other}"
        case "nonmonotonic-send", None:
            after = f"{value}, sent after {other_value},"
            return f"{after} is at offset {found.first}, before {other}{_more(found)}"
        case "nonmonotonic-send", f.AckedOnly():
            after = f"{value}, sent after {other_value},"
            return f"{after} was acked at offset {found.first}, before {other}{_more(found)}"
        case "inconsistent-offsets", f.AckedOnly():
            both = f"{value} and {other_value}"
            return f"offset {found.first}: {both} were acked there{_more(found)}"
        case "inconsistent-offsets", f.ReadDifferently(consumer=consumer):
            there = f"{consumer} read" if consumer else "the log holds"
            read = f"offset {found.first}: {found.client} read {value}"
            return f"{read}, {there} {other_value}{_more(found)}"
        case "inconsistent-offsets", None:
            return f"{records}, acked at {other}, {are} at {found.first}"
        case "aborted-read", f.FailedForCertain(is_aborted=is_aborted, reader=reader):
            why = "transaction was aborted" if is_aborted else "send failed for certain"
            there = f"hidden, and was read by {reader}" if reader else "there"
            return f"{records}, whose {why}, {are} {there}{place}"
        case "phantom", None:
            return f"{records}{place} {_were(found)} sent by nobody"
    return _of_transaction(found)


def _of_transaction(found: f.AnomalyFacts) -> str:
    value = shown(found.values[0])
    match found.name, found.fact:
        case "torn-transaction", f.InTransaction(number=number, producer=producer):
            there = f"{value} is there, and {shown(found.other_value)} is not"
            return f"{transaction_name(number, producer)}: {there}"
        case "swapped-transaction", f.InTransaction(number=number, producer=producer):
            return f"{transaction_name(number, producer)} is aborted, {value} among its records"
        case "hanging-transaction", f.OfProducer(producer_id=own):
            return f"the transaction of producer {own} is open from offset {found.first} on"
        case "stuck-transaction", f.OfProducer(producer_id=own):
            since = f"since {found.other} s, from offset {found.first} on"
            return f"producer {own} waits for its marker {since}"
        case "processed-twice", f.OutputsOf(input_partition=(topic, index)) as fact:
            what = f"{topic}-{index} offset {fact.input_offset}"
            by = " and ".join(fact.producers)
            return f"group {fact.group} processed {what} twice, by {by}"
        case "never-processed", f.CommittedBeyond(group=group, offset=offset):
            return f"group {group} committed {offset}, and offset {found.first} has no output"
    return _of_group(found)


def _of_group(found: f.AnomalyFacts) -> str:
    """Words for the reads and commits of consumers, and of their groups."""
    client, other = found.client, found.other
    match found.name, found.fact:
        case "poll-skip", f.SkippedTo(offset=offset):
            return f"{client} received {offset} after {other}, not {_offsets(found)}"
        case "nonmonotonic-poll", None:
            return f"{client} received {_offsets(found)} after {other}"
        case "unseen", None:
            return f"{_acked_records(found)} read by no consumer"
        case "committed-offset-back", None:
            return f"group {client} committed {other} and fetched {found.first} later"
        case "owned-twice", f.GivenTo(member=member, holder=holder):
            return f"group {client} gave it to {member} while {holder} held it"
        case "unsettled-group", None:
            return f"no member of group {client} owns it"
        case "stuck-offline", f.WithoutLeader(isr=isr, elr=elr, replicas=replicas):
            sets = f"ISR {list(isr)}, ELR {list(elr)}, replicas {list(replicas)}"
            return f"no broker is elected leader; {sets}"
    return _of_share_group(found)


def _of_share_group(found: f.AnomalyFacts) -> str:
    client, offset = found.client, f"offset {found.first}"
    match found.name, found.fact:
        case "delivered-after-ack", f.AcceptedBy(group=group):
            return f"group {group} accepted {offset}, and {client} received it again"
        case "accepted-twice", f.AcceptedBy(group=group, before=before):
            return f"group {group}: {before} and {client} both accepted {offset}"
        case "delivered-too-often", f.DeliveryCount(group=group) as fact:
            again = "again " if fact.is_again else ""
            received = f"{client} received {offset} {again}with count {fact.count}"
            return f"group {group}: {received}, the limit is {fact.limit}"
        case "passed-over", None:
            return f"{_acked_records(found)} settled by no member of group {client}"
    raise AssertionError(f"no words for {found.name}, {found.fact}")


# ------------------------------------------------------------------------------------ phrases


def _records(found: f.AnomalyFacts) -> str:
    """The records of an anomaly: `b`, or `offsets 4 to 6 (3 records, b to d)`."""
    first, last = map(shown, found.values)
    if found.count == 1:
        return first
    span = f"{found.count:,} records, {first} to {last}"
    return span if found.first < 0 else f"{_range(found)} ({span})"


def _acked_records(found: f.AnomalyFacts) -> str:
    return f"{_records(found)}, acked{_place(found)}, {_were(found)}"


def _range(found: f.AnomalyFacts) -> str:
    return f"offsets {found.first} to {found.last}"


def _offsets(found: f.AnomalyFacts) -> str:
    """The offsets of an anomaly: `4`, or `4 to 6`."""
    return f"{found.first}" if found.count == 1 else f"{found.first} to {found.last}"


def _place(found: f.AnomalyFacts) -> str:
    """The place of an anomaly's record: ` at offset 4` for one record; empty for several, which are
    named with their offsets."""
    return f" at offset {found.first}" if found.count == 1 and found.first >= 0 else ""


def _more(found: f.AnomalyFacts) -> str:
    """The number of further records, `, and 2 more`, if the text describes the first record
    alone."""
    return f", and {found.count - 1:,} more" if found.count > 1 else ""


def _were(found: f.AnomalyFacts) -> str:
    return "was" if found.count == 1 else "were"
