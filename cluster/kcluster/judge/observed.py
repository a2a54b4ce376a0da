"""The logs that a history shows, and what it leaves undecided.

Owns: the content of each log as its last readers saw it; the sends about which the history proves
nothing.  Never: guesses.  Kafka: no counterpart; the version orders of jepsen.tests.kafka.

A promised record that was not read is decided only if a consumer read on past its offset after its
ack, or another record took its offset.  If the record behind it is still there, it is enough that
it was passed after it had been sent.  When two records were read or acked at one offset, the log
was truncated in between, and everything that had been read from that offset on may be gone: it
counts only if it is read again.

When consumers had the time to read to the end, the last position of one shows where the log ends.
One that was set back behind its own last read, and has read nothing since, has seen a shorter log:
it counts before all others, who may not have noticed, unless they read on after its last read.
Without that time, such a position leaves undecided what was read behind it.
"""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from kcluster.checks.anomalies.positions import followed
from kcluster.checks.settings import ACKS_ALL
from kcluster.clients.ledger import Outcome, ReadRecord, SentRecord, TransactionOutcome
from kcluster.evidence.history import FinalLog
from kcluster.judge.history import LogEnd, PartitionFacts, Passed

NEVER: Final = -1


class SeenPartition(Struct, frozen=True):
    """One partition as its clients saw it.  `log`: the log, as its last readers saw it, with the
    `unseen` records hidden at its end.  `undecided`: the sends of which the history does not show
    whether the log has them; `unseen`: the promised sends beyond the last offset that was read,
    although consumers read to the end; `withheld`: the records of transactions that read_committed
    consumers should have received; `replaced`: the promised sends of a compacted topic whose
    offsets other records took; `read_to`: the last offset that was read, -1 for none."""

    log: FinalLog
    undecided: Sequence[SentRecord]
    unseen: Sequence[SentRecord]
    replaced: Sequence[SentRecord]
    withheld: Collection[bytes | None]
    read_to: int


def seen_partition(
    sends: Sequence[SentRecord],
    reads: Sequence[ReadRecord],
    facts: PartitionFacts,
    log_ends: Sequence[LogEnd] = (),
    passed: Sequence[Passed] = (),
) -> SeenPartition:
    """The partition of these sends and reads, of which clients also got these end offsets, and
    which they passed so far."""
    seen = _SeenLog(sends, reads, facts, log_ends)
    seen.gaps += _known_gaps(passed, facts)
    if (last := seen.last_position(passed)) is not None:
        seen.end_at(last)
    held = {offset: read.value for offset, read in sorted(seen.held.items())}
    values = set(held.values())
    end = max(held, default=-1) + 1
    missing = [
        send
        for send in sends
        if send.value not in values and (_may_be_promised(send) or send.value in seen.stale)
    ]
    undecided = [*seen.undecided(missing)]
    unseen: dict[bytes, SentRecord] = {}
    if facts.is_drained and (held or seen.ends_at >= 0):
        beyond = {
            send.value: send
            for send in undecided
            if send.is_promised and send.offset >= end and send.value not in seen.stale
        }
        taken = {read.offset for read in reads}  # now and then, by records that are gone
        undecided = [send for send in undecided if send.value not in beyond]
        unseen = {value: send for value, send in beyond.items() if send.offset not in taken}
    doubtful = {send.value for send in undecided}
    unknown = [
        value
        for value in seen.stale
        if value not in values and (value in doubtful or value not in seen.sent_ms)
    ]
    at_end = {send.offset: send.value for send in unseen.values()}
    unused = 1 + max(max(at_end, default=0), max((read.offset for read in reads), default=0))
    return SeenPartition(
        log=FinalLog(
            start_offset=0,
            # The check for lost records must find the doubtful ones, and no other check may.
            records=[*held.items(), *sorted(at_end.items()), *enumerate(unknown, unused)],
            clean_offset=end if facts.is_compacted else 0,
            end_offset=end,
            hidden=_hidden(sends, seen.held, reads, facts.read_committed) | dict.fromkeys(at_end),
        ),
        undecided=undecided,
        unseen=[*unseen.values()],
        replaced=[*_replaced(missing, held, doubtful)] if facts.is_compacted else (),
        withheld=_withheld(sends, seen, reads, facts.read_committed),
        read_to=end - 1,
    )


def _may_be_promised(send: SentRecord) -> bool:
    """Whether a record was acked, and its transaction, if any, may have been committed."""
    transaction = send.transaction
    return send.outcome is Outcome.ACKED and (
        transaction is None or transaction.outcome is not TransactionOutcome.ABORTED
    )


