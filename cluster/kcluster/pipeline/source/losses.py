"""Which records of a partition a reader wanted and cannot have any more: exact ranges, and why.

Owns: the decision, from what was wanted and what the log is now; its text.  Never: asks a broker
(client.py), decides whether the job ends (that is failOnDataLoss).
Kafka: OffsetFetcher's validation of positions (KIP-320), topic ids (KIP-516); of Spark's connector
KafkaOffsetReader.getOffsetRangesFromResolvedOffsets and its reportDataLoss, which knows neither
epochs nor ids: it does not see a log that was cut off and has grown again, or another topic of the
same name.

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

    `last` None: from `first` on, and nobody knows how far the log went.
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
    """What a reader means to read of a partition: `start` up to before `until`.

    `until` None: all there is.  `epoch`: the leader epoch of the record before `start`, NO_EPOCH
    where it is not known.  `topic_id`: of the topic that `start` is an offset of, "" where it is
    not known.
    """

    topic: str
    partition: int
    start: int
    until: int | None = None
    epoch: int = NO_EPOCH
    topic_id: str = ""


class LogNow(Struct, frozen=True):
    """What its leader says of a partition: log start offset, and high watermark (of the last
    stable offset nothing follows: it says what may be read, not what is there).

    `epoch_end`: what OffsetForLeaderEpoch answered for `Wanted.epoch`: the end of that epoch in
    the log, or of the greatest before it; NO_OFFSET where it was not asked, or there is none.
    """

    start: int
    end: int
    topic_id: str = ""
    epoch_end: int = NO_OFFSET


class Decision(Struct, frozen=True):
    """From where to read on (None: there is nothing to read from), and what is lost."""

    start: int | None
    lost: tuple[Lost, ...] = ()


def decide(wanted: Wanted, log: LogNow | None) -> Decision:
    """What is lost of `wanted`, and where to go on.  `log` None: the partition is not there.

    A log that was cut off is read on from where it was cut: the records there are others than those
    that were read, and nobody has read them yet.
    """
    if log is None:
        return Decision(None, (_lost(wanted, wanted.start, _last(wanted), "it was deleted"),))
    if wanted.topic_id and log.topic_id and wanted.topic_id != log.topic_id:
        why = f"the topic was deleted and created again, its id is {log.topic_id} now"
        return Decision(log.start, (_lost(wanted, wanted.start, _last(wanted), why),))
    start, lost = wanted.start, []
    if wanted.epoch != NO_EPOCH and NO_OFFSET < log.epoch_end < start:
        why = f"the log was cut off at {log.epoch_end}, where epoch {wanted.epoch} ends now"
        lost.append(_lost(wanted, log.epoch_end, start - 1, why))
        start = max(log.epoch_end, log.start)
    elif start > log.end:
        why = f"the log ends at {log.end} now"
        last = start - 1 if wanted.until is None else max(wanted.until, start) - 1
        return Decision(log.end, (_lost(wanted, log.end, last, why),))
    elif start < log.start:
        last = log.start - 1 if wanted.until is None else min(log.start, wanted.until) - 1
        if last >= start:
            why = f"the log begins at {log.start} now: {_REMOVED}"
            lost.append(_lost(wanted, start, last, why))
        start = log.start
    if wanted.until is not None and wanted.until > max(log.end, start):
        first = max(log.end, start)
        why = f"the log ends at {log.end} now"
        lost.append(_lost(wanted, first, wanted.until - 1, why))
    return Decision(start, tuple(lost))


def _last(wanted: Wanted) -> int | None:
    """The last offset that is known to have been there."""
    return None if wanted.until is None or wanted.until <= wanted.start else wanted.until - 1


def _lost(wanted: Wanted, first: int, last: int | None, why: str) -> Lost:
    return Lost(wanted.topic, wanted.partition, first, last, why)
