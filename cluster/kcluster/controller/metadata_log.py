"""The state that outlives a controller's process: the metadata log, its leader epoch, the pending
topics.

Owns: the records, the leader epoch, the voters, the topics of the topology that do not exist yet.
Never: applies a record (node.py does), replicates one. Kafka: __cluster_metadata, KafkaRaftClient's
quorum state; KIP-595.

# DIFFERS: the voters share one log, and the fabric has one controller node: the active voter's
# process runs there (docs/decisions/005).
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final

from kcluster.contract import CONTROLLER_ID

if TYPE_CHECKING:
    from kcluster.config.topology.specs import TopicSpec
    from kcluster.controller.outcome import ApiError
    from kcluster.metadata.records import MetadataRecord

VOTERS: Final = (CONTROLLER_ID, CONTROLLER_ID + 1, CONTROLLER_ID + 2)


MAX_FETCHED_RECORDS: Final = 2_000
"""The most records that a broker reads in one fetch, so that no step of a broker takes long.
Kafka's bound is in bytes: KafkaRaftClient.MAX_FETCH_SIZE_BYTES."""


class PendingTopics:
    """The topology's topics that do not exist yet, and the brokers to wait for.

    `refused`: by topic, the error of its creation with the brokers that were active then.
    """

    __slots__ = ("expected_brokers", "refused", "timed_out", "topics")

    def __init__(self, topics: tuple[TopicSpec, ...], expected_brokers: tuple[int, ...]) -> None:
        self.topics = topics
        self.expected_brokers = expected_brokers
        self.refused: dict[str, ApiError] = {}
        self.timed_out = False
        """Whether the first session timeout has passed, so that missing brokers are not waited for
        any more."""


class MetadataLog:
    """The metadata log, with the other state that outlives a controller.  `epoch`: 0 before the
    first controller has led."""

    __slots__ = ("_batch_ends", "epoch", "note_count", "pending_topics", "records")

    def __init__(self) -> None:
        self.records: list[MetadataRecord] = []
        self._batch_ends: list[int] = []
        """The end offset of each batch.  Records that were committed together are fetched
        together."""
        self.epoch = 0
        self.note_count = 0
        """The number of notes of all controllers, so that no two notes have one id."""
        self.pending_topics: PendingTopics | None = None
        """The topics of the topology that do not exist yet; None before the first controller's
        start."""

    def end_batch(self) -> None:
        """End the batch of the records appended since the last call."""
        self._batch_ends.append(len(self.records))

    def fetch_end(self, offset: int) -> int:
        """The end of a fetch that starts at `offset`: whole batches, of MAX_FETCHED_RECORDS in all,
        but at least one batch."""
        ends = self._batch_ends
        following = bisect_right(ends, offset)
        last = bisect_right(ends, offset + MAX_FETCHED_RECORDS) - 1
        return ends[max(following, last)] if following < len(ends) else len(self.records)

    @property
    def leader(self) -> int:
        """The voter that is active, or was last."""
        return VOTERS[(self.epoch - 1) % len(VOTERS)]