def _replaced(
    missing: Sequence[SentRecord], held: Mapping[int, bytes | None], doubtful: Collection[bytes]
) -> Iterator[SentRecord]:
    """The missing records at whose offsets others are: compaction leaves each record at its offset,
    so the log was truncated."""
    for send in missing:
        if send.is_promised and send.offset in held and send.value not in doubtful:
            yield send


class _Stale(Struct, frozen=True):
    """A record that may have been truncated since it was read.  `since`: the number of the event
    that shows that it was, NEVER if none does."""

    read: ReadRecord
    since: int


class _SeenLog:
    """The log of a partition, after all reads and acks in the order of time.

    `gaps`: what consumers passed; `held`: the reads by offset; `stale`: by value, the
    last reads of records that may have been truncated since; `sent_ms`: the time of each send, by
    value."""

    def __init__(
        self,
        sends: Sequence[SentRecord],
        reads: Sequence[ReadRecord],
        facts: PartitionFacts,
        log_ends: Sequence[LogEnd],
    ) -> None:
        self._facts = facts
        self._log_ends = log_ends
        self.held: dict[int, ReadRecord] = {}
        self.stale: dict[bytes | None, _Stale] = {}
        self.sent_ms: dict[bytes | None, int] = {send.value: send.sent_ms for send in sends}
        self._acked: dict[int, SentRecord] = {}
        """The last ack of each offset."""
        self.gaps = [*_gaps(reads, facts.is_read_from_start)]
        self._sends, self._reads = sends, reads
        self._conflicts: list[tuple[int, int]] = []
        """(offset, time) of reads and acks of another record than before."""
        self._end = 0
        """At least the offset after the last record that is held."""
        self._event = self._last_read = 0
        """The numbers of the current event, and of the last read."""
        self.ends_at = NEVER
        """The end of the log, as far as a position shows it."""
        self._skew_ms = _skew_ms(self.sent_ms, reads)
        acks = (send for send in sends if send.offset >= 0 and 0 <= send.sent_ms <= send.ended_ms)
        events: list[tuple[int, ReadRecord | SentRecord]] = [(read.at_ms, read) for read in reads]
        events += [(send.ended_ms, send) for send in acks]
        events.sort(key=lambda event: event[0])
        self._last_ms = events[-1][0] if events else NEVER
        self._received = {read.value for read in reads if read.consumer in facts.read_committed}
        for self._event, (_, event) in enumerate(events):
            if isinstance(event, ReadRecord):
                self._take(event)
            else:
                self._take_ack(event)

    def _take(self, read: ReadRecord) -> None:
        self._last_read = self._event
        sent_ms = self.sent_ms.get(read.value, -1)
        held, acked = self.held.get(read.offset), self._acked.get(read.offset)
        if acked is not None and self._is_before(acked.ended_ms, sent_ms):
            self._conflicts.append((read.offset, read.at_ms))
        if held is None or held.value == read.value:
            self._truncate_older(read.offset, sent_ms)
            self._hold(read)
        elif self._is_before(held.at_ms, sent_ms):
            self._truncate(read.offset, self._event, sent_ms)
            self._conflicts.append((read.offset, read.at_ms))
            self._hold(read)
        elif self._is_before(read.at_ms, self.sent_ms.get(held.value, -1)):
            self.stale[read.value] = _Stale(read, self._event)
            self._conflicts.append((read.offset, held.at_ms))
        else:
            self._truncate(read.offset, NEVER, sys.maxsize)
            self.stale[read.value] = _Stale(read, NEVER)

    def _hold(self, read: ReadRecord) -> None:
        self.held[read.offset] = read
        self._end = max(self._end, read.offset + 1)

    def _take_ack(self, send: SentRecord) -> None:
        """Take an ack: a record that was known at its offset before it was sent is gone."""
        offset = send.offset
        held, acked = self.held.get(offset), self._acked.get(offset)
        self._truncate_older(offset, send.sent_ms)
        if held is not None and held.value != send.value:
            is_newer = self._is_before(held.at_ms, send.sent_ms)
        else:
            known_ms = -1 if acked is None or held is not None else acked.ended_ms
            is_newer = self._is_before(known_ms, send.sent_ms)
        if is_newer:
            self._truncate(offset, self._event, send.sent_ms)
            self._conflicts.append((offset, send.ended_ms))
        self._acked[offset] = send

    def _is_before(self, known_ms: int, sent_ms: int) -> bool:
        """Whether a record was known before another one was sent; a consumer may hold records back
        for long."""
        return known_ms >= 0 and known_ms + self._skew_ms < sent_ms

    def _truncate_older(self, offset: int, sent_ms: int) -> None:
        """Take note of a record below the last one: if it was sent after that one had been read,
        the log was truncated in between."""
        last = self.held.get(self._end - 1) if offset < self._end - 1 else None
        if last is not None and self._is_before(last.at_ms, sent_ms):
            self._truncate(offset + 1, self._event, sent_ms)

    def _truncate(self, offset: int, since: int, before_ms: int) -> None:
        """Take the records from an offset on for truncated, if they were read before a time."""
        if offset >= self._end:
            return
        for at in [at for at, read in self.held.items() if at >= offset]:
            read = self.held[at]
            if read.at_ms + self._skew_ms < before_ms:
                self.stale[read.value] = _Stale(read, since)
                del self.held[at]
        self._end = max(self.held, default=-1) + 1

    def last_position(self, passed: Sequence[Passed]) -> Passed | None:
        """The position, of those behind all events, that shows most of where the log ends: the
        highest of those that were set back, else of all; of equal ones that of a read_uncommitted
        consumer."""
        last = (each for each in passed if each.at_ms >= self._last_ms)
        return max(
            (each for each in last if not (_is_set_back(each) and self._is_read_beyond(each))),
            key=lambda each: (
                _is_set_back(each), each.until, each.consumer not in self._facts.read_committed,
            ),
            default=None,
        )  # fmt: skip

    def _is_read_beyond(self, last: Passed) -> bool:
        """Whether others read at or beyond a position after the consumer's own last read: the
        consumer may have been set back long before, and may own the partition no more."""
        own_ms = (read.at_ms for read in self._reads if read.consumer == last.consumer)
        read_ms = max(own_ms, default=NEVER)
        return any(
            read.offset >= last.until and read.at_ms > read_ms and read.consumer != last.consumer
            for read in self._reads
        )

    def end_at(self, last: Passed) -> None:
        """Take the last position of a consumer for the end of the log: what was read behind it is
        gone if it has read to the end, else undecided if it was set back.  A read_committed
        consumer shows this only of what such consumers have received; an open transaction may keep
        it back from the rest, and from all if its marker was truncated."""
        is_drained = self._facts.is_drained
        if not (is_drained or _is_set_back(last)):
            return
        if is_drained:
            self.ends_at = last.until
        is_stable_end = last.consumer in self._facts.read_committed
        may_be_open = is_stable_end and self._is_in_transaction(last.until)
        for read in [*self.held.values(), *(stale.read for stale in self.stale.values())]:
            is_behind = read.offset >= last.until and 0 <= read.at_ms < last.at_ms
            is_shown = not is_stable_end or read.value in self._received
            if is_behind and (is_shown or _is_set_back(last)):
                is_gone = is_drained and is_shown and not may_be_open
                self.stale[read.value] = _Stale(read, 0 if is_gone else NEVER)
                if self._is_held(read):
                    del self.held[read.offset]
        self._end = max(self.held, default=-1) + 1

    def _is_in_transaction(self, offset: int) -> bool:
        """Whether a transactional record is known to have been at an offset."""
        known = {read.value for read in self._reads if read.offset == offset}
        return any(
            send.transaction is not None and (send.offset == offset or send.value in known)
            for send in self._sends
        )

    def undecided(self, missing: Sequence[SentRecord]) -> Iterator[SentRecord]:
        """The missing records that no consumer passed after their acks, and after all of their
        reads."""
        offsets = sorted({self._offset_of(send) for send in missing})
        passed_ms = self._passed_ms(offsets)
        held_ms = _passed_ms((gap for gap in self.gaps if self._is_held(gap.read)), offsets)
        is_drained = self._facts.is_drained
        is_whole = 0 in self.held or self.ends_at == 0
        is_read_from_start = is_drained and is_whole and not self._facts.is_compacted
        for send in missing:
            stale = self.stale.get(send.value)
            offset = self._offset_of(send)
            if offset < 0:
                is_decided = is_read_from_start
            elif offset in passed_ms:
                passed = passed_ms[offset]
                known_ms = max(send.ended_ms, -1 if stale is None else stale.read.at_ms)
                is_decided = passed < 0 or known_ms < 0 or passed > known_ms
                if stale is None and send.sent_ms >= 0:
                    is_decided |= held_ms.get(offset, NEVER) >= send.sent_ms
            else:
                is_truncated = stale is not None and NEVER < stale.since <= self._last_read
                is_decided = is_drained and is_truncated and offset >= self._end
            if not is_decided and not self._is_behind_the_end(send):
                yield send

    def _is_held(self, read: ReadRecord | None) -> bool:
        """Whether a record is still where it was read: then all below it was there, too."""
        held = None if read is None else self.held.get(read.offset)
        return held is not None and read is not None and held.value == read.value

    def _is_behind_the_end(self, send: SentRecord) -> bool:
        """Whether the log ended below a record's offset after its ack.  With acks below all, the
        record may be there and not below the high watermark, which is the end for consumers."""
        return send.acks == ACKS_ALL and any(
            0 <= send.ended_ms < end.at_ms and end.offset <= send.offset for end in self._log_ends
        )

    def _offset_of(self, send: SentRecord) -> int:
        """The offset of a missing record: of its ack, else of its last read; -1 for none."""
        stale = self.stale.get(send.value)
        return stale.read.offset if send.offset < 0 and stale is not None else send.offset

    def _passed_ms(self, offsets: Sequence[int]) -> dict[int, int]:
        """The last time at which a consumer passed an offset, or another record was there, for the
        offsets of which this is known.  `offsets`: in order."""
        passed = _passed_ms(self.gaps, offsets)
        wanted = set(offsets)
        others = [each for each in self._conflicts if each[0] in wanted]
        others += ((offset, self.held[offset].at_ms) for offset in wanted & self.held.keys())
        for offset, at_ms in others:
            passed[offset] = max(at_ms, passed.get(offset, at_ms))
        return passed


