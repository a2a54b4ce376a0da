"""The view of a broker for everything outside of it, between two of its steps.

Owns: `BrokerNodeView`, the only face of a broker above runtime/.  Never: has a method that changes
a partition, a group or the metadata: clients' requests and the controller do.
Kafka: no counterpart; its JMX beans and admin APIs show parts of this.

A process gives it: `Process.broker`, `Process.last_broker` (runtime/process.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from kcluster.broker.access import Access
from kcluster.broker.coordinator import GroupCoordinator
from kcluster.broker.coordinator.share_state.coordinator import ShareCoordinator
from kcluster.broker.coordinator.transactions import TransactionCoordinator
from kcluster.broker.lifecycle import LifecycleState
from kcluster.broker.ports import BrokerView
from kcluster.broker.quotas.client_quotas import ClientQuotas
from kcluster.broker.replication.replicas import Replicas
from kcluster.broker.serving.sessions import FetchSessions, ParkedFetch
from kcluster.broker.share.share_partitions import SharePartitions
from kcluster.config.kafka.definitions import BrokerConfig
from kcluster.metadata.image import MetadataImage
from kcluster.principals import BrokerEndpoint
from kcluster.protocol.releases import Release

if TYPE_CHECKING:
    from kcluster.broker.logins import Logins


class BrokerNodeView(Protocol):
    """One life of one broker; it can still be read after its process has ended."""

    node_id: int

    @property
    def view(self) -> BrokerView:
        """The broker's identity, as the broker itself sees it."""

    @property
    def release(self) -> Release:
        """The Kafka release that the broker simulates."""

    @property
    def config(self) -> BrokerConfig:
        """The configs in force now."""

    @property
    def epoch(self) -> int:
        """The broker epoch of this life; -1 before registration."""

    @property
    def state(self) -> LifecycleState:
        """The broker's state between its start and its end."""

    @property
    def image(self) -> MetadataImage:
        """The metadata that the broker has applied."""

    @property
    def logins(self) -> Logins | None:
        """The clients that came by TLS or SASL, or under an authorizer; None without security."""

    @property
    def replicas(self) -> Replicas:
        """The replicas that the broker hosts: their roles, logs, high watermarks and, at leaders,
        ISRs."""

    @property
    def coordinator(self) -> GroupCoordinator:
        """The groups that the broker coordinates, and their offsets."""

    @property
    def transactions(self) -> TransactionCoordinator:
        """The transactional ids that the broker coordinates."""

    @property
    def share_state(self) -> ShareCoordinator:
        """The states of share partitions that the broker keeps."""

    @property
    def share_partitions(self) -> SharePartitions:
        """The share partitions that the broker leads."""

    @property
    def sessions(self) -> FetchSessions:
        """The fetch sessions of consumers and followers."""

    @property
    def access(self) -> Access | None:
        """The broker's authorizer; None: every client may do everything."""

    @property
    def parked_fetches(self) -> Mapping[int, ParkedFetch]:
        """The fetches that wait for records, by connection."""

    @property
    def quotas(self) -> ClientQuotas:
        """The throttling of the broker's clients."""

    def advertise(self, endpoints: tuple[BrokerEndpoint, ...]) -> None:
        """Take over an address, and have the controller make it known to clients."""
