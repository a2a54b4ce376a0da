"""A broker's life with the controller: registration, heartbeats, metadata, controlled shutdown.

Owns: this broker's epoch and whether it is running, fenced or going down.  Never: decides to fence
(the controller does), touches replicas (publisher.py does as metadata arrives).
Kafka: BrokerLifecycleManager (KIP-631), BrokerMetadataPublisher.

    start -> register -> fetch metadata up to the registration -> heartbeat -> unfenced
          -> AcceptClients: until then, the ports for clients are closed
    shut_down -> heartbeats with want_shut_down -> leaders moved away -> Stopped
"""

from __future__ import annotations

from enum import Enum
from typing import Final, final

from kcluster.broker.peers import PeerCalls
from kcluster.broker.ports import BrokerView, Outbox
from kcluster.broker.publisher import MetadataPublisher
from kcluster.broker.replication.maintenance import Maintenance
from kcluster.contract import AcceptClients, Rng, Stopped
from kcluster.events.brokers import ControlledShutdown
from kcluster.metadata.delta import MetadataFetchResponse
from kcluster.metadata.endpoints import registered
from kcluster.metadata.records import MetadataFetch
from kcluster.partition.disk import Disk
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.features import supported
from kcluster.timers import Timers

_HEARTBEAT = ("lifecycle", "heartbeat")
_REGISTER = ("lifecycle", "register")
_METADATA = ("lifecycle", "metadata")
SHUT_DOWN_SOON_MS: Final = 50
"""The time in which a shutdown usually ends: until then the broker asks every millisecond.  Kafka
asks once more after this time."""


class LifecycleState(Enum):
    """The states of a broker.  Kafka: BrokerState."""

    STARTING = "starting"
    RECOVERY = "recovery"
    RUNNING = "running"
    SHUTTING_DOWN = "shutting down"
    STOPPED = "stopped"


