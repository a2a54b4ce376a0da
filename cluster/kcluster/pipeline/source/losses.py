"""Requested offsets that no longer exist: exact ranges, each with its reason.

Owns: the decision, from the wanted offsets and the current log; the text of each loss.  Never: asks
a broker (lookups.py), decides whether the job ends (failOnDataLoss does).  Kafka: OffsetFetcher's
validation of positions (KIP-320), topic ids (KIP-516); of Spark's connector
KafkaOffsetReader.getOffsetRangesFromResolvedOffsets and its reportDataLoss, which uses neither
epochs nor ids: it misses a log that was truncated and has grown again, and a topic that was deleted
and created again.

    decide(Wanted("orders", 0, 23, 50), LogNow(40, 90))
    -> Decision(40, (Lost("orders", 0, 23, 39, "the log begins at 40: …"),))
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

NO_EPOCH: Final = -1
NO_OFFSET: Final = -1
_REMOVED: Final = "removed by retention or DeleteRecords"


class Lost(Struct, frozen=True, order=True):
    """Offsets `first` to `last` of a partition, both included, that will not be read.

    `last` None: from `first` on; the end of the log is unknown.
    """

    topic: str
    partition: int
    first: int
    last: int | None
    why: str

    def __str__(self) -> str:
        range_ = f"from {self.first} on" if self.last is None else f"{self.first}..{self.last}"
        return f"{self.topic}-{self.partition}: offsets {range_} are lost: {self.why}"


class Wanted(Struct, frozen=True):
    """Offsets [start, until) of a partition that a reader wants.

    `until` None: up to the end.  `epoch`: the leader epoch of the record before `start`, or
    NO_EPOCH.  `topic_id`: the id of the topic to which `start` belongs, "" if unknown.
    """

    topic: str
    partition: int
    start: int
    until: int | None = None
    epoch: int = NO_EPOCH
    topic_id: str = ""


class LogNow(Struct, frozen=True):
    """A partition's log as its leader describes it: log start offset and high watermark.  The last
    stable offset would be wrong: it limits the offsets that may be read, not the offsets that
    exist.

    `epoch_end`: the answer of OffsetForLeaderEpoch for `Wanted.epoch`, which is the end of that
    epoch in the log, or of the highest epoch before it; NO_OFFSET if it was not requested, or is
    unknown.
    """

    start: int
    end: int
    topic_id: str = ""
    epoch_end: int = NO_OFFSET


class Decision(Struct, frozen=True):
    """The offset at which to continue reading (None: nowhere), and the lost ranges."""

    start: int | None
    lost: tuple[Lost, ...] = ()


def decide(wanted: Wanted, log: LogNow | None) -> Decision:
    """The lost part of `wanted`, and the offset at which to continue.  `log` None: the partition
    does not exist.

    A truncated log is read from the truncation offset: the records there differ from the records
    that were read before.
    """
    if log is None:
        return Decision(
            None, (_lost(wanted, wanted.start, _last(wanted), "the partition was deleted"),)
        )
    if wanted.topic_id and log.topic_id and wanted.topic_id != log.topic_id:
        reason = f"the topic was deleted and created again, its id is {log.topic_id} now"
        return Decision(log.start, (_lost(wanted, wanted.start, _last(wanted), reason),))
    start, lost = wanted.start, []
    if wanted.epoch != NO_EPOCH and NO_OFFSET < log.epoch_end < start:
        reason = f"the log was truncated to {log.epoch_end}, where epoch {wanted.epoch} ends now"
        lost.append(_lost(wanted, log.epoch_end, start - 1, reason))
        start = max(log.epoch_end, log.start)
    elif start > log.end:
        reason = f"the log ends at {log.end} now"
        last = start - 1 if wanted.until is None else max(wanted.until, start) - 1
        return Decision(log.end, (_lost(wanted, log.end, last, reason),))
    elif start < log.start:
        last = log.start - 1 if wanted.until is None else min(log.start, wanted.until) - 1
        if last >= start:
            reason = f"the log begins at {log.start} now: {_REMOVED}"
            lost.append(_lost(wanted, start, last, reason))
        start = log.start
    if wanted.until is not None and wanted.until > max(log.end, start):
        first = max(log.end, start)
        reason = f"the log ends at {log.end} now"
        lost.append(_lost(wanted, first, wanted.until - 1, reason))
    return Decision(start, tuple(lost))


def _last(wanted: Wanted) -> int | None:
    """The last offset known to have existed."""
    return None if wanted.until is None or wanted.until <= wanted.start else wanted.until - 1


def _lost(wanted: Wanted, first: int, last: int | None, reason: str) -> Lost:
    return Lost(wanted.topic, wanted.partition, first, last, reason)
