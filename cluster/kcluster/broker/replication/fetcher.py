"""The follower's side of replication: one fetcher per leader, pulling for many partitions.

Owns: the requests to each leader, and the effects of its answers: append, watermark, truncation.
Never: changes a log except through `Replica`, decides who leads.  Kafka: ReplicaFetcherThread,
AbstractFetcherThread; KIP-101, KIP-227, KIP-279, KIP-595.

    put(replica)      -> named in the next fetch, with its log end and last epoch
    data              -> appended, watermark followed, named again at its new end
    diverging epoch   -> truncated to where the logs agree, named again
    out of range      -> the leader is asked where its log ends, then where it begins
    other errors      -> left out for replica.fetch.backoff.ms
    no answer         -> a full fetch, in a new session, after replica.fetch.backoff.ms; the same
                         one again, if that is not answered either and nothing has changed
"""

from __future__ import annotations

from typing import Any, Final, final

from kcluster.broker.peers import PeerCall, PeerCalls
from kcluster.broker.ports import BrokerView, Outbox
from kcluster.broker.quotas.replication_throttle import Throttles
from kcluster.broker.replication.replicas import Replicas
from kcluster.broker.serving.reading import NO_DIVERGENCE
from kcluster.events.partitions import NOT_ASKED, LogTruncated
from kcluster.partition.epochs import UNDEFINED_EPOCH
from kcluster.partition.replica import Replica
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.batches import Batch
from kcluster.timers import Timers

EARLIEST_TIMESTAMP: Final = -2
LATEST_TIMESTAMP: Final = -1
NO_REPLICA_ID: Final = -1
READ_UNCOMMITTED: Final = 0

FetchRequest: Final = m.FetchRequest
FetchTopic: Final = m.FetchRequest.FetchTopic
FetchPartition: Final = m.FetchRequest.FetchPartition
ReplicaState: Final = m.FetchRequest.ReplicaState


@final
class AskedPosition:
    """The position in the last fetch that named a replica: its leader epoch (-1: not in the current
    request any more) and its log end."""

    __slots__ = ("end_offset", "leader_epoch")

    def __init__(self, leader_epoch: int, end_offset: int) -> None:
        self.leader_epoch = leader_epoch
        self.end_offset = end_offset


@final
class FetchCall(PeerCall):
    """A fetch under way."""

    __slots__ = ("_fetcher",)

    def __init__(self, fetcher: ReplicaFetcher, leader: int) -> None:
        super().__init__(leader)
        self._fetcher = fetcher

    def answered(self, body: m.FetchResponse | None, now_ms: int) -> None:
        self._fetcher.on_answer(body, now_ms)


