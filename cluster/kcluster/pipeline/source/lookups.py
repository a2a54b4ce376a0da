"""Lookups of a reader: the partitions of a subscription, the offsets of a log.

Owns: ListOffsets and OffsetForLeaderEpoch with retries; the resolution of a subscription.  Never:
reads records (loading.py), decides what is lost (losses.py).
Kafka: OffsetFetcher, ListOffsetsHandler; KIP-207 (a new leader's watermark), KIP-320, KIP-516; of
Spark's connector ConsumerStrategy and KafkaOffsetReaderAdmin.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kcluster.config.files.problems import unknown
from kcluster.pipeline.source.client import BlockingClient, Deadline, Topic
from kcluster.pipeline.source.errors import OptionError, SourceError
from kcluster.pipeline.source.losses import NO_EPOCH, NO_OFFSET, LogNow, Wanted
from kcluster.pipeline.source.offsets import EARLIEST, LATEST, Key, Mark
from kcluster.pipeline.source.options import Bound, ReadSettings
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode, error_of
from kcluster.protocol.messages import Message

_CONSUMER: Final = -1
_GONE_RETRY_MS: Final = 100
_EPOCHS_MIN_VERSION: Final = 3
"""The oldest version of OffsetForLeaderEpoch that needs no permissions besides reading."""


class Lookups:
    """The lookups of one reader."""

    def __init__(self, client: BlockingClient, settings: ReadSettings) -> None:
        self.client = client
        self.settings = settings

    # ------------------------------------------------------------------------------- partitions

    def partitions(self, expected: Iterable[str] = ()) -> dict[str, Topic]:
        """The subscribed topics at present.

        Named topics and `expected` ones (they existed before) count as missing only after
        fetchOffset.numRetries further requests: the first broker may not know them yet.
        """
        settings = self.settings
        named = {*settings.topics, *settings.assigned}
        for tries_left in range(settings.retries, -1, -1):
            self.client.refresh(None if settings.pattern else named)
            subscribed = {
                name: one for name, one in self.client.topics.items() if self._is_read(one)
            }
            if {*named, *expected} <= subscribed.keys() or not tries_left:
                break
            Deadline(settings.client.api_timeout_ms).wait(
                max(settings.retry_interval_ms, _GONE_RETRY_MS), "topics are missing"
            )
        return subscribed

    def keys(self, topics: Mapping[str, Topic]) -> list[Key]:
        """The subscribed partitions of these topics, sorted."""
        wanted = self.settings.assigned
        return sorted(
            (topic.name, index)
            for topic in topics.values()
            for index in topic.partitions
            if not wanted or index in wanted.get(topic.name, ())
        )

    def all_there(self) -> list[Key]:
        """The partitions of a new job; SourceError if a topic or a partition does not exist."""
        topics = self.partitions()
        for name in (*self.settings.topics, *self.settings.assigned):
            if name not in topics:
                self.client.refresh(None)
                text = unknown("topic", name, sorted(self.client.topics))
                raise SourceError(f"{name} at {self.client.bootstrap}: {text}")
        for name, indexes in self.settings.assigned.items():
            for index in indexes:
                if index not in topics[name].partitions:
                    count = len(topics[name].partitions)
                    raise SourceError(
                        f"assign: {name} has {count} partitions; there is no partition {index}"
                    )
        return self.keys(topics)

    def _is_read(self, topic: Topic) -> bool:
        if self.settings.pattern:
            matches = re.fullmatch(self.settings.pattern, topic.name) is not None
            return matches and not topic.is_internal
        return topic.name in self.settings.topics or topic.name in self.settings.assigned

    # ---------------------------------------------------------------------------------- offsets

    def bound(self, bound: Bound, keys: Iterable[Key], option: str) -> dict[Key, Mark]:
        """The mark at which each partition begins or ends."""
        timestamps: dict[Key, int] = {}
        known: dict[Key, int] = {}
        by_time: dict[Key, int] = {}
        keys = list(keys)
        if bound.each:
            _check_same(option, bound, keys)
        for key in keys:
            at = bound.timestamp_ms if bound.timestamp_ms is not None else bound.of(key)
            if bound.timestamp_ms is not None or bound.is_by_time:
                assert at is not None
                by_time[key] = at
            elif bound.word or at in (EARLIEST, LATEST):
                timestamps[key] = EARLIEST if bound.word == "earliest" or at == EARLIEST else LATEST
            else:
                assert at is not None
                known[key] = at
        marks = self.list_offsets(timestamps)
        current = self.list_offsets(dict.fromkeys(known, LATEST))
        for key, offset in known.items():
            marks[key] = Mark(offset, NO_EPOCH, current[key].topic_id)
        return marks | self._by_time(by_time, option)

    def _by_time(self, timestamps: Mapping[Key, int], option: str) -> dict[Key, Mark]:
        marks = self.list_offsets(timestamps)
        after = {key: LATEST for key, mark in marks.items() if mark.offset < 0}
        if after and option.startswith("starting") and self.settings.after_last == "error":
            topic, partition = min(after)
            raise SourceError(
                f"{topic}-{partition}: no record is at or after timestamp"
                f" {timestamps[topic, partition]} (startingOffsetsByTimestampStrategy is error)"
            )
        return marks | self.list_offsets(after)

    def latest(self, keys: Iterable[Key]) -> dict[Key, Mark]:
        """The ends of the readable records: high watermarks, or last stable offsets."""
        return self.list_offsets(dict.fromkeys(keys, LATEST))

    def list_offsets(
        self, timestamps: Mapping[Key, int], uncommitted: bool = False
    ) -> dict[Key, Mark]:
        """The answers of ListOffsets for timestamps, EARLIEST or LATEST; offset -1 if no record is
        at or after a timestamp.  `uncommitted`: high watermarks at any isolation level.

        Unreachable if a partition's leader does not answer in time.  Partitions that were deleted
        meanwhile are left out.
        """
        marks: dict[Key, Mark] = {}
        deadline = self.client.deadline()
        level = int(self.settings.is_read_committed and not uncommitted)
        remaining = dict(timestamps)
        while True:
            reason = ""
            for node, keys in self._by_leader(remaining).items():
                reason = self._ask_offsets(node, keys, remaining, level, marks) or reason
            remaining = {key: at for key, at in remaining.items() if key not in marks}
            if not remaining:
                return marks
            deadline.wait(self.settings.client.retry_backoff_ms, reason or _no_leader(remaining))
            self._refresh({topic for topic, _ in timestamps})
            remaining = {key: at for key, at in remaining.items() if self._exists(key)}

    def _refresh(self, topics: set[str]) -> None:
        """Refresh the Metadata of topics.  For missing ones other brokers are asked,
        fetchOffset.numRetries times: a broker that has just started may not know them yet."""
        for tries_left in range(self.settings.retries, -1, -1):
            self.client.refresh(topics)
            if topics <= self.client.topics.keys() or not tries_left:
                return
            Deadline(self.settings.client.api_timeout_ms).wait(_GONE_RETRY_MS, "")

    def _exists(self, key: Key) -> bool:
        topic = self.client.topics.get(key[0])
        return topic is not None and key[1] in topic.partitions

    def _by_leader(self, keys: Iterable[Key]) -> dict[int, list[Key]]:
        keys_by_leader: dict[int, list[Key]] = {}
        for key in keys:
            leader = self.client.leader(*key)
            if leader.node >= 0:
                keys_by_leader.setdefault(leader.node, []).append(key)
        return keys_by_leader

    def _ask_offsets(
        self, node: int, keys: list[Key], at: Mapping[Key, int], level: int, marks: dict[Key, Mark]
    ) -> str:
        """Add the answer of one broker to `marks`; returns the reason if an answer is missing, else
        ""."""
        entry = m.ListOffsetsRequest.ListOffsetsPartition
        topics: dict[str, m.ListOffsetsRequest.ListOffsetsTopic] = {}
        for key in keys:
            topic = topics.setdefault(key[0], m.ListOffsetsRequest.ListOffsetsTopic(key[0]))
            topic.partitions.append(entry(key[1], self.client.leader(*key).epoch, at[key]))
        body = m.ListOffsetsRequest(
            _CONSUMER, level, list(topics.values()), self.settings.client.request_timeout_ms
        )
        answer = self.client.ask(node, ApiKey.LIST_OFFSETS, body)
        if answer is None:
            return f"broker {node} does not answer"
        reason = ""
        for topic_row in answer.topics:
            known = self.client.topics[topic_row.name]
            for row in topic_row.partitions:
                key = topic_row.name, row.partition_index
                if row.error_code:
                    reason = f"{key[0]}-{key[1]}: {_check_retriable(row.error_code, key).name}"
                    continue
                marks[key] = Mark(row.offset, self.client.leader(*key).epoch, known.id)
        return reason

    # -------------------------------------------------------------------------- the current log

    def log_now(self, wanted: Wanted) -> LogNow | None:
        """The current log of a partition; None if it does not exist.  Raises Unreachable."""
        return self.logs_now([wanted])[0]

    def logs_now(self, wanted: list[Wanted]) -> list[LogNow | None]:
        """The current logs of many partitions, with few requests."""
        self._refresh({one.topic for one in wanted})
        there = [one for one in wanted if self._exists((one.topic, one.partition))]
        keys = [(one.topic, one.partition) for one in there]
        starts = self.list_offsets(dict.fromkeys(keys, EARLIEST), uncommitted=True)
        ends = self.list_offsets(dict.fromkeys(keys, LATEST), uncommitted=True)
        logs: list[LogNow | None] = []
        for one in wanted:
            key = one.topic, one.partition
            if key not in starts or key not in ends:
                logs.append(None)
                continue
            end = ends[key]
            same = not one.topic_id or one.topic_id == end.topic_id
            epoch_end = NO_OFFSET
            if same and one.epoch not in (NO_EPOCH, end.epoch):
                epoch_end = self._epoch_end(key, one.epoch)
            logs.append(LogNow(starts[key].offset, end.offset, end.topic_id, epoch_end))
        return logs

    def _epoch_end(self, key: Key, epoch: int) -> int:
        """The end offset of an epoch in the leader's log; NO_OFFSET if the leader does not know
        it."""
        deadline = self.client.deadline()
        request = m.OffsetForLeaderEpochRequest
        while True:
            leader = self.client.leader(*key)
            reason = _no_leader([key])
            if leader.node >= 0:
                partition_request = request.OffsetForLeaderPartition(key[1], leader.epoch, epoch)
                body = request(
                    _CONSUMER, [request.OffsetForLeaderTopic(key[0], [partition_request])]
                )
                row = self._epoch_answer(leader.node, body)
                if row is None:
                    reason = f"broker {leader.node} does not answer"
                elif not row.error_code:
                    return int(row.end_offset) if row.leader_epoch >= 0 else NO_OFFSET
                else:
                    reason = f"{key[0]}-{key[1]}: {_check_retriable(row.error_code, key).name}"
            deadline.wait(self.settings.client.retry_backoff_ms, reason)
            self._refresh({key[0]})
            if not self._exists(key):
                return NO_OFFSET

    def _epoch_answer(self, node: int, body: Message) -> Any:
        api = ApiKey.OFFSET_FOR_LEADER_EPOCH
        answer = self.client.ask(node, api, body)
        return None if answer is None else answer.topics[0].partitions[0]


def _check_retriable(code: int, key: Key) -> ErrorCode:
    error = error_of(code)
    if not error.retriable:
        raise SourceError(f"{key[0]}-{key[1]}: {error.name}: {error.text}")
    return error


def _no_leader(keys: Iterable[Key]) -> str:
    topic, partition = min(keys)
    return f"{topic}-{partition}: it has no leader"


def _check_same(option: str, bound: Bound, keys: list[Key]) -> None:
    """Check that an option has values for exactly the partitions that are read; OptionError if
    not."""
    named = {(topic, index) for topic, each in bound.each.items() for index in each}
    name = f"{option}OffsetsByTimestamp" if bound.is_by_time else f"{option}Offsets"
    for problem, partitions in (
        ("no value for", set(keys) - named),
        ("not among the partitions to be read:", named - set(keys)),
    ):
        if partitions:
            shown = ", ".join(f"{topic}-{index}" for topic, index in sorted(partitions)[:5])
            raise OptionError(f"{name}: {problem} {shown}")
