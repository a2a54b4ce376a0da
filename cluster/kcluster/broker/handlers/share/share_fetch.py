"""ShareFetch (API 78, v1-2): records of share partitions, acquired for one member of a share group.

Owns: the session's part in it, the time and the content of an answer; the parked fetch.  Never:
decides who gets a record (broker/share/acquisition.py), reads a log (broker/serving/reading.py).
Kafka: KafkaApis.handleShareFetchRequest, DelayedShareFetch, ShareFetchUtils; KIP-932.
Behaviour:
- acknowledgements in the request come first, and are answered with the records;
- answered when there are min_bytes that can be acquired, or after max_wait_ms;
- the limit of bytes is divided equally among the partitions that have something to acquire;
- the final epoch ends the session and releases what the member still holds.
Versions:
- v2: acquire mode record_limit (KIP-1206), renewal of acquisition locks (KIP-1222)
"""

from __future__ import annotations

from typing import Final, final

from kcluster.broker import registry
from kcluster.broker.access import NONE_DENIED
from kcluster.broker.broker import Broker
from kcluster.broker.handlers.share.share_acknowledge import (
    FIRST_VERSION_WITH_RENEWAL,
    Acknowledging,
    is_member_id,
)
from kcluster.broker.purgatory import DelayedOperation
from kcluster.broker.registry import PARKED, handles
from kcluster.broker.serving.leader_hints import current_leader, node_endpoints
from kcluster.broker.serving.reading import PartitionRead
from kcluster.broker.share.acquisition import Acquired, Acquirer
from kcluster.broker.share.sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    ParkedShareFetch,
    PartitionKey,
    ShareSession,
    TopicIdPartition,
)
from kcluster.broker.share.share_partition import ShareLeader
from kcluster.contract import Request
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.features import SHARE_VERSION

BATCH_OPTIMIZED: Final = 0
RECORD_LIMIT: Final = 1
ACQUIRE_MODES: Final = (BATCH_OPTIMIZED, RECORD_LIMIT)
FIRST_THAT_FINDS_UNKNOWN_TOPICS: Final = (4, 4)
"""The first version in which a topic without a name does not fail the whole request."""
"""The acquire mode in which max_records is a limit; otherwise batches are not divided."""
_HINTED: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)

Answer = m.ShareFetchResponse
PartitionData = m.ShareFetchResponse.PartitionData


@handles(ApiKey.SHARE_FETCH, versions=(1, 2))
def share_fetch(broker: Broker, request: Request, now_ms: int) -> registry.Answer:
    """Answer, or park, one share fetch."""
    body: m.ShareFetchRequest = request.body
    if not broker.image.supports(SHARE_VERSION):
        return Answer(error_code=ErrorCode.UNSUPPORTED_VERSION)
    if not broker.image.features:
        # The broker has just started, without metadata, so the member asks again with a new
        # session.  Kafka's brokers take no requests before they have metadata.
        return Answer(error_code=ErrorCode.SHARE_SESSION_NOT_FOUND)
    is_renewal = request.api_version >= FIRST_VERSION_WITH_RENEWAL and body.is_renew_ack
    if (
        body.group_id is None
        or not is_member_id(body.member_id)
        or (
            is_renewal
            and (body.max_bytes or body.min_bytes or body.max_records or body.max_wait_ms)
        )
    ):
        return Answer(error_code=ErrorCode.INVALID_REQUEST)
    session = _session_of(broker, request)
    if session is ErrorCode.SHARE_SESSION_LIMIT_REACHED:
        broker.purgatory.park(_LateRefusal(broker, request, session), body.max_wait_ms, now_ms)
        return PARKED
    if isinstance(session, ErrorCode):
        return Answer(error_code=session)
    pending = PendingShareFetch(broker, request, session)
    return pending.start(is_renewal, now_ms)


def _has_acknowledgements(body: m.ShareFetchRequest) -> bool:
    return any(
        partition.acknowledgement_batches for topic in body.topics for partition in topic.partitions
    )