@final
class ReplicaFetcher:
    """Fetches from one leader, one request at a time, as one incremental session."""

    def __init__(
        self,
        leader: int,
        view: BrokerView,
        timers: Timers,
        peers: PeerCalls,
        outbox: Outbox,
        all_replicas: Replicas,
        throttles: Throttles,
    ) -> None:
        self._leader = leader
        self._view = view
        self._timers = timers
        self._peers = peers
        self._outbox = outbox
        self._all_replicas = all_replicas
        self._throttles = throttles
        self._replicas: dict[tuple[bytes, int], Replica] = {}
        self._named: dict[Replica, None] = {}
        """The replicas to name in the next request: new replicas, and replicas whose position has
        changed."""
        self._forgotten: dict[Replica, None] = {}
        self._in_session: dict[Replica, AskedPosition] = {}
        """The replicas in the leader's session, as far as this side knows, with their last
        requested positions."""
        self._state = ReplicaState(view.node_id, view.epoch)
        self._state_epoch = view.epoch
        era = view.era
        self._compares_always = not (era.truncates_to_high_watermark or era.compares_epochs_once)
        """Whether each fetch has the epoch of the last record, so that the leader compares."""
        self._compared: dict[Replica, None] = {}
        """Before KIP-279: the replicas whose logs the leader has compared."""
        self._configure()
        self._session_id = 0
        self._session_epoch = 0
        self._full: list[m.FetchRequest.FetchTopic] | None = None
        """The content of the last fetch, if that was a full one."""
        self._is_unanswered = False
        """Whether that fetch must be sent again, because it had no answer."""
        self._held: dict[Replica, None] = {}
        """Replicas that are left out while a throttle holds them back
        (quotas/replication_throttle.py)."""
        self._under_way: FetchCall | None = None
        self._is_backing_off = False
        """Whether this fetcher waits for replica.fetch.backoff.ms, because the leader did not
        answer."""

    def _configure(self) -> None:
        """Read the configs that every fetch needs, once for all fetches."""
        config = self._config = self._view.config
        self._wait_max_ms: Any = config.replica_fetch_wait_max_ms
        self._min_bytes: Any = config.replica_fetch_min_bytes
        self._response_max_bytes: Any = config.replica_fetch_response_max_bytes
        self._max_bytes: object = config.replica_fetch_max_bytes
        self._timeout_ms = config.replica_socket_timeout_ms

    @property
    def is_idle(self) -> bool:
        return not self._replicas

    def follow(self, replica: Replica) -> None:
        """Fetch for a replica that has just begun to follow this leader."""
        if self._view.era.truncates_to_high_watermark:
            self._truncate_to(replica, replica.high_watermark, NOT_ASKED)
        self._compared.pop(replica, None)
        self.put(replica)

    def put(self, replica: Replica) -> None:
        self._replicas[replica.key] = replica
        self._named[replica] = None
        self._forgotten.pop(replica, None)
        asked = self._in_session.get(replica)
        if asked is not None:
            asked.leader_epoch = -1  # an answer under way is to an earlier position

    def tell_log_start(self, replica: Replica) -> None:
        """Tell the leader, with the next fetch, where a replica's log begins now.  Kafka:
        FetchSessionHandler.Builder.build."""
        if replica in self._in_session:
            self._named[replica] = None

    def remove(self, replica: Replica) -> None:
        key = replica.key
        self._replicas.pop(key, None)
        self._leave_out(replica)
        self._timers.cancel(("fetcher", self._leader, key))

    def _leave_out(self, replica: Replica) -> None:
        self._named.pop(replica, None)
        if replica in self._in_session:
            self._forgotten[replica] = None

    def stop(self) -> None:
        """Stop, because no replica here follows the leader any more."""
        if self._under_way is not None:
            self._peers.forget(self._under_way)
            self._under_way = None
        self._is_backing_off = False
        self._timers.cancel(("fetcher", self._leader))
        self._timers.cancel(("fetcher", self._leader, "throttle"))

    # ----------------------------------------------------------------------------- asking

    def send(self, now_ms: int) -> None:
        """Send the next fetch, unless one is under way or this fetcher is backing off."""
        if self._under_way is not None or self._is_backing_off:
            return
        view = self._view
        epoch = view.epoch
        if self._held or self._throttles.follower is not None:
            self._restart_if_unanswered()
            self._hold_back(now_ms)
        if not self._has_partitions():
            return
        if view.config is not self._config:
            self._configure()
            self._restart_if_unanswered()
        if epoch != self._state_epoch:
            self._state = ReplicaState(view.node_id, epoch)
            self._state_epoch = epoch
        if self._named or self._forgotten:
            self._restart_if_unanswered()
        topics: list[m.FetchRequest.FetchTopic] | None = []
        if self._is_unanswered:
            topics = self._full
        elif self._named:
            topics = self._topics(self._max_bytes)
        assert topics is not None, "a full fetch was not answered"
        self._is_unanswered = False
        self._full = None if self._session_epoch else topics
        request = FetchRequest(
            None,  # cluster id
            NO_REPLICA_ID,  # from v15 on the replica state has it
            self._state,
            self._wait_max_ms,
            self._min_bytes,
            self._response_max_bytes,
            READ_UNCOMMITTED,
            self._session_id,
            self._session_epoch,
            topics,
            self._forgotten_topics() if self._forgotten else [],
        )
        call = self._under_way = FetchCall(self, self._leader)
        self._peers.put(call, request, self._timeout_ms, now_ms)

    def _has_partitions(self) -> bool:
        """Whether any partition is to be fetched; an empty fetch would be answered at once."""
        return bool(self._named) or len(self._forgotten) < len(self._in_session)

    def _hold_back(self, now_ms: int) -> None:
        """Leave out replicas that a throttle holds back, and fetch again for replicas that it has
        released."""
        timers, throttle = self._timers, self._throttles.follower
        held_back: dict[Replica, None] = {}
        for key, replica in self._replicas.items():
            if throttle is not None and throttle.holds_back(replica, now_ms):
                held_back[replica] = None
                self._leave_out(replica)
            elif replica in self._held and ("fetcher", self._leader, key) not in timers:
                self._named[replica] = None
                self._forgotten.pop(replica, None)
        self._held = held_back
        if held_back and not self._has_partitions():
            until_ms = now_ms + self._view.config.replica_fetch_backoff_ms
            timers.set(("fetcher", self._leader, "throttle"), until_ms, self.send)

    def _topics(self, max_bytes: Any) -> list[m.FetchRequest.FetchTopic]:
        """The partitions to name, each with its current position.  As in Kafka's builder adjacent
        partitions of one topic share an entry."""
        topics: list[m.FetchRequest.FetchTopic] = []
        partitions: list[m.FetchRequest.FetchPartition] = []
        topic_id, in_session = b"", self._in_session
        compares_always = self._compares_always
        for replica in self._named:
            log = replica.log
            epoch, end_offset = replica.leader_epoch, log.log_end_offset
            if replica.topic_id != topic_id:
                topic_id, partitions = replica.topic_id, []
                topics.append(FetchTopic(replica.topic, topic_id, partitions))
            partitions.append(
                FetchPartition(
                    replica.partition,
                    epoch,
                    end_offset,
                    log.epochs.latest if compares_always else self._compared_epoch(replica),
                    log.log_start_offset,
                    max_bytes,
                )
            )
            asked = in_session.get(replica)
            if asked is None:
                in_session[replica] = AskedPosition(epoch, end_offset)
            else:
                asked.leader_epoch = epoch
                asked.end_offset = end_offset
            if self._forgotten:
                self._forgotten.pop(replica, None)
        self._named = {}
        return topics

    def _compared_epoch(self, replica: Replica) -> int:
        """The epoch that the leader is asked to compare, before KIP-101 or KIP-279;
        UNDEFINED_EPOCH: none."""
        if self._view.era.truncates_to_high_watermark or replica in self._compared:
            return UNDEFINED_EPOCH
        return replica.log.epochs.latest

    def _forgotten_topics(self) -> list[m.FetchRequest.ForgottenTopic]:
        partitions: dict[bytes, list[int]] = {}
        for replica in self._forgotten:
            partitions.setdefault(replica.topic_id, []).append(replica.partition)
            self._in_session.pop(replica, None)
        self._forgotten = {}
        return [
            m.FetchRequest.ForgottenTopic(topic_id=topic_id, partitions=indexes)
            for topic_id, indexes in partitions.items()
        ]

    # ------------------------------------------------------------------------- the answer

    def on_answer(self, response: m.FetchResponse | None, now_ms: int) -> None:
        self._under_way = None
        if response is None:
            # While their leader is down, each of its followers would ask again every few ms.
            self._is_unanswered = self._full is not None
            if not self._is_unanswered:
                self._restart_session()
            self._back_off(now_ms)
            return
        if response.error_code:
            # The leader does not know the session (it restarted, or made room), so the next fetch
            # is a full one.
            self._restart_session()
            self.send(now_ms)
            return
        session_id = self._session_id = response.session_id
        self._session_epoch = self._session_epoch % 0x7FFFFFFF + 1 if session_id else 0
        for topic in response.responses:
            topic_id = topic.topic_id
            for data in topic.partitions:
                replica = self._replicas.get((topic_id, data.partition_index))
                if replica is not None and self._is_current(replica):
                    self._take(replica, data, now_ms)
        if not session_id:
            self._restart_session()
        self.send(now_ms)

    def _is_current(self, replica: Replica) -> bool:
        """Whether the answer fits the present position of a replica.  If not, the replica has
        followed another leader or was truncated since the request.  Kafka: processFetchRequest's
        check."""
        asked = self._in_session.get(replica)
        return (
            asked is not None
            and asked.leader_epoch == replica.leader_epoch
            and asked.end_offset == replica.log.log_end_offset
        )

    def _restart_if_unanswered(self) -> None:
        """Drop an unanswered full fetch whose content is out of date."""
        if self._is_unanswered:
            self._restart_session()

    def _restart_session(self) -> None:
        """Make the next fetch a full one, with all partitions that are not left out."""
        self._is_unanswered = False
        self._session_id = 0
        self._session_epoch = 0
        self._in_session = {}
        self._forgotten = {}
        timers = self._timers
        self._named = {}
        for key, replica in self._replicas.items():
            if ("fetcher", self._leader, key) not in timers:
                self._named[replica] = None

    def _back_off(self, now_ms: int) -> None:
        until_ms = now_ms + self._view.config.replica_fetch_backoff_ms
        self._is_backing_off = True
        self._timers.set(("fetcher", self._leader), until_ms, self._send_again)

    def _send_again(self, now_ms: int) -> None:
        self._is_backing_off = False
        self.send(now_ms)

    def _take(self, replica: Replica, data: m.FetchResponse.PartitionData, now_ms: int) -> None:
        """Apply the answer for one partition."""
        error = data.error_code
        if not error:
            if not self._compares_always:
                self._compared[replica] = None
            diverging = data.diverging_epoch
            if diverging is not NO_DIVERGENCE and diverging.end_offset >= 0:
                self._truncate(replica, diverging)
            else:
                self._append(replica, data, now_ms)
        elif error == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._ask_offset(replica, LATEST_TIMESTAMP, now_ms)
        else:
            # Fenced, unknown, not (yet) the leader: new metadata or a later try resolves the error.
            self._leave_out_for_a_while(replica, now_ms)

    def _append(self, replica: Replica, data: m.FetchResponse.PartitionData, now_ms: int) -> None:
        moved = False
        batches = data.records
        high_watermark, log_start_offset = data.high_watermark, data.log_start_offset
        if batches:
            end_offset = replica.log.log_end_offset
            first: Batch = batches[0]
            if first.base_offset < end_offset == log_start_offset:
                # The leader has deleted everything in this log, and its own log begins inside a
                # batch.
                # DIFFERS: Kafka stops replicating until a restart, unless this log is empty.
                replica.truncate_fully_and_start_at(end_offset)
            elif first.base_offset < end_offset and not self._compares_always:
                # Before KIP-279 logs may differ unseen, so that this one ends inside a batch.
                # DIFFERS: the fetcher's thread then died, with all its partitions.
                self._leave_out_for_a_while(replica, now_ms)
                return
            replica.append_as_follower(batches, now_ms)
            self._named[replica] = None
            moved = True
        if replica.follow_high_watermark(high_watermark):
            moved = True
        if log_start_offset > replica.log.log_start_offset:
            moved |= replica.advance_log_start(min(log_start_offset, replica.high_watermark))
            self._named[replica] = None
        throttle = self._throttles.follower
        if throttle is not None:
            size_bytes = sum(batch.size_bytes for batch in batches or ())
            throttle.record_fetched(replica, size_bytes, high_watermark, now_ms)
        if moved:
            self._all_replicas.touch_if_waited_for(replica)

    def _truncate(self, replica: Replica, diverging: m.FetchResponse.EpochEndOffset) -> None:
        """Truncate the records that the leader lacks according to this answer; the next answer may
        show more.  Kafka: AbstractFetcherThread.getOffsetTruncationState (KIP-279)."""
        log = replica.log
        if not self._compares_always:
            to_offset = min(diverging.end_offset, log.log_end_offset)
            self._truncate_to(replica, to_offset, diverging.end_offset, diverging.epoch)
            return
        epoch, end_offset = log.epochs.end_offset_for(diverging.epoch, log.log_end_offset)
        if epoch < 0 or end_offset < 0:
            to_offset = min(diverging.end_offset, log.log_end_offset)
        elif epoch != diverging.epoch:
            # This log has no such epoch: the last epoch before it may still reach too far.
            to_offset = min(end_offset, log.log_end_offset)
        else:
            to_offset = min(end_offset, diverging.end_offset, log.log_end_offset)
        self._truncate_to(replica, to_offset, diverging.end_offset, diverging.epoch)

    def _truncate_to(
        self,
        replica: Replica,
        to_offset: int,
        leader_end_offset: int,
        diverging_epoch: int | None = None,
    ) -> None:
        from_offset, high_watermark = replica.log.log_end_offset, replica.high_watermark
        replica.truncate_to(to_offset)
        self._named[replica] = None
        self._all_replicas.touch(replica)
        if from_offset > to_offset:
            truncated = LogTruncated(
                topic=replica.topic,
                partition=replica.partition,
                broker=self._view.node_id,
                from_offset=from_offset,
                to_offset=to_offset,
                high_watermark=high_watermark,
                leader=self._leader,
                leader_end_offset=leader_end_offset,
                diverging_epoch=diverging_epoch,
            )
            self._outbox.note(truncated, replica.cause)

    def _leave_out_for_a_while(self, replica: Replica, now_ms: int) -> None:
        key = replica.key
        self._leave_out(replica)

        def name_again(now_ms: int) -> None:
            if key in self._replicas:
                self.put(self._replicas[key])
                self.send(now_ms)

        until_ms = now_ms + self._view.config.replica_fetch_backoff_ms
        self._timers.set(("fetcher", self._leader, key), until_ms, name_again)

    # ----------------------------------------------------------------------- out of range

    def _ask_offset(self, replica: Replica, timestamp: int, now_ms: int) -> None:
        """Request the end or the beginning of the leader's log.  Kafka: fetchOffsetAndTruncate."""
        self._leave_out(replica)
        asked_in = replica.leader_epoch
        partition = m.ListOffsetsRequest.ListOffsetsPartition(
            partition_index=replica.partition, current_leader_epoch=asked_in, timestamp=timestamp
        )
        request = m.ListOffsetsRequest(
            replica_id=self._view.node_id,
            topics=[
                m.ListOffsetsRequest.ListOffsetsTopic(name=replica.topic, partitions=[partition])
            ],
        )

        def on_answer(response: m.ListOffsetsResponse | None, now_ms: int) -> None:
            if self._replicas.get(replica.key) is not replica or replica.leader_epoch != asked_in:
                return
            answer = None if response is None else response.topics[0].partitions[0]
            if answer is None or answer.error_code:
                self._leave_out_for_a_while(replica, now_ms)
            elif timestamp == LATEST_TIMESTAMP:
                self._compare_with_end(replica, answer.offset, now_ms)
            else:
                self._start_at(replica, answer.offset)
            self.send(now_ms)

        timeout_ms = self._view.config.replica_socket_timeout_ms
        self._peers.ask(self._leader, request, on_answer, timeout_ms, now_ms)

    def _compare_with_end(self, replica: Replica, leader_end: int, now_ms: int) -> None:
        if leader_end < replica.log.log_end_offset:
            self._truncate_to(replica, leader_end, leader_end)
        else:
            self._ask_offset(replica, EARLIEST_TIMESTAMP, now_ms)

    def _start_at(self, replica: Replica, leader_start: int) -> None:
        """Start at the beginning of the leader's log, which no longer has the records that this
        replica lacks."""
        if leader_start > replica.log.log_end_offset:
            replica.truncate_fully_and_start_at(leader_start)
            self._all_replicas.touch(replica)
        self._named[replica] = None
