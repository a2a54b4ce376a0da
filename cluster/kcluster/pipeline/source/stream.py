"""Plans of a batch read, and of each batch of a stream.

Owns: positions, the limits of a trigger, the ranges of its tasks, the losses that it reports.
Never: reads records (loading.py), keeps state beyond a query (the checkpoint does).  Kafka: of
Spark's connector KafkaBatch and KafkaMicroBatchStream.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from kcluster.pipeline.source.client import BlockingClient
from kcluster.pipeline.source.loading import report
from kcluster.pipeline.source.lookups import Lookups
from kcluster.pipeline.source.losses import Decision, LogNow, Wanted, decide
from kcluster.pipeline.source.offsets import EARLIEST, Key, Mark, from_json, to_json
from kcluster.pipeline.source.options import ReadSettings
from kcluster.pipeline.source.planning import Range, limited, split

Position = Mapping[str, Mapping[str, int]]
"""A position as in a checkpoint; offsets.py describes the format."""


def batch_ranges(settings: ReadSettings) -> list[Range]:
    """The ranges of a batch read.  DataLoss if requested offsets do not exist."""
    client = BlockingClient(settings.client)
    try:
        lookups = Lookups(client, settings)
        keys = lookups.all_there()
        starts = lookups.bound(settings.starting, keys, "starting")
        ends = lookups.bound(settings.ending, keys, "ending")
        return _Planner(lookups).ranges(starts, ends)
    finally:
        client.close()


class Stream:
    """The plans of one query, batch after batch."""

    def __init__(self, settings: ReadSettings) -> None:
        self._settings = settings
        self._client = BlockingClient(settings.client)
        self._lookups = Lookups(self._client, settings)
        self._planner = _Planner(self._lookups)
        self._ends: dict[Key, int] = {}
        """The last known end of each partition."""
        self._target: dict[Key, Mark] | None = None
        self._batch_at_s = time.monotonic()

    def close(self) -> None:
        self._client.close()

    def initial(self) -> dict[str, dict[str, int]]:
        """The initial position of a query without a checkpoint."""
        keys = self._lookups.all_there()
        return to_json(self._lookups.bound(self._settings.starting, keys, "starting"))

    def freeze_target(self) -> None:
        """Limit reading to the current ends (Trigger.AvailableNow)."""
        self._target = self._now(())

    def known(self) -> dict[str, dict[str, int]] | None:
        """The last known ends of all partitions, for a query's progress."""
        marks = {key: Mark(offset) for key, offset in self._ends.items()}
        return to_json(marks) if marks else None

    def latest(self, position: Position, limit: int | None) -> dict[str, dict[str, int]]:
        """The end of the next batch.  `limit`: the maximum number of offsets; None: no limit.
        DataLoss as soon as a loss is detected."""
        starts = from_json(position)
        now = self._now({topic for topic, _ in starts})
        lost = [_from(key, mark) for key, mark in starts.items() if key not in now]
        self._check((one, None) for one in lost)
        reset = [key for key, mark in now.items() if key in starts and _is_reset(starts[key], mark)]
        resumed = self._resume_offsets(reset, starts)
        self._ends = {key: mark.offset for key, mark in now.items()}
        ends = {key: self._end(starts.get(key), mark, key in resumed) for key, mark in now.items()}
        begins = {key: starts[key].offset for key in ends if key in starts} | resumed
        new = self._lookups.list_offsets(
            {key: EARLIEST for key in ends if key not in starts}, uncommitted=True
        )
        begins |= {key: mark.offset for key, mark in new.items()}
        offsets = {key: mark.offset for key, mark in ends.items()}
        if limit is not None:
            if self._is_too_few(begins, offsets):
                return to_json(starts)
            offsets = limited(begins, offsets, limit)
        marks = {key: Mark(offsets[key], one.epoch, one.topic_id) for key, one in ends.items()}
        if marks != starts:
            self._batch_at_s = time.monotonic()
        return to_json(marks)

    def ranges(self, start: Position, end: Position) -> list[Range]:
        """The ranges of a batch."""
        return self._planner.ranges(from_json(start), from_json(end), self._ends)

    # ----------------------------------------------------------------------------------- latest

    def _now(self, expected: Iterable[str]) -> dict[Key, Mark]:
        """The ends of all subscribed partitions, but not beyond the target."""
        now = self._lookups.latest(self._lookups.keys(self._lookups.partitions(expected)))
        if self._target is None:
            return now
        return {
            key: mark
            if mark.topic_id == now[key].topic_id and mark.offset <= now[key].offset
            else now[key]
            for key, mark in self._target.items()
            if key in now
        }

    def _resume_offsets(self, reset: list[Key], starts: Mapping[Key, Mark]) -> dict[Key, int]:
        """The offsets at which reading continues in partitions that were truncated or created
        again: their end is before the position, or their topic has another id."""
        wanted = [_from(key, starts[key]) for key in reset]
        logs = self._lookups.logs_now(wanted) if wanted else []
        self._check(zip(wanted, logs, strict=True))
        offsets = {}
        for one, log in zip(wanted, logs, strict=True):
            decision = decide(one, log)
            if decision.lost and decision.start is not None:
                offsets[one.topic, one.partition] = decision.start
        return offsets

    def _check(self, pairs: Iterable[tuple[Wanted, LogNow | None]]) -> None:
        """Check for losses; DataLoss if there are any.  Without failOnDataLoss, the batch reports
        them later."""
        if self._settings.fail_on_data_loss:
            report(self._settings, [x for one, log in pairs for x in self._lost(one, log)])

    def _lost(self, wanted: Wanted, log: LogNow | None) -> Iterable[Any]:
        known = self._ends.get((wanted.topic, wanted.partition))
        return decide(_until(wanted, known), log).lost

    def _end(self, start: Mark | None, now: Mark, may_go_back: bool) -> Mark:
        """The end of a batch in one partition.  Without new records the position is unchanged, and
        so is its epoch: a new leader alone must not cause a batch."""
        if start is None or may_go_back or start.topic_id not in ("", now.topic_id):
            return now
        return start if now.offset <= start.offset else now

    def _is_too_few(self, begins: Mapping[Key, int], ends: Mapping[Key, int]) -> bool:
        least = self._settings.min_offsets
        if least is None:
            return False
        new = sum(max(end - begins.get(key, end), 0) for key, end in ends.items())
        waited_ms = (time.monotonic() - self._batch_at_s) * 1_000
        return new < least and waited_ms < self._settings.max_delay_ms


