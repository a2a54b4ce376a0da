"""A broker as a driver sees it: `step` takes one input and returns its effects.

Owns: the dispatch of inputs to a broker's parts and handlers.  Never: decides about a partition
(partition/replica.py), a topic (the controller), or bytes (channel.py).
Kafka: BrokerServer, KafkaApis.handle.

    Request       -> the handler registered for its API        handlers/*.py
    PeerRequest   -> the same handlers: a follower fetches as a consumer does, by Fetch
    PeerResponse  -> the part that asked                        peers.py
    Tick          -> timers and parked requests that are due    timers.py, purgatory.py
    after each of them: requests that wait for replicas that moved are completed
                                                                replication/replicas.py

Handlers see the Broker (broker.py); this class adds inputs, and the parts without requests:
fetchers, metadata publisher, maintenance, lifecycle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kcluster.broker import handlers as _handlers  # registers every handler
from kcluster.broker.authorization import admit
from kcluster.broker.broker import Broker
from kcluster.broker.lifecycle import Lifecycle, LifecycleState
from kcluster.broker.ports import BrokerView, Outbox
from kcluster.broker.publisher import MetadataPublisher
from kcluster.broker.registry import NO_RESPONSE, PARKED, SERVED_APIS
from kcluster.broker.replication.fetchers import Fetchers
from kcluster.broker.replication.maintenance import Maintenance
from kcluster.broker.versions import LATEST
from kcluster.config.eras import TODAY, Era
from kcluster.config.kafka.definitions import BrokerConfig
from kcluster.contract import (
    ConnectionClosed,
    Effect,
    EndSessions,
    HandshakeFailed,
    Input,
    LoginFailed,
    PeerDisconnected,
    PeerRequest,
    PeerResponse,
    Request,
    Rng,
    Shutdown,
    Start,
    Tick,
)
from kcluster.partition.disk import Disk
from kcluster.principals import BrokerEndpoint
from kcluster.protocol.apis import APIS, PEER_APIS, VERSIONS, ApiKey
from kcluster.protocol.releases import Release
from kcluster.security.tokens import TokenSettings
from kcluster.timers import NEVER_MS

if TYPE_CHECKING:
    from kcluster.security.sasl.settings import SaslSettings

RUNTIME_APIS: Final = (
    ApiKey.DELETE_RECORDS,
    ApiKey.METADATA,
    ApiKey.OFFSET_COMMIT,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS,
    ApiKey.DELETE_GROUPS,
    ApiKey.LIST_GROUPS,
    ApiKey.JOIN_GROUP,
    ApiKey.LEAVE_GROUP,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.SHARE_GROUP_DESCRIBE,
    ApiKey.SHARE_GROUP_HEARTBEAT,
    ApiKey.STREAMS_GROUP_DESCRIBE,
    ApiKey.STREAMS_GROUP_HEARTBEAT,
)
"""The requests that the runtime sends to brokers, as an administrator (operations/)."""

_RUNTIME_CLIENT: Final = "kcluster"
"""The client id of the runtime's requests."""
_PEER_API_OF: Final = {
    f"{APIS[key].name}Request": (key, VERSIONS[key][1]) for key in PEER_APIS + RUNTIME_APIS
}
"""The API of a request between brokers, by the name of its class: classes are built on first
use."""
_PEER_API_OF_CLASS: Final[dict[type, tuple[ApiKey, int]]] = {}
"""The API of a request between brokers, by its class, once it was looked up."""

NOTES_OF_A_RUN: Final = 1 << 32
"""The distance between the note ids of two lives of a broker, so that ids never repeat."""

assert _handlers.__all__, "importing them registers them"