@final
class Lifecycle:
    """One life of a broker: its state, and its exchanges with the controller."""

    def __init__(
        self,
        view: BrokerView,
        disk: Disk,
        rng: Rng,
        timers: Timers,
        peers: PeerCalls,
        outbox: Outbox,
        publisher: MetadataPublisher,
        maintenance: Maintenance,
    ) -> None:
        self._view = view
        self._disk = disk
        self._timers = timers
        self._peers = peers
        self._outbox = outbox
        self._publisher = publisher
        self._maintenance = maintenance
        self.state = LifecycleState.STARTING
        self._heartbeat_under_way = False
        self._hurries_until_ms = 0
        """The end of SHUT_DOWN_SOON_MS; then it asks at the usual interval, as Kafka does."""
        self._fetching = False
        self._caught_up = False
        self._incarnation_id = rng.randbytes(16)
        """A number that distinguishes a retry of this life's registration from the registration of
        another life."""
        disk.mount(view.config.log_dirs or view.config.log_dir)

    # -------------------------------------------------------------------------- registration

    def start(self, now_ms: int) -> None:
        """Register with the controller, retrying until it answers."""
        view = self._view
        request = m.BrokerRegistrationRequest(
            broker_id=view.node_id,
            cluster_id=view.cluster_id,
            incarnation_id=self._incarnation_id,
            listeners=registered(view.endpoints),
            features=[
                m.BrokerRegistrationRequest.Feature(name, low, high)
                for name, (low, high) in supported(view.release).items()
            ],
            rack=view.rack,
            previous_broker_epoch=self._disk.broker_epoch if self._disk.clean_shutdown else -1,
        )
        self._peers.ask_controller(
            request, self._on_registered, view.config.controller_quorum_request_timeout_ms, now_ms
        )

    def _on_registered(self, response: m.BrokerRegistrationResponse | None, now_ms: int) -> None:
        view = self._view
        if response is None or response.error_code != ErrorCode.NONE:
            # The session of an earlier life must end first, even after a clean stop, as in Kafka.
            retry_ms = now_ms + view.config.broker_heartbeat_interval_ms
            self._timers.set(_REGISTER, retry_ms, self.start)
            return
        view.epoch = response.broker_epoch
        # Only a clean stop sets this epoch again: a crash must not look like a clean stop
        # (KIP-966).
        self._disk.clean_shutdown = False
        self.state = LifecycleState.RECOVERY
        interval_ms = view.config.broker_heartbeat_interval_ms
        self._timers.set(_HEARTBEAT, now_ms + interval_ms, self._heartbeat)
        self._fetch_metadata(now_ms)

    # ------------------------------------------------------------------------------ metadata

    def _fetch_metadata(self, now_ms: int) -> None:
        view = self._view
        if self._fetching or self.state is LifecycleState.STOPPED:
            return
        self._fetching = True
        config = view.config
        self._peers.ask_controller(
            MetadataFetch(view.node_id, view.image.offset + 1, config.replica_fetch_wait_max_ms),
            self._on_metadata,
            config.replica_fetch_wait_max_ms + config.controller_quorum_request_timeout_ms,
            now_ms,
        )

    def _on_metadata(self, response: MetadataFetchResponse | None, now_ms: int) -> None:
        view = self._view
        self._fetching = False
        if response is None:
            retry_ms = now_ms + max(1, view.config.broker_heartbeat_interval_ms // 100)
            self._timers.set(_METADATA, retry_ms, self._fetch_metadata)
            return
        if response.delta.records:
            self._publisher.apply(response.delta, now_ms)
        self._fetch_metadata(now_ms)
        if not self._caught_up and view.image.offset >= view.epoch:
            # The registration itself has arrived, so report it at once, to be unfenced.
            self._caught_up = True
            self._publisher.remove_strays()
            self._heartbeat(now_ms)

    # ---------------------------------------------------------------------------- heartbeats

    def _heartbeat(self, now_ms: int) -> None:
        view = self._view
        interval_ms = view.config.broker_heartbeat_interval_ms
        self._timers.set(_HEARTBEAT, now_ms + interval_ms, self._heartbeat)
        if self._heartbeat_under_way:
            return
        self._heartbeat_under_way = True
        request = m.BrokerHeartbeatRequest(
            broker_id=view.node_id,
            broker_epoch=view.epoch,
            current_metadata_offset=view.image.offset,
            want_fence=False,
            want_shut_down=self.state is LifecycleState.SHUTTING_DOWN,
        )
        self._peers.ask_controller(request, self._on_heartbeat, interval_ms, now_ms)

    def _on_heartbeat(self, response: m.BrokerHeartbeatResponse | None, now_ms: int) -> None:
        self._heartbeat_under_way = False
        if self.state is LifecycleState.STOPPED or response is None:
            return
        if response.error_code in (
            ErrorCode.STALE_BROKER_EPOCH,
            ErrorCode.BROKER_ID_NOT_REGISTERED,
        ):
            # Another life of this broker id has taken over, or this broker was unregistered.
            return
        if response.error_code != ErrorCode.NONE:
            return
        if self.state is LifecycleState.SHUTTING_DOWN:
            if response.should_shut_down:
                self._stop(now_ms)
            elif now_ms < self._hurries_until_ms:
                self._timers.set(_HEARTBEAT, now_ms + 1, self._heartbeat)
        elif not response.is_fenced and self.state is not LifecycleState.RUNNING:
            self.state = LifecycleState.RUNNING
            self._outbox.emit(AcceptClients())

    # ------------------------------------------------------------------------------ shutdown

    def shut_down(self, now_ms: int) -> None:
        """Have the controller move the leaders away, then stop.  Without
        controlled.shutdown.enable, stop at once: the session ends by itself."""
        view = self._view
        if (
            self.state is LifecycleState.STARTING
            or self.state is LifecycleState.STOPPED
            or not view.config.controlled_shutdown_enable
        ):
            self._stop(now_ms)
            return
        if self.state is not LifecycleState.SHUTTING_DOWN:
            self.state = LifecycleState.SHUTTING_DOWN
            self._hurries_until_ms = now_ms + SHUT_DOWN_SOON_MS
            self._outbox.note(ControlledShutdown(view.node_id))
            give_up_ms = now_ms + view.config.broker_session_timeout_ms
            self._timers.set(("lifecycle", "give up"), give_up_ms, self._stop)
            self._heartbeat(now_ms)

    def _stop(self, _now_ms: int) -> None:
        view = self._view
        if self.state is LifecycleState.STOPPED:
            return
        self.state = LifecycleState.STOPPED
        self._timers.cancel(_HEARTBEAT)
        self._maintenance.stop_cleanly()
        self._disk.broker_epoch = view.epoch
        self._disk.clean_shutdown = True
        self._outbox.emit(Stopped())