def _is_set_back(last: Passed) -> bool:
    """Whether a consumer is behind its own last read, without having been assigned a position."""
    return last.until <= last.last_read


class PassedOffsets(NamedTuple):
    """What a consumer passed: the offsets between two that it read, or to its position.  `read`:
    the read behind them, None for a position."""

    before: int
    after: int
    at_ms: int
    consumer: str
    read: ReadRecord | None = None


def _gaps(reads: Sequence[ReadRecord], is_read_from_start: bool) -> Iterator[PassedOffsets]:
    """What consumers passed between two reads."""
    for read, number in zip(reads, followed(reads), strict=True):
        before = reads[number].offset if number >= 0 else -1
        if (number >= 0 or is_read_from_start) and before + 1 < read.offset:
            yield PassedOffsets(before, read.offset, read.at_ms, read.consumer, read)


def _known_gaps(passed: Sequence[Passed], facts: PartitionFacts) -> Iterator[PassedOffsets]:
    """What consumers passed from their last reads to their positions."""
    for each in passed:
        if each.last_read >= 0 or facts.is_read_from_start:
            yield PassedOffsets(each.last_read, each.until, each.at_ms, each.consumer)


def _skew_ms(sent_ms: Mapping[bytes | None, int], reads: Sequence[ReadRecord]) -> int:
    """By how much the clocks of the clients disagree at least: the longest time by which a record
    was read before it was sent."""
    skews = (sent_ms.get(read.value, -1) - read.at_ms for read in reads if read.at_ms >= 0)
    return max(0, max(skews, default=0))


