"""What clients were told, against what the logs hold in the end: one checker for each anomaly.

Owns: what each anomaly is, by Jepsen's names; its checker's docstring says when, and shows
how it reads.  Never: looks into a node; all it knows a client knows, but for the final logs.
Kafka: no counterpart; jepsen.tests.kafka.

A record is known by its value, which its producer sends once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from kcluster.clients.ledger import Outcome, Partition, ReadRecord, SentRecord
from kcluster.evidence.history import Anomaly, FinalLog, Finding, Ledger, grouped

Places = Mapping[bytes | None, list[int]]
"""By value, the offsets that hold it."""

_ACKED: Final = Outcome.ACKED
_FAILED: Final = Outcome.FAILED
ACKS_SHOWN: Final = {-1: "acked (acks=all)", 1: "acked (acks=1)", 0: "sent with acks=0"}
NOT_IDEMPOTENT: Final = "enable.idempotence=false"


def find_anomalies(
    ledger: Ledger, final: Mapping[Partition, FinalLog], drained: bool = False
) -> list[Anomaly]:
    """Every anomaly, by partition and then in the order of ANOMALIES.  `drained`: consumers were
    given the time to read to the end."""
    sends: dict[Partition, list[SentRecord]] = {partition: [] for partition in final}
    reads: dict[Partition, list[ReadRecord]] = {partition: [] for partition in final}
    for send in ledger.sends:
        if send.partition in final:
            sends[send.partition].append(send)
    for read in ledger.reads:
        if read.partition in final:
            reads[read.partition].append(read)
    found: list[Anomaly] = []
    for partition, log in final.items():
        own = _check(sends[partition], reads[partition], log, drained)
        found.extend(grouped(partition, own))
    for partition, finding in committed_offset_back(ledger):
        found.extend(grouped(partition, [finding]))
    return found


def _check(
    sends: Sequence[SentRecord], reads: Sequence[ReadRecord], log: FinalLog, drained: bool
) -> Iterator[Finding]:
    places: dict[bytes | None, list[int]] = {}
    names = log.names
    for offset, value in log.records:
        name = names.get(offset, value) if names else value
        at = places.get(name)
        if at is None:
            places[name] = [offset]
        else:
            at.append(offset)
    yield from lost_write(sends, reads, places, log)
    yield from duplicate(sends, places)
    yield from nonmonotonic_send(sends, places)
    yield from inconsistent_offsets(sends, reads, places, log)
    yield from aborted_read(sends, places)
    yield from phantom(sends, places)
    yield from poll_skip(reads, log)
    yield from nonmonotonic_poll(reads)
    yield from unseen(sends, reads, places, drained)


def lost_write(
    sends: Sequence[SentRecord], reads: Sequence[ReadRecord], places: Places, log: FinalLog
) -> Iterator[Finding]:
    """A record was acked, or read by a consumer, and is not in the log at the end.

    Whatever the acks were: with acks=1 the leader alone has acked it, with acks=0 nobody has, and
    the producer believes it sent all the same; `allowed` names them then.  What was deleted on
    purpose (below the log start, or compacted) is not lost.

        lost-write: orders-0: b, acked (acks=all) at offset 1, is not in the log
    """
    gone: dict[bytes, None] = {}
    kept_from = max(log.start_offset, log.clean_offset)
    sent: dict[str, int] = {}
    for send in sends:
        sent[send.producer] = number = sent.get(send.producer, 0) + 1
        if send.outcome is not _ACKED or send.value in places:
            continue
        if 0 <= send.offset < kept_from:
            continue
        gone[send.value] = None
        allowed = "" if send.acks == -1 else f"acks={send.acks}"
        yield Finding(
            "lost-write",
            send.producer,
            send.offset,
            send.value,
            number,
            ACKS_SHOWN[send.acks],
            allowed,
            at_ms=send.sent_ms,
        )
    if not reads:
        return
    raw = _values(log)
    for read in reads:
        if read.offset < kept_from or read.value in gone or read.value in raw:
            continue
        assert read.value is not None or None not in raw
        gone[read.value or b""] = None
        yield Finding(
            "lost-write",
            read.consumer,
            read.offset,
            read.value,
            at_ms=read.at_ms,
            detail=f"read by {read.consumer}",
        )


def duplicate(sends: Sequence[SentRecord], places: Places) -> Iterator[Finding]:
    """A record that was sent once is in the log twice: a retry was appended too.

    Whoever is not idempotent must expect it, as `allowed` says: the answer to the first attempt was
    lost, so it sent again, and the leader cannot know.

        duplicate: orders-0: a is at offsets 0 and 3
    """
    for send in sends:
        at = places.get(send.value)
        if at is not None and len(at) > 1:
            for again in at[1:]:
                yield Finding(
                    "duplicate",
                    send.producer,
                    at[0],
                    send.value,
                    again,
                    at_ms=send.sent_ms,
                    allowed="" if send.idempotent else NOT_IDEMPOTENT,
                )


def nonmonotonic_send(sends: Sequence[SentRecord], places: Places) -> Iterator[Finding]:
    """Records of one producer are not in the order in which it sent them.

    With several requests in flight and no idempotence the second batch is appended while the first
    is refused; sent again it comes behind.

        nonmonotonic-send: orders-0: b, sent after a, is at offset 0, before 1
    """
    last: dict[str, tuple[int, SentRecord]] = {}
    for send in sends:
        at = places.get(send.value)
        if at is None:
            continue
        before = last.get(send.producer)
        if before is not None and at[0] < before[0]:
            yield Finding(
                "nonmonotonic-send",
                send.producer,
                at[0],
                send.value,
                before[0],
                allowed="" if send.idempotent else NOT_IDEMPOTENT,
                at_ms=send.sent_ms,
                value_before=before[1].value,
            )
        else:
            last[send.producer] = (at[0], send)


def inconsistent_offsets(
    sends: Sequence[SentRecord], reads: Sequence[ReadRecord], places: Places, log: FinalLog
) -> Iterator[Finding]:
    """One offset stands for two records: an acked record is in the log, but not where the ack
    said; or two consumers were given different records at one offset; or the log holds another
    record at an offset than the one that was read there.

        inconsistent-offsets: orders-0: offset 0: c0 read a, c1 read b
    """
    for send in sends:
        if send.outcome is _ACKED and send.offset >= 0:
            at = places.get(send.value)
            if at is not None and send.offset not in at:
                yield Finding(
                    "inconsistent-offsets",
                    send.producer,
                    at[0],
                    send.value,
                    send.offset,
                    "acked",
                    "" if send.acks == -1 else f"acks={send.acks}",
                    at_ms=send.sent_ms,
                )
    first: dict[int, ReadRecord] = {}
    differ: dict[int, None] = {}
    for read in reads:
        other = first.setdefault(read.offset, read)
        if other.value != read.value:
            differ[read.offset] = None
            yield Finding(
                "inconsistent-offsets",
                other.consumer,
                read.offset,
                other.value,
                detail=f"{read.consumer} read",
                value_before=read.value,
                at_ms=read.at_ms,
            )
    held = dict(log.records)
    for offset, read in first.items():
        if offset not in differ and offset in held and held[offset] != read.value:
            yield Finding(
                "inconsistent-offsets",
                read.consumer,
                offset,
                read.value,
                detail="the log holds",
                value_before=held[offset],
                at_ms=read.at_ms,
            )


def aborted_read(sends: Sequence[SentRecord], places: Places) -> Iterator[Finding]:
    """A send failed for certain, as its producer was told, and its record is there to be read all
    the same (Jepsen's G1a).

        aborted-read: orders-0: a, whose send failed for certain, is there at offset 0
    """
    for send in sends:
        if send.outcome is _FAILED and send.value in places:
            at = places[send.value][0]
            yield Finding("aborted-read", send.producer, at, send.value, at_ms=send.sent_ms)


def phantom(sends: Sequence[SentRecord], places: Places) -> Iterator[Finding]:
    """The log holds a record that nobody sent.

    phantom: orders-0: x at offset 0 was sent by nobody
    """
    sent = {send.value for send in sends}
    for value, at in places.items():
        if value not in sent:
            yield Finding("phantom", "", at[0], value)


def poll_skip(reads: Sequence[ReadRecord], log: FinalLog) -> Iterator[Finding]:
    """A consumer that did not choose a new position was given an offset beyond one that holds a
    record, which it was never given.

        poll-skip: orders-0: c0 was given 2 after 0, not 1
    """
    last: dict[str, int] = {}
    for read in reads:
        offset = read.offset
        before = last.get(read.consumer)
        last[read.consumer] = offset
        if before is None or read.restarted or offset <= before + 1:
            continue
        for between, value in log.records:
            if between >= offset:
                break
            if between > before:
                yield Finding(
                    "poll-skip",
                    read.consumer,
                    between,
                    value,
                    before,
                    f"given {offset}",
                    at_ms=read.at_ms,
                )


def nonmonotonic_poll(reads: Sequence[ReadRecord]) -> Iterator[Finding]:
    """A consumer that did not choose a new position was given an offset again, or an earlier one.

    nonmonotonic-poll: orders-0: c0 was given 0 after 1
    """
    last: dict[str, int] = {}
    for read in reads:
        before = last.get(read.consumer)
        if before is not None and not read.restarted and read.offset <= before:
            yield Finding(
                "nonmonotonic-poll",
                read.consumer,
                read.offset,
                read.value,
                before,
                at_ms=read.at_ms,
            )
        last[read.consumer] = read.offset


def unseen(
    sends: Sequence[SentRecord], reads: Sequence[ReadRecord], places: Places, drained: bool
) -> Iterator[Finding]:
    """An acked record is in the log, and no consumer of its partition has ever read it, though one
    has read beyond it: it began behind, or a commit ran ahead of what was read.  Where consumers
    had the time to read to the end (`drained`), what they have not read there counts too.

        unseen: orders-0: b, acked at offset 1, was read by no consumer
    """
    if not reads:
        return
    seen = {read.offset for read in reads}
    begin, end = min(seen), max(seen)
    for send in sends:
        at = places.get(send.value)
        if send.outcome is not _ACKED or at is None or any(offset in seen for offset in at):
            continue
        if at[0] > begin and (drained or at[0] < end):
            yield Finding("unseen", "", at[0], send.value, at_ms=send.sent_ms)


def committed_offset_back(ledger: Ledger) -> Iterator[tuple[Partition, Finding]]:
    """A group's commit was acked, and an older offset was read by whoever came later.

    committed-offset-back: orders-0: group g committed 5 and was told 3 later
    """
    acked: dict[tuple[str, Partition], int] = {}
    for group, partition, offset, is_commit in ledger.commits:
        key = (group, partition)
        if is_commit:
            acked[key] = offset
        elif offset < acked.get(key, -1):
            yield (partition, Finding("committed-offset-back", group, offset, None, acked[key]))


def _values(log: FinalLog) -> set[bytes | None]:
    return {value for _, value in log.records}
