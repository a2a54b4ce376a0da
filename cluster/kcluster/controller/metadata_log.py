"""What outlives a controller's process: the metadata log, its leader epoch, the pending topics.

Owns: the records, the leader epoch, the voters, which topics of the topology are still to be
created.  Never: applies a record (node.py does), replicates one.
Kafka: __cluster_metadata, KafkaRaftClient's quorum state; KIP-595.

# DIFFERS: the voters share one log, and the fabric has one controller node: the active voter's
# process runs there (docs/decisions/005).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kcluster.contract import CONTROLLER_ID

if TYPE_CHECKING:
    from kcluster.config.topology.specs import TopicSpec
    from kcluster.controller.outcome import ApiError
    from kcluster.metadata.records import MetadataRecord

VOTERS: Final = (CONTROLLER_ID, CONTROLLER_ID + 1, CONTROLLER_ID + 2)


class PendingTopics:
    """The topology's topics that are still to be created, and the brokers to wait for.

    `refused`: by topic, why it could not be created with the brokers that were active then.
    """

    __slots__ = ("expected_brokers", "refused", "timed_out", "topics")

    def __init__(self, topics: tuple[TopicSpec, ...], expected_brokers: tuple[int, ...]) -> None:
        self.topics = topics
        self.expected_brokers = expected_brokers
        self.refused: dict[str, ApiError] = {}
        self.timed_out = False
        """The first session timeout has passed: missing brokers are not waited for any more."""


class MetadataLog:
    """See the module's head.  `epoch`: 0 before the first controller has led."""

    __slots__ = ("epoch", "note_count", "pending_topics", "records")

    def __init__(self) -> None:
        self.records: list[MetadataRecord] = []
        self.epoch = 0
        self.note_count = 0
        """How many notes all controllers have made, so that no two of them share an id."""
        self.pending_topics: PendingTopics | None = None
        """None before the first controller's start."""

    @property
    def leader(self) -> int:
        """The voter that is active, or was last."""
        return VOTERS[(self.epoch - 1) % len(VOTERS)]
