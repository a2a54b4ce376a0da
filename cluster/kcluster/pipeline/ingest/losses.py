"""Offsets that an ingest's source should have read but did not: exact ranges, each with its reason.

Owns: the decision.  Its inputs are the batch's offsets, the state of the log at the previous batch,
and views of the log before and after this batch was read.  Never: asks a broker (view.py), reads
records.
Kafka: KafkaOffsetReader's reportDataLoss and KafkaDataConsumer's "Skip missing records" log some of
these losses; KIP-320 (epochs) and KIP-516 (ids) reveal the others.

Gaps that compaction or transactions leave do not count as lost, with one exception: a gap counts if
the log start moves past it while the batch is read, because its content is then unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from kcluster.pipeline.source.losses import NO_EPOCH, NO_OFFSET, Lost

Offsets = dict[str, dict[int, int]]
"""topic -> partition -> the next offset to read."""
Gaps = Callable[[str, int, int, int], list[tuple[int, int]]]
"""Finds the unread ranges: (topic, partition, first, last) -> the ranges within; both ends are
included."""
_DELETED: Final = "the partition was deleted"
_REMOVED: Final = "removed by retention or DeleteRecords"


class PartitionNow(Struct, frozen=True):
    """A partition's log start, high watermark and current leader epoch.  `epoch_end`: the end of
    the requested epoch, NO_OFFSET if none was requested."""

    start: int
    end: int
    epoch: int = NO_EPOCH
    epoch_end: int = NO_OFFSET


class TopicNow(Struct, frozen=True):
    """A topic as the cluster describes it.  A partition without a leader may be missing."""

    topic_id: str
    partitions: dict[int, PartitionNow]


View = dict[str, TopicNow]
"""Topics by name, without topics that do not exist."""


class KnownPartition(Struct):
    """The last known leader epoch, and the highest log end seen."""

    epoch: int = NO_EPOCH
    end: int = 0


class KnownTopic(Struct):
    """The known facts of a topic.  `gone`: whether its deletion has been reported."""

    topic_id: str
    partitions: dict[int, KnownPartition]
    gone: bool = False


Known = dict[str, KnownTopic]


class IngestBatch(Struct, frozen=True):
    """Offsets [starts, ends), and views of the cluster before and after they were read."""

    starts: Offsets
    ends: Offsets
    before: View
    after: View


def find_losses(batch: IngestBatch, known: Known, gaps: Gaps) -> list[Lost]:
    """The ranges of a batch that were not read and never will be, in order of partitions."""
    lost: list[Lost] = []
    for topic in sorted({*batch.starts, *batch.ends}):
        was, now = known.get(topic), batch.after.get(topic)
        partitions = {*batch.starts.get(topic, {}), *batch.ends.get(topic, {})}
        for partition in sorted(partitions):
            start = batch.starts.get(topic, {}).get(partition, 0)
            end = batch.ends.get(topic, {}).get(partition, start)
            if now is None:
                if was is None or not was.gone:
                    lost += _losses_of_deleted(topic, partition, start, end, was, gaps)
                continue
            lost += _losses_of_partition(topic, partition, (start, end), was, now, batch, gaps)
    return lost


def losses_at_rest(positions: Offsets, known: Known, now: View) -> list[Lost]:
    """Losses that no batch will reveal: a topic was deleted, replaced or truncated, and ends
    exactly at the source's position.  Updates `known`."""
    lost: list[Lost] = []
    for topic, partitions in sorted(positions.items()):
        was, there = known.get(topic), now.get(topic)
        if was is None:
            continue
        if there is None:
            if not was.gone:
                for partition, at in sorted(partitions.items()):
                    lost += _losses_of_deleted(topic, partition, at, at, was, lambda *_: [])
            was.gone = True
            continue
        logs = there.partitions
        still = {p: at for p, at in sorted(partitions.items()) if p in logs and logs[p].end == at}
        if was.topic_id != there.topic_id and len(still) < len(partitions):
            continue  # the next batch reports all of it
        for partition, at in still.items():
            lost += _losses_of_replaced(topic, partition, (at, at), was, there)
            was.partitions[partition] = KnownPartition(logs[partition].epoch, at)
        if was.topic_id != there.topic_id:
            was.topic_id, was.gone = there.topic_id, False
    return lost