class _Planner:
    """Turns positions into ranges."""

    def __init__(self, lookups: Lookups) -> None:
        self._lookups = lookups

    def ranges(
        self,
        starts: Mapping[Key, Mark],
        ends: Mapping[Key, Mark],
        known: Mapping[Key, int] | None = None,
    ) -> list[Range]:
        """The ranges between two positions, without lost offsets; these are reported.  `known`: the
        last known ends of partitions that may have been deleted."""
        settings = self._lookups.settings
        deleted = [_from(key, mark) for key, mark in starts.items() if key not in ends]
        wanted = [_wanted(key, starts.get(key), end) for key, end in ends.items()]
        logs = self._lookups.logs_now(wanted) if wanted else []
        lost = [
            x
            for one in deleted
            for x in decide(_until(one, (known or {}).get((one.topic, one.partition))), None).lost
        ]
        ranges: list[Range] = []
        for one, log in zip(wanted, logs, strict=True):
            decision = decide(one, log)
            lost += decision.lost
            end = ends[one.topic, one.partition]
            ranges += self._range(one, decision, end, log)
        report(settings, lost)
        return split(ranges, settings.min_partitions, settings.max_records)

    def _range(self, one: Wanted, decision: Decision, end: Mark, log: LogNow | None) -> list[Range]:
        if log is None or decision.start is None or end.topic_id not in ("", log.topic_id):
            return []
        epoch = self._lookups.client.leader(one.topic, one.partition).epoch
        until = min(end.offset, max(log.end, decision.start))
        return [Range(one.topic, one.partition, decision.start, until, epoch, log.topic_id)]


def _wanted(key: Key, start: Mark | None, end: Mark) -> Wanted:
    """The wanted offsets of a partition; a new partition is read from its beginning."""
    if start is None:
        start = Mark(0, topic_id=end.topic_id)
    same = start.topic_id in ("", end.topic_id)
    until = end.offset if same and end.offset >= start.offset else None
    return Wanted(*key, start.offset, until, start.epoch, start.topic_id)


def _until(wanted: Wanted, known: int | None) -> Wanted:
    if known is None or known <= wanted.start:
        return wanted
    return replace(wanted, until=known)


def _from(key: Key, mark: Mark) -> Wanted:
    """All offsets from a mark on."""
    return Wanted(*key, mark.offset, None, mark.epoch, mark.topic_id)


def _is_reset(start: Mark, now: Mark) -> bool:
    return now.offset < start.offset or start.topic_id not in ("", now.topic_id)