def _session_of(broker: Broker, request: Request) -> ShareSession | ErrorCode:
    """The session that a fetch opens or continues, updated with the partitions that it names.

    Kafka: SharePartitionManager.newContext.
    """
    body: m.ShareFetchRequest = request.body
    sessions, epoch = broker.share_sessions, body.share_session_epoch
    group_id, member_id = body.group_id or "", body.member_id or ""
    if epoch != INITIAL_EPOCH:
        session = sessions.find(group_id, member_id, epoch)
    elif _has_acknowledgements(body):
        return ErrorCode.INVALID_REQUEST
    else:
        session = sessions.open(group_id, member_id, request.connection_id)
    if isinstance(session, ErrorCode) or epoch == FINAL_EPOCH:
        return session
    names = broker.image.topic_names
    for topic in body.topics:
        name = names.get(topic.topic_id, "")
        for partition in topic.partitions:
            named = TopicIdPartition(topic.topic_id, partition.partition_index, name)
            session.add(named, must_answer=epoch != INITIAL_EPOCH)
    for forgotten in body.forgotten_topics_data:
        for index in forgotten.partitions:
            session.forget((forgotten.topic_id, index))
    return session


@final
class _LateRefusal(DelayedOperation):
    """The refusal of one session too many: an error after max_wait_ms, so that the client does not
    hurry."""

    __slots__ = ("_broker", "_error", "_request")

    def __init__(self, broker: Broker, request: Request, error: ErrorCode) -> None:
        super().__init__()
        self._broker = broker
        self._request = request
        self._error = error

    def expire(self, now_ms: int) -> None:
        self.done = True
        self._broker.reply(self._request, Answer(error_code=self._error))


