"""The offsets of an OffsetCommit or a TxnOffsetCommit, and the outcome of each.

Owns: which offsets are of existing partitions, what is stored of them, and the results in Kafka's
order.  Never: stores an offset, decides who may commit (coordinator/ does both).  Kafka:
KafkaApis.handleOffsetCommitRequest, handleTxnOffsetCommitRequest; the Builders of
OffsetCommitResponse and TxnOffsetCommitResponse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, Protocol, TypeVar, final

from kcluster.broker.broker import Broker
from kcluster.broker.coordinator.group_log import CommittedOffset, OffsetRecord
from kcluster.protocol.errors import ErrorCode


class _PartitionToCommit(Protocol):
    """The fields of a requested partition that all versions of both requests have."""

    partition_index: int
    committed_metadata: str | None


Sent = TypeVar("Sent", bound=_PartitionToCommit)
"""The class of a request's partition."""
Cell = TypeVar("Cell")
"""A partition's row in the answer."""
Row = TypeVar("Row")
"""A topic's row in the answer."""


class _TopicToCommit(Protocol[Sent]):
    """The fields of a requested topic that both requests have."""

    name: str
    topic_id: bytes
    partitions: list[Sent]


@final
class OffsetsToCommit(Generic[Sent, Cell, Row]):
    """The offsets in one request, and the answer to it.  `row`, `cell`: the classes of a topic's
    and a partition's row in the answer."""

    def __init__(
        self,
        broker: Broker,
        topics: Iterable[_TopicToCommit[Sent]],
        by_id: bool,
        row: Callable[[str, bytes, list[Cell]], Row],
        cell: Callable[[int, int], Cell],
    ) -> None:
        self._metadata_max = broker.config.offset_metadata_max_bytes
        self._row = row
        self._cell = cell
        self._unknown: dict[tuple[str, bytes], list[Cell]] = {}
        """The results for topics and partitions that do not exist, by (name, topic id)."""
        self.known: list[tuple[str, bytes, bytes, list[Sent]]] = []
        """The topics and partitions that exist: (name, topic id as the request has it, topic id,
        partitions)."""
        missing = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        for topic in topics:
            name = broker.image.topic_names.get(topic.topic_id, "") if by_id else topic.name
            image = broker.image.topics.get(name)
            if image is None:
                self._refuse(topic.name, topic.topic_id, topic.partitions, missing)
                continue
            count = len(image.partitions)
            good = [one for one in topic.partitions if 0 <= one.partition_index < count]
            bad = [one for one in topic.partitions if not 0 <= one.partition_index < count]
            self._refuse(name, topic.topic_id, bad, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            if good:
                self.known.append((name, topic.topic_id, image.topic_id, good))

    def _refuse(self, name: str, topic_id: bytes, partitions: list[Sent], error: ErrorCode) -> None:
        if partitions:
            cells = [self._cell(one.partition_index, error) for one in partitions]
            self._unknown.setdefault((name, topic_id), []).extend(cells)

    def _check_metadata(self, partition: Sent) -> ErrorCode:
        is_too_large = len(partition.committed_metadata or "") > self._metadata_max
        return ErrorCode.OFFSET_METADATA_TOO_LARGE if is_too_large else ErrorCode.NONE

    def records(
        self, group_id: str, committed: Callable[[Sent, bytes, bytes], CommittedOffset]
    ) -> list[OffsetRecord]:
        """The offsets that can be stored.  `committed` makes one from (the request's partition, the
        request's topic id, the topic's id)."""
        return [
            OffsetRecord(group_id, name, one.partition_index, committed(one, sent_id, topic_id))
            for name, sent_id, topic_id, partitions in self.known
            for one in partitions
            if self._check_metadata(one) is ErrorCode.NONE
        ]

    def results(self, error: ErrorCode = ErrorCode.NONE) -> list[Row]:
        """The results: `error` for each existing partition, or each partition's own outcome.  As in
        Kafka, rows of a topic that was named twice are merged only if something does not exist."""
        found = [
            (name, sent_id, [self._outcome(one, error) for one in partitions])
            for name, sent_id, _, partitions in self.known
        ]
        if not self._unknown:
            return [self._row(*one) for one in found]
        merged = {key: list(cells) for key, cells in self._unknown.items()}
        for name, sent_id, cells in found:
            merged.setdefault((name, sent_id), []).extend(cells)
        return [self._row(*key, cells) for key, cells in merged.items()]

    def _outcome(self, partition: Sent, error: ErrorCode) -> Cell:
        return self._cell(partition.partition_index, error or self._check_metadata(partition))
