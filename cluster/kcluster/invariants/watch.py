"""Checks the invariants of a running cluster after each step.

Owns: the times of the checks (after each step of a node), and the choice of replicas (the replicas
that the step may have changed).  Never: finds a violation (invariants.py does), changes anything in
the cluster.  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from kcluster.broker.coordinator.share_state.state import SharePartition
from kcluster.broker.handlers.data.list_offsets import CONSUMER_ID, LATEST, READ_COMMITTED
from kcluster.broker.lifecycle import LifecycleState
from kcluster.broker.node_view import BrokerNodeView
from kcluster.contract import (
    CONTROLLER_ID,
    ConnectionClosed,
    Input,
    Note,
    PeerRequest,
    PeerResponse,
    Reply,
    Request,
    Tick,
)
from kcluster.controller.node_view import ControllerNodeView
from kcluster.deaths import ProcessState
from kcluster.events.brokers import BrokerDown, ControllerElected, DiskReplaced
from kcluster.events.partitions import BecameFollower
from kcluster.events.share_groups import SharePartitionLoaded
from kcluster.invariants.administrator import Administrator
from kcluster.invariants.claims import VERIFICATION, VERIFIED, ProducerClaims
from kcluster.invariants.concerned import named_by_peer, named_replica, replica_of, written_by
from kcluster.invariants.coordinators import knows_all, shard_of
from kcluster.invariants.decisions import proposals_in
from kcluster.invariants.expected_errors import unexpected_error
from kcluster.invariants.fetch_answers import misdirected, misfetched
from kcluster.invariants.fetch_sessions import AskedPositions
from kcluster.invariants.group_facts import OffsetGiven, UnstableRead
from kcluster.invariants.heartbeats import unfenced_by
from kcluster.invariants.invariants import Invariants
from kcluster.invariants.known import config_in_force, lock_ms, max_deliveries, topic_name
from kcluster.invariants.livelock import StepsAtOnce
from kcluster.invariants.markers import Leading
from kcluster.invariants.observed import NO_EPOCH, ObservedPartition
from kcluster.invariants.offset_answers import OFFSET_APIS
from kcluster.invariants.overdue import OVERDUE_EVERY_MS, OverdueTransactions
from kcluster.invariants.patterns import PatternTopics
from kcluster.invariants.promises import BrokenPromise, forget_oldest
from kcluster.invariants.refused import OF_PRODUCERS, error_in, transactional_id_of
from kcluster.invariants.rounds import Rounds
from kcluster.invariants.rules import refused_in_sync
from kcluster.invariants.share_assignments import IdleMembers
from kcluster.invariants.share_locks import LOCK_SLACK_MS, OverdueLocks
from kcluster.invariants.shares import SHARE_APIS, Led
from kcluster.invariants.stalls import LOOK_EVERY_MS, Stalls
from kcluster.invariants.throttled import MutedConnections
from kcluster.invariants.told import OF_MEMBERS, asked_of
from kcluster.metadata.placement import coordinator_partition
from kcluster.metadata.records import GROUP_RESOURCE, BrokerRegistration
from kcluster.partition.disk import Disk
from kcluster.partition.replica import Replica
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.names import (
    GROUP_METADATA_TOPIC,
    INTERNAL_TOPICS,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)
from kcluster.runtime.dispatch import RUNTIME_ID, Dispatcher, number_of

_PRODUCE: Final = int(ApiKey.PRODUCE)
_FETCH: Final = int(ApiKey.FETCH)
_LIST_OFFSETS: Final = int(ApiKey.LIST_OFFSETS)
_SHARE_FETCH: Final = int(ApiKey.SHARE_FETCH)
_OF_DATA: Final = (_FETCH, _PRODUCE)
_OF_COORDINATORS: Final = INTERNAL_TOPICS
_READ_ONLY: Final = frozenset(
    map(int, (ApiKey.FETCH, ApiKey.METADATA, ApiKey.API_VERSIONS, ApiKey.HEARTBEAT))
)
"""Clients' requests that move no replica."""
_Request: Final = Request
_PeerRequest: Final = PeerRequest
_PeerResponse: Final = PeerResponse
_HeartbeatRequest: Final = m.BrokerHeartbeatRequest
_HeartbeatResponse: Final = m.BrokerHeartbeatResponse
_FetchRequest: Final = m.FetchRequest
_StateWrite: Final = m.WriteShareGroupStateRequest
_MarkersRequest: Final = m.WriteTxnMarkersRequest
_ACKS_ALL: Final = -1
_TOO_FEW: Final = ErrorCode.NOT_ENOUGH_REPLICAS
_UNCLEAN_ENABLE: Final = "unclean.leader.election.enable"
_MIN_ISR: Final = "min.insync.replicas"
_NONE: Final[tuple[Replica, ...]] = ()