@final
class PendingShareFetch(ParkedShareFetch):
    """One share fetch, from its arrival to its answer.  Kafka: DelayedShareFetch."""

    __slots__ = (
        "_acknowledging", "_acquirer", "_answers", "_broker", "_denied", "_group_id",
        "_is_fetched", "_leaders", "_max_bytes", "_min_bytes", "_request", "_session",
    )  # fmt: skip

    def __init__(self, broker: Broker, request: Request, session: ShareSession) -> None:
        super().__init__()
        body: m.ShareFetchRequest = request.body
        self._broker = broker
        self._request = request
        self._session = session
        self._group_id = session.group_id
        self._acknowledging = Acknowledging(
            broker, session.group_id, session.member_id, request.api_version
        )
        self._acquirer = Acquirer(
            session.member_id,
            body.max_records,
            body.batch_size,
            body.share_acquire_mode == RECORD_LIMIT,
        )
        max_bytes = min(body.max_bytes, broker.view.config.fetch_max_bytes)
        if broker.quotas.is_active:
            max_bytes = broker.quotas.fetch_limit_bytes(request, max_bytes)
        self._max_bytes = max_bytes
        self._min_bytes = min(body.min_bytes, max_bytes)
        self._leaders: dict[TopicIdPartition, ShareLeader] = {}
        """The leaders of share partitions that may have records."""
        self._answers: dict[TopicIdPartition, PartitionData] = {}
        self._denied = NONE_DENIED
        """The topics that the client may not read."""
        self._is_fetched = False
        """Whether there are records, or nothing to wait for."""

    def start(self, is_renewal: bool, now_ms: int) -> registry.Answer:
        """Start the fetch; returns the answer, or PARKED, in which case `reply` follows."""
        body: m.ShareFetchRequest = self._request.body
        self._denied = self._unreadable()
        if _has_acknowledgements(body):
            self._acknowledging.start(body.topics, body.is_renew_ack, now_ms, self._denied)
        if is_renewal or body.share_session_epoch == FINAL_EPOCH:
            self._is_fetched = True
        else:
            refused = self._find_leaders(now_ms)
            if refused:
                return Answer(error_code=refused)
            if (
                not self._leaders
                or self._acquirer.max_records == 0
                or self._max_bytes == 0
                or self._fetch(now_ms)
            ):
                self._is_fetched = True
            elif body.max_wait_ms <= 0:
                self._fetch(now_ms, is_last_try=True)
                self._is_fetched = True
        if self._is_fetched and self._acknowledging.is_settled:
            return self._answer(now_ms)
        self._park(now_ms)
        return PARKED

    # ------------------------------------------------------------------------------- fetching

    def _unreadable(self) -> frozenset[str]:
        """The topics of the request and of its session that the client may not read."""
        access = self._broker.access
        if access is None:
            return NONE_DENIED
        names = self._broker.image.topic_names
        topics = {
            *(named.topic for named in self._session.partitions.values()),
            *(names.get(topic.topic_id, "") for topic in self._request.body.topics),
        } - {""}
        return access.unreadable(self._request, sorted(topics))

    def _find_leaders(self, now_ms: int) -> ErrorCode:
        """Find the leaders of the session's partitions; returns an error for the whole request, or
        NONE."""
        broker, session, body = self._broker, self._session, self._request.body
        for named in self._rotated():
            if not named.topic:
                if broker.release.number < FIRST_THAT_FINDS_UNKNOWN_TOPICS:
                    return ErrorCode.UNKNOWN_SERVER_ERROR
                self._answers[named] = _error_data(named, ErrorCode.UNKNOWN_TOPIC_ID)
                continue
            if named.topic in self._denied:
                error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                self._answers[named] = _error_data(named, error)
                continue
            if broker.image.partition(named.topic, named.partition) is None:
                self._answers[named] = _error_data(named, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                continue
            leader = broker.share_partitions.get_or_load(session.key_of(named), now_ms)
            if isinstance(leader, ErrorCode):
                self._answers[named] = _error_data(named, leader)
            else:
                self._leaders[named] = leader
        if self._leaders and body.share_acquire_mode not in ACQUIRE_MODES:
            return ErrorCode.UNKNOWN_SERVER_ERROR
        return ErrorCode.NONE

    def _rotated(self) -> list[TopicIdPartition]:
        """The session's partitions, each time beginning with the next one, so that every partition
        has its turn."""
        partitions = list(self._session.partitions.values())
        epoch = self._request.body.share_session_epoch
        if len(partitions) < 2 or epoch < 1:
            return partitions
        start = epoch % len(partitions)
        return partitions[start:] + partitions[:start]

    def _fetch(self, now_ms: int, is_last_try: bool = False) -> bool:
        """Acquire the available records if they are enough; False if the fetch must wait for
        more."""
        acquirable = [pair for pair in self._leaders.items() if pair[1].can_acquire()]
        if not acquirable:
            return False
        budget = self._max_bytes
        share, extra = divmod(budget, len(acquirable))
        reads: list[tuple[TopicIdPartition, ShareLeader, PartitionRead]] = []
        size_bytes, is_urgent = 0, False
        for named, leader in acquirable:
            read = leader.read(
                min(budget, share + extra), self._acquirer.max_records, not size_bytes
            )
            extra = 0
            size_bytes += read.size_bytes
            budget = max(0, budget - read.size_bytes)
            is_urgent |= read.is_urgent or (read.bounds is not None and read.bounds.is_cut)
            reads.append((named, leader, read))
        if not is_last_try and not is_urgent and size_bytes < self._min_bytes:
            return False
        left = self._acquirer.max_records
        for named, leader, read in reads:
            if read.error:
                self._answers[named] = self._failed_read(named, leader, read)
                continue
            acquirer = Acquirer(
                self._acquirer.member_id,
                left,
                self._acquirer.batch_size,
                self._acquirer.is_record_limit,
            )
            aborted = () if read.bounds is None else read.bounds.aborted
            acquired = leader.acquire(
                acquirer, read.wanted.fetch_offset, read.batches or (), aborted, now_ms
            )
            left -= sum(some.last_offset - some.first_offset + 1 for some in acquired)
            self._answers[named] = _acquired_data(named, read, acquired)
        return True

    def _failed_read(
        self, named: TopicIdPartition, leader: ShareLeader, read: PartitionRead
    ) -> PartitionData:
        if read.error is not ErrorCode.OFFSET_OUT_OF_RANGE:
            return _error_data(named, read.error)
        # The log has lost its beginning; the next fetch reads from its new start.
        leader.move_log_start()
        return _acquired_data(named, read, [])

    # -------------------------------------------------------------------------------- waiting

    def _park(self, now_ms: int) -> None:
        broker = self._broker
        broker.parked_share_fetches[self._request.connection_id] = self
        self._acknowledging.on_settled = self._on_acknowledged
        if self._is_fetched:
            self.done = True
            return
        for leader in self._leaders.values():
            leader.replica.fetches_waiting[self] = self.try_complete
        broker.purgatory.park(self, self._request.body.max_wait_ms, now_ms)

    def try_complete(self, now_ms: int) -> None:
        if not self.done and self._fetch(now_ms):
            self._on_fetched(now_ms)

    def expire(self, now_ms: int) -> None:
        self._fetch(now_ms, is_last_try=True)
        self._on_fetched(now_ms)

    def abandon(self) -> None:
        self._stop_waiting()
        self._acknowledging.on_settled = None
        parked = self._broker.parked_share_fetches
        if parked.get(self._request.connection_id) is self:
            del parked[self._request.connection_id]

    def _stop_waiting(self) -> None:
        """Stop waiting, because there are records or nothing to wait for."""
        self.done = True
        for leader in self._leaders.values():
            leader.replica.fetches_waiting.pop(self, None)

    def _on_fetched(self, now_ms: int) -> None:
        self._stop_waiting()
        self._is_fetched = True
        if self._acknowledging.is_settled:
            self._reply(now_ms)

    def _on_acknowledged(self, now_ms: int) -> None:
        if self._is_fetched:
            self._reply(now_ms)

    def _reply(self, now_ms: int) -> None:
        self.abandon()
        self._broker.reply(self._request, self._answer(now_ms))

    # ------------------------------------------------------------------------------ answering

    def _answer(self, now_ms: int) -> registry.Answer:
        broker, body = self._broker, self._request.body
        for named, leader in self._leaders.items():
            if leader.error:
                self._answers[named] = _error_data(named, leader.error)
        answers = self._to_be_named(body.share_session_epoch)
        leaders: dict[int, None] = {}
        for named, data in answers.items():
            if data.error_code in _HINTED:
                leader_id, epoch = current_leader(
                    broker.image, named.topic, named.topic_id, named.partition
                )
                data.current_leader = Answer.LeaderIdAndEpoch(leader_id, epoch)
                leaders[leader_id] = None
        by_key: dict[PartitionKey, PartitionData] = {
            (named.topic_id, named.partition): data for named, data in answers.items()
        }
        for key, outcome in self._acknowledging.outcomes.items():
            data = by_key.get(key) or PartitionData(partition_index=key[1], records=b"")
            data.acknowledge_error_code = outcome.error
            data.acknowledge_error_message = outcome.message or None
            by_key[key] = data
        topics: dict[bytes, m.ShareFetchResponse.ShareFetchableTopicResponse] = {}
        for (topic_id, _), data in by_key.items():
            topic = topics.get(topic_id)
            if topic is None:
                topic = topics[topic_id] = Answer.ShareFetchableTopicResponse(topic_id, [])
            topic.partitions.append(data)
        if body.share_session_epoch == FINAL_EPOCH:
            broker.end_share_session(self._session, now_ms)
        limits = broker.share_partitions.configs.of(self._group_id).limits
        return Answer(
            acquisition_lock_timeout_ms=limits.lock_duration_ms,
            responses=list(topics.values()),
            node_endpoints=node_endpoints(
                broker.image, leaders, self._request.identity.listener, Answer.NodeEndpoint
            ),
        )

    def _to_be_named(self, epoch: int) -> dict[TopicIdPartition, PartitionData]:
        """The partitions for the answer: all at the beginning of the session, later only partitions
        with news.

        Kafka: CachedSharePartition.maybeUpdateResponseData.
        """
        unanswered = self._session.unanswered
        if epoch == INITIAL_EPOCH:
            return self._answers
        named_now: dict[TopicIdPartition, PartitionData] = {}
        for named, data in self._answers.items():
            key = named.topic_id, named.partition
            if data.records or data.error_code or key in unanswered:
                named_now[named] = data
                unanswered.pop(key, None)
                if data.error_code and key in self._session.partitions:
                    unanswered[key] = None
        return named_now


def _error_data(named: TopicIdPartition, error: ErrorCode) -> PartitionData:
    return PartitionData(partition_index=named.partition, error_code=error, records=b"")


def _acquired_data(
    named: TopicIdPartition, read: PartitionRead, acquired: list[Acquired]
) -> PartitionData:
    """The whole batches that have an acquired record, and the ranges of their acquired records."""
    if not acquired:
        return PartitionData(partition_index=named.partition, records=b"")
    first, last = acquired[0].first_offset, acquired[-1].last_offset
    return PartitionData(
        partition_index=named.partition,
        records=[
            batch
            for batch in read.batches or ()
            if batch.base_offset <= last and batch.last_offset >= first
        ],
        acquired_records=[Answer.AcquiredRecords(*some) for some in acquired],
    )
