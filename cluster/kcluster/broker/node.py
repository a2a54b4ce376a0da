"""A broker: `step` takes one event and returns what is to be done.

Owns: the dispatch of events to the parts of a broker, the outbox, the notes.  Never: decides about
a partition (partition/replica.py), a topic (the controller), or bytes (channel.py).
Kafka: BrokerServer, KafkaApis.handle.

    Request       -> the handler registered for its API        handlers/*.py
    PeerRequest   -> the same handlers: a follower fetches as a consumer does, by Fetch
    PeerResponse  -> whoever asked                              peers.py
    Tick          -> timers and parked requests that are due    timers.py, purgatory.py
    after each of them: replicas that moved wake who waits for them (replicas.py)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from kcluster.broker import handlers as _handlers  # registers every handler
from kcluster.broker.appends import append_internal
from kcluster.broker.coordinator import GroupCoordinator
from kcluster.broker.handlers.fetch import PendingFetch
from kcluster.broker.isr import IsrChanges
from kcluster.broker.lifecycle import Lifecycle
from kcluster.broker.peers import Answered, PeerCalls
from kcluster.broker.producer_ids import ProducerIds
from kcluster.broker.purgatory import Purgatory
from kcluster.broker.quotas import ClientQuotas
from kcluster.broker.registry import NO_RESPONSE, PARKED, SERVED_APIS
from kcluster.broker.replicas import Replicas
from kcluster.broker.sessions import FetchSessions
from kcluster.broker.telemetry import ClientTelemetry
from kcluster.broker.throttle import Throttles
from kcluster.broker.versions import LATEST
from kcluster.config.kafka.definitions import BrokerConfig
from kcluster.contract import (
    CONTROLLER_ID,
    ConnectionClosed,
    Effect,
    Event,
    Input,
    Note,
    NoteId,
    PeerDisconnected,
    PeerRequest,
    PeerResponse,
    Reply,
    Request,
    Rng,
    Send,
    Shutdown,
    Start,
    Tick,
)
from kcluster.metadata.image import MetadataImage
from kcluster.partition.disk import Disk
from kcluster.partition.replica import Replica
from kcluster.protocol import messages as m
from kcluster.protocol.apis import VERSIONS, ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.releases import Release
from kcluster.timers import NEVER_MS, Timers

PEER_API_OF: Final[dict[type, tuple[int, int]]] = {
    m.FetchRequest: (ApiKey.FETCH, VERSIONS[ApiKey.FETCH][1]),
    m.ListOffsetsRequest: (ApiKey.LIST_OFFSETS, VERSIONS[ApiKey.LIST_OFFSETS][1]),
    m.OffsetForLeaderEpochRequest: (
        ApiKey.OFFSET_FOR_LEADER_EPOCH, VERSIONS[ApiKey.OFFSET_FOR_LEADER_EPOCH][1],
    ),
}  # fmt: skip
"""What brokers ask of each other, in the latest version; served by the handlers that clients are
served by."""

NOTES_OF_A_RUN: Final = 1 << 32
"""Note ids go on counting over the lives of a broker: a cause must not name another life's note."""

assert _handlers.__all__, "importing them registers them"