class Watch:
    """Checks each step of each node, just before the next step runs.  The caller checks the last
    step by calling `check_last_step`."""

    def __init__(self, dispatcher: Dispatcher, invariants: Invariants | None = None) -> None:
        self.invariants = invariants or Invariants()
        self._dispatcher = dispatcher
        self._processes = dispatcher.processes
        self._broker: BrokerNodeView | None = None
        """The broker that took the last step; it may have died since."""
        self._controller: ControllerNodeView | None = None
        """The controller, if it took the last step."""
        self._life = 0
        self._stepped_ms = 0
        self._event: Input | None = None
        """The input of the last step."""
        self._offsets: dict[int, int] = {}
        """The offset up to which each node has applied the metadata log."""
        self._answered: list[Reply] = []
        self._asked_positions = AskedPositions(self.invariants.partition)
        self._told: list[Reply] = []
        """The answers of this step to producers about their transactions, and to members."""
        self._marked: list[Reply] = []
        """The answers of this step to administrators who have sent markers."""
        self._given: list[tuple[Replica, m.OffsetFetchResponse, list[UnstableRead]]] = []
        """The answers of this step with offsets that an open transaction could change before it."""
        self._unknown: list[tuple[Replica, OffsetGiven]] = []
        """The offsets in this step's answers that were never committed, or were deleted."""
        self._committed_reads: dict[Request, int] = {}
        """The unanswered requests of members whose share group has read_committed, with their
        broker."""
        self._held: dict[SharePartition, BrokenPromise] = {}
        """The share partitions that this step must not drop: it ends only another member's
        connection."""
        self._loaded: list[SharePartitionLoaded] = []
        """The share partitions that were loaded in this step."""
        self._locks = OverdueLocks(dispatcher.processes, self.invariants.shares.reconfigured)
        self._idle = IdleMembers(dispatcher.processes)
        self._patterns = PatternTopics(dispatcher.processes)
        self._stalls = Stalls(dispatcher)
        self._stalls_at_ms = LOOK_EVERY_MS
        """The time of the next look for stalls."""
        self._administrator = Administrator(dispatcher, self.invariants)
        self._muted = MutedConnections()
        self._claims = ProducerClaims(self.invariants.coordinators.decisions)
        self._rounds = Rounds(dispatcher, self.invariants)
        self._overdue = OverdueTransactions(dispatcher)
        self._look_at_ms = OVERDUE_EVERY_MS
        """The time of the next look at the whole cluster."""
        self.steps_at_once: StepsAtOnce | None = None
        """The guard of virtual time; None: there is none."""
        self.invariants.memberships.tenures.name_of = partial(topic_name, dispatcher.processes)
        self._tap = dispatcher.tap
        self.invariants.shares.lock_ms = partial(lock_ms, dispatcher.processes)
        self.invariants.shares.answers.max_deliveries = partial(
            max_deliveries, dispatcher.processes, self.invariants.shares.reconfigured
        )
        self._attach()

    def _attach(self) -> None:
        """Begin to watch the dispatcher."""
        dispatcher = self._dispatcher
        dispatcher.tap = self._before_step
        dispatcher.note_sinks = (*dispatcher.note_sinks, self._on_note)
        dispatcher.reply_sinks = (*dispatcher.reply_sinks, self._on_reply)
        dispatcher.withheld_sinks = (*dispatcher.withheld_sinks, self._on_withheld)
        dispatcher.close_sinks = (*dispatcher.close_sinks, self._on_closed)

    def check_last_step(self) -> None:
        """Check the node that ran last."""
        broker, self._broker = self._broker, None
        controller, self._controller = self._controller, None
        if broker is not None:
            self._check_broker(broker, self._event)
        elif controller is not None:
            self._check_controller(controller, self._event)

    def _check_broker(self, node: BrokerNodeView, event: Input | None) -> None:
        invariants, node_id = self.invariants, node.node_id
        request = None
        kind = type(event)
        if kind is _PeerResponse or kind is _PeerRequest:
            body = event.body  # type: ignore[union-attr]  # messages of peers have one
            concerned = named_by_peer(node.replicas, body)
        elif kind is _Request:
            assert isinstance(event, Request)
            if event.api_key == _PRODUCE:
                request = event
                concerned = written_by(node.replicas, event.body.topic_data)
            else:
                concerned = _NONE if event.api_key in _READ_ONLY else node.replicas.all()
        else:
            concerned = node.replicas.all()
        offset = node.image.offset
        if self._offsets.get(node_id) != offset:
            self._offsets[node_id] = offset
            invariants.observe_offset(self._stepped_ms, node_id, self._life, offset)
        if concerned:
            if kind is _PeerRequest and type(body) is _FetchRequest:
                follower = body.replica_state.replica_id
                self._rounds.on_fetch(concerned, follower, self._stepped_ms)
            invariants.producer_expiration_ms = node.config.producer_id_expiration_ms
            invariants.is_by_clock = kind is Tick
            invariants.appended.verifies = node.config.transaction_partition_verification_enable
            invariants.observe(self._stepped_ms, node_id, self._life, concerned, request)
            self._check_coordinators(node, concerned)
            if kind is Tick:
                self._rounds.on_tick(node, self._stepped_ms)
        if self._answered:
            self._check_answers(node)
        for read, kept_back in self._asked_positions.look(node, self._stepped_ms):
            invariants.report_replica(self._stepped_ms, read, "records-kept-back", kept_back)
        if self._told:
            told, self._told = self._told, []
            for reply in told:
                replica = self._home(node_id, *asked_of(reply.request))
                if replica is not None:
                    invariants.check_told(self._stepped_ms, replica, node_id, reply)
        if self._marked:
            marked, self._marked = self._marked, []
            for reply in marked:
                invariants.check_markers(node_id, reply, self._stepped_ms)
        if self._held or self._loaded:
            self._check_share_leaders(node)
        if self._unknown or self._given:
            unknown, self._unknown, given, self._given = self._unknown, [], self._given, []
            for replica, fact in unknown:
                invariants.check_offsets(self._stepped_ms, replica, [fact])
            for replica, body, unstable in given:
                invariants.check_unstable(self._stepped_ms, replica, body, unstable)

    def _check_share_leaders(self, node: BrokerNodeView) -> None:
        """Check the share partitions that the last step has loaded, or has dropped."""
        now_ms, invariants = self._stepped_ms, self.invariants
        held, self._held = self._held, {}
        for key, broken in held.items():
            if node.share_partitions.get(key) is None:
                invariants.report_promise(now_ms, broken, node.node_id)
        loaded, self._loaded = self._loaded, []
        for each in loaded:
            if (led := replica_of(node.replicas, each.topic, each.partition)) is not None:
                invariants.check_share_start(now_ms, led, each.start_offset)

    def _check_coordinators(self, node: BrokerNodeView, concerned: Sequence[Replica]) -> None:
        """Check what the coordinators hold whose logs the last step may have changed."""
        now_ms, invariants = self._stepped_ms, self.invariants
        is_asked = isinstance(self._event, Request)
        for replica in concerned:
            if replica.topic in _OF_COORDINATORS and replica.is_leader:
                shard = shard_of(node, replica)
                if shard is not None:
                    invariants.check_coordinator(now_ms, replica, shard, is_asked)

    def _check_answers(self, node: BrokerNodeView) -> None:
        answered, self._answered = self._answered, []
        for reply in answered:
            if reply.request.api_key != _PRODUCE:
                self._check_reads(node, reply.body)
                if reply.request.api_key == _FETCH and not reply.is_of_rule:
                    for name, fact in misfetched(reply.request.body, reply.body):
                        self.invariants.report_broker(self._stepped_ms, node.node_id, name, fact)
                    if reply.request is self._event:
                        # A delayed answer may have been decided before the broker began to lead.
                        find = partial(named_replica, node.replicas)
                        for replica, name, fact in misdirected(reply.body, find):
                            self.invariants.report_replica(self._stepped_ms, replica, name, fact)
            elif reply.request.body.acks == _ACKS_ALL:
                self._check_acks(node, reply)

    def _check_reads(self, node: BrokerNodeView, body: Any) -> None:
        now_ms, invariants = self._stepped_ms, self.invariants
        for topic in body.responses:
            for data in topic.partitions:
                # Records in old formats are raw bytes.
                if type(data.records) is not list or not data.records:
                    continue
                name = getattr(topic, "topic", "")  # a share fetch names topics by id only
                replica = named_replica(node.replicas, topic.topic_id, name, data.partition_index)
                if replica is not None:
                    invariants.check_read(now_ms, replica, data)

    def _check_acks(self, node: BrokerNodeView, reply: Reply) -> None:
        now_ms, invariants = self._stepped_ms, self.invariants
        # A transactional batch gets this error, too, when it could not be verified (KIP-890).
        is_new = reply.request is self._event and reply.request.body.transactional_id is None
        for topic in reply.body.responses:
            for data in topic.partition_responses:
                if data.error_code and not (is_new and data.error_code == _TOO_FEW):
                    continue
                replica = named_replica(node.replicas, topic.topic_id, topic.name, data.index)
                if replica is None:
                    continue
                if not data.error_code:
                    invariants.check_ack(now_ms, replica, data)
                for name, fact in refused_in_sync(replica, data) if data.error_code else ():
                    invariants.report_replica(now_ms, replica, name, fact)

    def _check_controller(self, node: ControllerNodeView, event: Input | None) -> None:
        image = node.image
        taken = self.invariants.heartbeats.taken(node.sessions)
        if taken is not None:
            self.invariants.report_broker(self._stepped_ms, taken[0], "stale-heartbeat", taken[1])
        if image.offset == self._offsets.get(node.node_id):
            return
        self._offsets[node.node_id] = image.offset
        now_ms, invariants = self._stepped_ms, self.invariants
        invariants.observe_offset(now_ms, node.node_id, self._life, image.offset)
        timeout_ms = node.config.broker_session_timeout_ms
        for early, fact in invariants.heartbeats.registered(image.brokers, timeout_ms, now_ms):
            invariants.report_broker(now_ms, early, "registered-early", fact)
        for broker in image.brokers.values():
            invariants.observe_broker(now_ms, broker, self._applied_offset(broker))
        proposals = {}
        if isinstance(event, PeerRequest) and isinstance(event.body, m.AlterPartitionRequest):
            proposals = dict(proposals_in(event.body))
        for topic in image.topics.values():
            own = config_in_force(image, topic.name, _MIN_ISR)
            min_isr = node.config.min_insync_replicas if own is None else int(own)
            for partition in topic.partitions:
                key = (partition.topic_id, partition.partition)
                invariants.observe_metadata(
                    now_ms, topic.name, partition, image.brokers, proposals.get(key), min_isr
                )

    def _applied_offset(self, broker: BrokerRegistration) -> int | None:
        """The metadata offset of a broker's registered process; None if a different process
        runs."""
        process = self._processes.get(broker.broker_id)
        node = None if process is None else process.last_broker
        return node.image.offset if node is not None and node.epoch == broker.epoch else None

    def _before_step(self, now_us: int, node_id: int, event: Input) -> None:
        broker = self._broker
        if broker is not None:
            self._check_broker(broker, self._event)
        elif self._controller is not None:
            self._check_controller(self._controller, self._event)
        if self._tap is not None:
            self._tap(now_us, node_id, event)
        process = self._processes[node_id]
        self._life = process.life
        self._broker = process.broker
        self._controller = process.controller if self._broker is None else None
        self._event = event
        self._stepped_ms = now_ms = now_us // 1000
        if self.steps_at_once is not None:
            self.steps_at_once.count(now_ms, node_id, event)
        if now_ms >= self._look_at_ms:
            self._look_at_ms = now_ms + OVERDUE_EVERY_MS
            self._look_around(now_ms)
        if isinstance(event, Request):
            self._on_request(node_id, event, now_ms)
        elif isinstance(event, ConnectionClosed):
            self._on_closed(event.connection_id, now_ms)
            self._held = self._held_by_others(node_id, now_ms)
        elif isinstance(event, PeerRequest):
            self._on_peer_request(node_id, event, now_ms)
        elif isinstance(event, PeerResponse):
            self._on_peer_response(node_id, event, now_ms)

    def _on_peer_request(self, node_id: int, request: PeerRequest, now_ms: int) -> None:
        """Record a request between nodes just before the receiving node handles it."""
        invariants, kind = self.invariants, type(request.body)
        if kind is _HeartbeatRequest:
            if self._controller is not None:
                image, sessions = self._controller.image, self._controller.sessions
                invariants.heartbeats.on_heartbeat(
                    request.request_id, request.body, image, sessions, now_ms
                )
        elif kind is _MarkersRequest:
            invariants.markers.on_peer_request(request, self._leading(node_id))
        elif kind is VERIFICATION:
            ids = [one.transactional_id for one in request.body.transactions]
            if ids and all(self._is_newest_for(node_id, one) for one in ids):
                self._claims.on_peer_request(request)
        elif request.source == RUNTIME_ID:
            self._administrator.on_request(node_id, request, self._leader_epoch, now_ms)
        else:
            invariants.shares.on_peer_request(node_id, request, self._is_newest)
            if kind is _StateWrite:
                for broken in invariants.shares.overcounted(request, self._led_by, now_ms):
                    invariants.report_promise(now_ms, broken, request.source)

    def _on_peer_response(self, node_id: int, response: PeerResponse, now_ms: int) -> None:
        """Check an answer between nodes when it arrives.  The id in it lacks the node's life, which
        is part of the recorded id."""
        number = number_of(self._life, response.request_id)
        if type(response.body) is _HeartbeatResponse:
            held_back = self.invariants.heartbeats.on_answer(node_id, number, response)
            if held_back is not None:
                self.invariants.report_broker(now_ms, node_id, "shutdown-held-back", held_back)
            if response.body.should_shut_down:
                self._check_fenced(node_id, now_ms)
        elif type(response.body) is VERIFIED:
            for broken in self._claims.on_peer_response(node_id, number, response):
                self.invariants.report_promise(now_ms, broken, response.source)
        else:
            self.invariants.check_peer_response(node_id, number, response, now_ms)

    def _check_fenced(self, node_id: int, now_ms: int) -> None:
        """Check that the controller has fenced a broker that it has told to shut down."""
        controller, node = self._processes[CONTROLLER_ID], self._processes[node_id].broker
        if controller.last_controller is not None and node is not None:
            unfenced = unfenced_by(controller.last_controller.image, node_id, node.epoch)
            if unfenced is not None:
                self.invariants.report_broker(now_ms, node_id, "stopped-unfenced", unfenced)

    def _on_request(self, node_id: int, request: Request, now_ms: int) -> None:
        served_ms = self._muted.on_request(request, now_ms)
        self.invariants.replies.on_request(node_id, request, served_ms)
        self.invariants.promises.on_request(request, now_ms)
        self._patterns.on_request(node_id, request, now_ms)
        if request.api_key == ApiKey.WRITE_TXN_MARKERS:
            for marker in request.body.markers:
                self.invariants.appended.on_forced(marker.producer_id)
            self.invariants.markers.on_request(request, self._leading(node_id))
        elif request.api_key == ApiKey.DELETE_RECORDS:
            self.invariants.deleted_by_hand.update({one.name: None for one in request.body.topics})
        elif request.api_key in OF_PRODUCERS and self._is_newest_for(
            node_id, transactional_id_of(request) or ""
        ):
            self._claims.on_request(node_id, request)
        if request.api_key in OFFSET_APIS:
            self.invariants.offset_answers.on_request(request)
        self.invariants.memberships.on_request(node_id, request, self._leader_epoch, now_ms)
        if served_ms > now_ms:
            self.invariants.memberships.removals.on_decided(request)
        if request.api_key in SHARE_APIS:
            self.invariants.shares.on_request(node_id, request, self._led_by, now_ms)
            if request.api_key == _SHARE_FETCH and self._is_committed(node_id, request):
                self._committed_reads[request] = node_id
                forget_oldest(self._committed_reads)

    def _on_note(self, note: Note) -> None:
        self.invariants.on_note(note, self._unclean_enabled)
        event = note.event
        if isinstance(event, ControllerElected):
            self.invariants.heartbeats.on_new_controller(note.at_ms)
        elif isinstance(event, BrokerDown | DiskReplaced):
            self.check_last_step()  # before its disk changes
            if isinstance(event, BrokerDown):
                self.invariants.on_death(event.broker, note.at_ms)
                self.invariants.memberships.removals.on_death(event.broker)
            if event.loses_records:
                node = self._processes[event.broker].last_broker
                epoch = NO_EPOCH if node is None else node.epoch
                self.invariants.on_loss(event.broker, epoch)
        elif isinstance(event, BecameFollower) and event.topic == GROUP_METADATA_TOPIC:
            self._on_resigned(event.broker, event.partition, note.at_ms)
        elif isinstance(event, SharePartitionLoaded):
            self._loaded.append(event)

    def _on_resigned(self, broker: int, partition: int, now_ms: int) -> None:
        """Record that a broker no longer leads a partition of groups."""
        node = self._processes[broker].last_broker
        topic = None if node is None else node.image.topics.get(GROUP_METADATA_TOPIC)
        if topic is not None:
            count = len(topic.partitions)
            self.invariants.replies.on_resigned(
                broker, lambda group: coordinator_partition(group, count) == partition, now_ms
            )

    def _look_around(self, now_ms: int) -> None:
        """Run the periodic checks between two steps: stalls, overdue transactions and locks, topics
        that groups lack, idle members of share groups, silent brokers, and all of rounds.py."""
        slack_ms = max(LOCK_SLACK_MS, self.invariants.memberships.slack_ms)
        overdue = (*self._locks.look(now_ms, slack_ms), *self._patterns.look(now_ms))
        for broker, broken in (*overdue, *self._idle.look()):
            self.invariants.report_promise(now_ms, broken, broker)
        process = self._processes[CONTROLLER_ID]
        controller = process.last_controller
        if controller is not None:
            image = controller.image if process.state is ProcessState.UP else None
            timeout_ms = controller.config.broker_session_timeout_ms
            for broker, fact in self.invariants.heartbeats.look(now_ms, image, timeout_ms):
                self.invariants.report_broker(now_ms, broker, "silent-unfenced", fact)
            self._rounds.look(now_ms)
            self._overdue.look(now_ms, controller.image)
            if now_ms >= self._stalls_at_ms:
                self._stalls_at_ms = now_ms + LOOK_EVERY_MS
                self._stalls.look(now_ms, controller.image)

    def check_stalls(self, limit_ms: int) -> None:
        """Report each high watermark that stood still for longer; called at the end of the run."""
        self.invariants.report_stalls(self._stepped_ms, self._stalls.longer_than(limit_ms))

    def check_logs(self) -> None:
        """Look at each node a last time, and report logs of partitions that a broker does not host.
        A broker removes such logs of an earlier life when it has caught up with the metadata."""
        self._rounds.look(self._stepped_ms)
        for process in self._processes.values():
            node, disk = process.broker, process.disk
            if isinstance(disk, Disk) and node is not None and node.state is LifecycleState.RUNNING:
                left = [key for key in disk.logs if node.replicas.get(*key) is None]
                self.invariants.report_logs_left(self._stepped_ms, node.node_id, left)

    def check_overdue(self, limit_ms: int) -> None:
        """Report each transaction that was overdue for longer; called at the end of the run."""
        self.invariants.report_overdue(self._overdue.longer_than(limit_ms))

    def _unclean_enabled(self, topic: str) -> bool:
        """The value of unclean.leader.election.enable in force for a topic: the topic's own, else
        the cluster's default, else the controller's."""
        node = self._processes[CONTROLLER_ID].last_controller
        assert node is not None, "who elects a leader has started"
        value = config_in_force(node.image, topic, _UNCLEAN_ENABLE)
        if value is not None:
            return value.strip().lower() == "true"
        return node.config.unclean_leader_election_enable

    def _on_withheld(self, reply: Reply) -> None:
        self.invariants.replies.on_withheld(reply.request)
        if reply.request.api_key == _FETCH:
            self._asked_positions.on_decided(reply, is_sent=False)
        self._check_decided(reply, self._dispatcher.now_us // 1000)

    def _check_decided(self, reply: Reply, now_ms: int) -> None:
        if reply.request.api_key in SHARE_APIS:
            self._check_shared_reads(reply, now_ms)
            self.invariants.check_shares(reply, self._led_by, now_ms)
            return
        if reply.request.api_key in OF_PRODUCERS:
            for broker, broken in self._claims.on_decided(reply):
                self.invariants.report_promise(now_ms, broken, broker)
            return
        if reply.request.api_key in OFFSET_APIS:
            self.invariants.offset_answers.on_decided(reply)
        self.invariants.check_memberships(reply, now_ms)

    def _on_closed(self, connection_id: int, now_ms: int) -> None:
        self.invariants.replies.on_end(now_ms, connection=connection_id)
        self.invariants.promises.on_closed(connection_id)
        self._muted.on_closed(connection_id)
        self.invariants.shares.on_closed(connection_id)

    def _on_reply(self, node_id: int, reply: Reply, now_ms: int) -> None:
        request = reply.request
        self.invariants.on_reply(node_id, request, now_ms)
        if not reply.is_of_rule:
            unexpected = unexpected_error(reply)
            if unexpected is not None:
                self.invariants.report_broker(now_ms, node_id, "error-unexpected", unexpected)
            muted = self._muted.on_reply(reply, now_ms)
            if muted is not None:
                self.invariants.report_broker(now_ms, node_id, "throttle-ignored", muted)
        if request.api_key in _OF_DATA:
            if reply.body is not None:
                self._answered.append(reply)
                if request.api_key == _FETCH:
                    self._asked_positions.on_decided(reply, is_sent=True)
        elif not reply.is_of_rule:
            if request.api_key == _SHARE_FETCH and reply.body is not None:
                self._answered.append(reply)
            self._check_decided(reply, now_ms)
            self.invariants.check_promises(node_id, reply, self._leader_epoch, now_ms)
            if request.api_key == _LIST_OFFSETS:
                self._check_listed(node_id, reply, now_ms)
            elif request.api_key in OF_PRODUCERS:
                # A refusal is decided in the step that sends it, unless a fault rule delays it.
                if reply.body and (request is self._event or not error_in(request, reply.body)):
                    self._told.append(reply)
            elif request.api_key in OF_MEMBERS:
                self._told.append(reply)
            elif request.api_key == ApiKey.WRITE_TXN_MARKERS:
                self._marked.append(reply)
            elif request.api_key == ApiKey.DELETE_RECORDS and reply.body is not None:
                for topic in reply.body.topics:
                    for row in topic.partitions:
                        if not row.error_code:
                            place = (topic.name, row.partition_index)
                            self.invariants.on_deleted(now_ms, *place, row.low_watermark)
            elif request.api_key == ApiKey.OFFSET_FETCH:
                self._note_offsets(node_id, reply)

    def _check_listed(self, broker: int, reply: Reply, now_ms: int) -> None:
        """Check the latest offsets that a consumer gets against what was committed before this
        step."""
        request = reply.request
        node, asked = self._processes[broker].last_broker, request.body
        if (
            node is None
            or request is not self._event  # a fault rule has delayed it
            or request.api_version < 1
            or asked.replica_id != CONSUMER_ID
            or asked.isolation_level == READ_COMMITTED
        ):
            return
        wanted = {
            (topic.name, one.partition_index)
            for topic in asked.topics
            for one in topic.partitions
            if one.timestamp == LATEST
        }
        for topic in reply.body.topics if wanted and reply.body is not None else ():
            for row in topic.partitions:
                if not row.error_code and (topic.name, row.partition_index) in wanted:
                    replica = replica_of(node.replicas, topic.name, row.partition_index)
                    if replica is not None:
                        self.invariants.check_listed(now_ms, replica, row.offset)

    def _note_offsets(self, node_id: int, reply: Reply) -> None:
        body: m.OffsetFetchResponse = reply.body
        for fact in self.invariants.offset_answers.on_fetched(reply):
            if (replica := self._home(node_id, fact.group)) is not None:
                self._unknown.append((replica, fact))
        for group in body.groups if reply.request.body.require_stable else ():
            replica = self._home(node_id, group.group_id)
            if replica is not None:
                unstable = self.invariants.unstable_offsets(replica, body)
                if unstable:
                    self._given.append((replica, body, unstable))

    def _leader_epoch(self, broker: int, group: str) -> int | None:
        """The leader epoch in which a broker coordinates a group; None if it does not."""
        replica = self._home(broker, group)
        return None if replica is None else replica.leader_epoch

    def _home(self, broker: int, key: str, of: str = GROUP_METADATA_TOPIC) -> Replica | None:
        """The replica of the coordinator's partition for a group (or for another key, in topic
        `of`), if the broker leads it."""
        node = self._processes[broker].last_broker
        topic = None if node is None else node.image.topics.get(of)
        if node is None or topic is None:
            return None
        partition = coordinator_partition(key, len(topic.partitions))
        replica = node.replicas.get(topic.topic_id, partition)
        return replica if replica is not None and replica.is_leader else None

    def _is_newest_for(self, broker: int, transactional_id: str) -> bool:
        """Whether a broker is the newest coordinator of a transactional id, and knows all that is
        committed."""
        replica = self._home(broker, transactional_id, TRANSACTION_STATE_TOPIC)
        if replica is None:
            return False
        home = (replica.topic_id, replica.partition)
        return knows_all(self.invariants.partition(TRANSACTION_STATE_TOPIC, home), replica)

    def _leading(self, broker: int) -> Leading:
        """A function that finds the partitions that a broker leads."""
        node = self._processes[broker].last_broker

        def leading(topic: str, index: int) -> tuple[Replica, ObservedPartition] | None:
            replica = None if node is None else replica_of(node.replicas, topic, index)
            if replica is None or not replica.is_leader:
                return None
            return replica, self.invariants.partition(topic, replica.key)

        return leading

    def _is_newest(self, broker: int, group: str, topic_id: bytes, partition: int) -> bool:
        """Whether a broker is the newest coordinator of a share partition's state."""
        key = SharePartition(group, topic_id, partition).coordinator_key
        replica = self._home(broker, key, SHARE_GROUP_STATE_TOPIC)
        if replica is None:
            return False
        home = (replica.topic_id, replica.partition)
        observed = self.invariants.partition(SHARE_GROUP_STATE_TOPIC, home)
        return replica.leader_epoch >= observed.newest_epoch

    def _is_committed(self, broker: int, request: Request) -> bool:
        """Whether a broker knows that a share group has read_committed."""
        node = self._processes[broker].last_broker
        resource = (GROUP_RESOURCE, request.body.group_id or "")
        configs = {} if node is None else node.image.configs.get(resource, {})
        return configs.get("share.isolation.level") == "read_committed"

    def _held_by_others(self, broker: int, now_ms: int) -> dict[SharePartition, BrokenPromise]:
        """The share partitions whose records members with other connections hold, each with what is
        broken if the broker drops it."""
        node = self._processes[broker].broker
        held = self.invariants.shares.held_at(broker, self._led_by, now_ms)
        return {
            partition: broken
            for key, broken in held
            if node is not None and node.share_partitions.get(partition := SharePartition(*key))
        }

    def _check_shared_reads(self, reply: Reply, now_ms: int) -> None:
        """Check the records for a group that had read_committed from the request to the answer."""
        request, body = reply.request, reply.body
        broker = self._committed_reads.pop(request, -1)
        if broker < 0 or body is None or not self._is_committed(broker, request):
            return
        node = self._processes[broker].last_broker
        for topic in body.responses if node is not None else ():
            for row in topic.partitions:
                assert node is not None
                replica = node.replicas.get(topic.topic_id, row.partition_index)
                if replica is not None and row.acquired_records:
                    self.invariants.check_shared_read(now_ms, replica, row)

    def _led_by(self, broker: int, topic_id: bytes, partition: int) -> Led | None:
        """A partition that a broker leads; None if it does not."""
        node = self._processes[broker].last_broker
        replica = None if node is None else node.replicas.get(topic_id, partition)
        if replica is None or not replica.is_leader:
            return None
        log = replica.log
        return Led(replica.topic, replica.leader_epoch, log.log_start_offset, log.log_end_offset)
