"""The view of the controller for everything outside of it, between two of its steps.

Owns: `ControllerNodeView`, the only face of a controller above runtime/.  Never: has a method that
changes the metadata: requests do.
Kafka: no counterpart; kafka-metadata-shell and the JMX beans of KafkaController show parts of this.

A process gives it: `Process.controller`, `Process.last_controller` (runtime/process.py).
"""

from __future__ import annotations

from typing import Protocol

from kcluster.config.kafka.definitions import BrokerConfig
from kcluster.controller.membership.liveness import Sessions
from kcluster.controller.metadata_log import MetadataLog
from kcluster.controller.partitions.partitions import Partitions
from kcluster.metadata.image import MetadataImage


class ControllerNodeView(Protocol):
    """One life of the controller; it can still be read after its process has ended."""

    node_id: int

    @property
    def config(self) -> BrokerConfig:
        """The brokers' common static config."""

    @property
    def image(self) -> MetadataImage:
        """The newest metadata."""

    @property
    def log(self) -> MetadataLog:
        """The records from which the image was built, and the other state that outlives a
        controller."""

    @property
    def sessions(self) -> Sessions:
        """The sessions of the brokers, kept by their heartbeats."""

    @property
    def partitions(self) -> Partitions:
        """The partitions by broker, and their effective configs."""