class BrokerNode:
    """One life of one broker: a restart makes a new one on the same disk."""

    def __init__(
        self, broker_id: int, config: BrokerConfig, disk: Disk, host: str, port: int,
        rack: str | None, rng: Rng, cluster_id: str, release: Release = LATEST,
    ) -> None:  # fmt: skip
        self.node_id = broker_id
        self.release = release
        """Whose APIs, versions and ways it shows its clients."""
        self.static_config = config
        self.config = config
        self.disk = disk
        self.host = host
        self.port = port
        self.rack = rack
        self.rng = rng
        self.cluster_id = cluster_id
        self.epoch = -1
        """The broker epoch that the controller gave to this life; -1 before registration."""
        self.image = MetadataImage()
        self.timers = Timers()
        self.purgatory = Purgatory()
        self._outbox: list[Effect] = []
        self._notes_written = disk.runs * NOTES_OF_A_RUN
        disk.runs += 1
        self._now_ms = 0
        self.parked_fetches: dict[int, PendingFetch] = {}
        """By connection, which has one at most."""
        self.peers = PeerCalls(self)
        self.sessions = FetchSessions(self)
        self.replicas = Replicas(self)
        self.throttles = Throttles(self)
        self.isr_changes = IsrChanges(self)
        self.lifecycle = Lifecycle(self)
        self.producer_ids = ProducerIds(self)
        self.coordinator = GroupCoordinator(self)
        self.loggers: dict[str, str] = {}
        """Levels of loggers that were set in this life."""
        self.telemetry = ClientTelemetry()
        self.quotas: ClientQuotas | None = None
        """None while no client has a quota."""

    def __repr__(self) -> str:
        return f"<broker {self.node_id} epoch={self.epoch} metadata={self.image.offset}>"

    # ----------------------------------------------------------------- as a driver sees it

    @property
    def deadline_ms(self) -> int | None:
        """When the next timer or parked request is due."""
        timer_ms, parked_ms = self.timers.next_ms, self.purgatory.next_ms
        earliest_ms = parked_ms if parked_ms < timer_ms else timer_ms
        return earliest_ms if earliest_ms < NEVER_MS else None

    def step(self, now_ms: int, incoming: Input) -> Sequence[Effect]:
        """Take one input; see contract.py for what drivers guarantee."""
        self._now_ms = now_ms
        if isinstance(incoming, PeerRequest):
            self._on_peer_request(incoming, now_ms)
        elif isinstance(incoming, PeerResponse):
            self.peers.on_response(incoming, now_ms)
        elif isinstance(incoming, Request):
            if self.quotas is None or not self.quotas.holds(incoming, now_ms):
                self.serve(incoming, now_ms)
        else:
            _ON[type(incoming)](self, incoming, now_ms)
        if self.replicas.moved:
            self.replicas.wake(now_ms)
        effects, self._outbox = self._outbox, []
        return effects

    def serve(self, request: Request, now_ms: int) -> None:
        """Have a request's handler answer it, or park it."""
        body = SERVED_APIS[request.api_key].handler(self, request, now_ms)
        if body is PARKED:
            return
        self.reply(request, None if body is NO_RESPONSE else body)

    def _on_peer_request(self, question: PeerRequest, now_ms: int) -> None:
        api_key, api_version = PEER_API_OF[type(question.body)]
        request = Request(
            _peer_connection(question.source), api_key, api_version,
            question.request_id, None, question.body,
        )  # fmt: skip
        self.serve(request, now_ms)

    def _on_peer_disconnected(self, event: PeerDisconnected, now_ms: int) -> None:
        self.peers.on_disconnected(event.peer, now_ms)
        self._abandon_fetch(_peer_connection(event.peer))

    def _on_connection_closed(self, event: ConnectionClosed, _now_ms: int) -> None:
        self._abandon_fetch(event.connection_id)
        self.telemetry.connection_closed(event.connection_id)
        if self.quotas is not None:
            self.quotas.connection_closed(event.connection_id)

    def _abandon_fetch(self, connection_id: int) -> None:
        """As in Kafka the session outlives its connection: the client may come back on another."""
        fetch = self.parked_fetches.get(connection_id)
        if fetch is not None:
            fetch.abandon()

    def _on_tick(self, _event: Tick, now_ms: int) -> None:
        self.timers.run_due(now_ms)
        self.purgatory.run_due(now_ms)

    def _on_start(self, _event: Start, now_ms: int) -> None:
        self.replicas.start(now_ms)
        self.lifecycle.start(now_ms)

    def _on_shutdown(self, _event: Shutdown, now_ms: int) -> None:
        self.lifecycle.shut_down(now_ms)

    # --------------------------------------------------------- what handlers and parts use

    def emit(self, effect: Effect) -> None:
        """Add an effect of this step."""
        self._outbox.append(effect)

    def reply(self, request: Request, body: Any) -> None:
        """Answer a request, now or after it was parked; None: nothing is sent (acks=0)."""
        if request.connection_id < 0:
            peer = -1 - request.connection_id
            answer = PeerResponse(self.node_id, request.correlation_id, body)
            self._outbox.append(Send(peer, answer))
        else:
            if self.quotas is not None:
                body = self.quotas.throttle(request, body, self._now_ms)
            self._outbox.append(Reply(request, body))

    def note(self, event: Event, cause: NoteId | None = None) -> NoteId:
        """Note what happened; the id can be given as the cause of what follows."""
        self._notes_written += 1
        note_id = (self.node_id, self._notes_written)
        self._outbox.append(Note(note_id, self._now_ms, event, cause))
        return note_id

    def ask_controller(self, body: Any, on_answer: Answered, timeout_ms: int, now_ms: int) -> None:
        """Ask the controller; `on_answer(None, now_ms)` when no answer came in time."""
        timeout_ms = min(timeout_ms, self.config.controller_socket_timeout_ms)
        self.peers.ask(CONTROLLER_ID, body, on_answer, timeout_ms, now_ms)

    def leader_replica(self, topic: str, partition: int) -> Replica | ErrorCode:
        """The replica here that leads `topic`-`partition`, or why there is none."""
        replica = self.replicas.find(topic, partition)
        if isinstance(replica, ErrorCode) or replica.is_leader:
            return replica
        return ErrorCode.NOT_LEADER_OR_FOLLOWER

    def append_internal(
        self, topic: str, partition: int, records: bytearray,
        on_committed: Callable[[ErrorCode, int], None], now_ms: int,
    ) -> None:  # fmt: skip
        """Append as this broker itself, acks=all; `on_committed(error, now_ms)` once."""
        append_internal(self, topic, partition, records, on_committed, now_ms)


def _peer_connection(peer: int) -> int:
    """Peers have negative connection ids, so that handlers serve them as they serve clients."""
    return -1 - peer


_ON: Final[dict[type, Callable[[BrokerNode, Any, int], None]]] = {
    PeerDisconnected: BrokerNode._on_peer_disconnected,
    ConnectionClosed: BrokerNode._on_connection_closed,
    Tick: BrokerNode._on_tick,
    Start: BrokerNode._on_start,
    Shutdown: BrokerNode._on_shutdown,
}