def learn(known: Known, now: View, topics: tuple[str, ...]) -> None:
    """Update `known` from the view after a batch."""
    for topic in topics:
        was, there = known.get(topic), now.get(topic)
        if there is None:
            if was is not None:
                was.gone = True
            continue
        if was is None or was.topic_id != there.topic_id:
            was = known[topic] = KnownTopic(there.topic_id, {})
        was.gone = False
        for partition, log in there.partitions.items():
            was.partitions[partition] = KnownPartition(log.epoch, log.end)


def learn_ends(known: Known, now: View) -> None:
    """Update the log ends in `known`, for topics whose id is unchanged."""
    for topic, was in known.items():
        there = now.get(topic)
        if there is None or there.topic_id != was.topic_id:
            continue
        for partition, log in there.partitions.items():
            known_partition = was.partitions.get(partition)
            if known_partition is not None:
                known_partition.end = max(known_partition.end, log.end)


def _losses_of_partition(
    topic: str,
    partition: int,
    span: tuple[int, int],
    was: KnownTopic | None,
    now: TopicNow,
    batch: IngestBatch,
    gaps: Gaps,
) -> Iterator[Lost]:
    yield from _losses_of_replaced(topic, partition, span, was, now)
    log = now.partitions.get(partition)
    start, end = span
    if log is None or log.start <= start or end <= start:
        return
    before = batch.before.get(topic)
    first = None if before is None else before.partitions.get(partition)
    gone_before = log.start if first is None else min(first.start, log.start)
    reason = f"the log begins at {log.start} now: {_REMOVED}"
    below = min(gone_before, end)
    ranges = [(start, below - 1)] if below > start else []
    if min(log.start, end) > max(start, below):
        ranges += gaps(topic, partition, max(start, below), min(log.start, end) - 1)
    for at, last in _merged(ranges):
        yield Lost(topic, partition, at, last, reason)


def _losses_of_replaced(
    topic: str, partition: int, span: tuple[int, int], was: KnownTopic | None, now: TopicNow
) -> Iterator[Lost]:
    """Losses because the topic was replaced or the log truncated, while the source continued from
    its old offsets."""
    if was is None:
        return
    start, end = span
    log, known = now.partitions.get(partition), was.partitions.get(partition)
    if was.topic_id != now.topic_id:
        reason = f"the topic was deleted and created again, its id is {now.topic_id} now"
        if not was.gone:
            yield Lost(topic, partition, start, _last(start, known), reason)
        first = 0 if log is None else log.start
        if first < min(start, end):
            at = min(start, end)
            text = (
                f"{reason}; the source continued at {at} and skipped these offsets of the new topic"
            )
            yield Lost(topic, partition, first, at - 1, text)
    elif log is not None and known is not None and NO_OFFSET < log.epoch_end < start:
        reason = f"the log was truncated to {log.epoch_end}, where epoch {known.epoch} ends now"
        yield Lost(topic, partition, log.epoch_end, start - 1, reason)
    elif end < start:
        yield Lost(topic, partition, end, start - 1, f"the log was truncated to {end}")


def _losses_of_deleted(
    topic: str, partition: int, start: int, end: int, was: KnownTopic | None, gaps: Gaps
) -> Iterator[Lost]:
    known = None if was is None else was.partitions.get(partition)
    missing = gaps(topic, partition, start, end - 1) if end > start else []
    at = max(start, end)
    last = _last(at, known)
    if missing and missing[-1][1] == at - 1:
        at = missing.pop()[0]
        last = last if last is not None else max(start, end) - 1
    for first, until in missing:
        yield Lost(topic, partition, first, until, _DELETED)
    yield Lost(topic, partition, at, last, _DELETED)


def _last(start: int, known: KnownPartition | None) -> int | None:
    """The last offset known to have existed; None if it is before `start`."""
    return None if known is None or known.end <= start else known.end - 1


def _merged(ranges: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Adjacent ranges merged."""
    at: tuple[int, int] | None = None
    for first, last in ranges:
        if at is not None and at[1] + 1 == first:
            at = (at[0], last)
            continue
        if at is not None:
            yield at
        at = (first, last)
    if at is not None:
        yield at
