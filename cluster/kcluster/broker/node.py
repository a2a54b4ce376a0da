"""A broker: `step` takes one event and returns its effects.

Owns: the parts of a broker, and the dispatch of events to them.  Never: decides about a partition
(partition/replica.py), a topic (the controller), or bytes (channel.py).
Kafka: BrokerServer, KafkaApis.handle.

    Request       -> the handler registered for its API        handlers/*.py
    PeerRequest   -> the same handlers: a follower fetches as a consumer does, by Fetch
    PeerResponse  -> the part that asked                        peers.py
    Tick          -> timers and parked requests that are due    timers.py, purgatory.py
    after each of them: requests that wait for replicas that moved are completed
                                                                replication/replicas.py

The constructor shows which part knows which: each takes the broker's view, its outbox (ports.py)
and other parts, and none takes the broker.  Handlers do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from kcluster.broker import handlers as _handlers  # registers every handler
from kcluster.broker.coordinator import GroupCoordinator
from kcluster.broker.lifecycle import Lifecycle
from kcluster.broker.peers import Answered, PeerCalls
from kcluster.broker.ports import BrokerView, Outbox
from kcluster.broker.producer_ids import ProducerIds
from kcluster.broker.publisher import MetadataPublisher
from kcluster.broker.purgatory import Purgatory
from kcluster.broker.quotas.client_quotas import ClientQuotas
from kcluster.broker.quotas.replication_throttle import Throttles
from kcluster.broker.registry import NO_RESPONSE, PARKED, SERVED_APIS
from kcluster.broker.replication.fetchers import Fetchers
from kcluster.broker.replication.isr import IsrChanges
from kcluster.broker.replication.maintenance import Maintenance
from kcluster.broker.replication.replicas import Replicas
from kcluster.broker.serving.appends import ACKS_ALL, InternalAppend
from kcluster.broker.serving.sessions import FetchSessions, ParkedFetch
from kcluster.broker.telemetry import ClientTelemetry
from kcluster.broker.versions import LATEST
from kcluster.config.kafka.definitions import BrokerConfig
from kcluster.contract import (
    ConnectionClosed,
    Effect,
    Event,
    Input,
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
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        VERSIONS[ApiKey.OFFSET_FOR_LEADER_EPOCH][1],
    ),
}
"""The requests between brokers, in their latest versions; the handlers for clients serve them."""

NOTES_OF_A_RUN: Final = 1 << 32
"""Each life of a broker numbers its notes from another multiple of this: ids never repeat."""

assert _handlers.__all__, "importing them registers them"


class BrokerNode:
    """One life of one broker: a restart makes a new one on the same disk."""

    def __init__(
        self,
        broker_id: int,
        config: BrokerConfig,
        disk: Disk,
        host: str,
        port: int,
        rack: str | None,
        rng: Rng,
        cluster_id: str,
        release: Release = LATEST,
    ) -> None:
        view = self.view = BrokerView(
            node_id=broker_id,
            host=host,
            port=port,
            rack=rack,
            cluster_id=cluster_id,
            release=release,
            static_config=config,
        )
        self.node_id = broker_id
        self.host = host
        self.port = port
        self.rack = rack
        self.cluster_id = cluster_id
        self.release = release
        self.image = view.image
        self.disk = disk
        self.rng = rng
        self.timers = timers = Timers()
        self.purgatory = Purgatory()
        self._outbox = outbox = Outbox(broker_id, disk.runs * NOTES_OF_A_RUN)
        disk.runs += 1
        self.peers = PeerCalls(view, self.purgatory, outbox)

        self.sessions = FetchSessions(view, rng)
        self.parked_fetches: dict[int, ParkedFetch] = {}
        """By connection, which has one at most."""
        self.throttles = Throttles(view)
        self.quotas = ClientQuotas(view, timers, outbox, self.sessions, self.serve)

        self.replicas = Replicas(view.image)
        self.isr = IsrChanges(view, timers, self.peers, self.replicas)
        fetchers = Fetchers(view, timers, self.peers, outbox, self.replicas, self.throttles)

        self.producer_ids = ProducerIds(view, self.peers)
        self.telemetry = ClientTelemetry()
        self.loggers: dict[str, str] = {}
        """Levels of loggers that were set in this life."""
        self.coordinator = GroupCoordinator(self)

        self.publisher = MetadataPublisher(
            view,
            disk,
            outbox,
            self.replicas,
            fetchers,
            self.isr,
            self.throttles,
            self.quotas,
            self.coordinator,
        )
        self._maintenance = Maintenance(view, timers, self.replicas, self.isr)
        self.lifecycle = Lifecycle(
            view, disk, rng, timers, self.peers, outbox, self.publisher, self._maintenance
        )

    def __repr__(self) -> str:
        return f"<broker {self.node_id} epoch={self.epoch} metadata={self.image.offset}>"

    # ---------------------------------------------------------------------- as a driver sees it

    @property
    def deadline_ms(self) -> int | None:
        """When the next timer or parked request is due."""
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
        body = SERVED_APIS[request.api_key].handler(self, request, now_ms)
        if body is PARKED:
            return
        self.reply(request, None if body is NO_RESPONSE else body)

    def _on_peer_request(self, question: PeerRequest, now_ms: int) -> None:
        api_key, api_version = PEER_API_OF[type(question.body)]
        request = Request(
            _peer_connection(question.source),
            api_key,
            api_version,
            question.request_id,
            None,
            question.body,
        )
        self.serve(request, now_ms)

    def _on_peer_disconnected(self, event: PeerDisconnected, now_ms: int) -> None:
        self.peers.on_disconnected(event.peer, now_ms)
        self._abandon_fetch(_peer_connection(event.peer))

    def _on_connection_closed(self, event: ConnectionClosed, _now_ms: int) -> None:
        self._abandon_fetch(event.connection_id)
        self.telemetry.connection_closed(event.connection_id)
        if self.quotas.is_active:
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
        self._maintenance.start(now_ms)
        self.lifecycle.start(now_ms)

    def _on_shutdown(self, _event: Shutdown, now_ms: int) -> None:
        self.lifecycle.shut_down(now_ms)

    # ---------------------------------------------------- what handlers and the coordinator use

    @property
    def config(self) -> BrokerConfig:
        """The configs in force now; they change while the broker runs."""
        return self.view.config

    @property
    def epoch(self) -> int:
        """The broker epoch of this life; -1 before registration."""
        return self.view.epoch

    def emit(self, effect: Effect) -> None:
        """Add an effect to the current step."""
        self._outbox.emit(effect)

    def reply(self, request: Request, body: Any) -> None:
        """Answer a request, now or after it was parked; None: nothing is sent (acks=0)."""
        if request.connection_id < 0:
            peer = -1 - request.connection_id
            answer = PeerResponse(self.node_id, request.correlation_id, body)
            self._outbox.effects.append(Send(peer, answer))
        else:
            if self.quotas.is_active:
                body = self.quotas.throttle(request, body, self._outbox.now_ms)
            self._outbox.effects.append(Reply(request, body))

    def note(self, event: Event, cause: NoteId | None = None) -> NoteId:
        """Note what happened; the id returned can be the cause of a later note."""
        return self._outbox.note(event, cause)

    def ask_controller(self, body: Any, on_answer: Answered, timeout_ms: int, now_ms: int) -> None:
        """Ask the controller; `on_answer(None, now_ms)` when no answer came in time."""
        self.peers.ask_controller(body, on_answer, timeout_ms, now_ms)

    def leader_replica(self, topic: str, partition: int) -> Replica | ErrorCode:
        """The replica here that leads `topic`-`partition`, or why there is none."""
        return self.replicas.find_leader(topic, partition)

    def append_internal(
        self,
        topic: str,
        partition: int,
        records: bytearray,
        on_committed: Callable[[ErrorCode, int], None],
        now_ms: int,
    ) -> None:
        """Append as this broker itself, acks=all, for offsets.commit.timeout.ms at most;
        `on_committed(error, now_ms)` is called once."""
        replica = self.replicas.find_leader(topic, partition)
        if isinstance(replica, ErrorCode):
            on_committed(replica, now_ms)
            return
        appended = replica.append_as_leader(memoryview(records), ACKS_ALL, now_ms)
        if appended.error:
            on_committed(appended.error, now_ms)
            return
        self.replicas.touch(replica)
        delayed = InternalAppend(on_committed)
        delayed.wait_for(replica, appended.last_offset + 1, None)
        self.purgatory.park(delayed, self.config.offsets_commit_timeout_ms, now_ms)


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
