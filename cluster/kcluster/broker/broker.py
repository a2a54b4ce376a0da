"""A broker for its handlers: the parts that they work on, and their replies.

Owns: the wiring of these parts; replies, in the current step or later.  Never: takes an input or
calls a handler (node.py does both), or holds parts that no handler uses (fetchers, lifecycle, …).
Kafka: KafkaApis's fields (ReplicaManager, GroupCoordinator, MetadataCache, QuotaManagers, …).

The constructor shows the dependencies of the parts: each takes the broker's view, its outbox
(ports.py) and other parts.  Only the coordinators take the broker, as `CoordinatorBroker`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from kcluster.broker.access import access_of
from kcluster.broker.coordinator import GroupCoordinator
from kcluster.broker.coordinator.share_state.coordinator import ShareCoordinator
from kcluster.broker.coordinator.share_state.persister import NoPersister, SharePersister
from kcluster.broker.coordinator.share_state.remote_persister import RemotePersister
from kcluster.broker.coordinator.transactions import TransactionCoordinator
from kcluster.broker.peers import Answered, PeerCalls
from kcluster.broker.ports import BrokerView, Outbox
from kcluster.broker.producer_ids import ProducerIds
from kcluster.broker.purgatory import Purgatory
from kcluster.broker.quotas.client_quotas import ClientQuotas
from kcluster.broker.quotas.replication_throttle import Throttles
from kcluster.broker.replication.isr import IsrChanges
from kcluster.broker.replication.replicas import Replicas
from kcluster.broker.serving.appends import ACKS_ALL, InternalAppend
from kcluster.broker.serving.sessions import FetchSessions, ParkedFetch
from kcluster.broker.share.configs import ShareConfigs
from kcluster.broker.share.dead_letters import DeadLetters
from kcluster.broker.share.sessions import ParkedShareFetch, ShareSession, ShareSessions
from kcluster.broker.share.share_partitions import SharePartitions
from kcluster.broker.telemetry import ClientTelemetry
from kcluster.config.kafka.definitions import DEFAULT_PERSISTER, BrokerConfig
from kcluster.contract import Effect, Event, NoteId, PeerResponse, Reply, Request, Rng, Send
from kcluster.partition.disk import Disk
from kcluster.partition.replica import Replica
from kcluster.protocol.errors import ErrorCode
from kcluster.timers import Timers

if TYPE_CHECKING:
    from kcluster.broker.logins import Logins
    from kcluster.security.sasl.settings import SaslSettings


class Broker:
    """The parts of one life of one broker.  BrokerNode adds inputs.

    `serve(request, now_ms)` handles a request that quotas held back; `sasl`: the settings of its
    SASL listeners, by name.
    """

    def __init__(
        self,
        view: BrokerView,
        outbox: Outbox,
        disk: Disk,
        rng: Rng,
        serve: Callable[[Request, int], None],
        sasl: Mapping[str, SaslSettings],
    ) -> None:
        # CPython is fast at attributes of objects with at most 30 of them; each request reads
        # twenty.
        self.view = view
        self.node_id = view.node_id
        self.release = view.release
        self.image = view.image
        self.disk = disk
        self.rng = rng
        self.timers = timers = Timers()
        self.purgatory = Purgatory()
        self._outbox = outbox
        self.peers = PeerCalls(view, self.purgatory, outbox)
        self.access = access_of(view, outbox)
        """The authorizer; None: every client may do everything."""

        self.sessions = FetchSessions(view, rng)
        self.parked_fetches: dict[int, ParkedFetch] = {}
        """The parked fetch of each connection, at most one, by connection."""
        self.throttles = Throttles(view)
        self.quotas = ClientQuotas(view, timers, outbox, self.sessions, serve)

        self.replicas = Replicas(view.image, self.sessions.watchers)
        self.isr = IsrChanges(view, timers, self.peers, self.replicas)

        self.logins: Logins | None = None
        if sasl or self.access is not None or any(one.protocol for one in view.endpoints):
            from kcluster.broker.logins import Logins  # with OpenSSL, which few clusters need

            self.logins = Logins(sasl, view, timers, outbox, rng)

        self.producer_ids = ProducerIds(view, self.peers)
        self.telemetry = ClientTelemetry()
        self.loggers: dict[str, str] = {}
        """The levels of loggers that were set in this life."""
        self.coordinator = GroupCoordinator(self)
        self.transactions = TransactionCoordinator(self)
        self.share_state = ShareCoordinator(self)
        self.persister: SharePersister = NoPersister()
        if self.config.group_share_persister_class_name == DEFAULT_PERSISTER:
            self.persister = RemotePersister(self, self.share_state)
        self.share_sessions = ShareSessions(view)
        self.parked_share_fetches: dict[int, ParkedShareFetch] = {}
        """The parked share fetches by connection."""
        share_configs = ShareConfigs(self)
        self.share_partitions = SharePartitions(
            share_configs,
            timers,
            self.replicas,
            self.persister,
            DeadLetters(self, share_configs),
            outbox,
        )

    @property
    def config(self) -> BrokerConfig:
        """The configs in force now; they change while the broker runs."""
        return self.view.config

    @property
    def cluster_id(self) -> str:
        return self.view.cluster_id

    @property
    def epoch(self) -> int:
        """The broker epoch of this life; -1 before registration."""
        return self.view.epoch

    def emit(self, effect: Effect) -> None:
        """Add an effect to the current step."""
        self._outbox.emit(effect)

    def reply(self, request: Request, body: object) -> None:
        """Answer a request, now or after it was parked; with None nothing is sent (acks=0)."""
        if request.connection_id < 0:
            peer = -2 - request.connection_id
            answer = PeerResponse(self.node_id, request.correlation_id, body)
            self._outbox.effects.append(Send(peer, answer))
        else:
            if self.access is not None:
                request, body = self.access.complete(request, body)
            if self.quotas.is_active:
                body = self.quotas.throttle(request, body, self._outbox.now_ms)
            self._outbox.effects.append(Reply(request, body))

    def note(self, event: Event, cause: NoteId | None = None) -> NoteId:
        """Note an event; the returned id can be the cause of a later note."""
        return self._outbox.note(event, cause)

    def ask_controller(
        self, body: object, on_answer: Answered, timeout_ms: int, now_ms: int
    ) -> None:
        """Send a request to the controller; `on_answer(None, now_ms)` if no answer came in time."""
        self.peers.ask_controller(body, on_answer, timeout_ms, now_ms)

    def ask_broker(
        self, broker_id: int, body: object, on_answer: Answered, timeout_ms: int, now_ms: int
    ) -> None:
        """Send a request to a broker, maybe this one; `on_answer(None, now_ms)` if no answer came
        in time."""
        self.peers.ask(broker_id, body, on_answer, timeout_ms, now_ms)

    def end_share_session(self, session: ShareSession, now_ms: int) -> None:
        """End a share session, and release the records that its member holds."""
        if not self.share_sessions.close(session):
            return
        for named in session.partitions.values():
            leader = self.share_partitions.get(session.key_of(named))
            if leader is not None:
                leader.release(session.member_id, now_ms)

    def generate_producer_id(
        self, on_producer_id: Callable[[int | None, int], None], now_ms: int
    ) -> None:
        """Call `on_producer_id` with a new producer id, or with None if the controller gave
        none."""
        outbox = self._outbox
        self.producer_ids.generate(
            lambda producer_id: on_producer_id(producer_id, outbox.now_ms), now_ms
        )

    def leader_replica(self, topic: str, partition: int) -> Replica | ErrorCode:
        """The replica here that leads `topic`-`partition`, or the reason why there is none."""
        return self.replicas.find_leader(topic, partition)

    def delete_internal_records(self, replica: Replica, before: int) -> None:
        """Delete the records before an offset from a partition that this broker leads."""
        replica.advance_log_start(before)
        self.replicas.touch(replica)

    def append_internal(
        self,
        topic: str,
        partition: int,
        records: bytearray,
        on_committed: Callable[[ErrorCode, int], None],
        timeout_ms: int,
        now_ms: int,
    ) -> None:
        """Append a batch of this broker's own with acks=all, within `timeout_ms`;
        `on_committed(error, now_ms)` is called once."""
        replica = self.replicas.find_leader(topic, partition)
        if isinstance(replica, ErrorCode):
            on_committed(replica, now_ms)
            return
        appended = replica.append_as_leader(
            memoryview(records), ACKS_ALL, now_ms, from_client=False
        )
        if appended.error:
            on_committed(appended.error, now_ms)
            return
        self.await_committed(replica, appended.last_offset + 1, on_committed, timeout_ms, now_ms)

    def await_committed(
        self,
        replica: Replica,
        end_offset: int,
        on_committed: Callable[[ErrorCode, int], None],
        timeout_ms: int,
        now_ms: int,
    ) -> None:
        """Call back once: when every record before `end_offset` is committed, or when it is clear
        that none will be within `timeout_ms`."""
        self.replicas.touch(replica)
        delayed = InternalAppend(on_committed)
        delayed.wait_for(replica, end_offset, None)
        self.purgatory.park(delayed, timeout_ms, now_ms)