class BrokerNode(Broker):
    """One life of one broker: a restart makes a new one on the same disk."""

    def __init__(
        self,
        broker_id: int,
        config: BrokerConfig,
        disk: Disk,
        endpoints: tuple[BrokerEndpoint, ...],
        rack: str | None,
        rng: Rng,
        cluster_id: str,
        release: Release = LATEST,
        unused_configs: Mapping[str, str] = {},
        sasl: Mapping[str, SaslSettings] = {},
        tokens: TokenSettings | None = None,
        era: Era = TODAY,
    ) -> None:
        view = BrokerView(
            node_id=broker_id,
            endpoints=endpoints,
            rack=rack,
            cluster_id=cluster_id,
            release=release,
            static_config=config.in_release(release.number),
            unused_configs=unused_configs,
            tokens=tokens,
            era=era,
        )
        outbox = Outbox(broker_id, disk.runs * NOTES_OF_A_RUN)
        disk.runs += 1
        super().__init__(view, outbox, disk, rng, self.serve, sasl)
        timers, peers, replicas = self.timers, self.peers, self.replicas
        fetchers = Fetchers(view, timers, peers, outbox, replicas, self.throttles)
        self.publisher = MetadataPublisher(
            view,
            disk,
            outbox,
            replicas,
            fetchers,
            self.isr,
            self.throttles,
            self.quotas,
            (self.coordinator, self.transactions, self.share_state),
            self.share_partitions,
            self.access,
            self.logins,
        )
        self._maintenance = Maintenance(view, timers, replicas, fetchers, self.isr, disk)
        self.lifecycle = Lifecycle(
            view, disk, rng, timers, peers, outbox, self.publisher, self._maintenance
        )

    def __repr__(self) -> str:
        return f"<broker {self.node_id} epoch={self.epoch} metadata={self.image.offset}>"

    # --------------------------------------------------------- for readers outside the broker

    @property
    def state(self) -> LifecycleState:
        """The broker's state between its start and its end."""
        return self.lifecycle.state

    def advertise(self, endpoints: tuple[BrokerEndpoint, ...]) -> None:
        """Advertise these addresses from the next registration on."""
        self.view.endpoints = endpoints

    # ---------------------------------------------------------------------- as a driver sees it

    @property
    def deadline_ms(self) -> int | None:
        """The time at which the next timer or parked request is due."""
        timer_ms, parked_ms = self.timers.next_ms, self.purgatory.next_ms
        earliest_ms = parked_ms if parked_ms < timer_ms else timer_ms
        return earliest_ms if earliest_ms < NEVER_MS else None

    def step(self, now_ms: int, incoming: Input) -> Sequence[Effect]:
        """Take one input; see contract.py for what drivers guarantee."""
        outbox = self._outbox
        outbox.now_ms = now_ms
        if isinstance(incoming, PeerRequest):
            self._on_peer_request(incoming, now_ms)
        elif isinstance(incoming, PeerResponse):
            self.peers.on_response(incoming, now_ms)
        elif isinstance(incoming, Request):
            if self.logins is not None:
                self.logins.clients.seen(incoming)
            if not self.quotas.is_active or not self.quotas.holds(incoming, now_ms):
                self.serve(incoming, now_ms)
        else:
            _ON[type(incoming)](self, incoming, now_ms)
        if self.replicas.moved:
            self.replicas.wake(now_ms)
        effects, outbox.effects = outbox.effects, []
        return effects

    def serve(self, request: Request, now_ms: int) -> None:
        """Have a request's handler answer it, or park it."""
        if self.access is not None and request.connection_id >= 0:
            admitted = admit(self, request)
            if not isinstance(admitted, Request):
                self.reply(request, None if admitted is NO_RESPONSE else admitted)
                return
            request = admitted
        body = SERVED_APIS[request.api_key].handler(self, request, now_ms)
        if body is PARKED:
            return
        self.reply(request, None if body is NO_RESPONSE else body)

    def _on_peer_request(self, question: PeerRequest, now_ms: int) -> None:
        kind = type(question.body)
        known = _PEER_API_OF_CLASS.get(kind)
        if known is None:
            known = _PEER_API_OF_CLASS[kind] = _PEER_API_OF[kind.__name__]
        api_key, api_version = known
        request = Request(
            _peer_connection(question.source),
            api_key,
            api_version,
            question.request_id,
            _RUNTIME_CLIENT if question.source < 0 else None,
            question.body,
        )
        self.serve(request, now_ms)

    def _on_peer_disconnected(self, event: PeerDisconnected, now_ms: int) -> None:
        self.peers.on_disconnected(event.peer, now_ms)
        self._abandon_fetch(_peer_connection(event.peer))

    def _on_connection_closed(self, event: ConnectionClosed, now_ms: int) -> None:
        self._abandon_fetch(event.connection_id)
        share_fetch = self.parked_share_fetches.get(event.connection_id)
        if share_fetch is not None:
            share_fetch.abandon()
        session = self.share_sessions.of_connection(event.connection_id)
        if session is not None:
            self.end_share_session(session, now_ms)
            if not self.share_sessions.has_group(session.group_id):
                self.share_partitions.remove_group(session.group_id)
        self.telemetry.connection_closed(event.connection_id)
        if self.access is not None:
            self.access.connection_closed(event.connection_id)
        if self.quotas.is_active:
            self.quotas.connection_closed(event.connection_id)
        if self.logins is not None:
            self.logins.connection_closed(event.connection_id)

    def _on_login_failed(self, event: LoginFailed, now_ms: int) -> None:
        assert self.logins is not None, event
        self.logins.end(event, now_ms)

    def _on_handshake_failed(self, event: HandshakeFailed, now_ms: int) -> None:
        assert self.logins is not None, event
        self.logins.handshake_failed(event, now_ms)

    def _on_end_sessions(self, event: EndSessions, now_ms: int) -> None:
        assert self.logins is not None, event
        self.logins.end_sessions(event, now_ms)

    def _abandon_fetch(self, connection_id: int) -> None:
        """Abandon a fetch.  As in Kafka its session outlives the connection, because the client may
        return on another."""
        fetch = self.parked_fetches.get(connection_id)
        if fetch is not None:
            fetch.abandon()

    def _on_tick(self, _event: Tick, now_ms: int) -> None:
        # Operations that are not due are called too: they correct `next_ms`, which would otherwise
        # cause another Tick.
        self.timers.run_due(now_ms)
        self.purgatory.run_due(now_ms)

    def _on_start(self, _event: Start, now_ms: int) -> None:
        self._maintenance.start(now_ms)
        self.lifecycle.start(now_ms)

    def _on_shutdown(self, _event: Shutdown, now_ms: int) -> None:
        self.lifecycle.shut_down(now_ms)


def _peer_connection(peer: int) -> int:
    """Peers, and the runtime with its id -1, have negative connection ids, so that handlers serve
    them as they serve clients."""
    return -2 - peer


_ON: Final[dict[type, Callable[[BrokerNode, Any, int], None]]] = {
    PeerDisconnected: BrokerNode._on_peer_disconnected,
    ConnectionClosed: BrokerNode._on_connection_closed,
    LoginFailed: BrokerNode._on_login_failed,
    HandshakeFailed: BrokerNode._on_handshake_failed,
    EndSessions: BrokerNode._on_end_sessions,
    Tick: BrokerNode._on_tick,
    Start: BrokerNode._on_start,
    Shutdown: BrokerNode._on_shutdown,
}