def _hidden(
    sends: Sequence[SentRecord],
    held: Mapping[int, ReadRecord],
    reads: Sequence[ReadRecord],
    read_committed: Collection[str],
) -> dict[int, None]:
    """The offsets of records that read_committed consumers may skip: their transactions were
    aborted, or are not known to be committed, and no such consumer received them."""
    skipped, doubtful = set[bytes | None](), set[bytes | None]()
    for send in sends:
        if send.transaction is not None:
            if send.transaction.outcome is TransactionOutcome.ABORTED:
                skipped.add(send.value)
            elif send.transaction.outcome is not TransactionOutcome.COMMITTED:
                doubtful.add(send.value)
    if doubtful:
        doubtful -= {read.value for read in reads if read.consumer in read_committed}
    skipped |= doubtful
    return {offset: None for offset, read in held.items() if read.value in skipped}


def _withheld(
    sends: Sequence[SentRecord],
    seen: _SeenLog,
    reads: Sequence[ReadRecord],
    read_committed: Collection[str],
) -> set[bytes | None]:
    """The records of transactions that others read, and that read_committed consumers passed when
    the transaction had ended; none of them received the record."""
    ended_ms: dict[bytes | None, int] = {
        send.value: max(send.ended_ms, send.transaction.ended_ms)
        for send in sends
        if send.transaction is not None
    }
    if not ended_ms:
        return set()
    received = {read.value for read in reads if read.consumer in read_committed}
    values = {
        offset: read.value
        for offset, read in seen.held.items()
        if read.value in ended_ms and read.value not in received
    }
    gaps = (gap for gap in seen.gaps if gap.consumer in read_committed)
    passed_ms = _passed_ms(gaps, sorted(values))
    return {values[at] for at, at_ms in passed_ms.items() if at_ms >= ended_ms[values[at]] >= 0}


def _passed_ms(gaps: Iterable[PassedOffsets], offsets: Sequence[int]) -> dict[int, int]:
    """The last time at which a consumer passed an offset, for the offsets that were passed.
    `offsets`: in order."""
    passed: dict[int, int] = {}
    for gap in gaps:
        begin, end = bisect_right(offsets, gap.before), bisect_left(offsets, gap.after)
        for offset in offsets[begin:end]:
            passed[offset] = max(gap.at_ms, passed.get(offset, gap.at_ms))
    return passed
