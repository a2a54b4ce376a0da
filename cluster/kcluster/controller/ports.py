"""The controller's interfaces to its parts: the metadata, a method to change it, and one to report
reasons; and the interface of the partitions to membership.

Owns: the ports' shapes.  Never: holds state: each part (Membership, Partitions, Topics, Configs, …)
owns its own and gets its ports from its constructor. Kafka: QuorumController's arguments to its
managers, and their results (ControllerResult).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from kcluster.config.kafka.definitions import BrokerConfig
from kcluster.contract import Event, NoteId, Rng
from kcluster.controller.metadata_log import MetadataLog
from kcluster.events.reasons import Fenced, Restarted, ShuttingDown, Unfenced
from kcluster.metadata.image import MetadataImage
from kcluster.metadata.records import MetadataRecord
from kcluster.protocol.releases import Release
from kcluster.timers import Timers


class MetadataPort(Protocol):
    """The cluster's metadata, for one part of the controller.  ControllerNode implements it."""

    @property
    def image(self) -> MetadataImage:
        """The metadata after the last record, always as one object, which only `commit` changes."""

    @property
    def log(self) -> MetadataLog:
        """The leader of the log, and its epoch."""

    @property
    def end_offset(self) -> int:
        """Offset that the next record will get."""

    @property
    def config(self) -> BrokerConfig:
        """The brokers' common static config."""

    @property
    def cluster_config(self) -> BrokerConfig:
        """`config` with the cluster-wide dynamic configs applied."""

    @property
    def release(self) -> Release:
        """The controller's own release, whose configs it knows."""

    @property
    def cluster_id(self) -> str:
        """The cluster's id."""

    @property
    def rng(self) -> Rng:
        """The controller's source of randomness."""

    @property
    def timers(self) -> Timers:
        """The controller's deadlines.  Each part has keys of its own."""

    def commit(self, records: Sequence[MetadataRecord]) -> None:
        """Append records to the log and apply them."""

    def note(self, event: Event, cause: NoteId | None = None) -> NoteId:
        """Report a decision; the result identifies the note, as the cause of other notes."""


PartitionKey = tuple[bytes, int]
"""(topic id, partition)."""


class PartitionsOfBrokers(Protocol):
    """The changes of partitions when a broker comes or goes.  Partitions implements it.

    The caller commits the records that these methods return.
    """

    def led_by(self, broker_id: int) -> int:
        """The number of partitions that a broker leads."""

    def in_sync_on(self, broker_id: int) -> list[PartitionKey]:
        """The partitions whose ISR includes a broker, by topic and number."""

    def on_broker_leaving(
        self,
        reason: Fenced | ShuttingDown | Restarted,
        cause: NoteId | None,
        partitions: Iterable[PartitionKey],
    ) -> list[MetadataRecord]:
        """The records that take a broker out of the ISRs and leaderships of these partitions."""

    def on_broker_restarted(self, reason: Restarted, cause: NoteId | None) -> list[MetadataRecord]:
        """The records that take a broker's previous incarnation out of ISRs and, after an unclean
        restart, out of ELRs."""

    def on_broker_unfenced(self, reason: Unfenced, cause: NoteId | None) -> list[MetadataRecord]:
        """The records that elect leaders for the leaderless partitions that this broker may
        lead."""
