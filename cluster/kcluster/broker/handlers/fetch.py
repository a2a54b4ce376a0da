"""Fetch (API 1, v4-18): serve consumers up to the high watermark, followers up to the log end.

Owns: what one fetch wants, when it is answered, the parked fetch.  Never: decides who may read what
(fetching.py), moves a watermark (partition/replica.py).  Kafka: KafkaApis.handleFetchRequest,
DelayedFetch.
Behaviour: answered at once if there are min_bytes, an error, a divergence or nothing to wait for;
  else when there are, or after max_wait_ms.  The first batch is returned however large (KIP-74).
Versions: v0-3 (to 3.9) message sets (old_formats.py), v7 sessions (KIP-227), v9 leader epochs
  (KIP-320), v11 any replica (KIP-392), v12 divergence (KIP-595), v13 topic ids (KIP-516), v15
  replica epochs (KIP-903), v16 leader hints (KIP-951), v17 directory ids, v18 high watermark of
  the follower (ignored).
Not done: tiered storage, quotas, replica selectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

from mypy_extensions import mypyc_attr

from kcluster.broker.fetching import (
    READ_COMMITTED,
    PartitionRead,
    Reader,
    find_replica,
    node_endpoints,
    partition_data,
    read_partition,
    refusal,
)
from kcluster.broker.old_formats import FIRST_FETCH_OF_ZSTD, convert_fetched
from kcluster.broker.purgatory import DelayedOperation
from kcluster.broker.registry import PARKED, handles
from kcluster.broker.sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    FetchSession,
    PartitionKey,
    SessionPartition,
)
from kcluster.contract import Request
from kcluster.partition.followers import NO_ROLE
from kcluster.partition.replica import Replica
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kcluster.broker.node import BrokerNode

FIRST_VERSION_WITH_TOPIC_IDS: Final = 13
READ_UNCOMMITTED: Final = 0
ZERO_UUID: Final = bytes(16)

NO_ERROR: Final = ErrorCode.NONE
_NONE_WATCHED: Final[list[Replica]] = []

FetchAnswer: Final = m.FetchResponse
TopicAnswer: Final = m.FetchResponse.FetchableTopicResponse


@handles(ApiKey.FETCH, versions=(4, 18))
def fetch(broker: BrokerNode, request: Request, now_ms: int) -> Any:
    """Answer, or park, one fetch."""
    if not READ_UNCOMMITTED <= request.body.isolation_level <= READ_COMMITTED:
        return _failed(request)
    session = _session(broker, request, now_ms)
    if session is not None and not isinstance(session, FetchSession):
        return m.FetchResponse(error_code=session)
    pending = PendingFetch(broker, request, session)
    reader = pending.reader
    if reader.is_follower:
        broker.replicas.last_fetches[reader.follower_id] = now_ms
    found = pending.collect(now_ms, record_progress=reader.is_follower)
    if reader.is_follower:
        broker.replicas.propose_expansions(reader.follower_id, now_ms)
    body: m.FetchRequest = request.body
    if body.max_wait_ms <= 0 or not pending.partitions or found.enough(pending.min_bytes):
        return pending.response(found, now_ms)
    pending.park(now_ms)
    return PARKED


def _failed(request: Request) -> m.FetchResponse:
    """What Kafka makes of an isolation level that there is not: told of the whole, and of each
    partition while topics have names."""
    body: m.FetchRequest = request.body
    error = ErrorCode.UNKNOWN_SERVER_ERROR
    topics = [
        TopicAnswer(
            topic.topic,
            topic.topic_id,
            [
                m.FetchResponse.PartitionData(
                    asked.partition, error, high_watermark=-1, records=b""
                )
                for asked in topic.partitions
            ],
        )
        for topic in body.topics
        if request.api_version < FIRST_VERSION_WITH_TOPIC_IDS
    ]
    return m.FetchResponse(error_code=error, responses=topics)


def _session(broker: BrokerNode, request: Request, now_ms: int) -> FetchSession | ErrorCode | None:
    """The session that this fetch begins or goes on with; None: it stands alone.

    Kafka: FetchManager.newContext.
    """
    body: m.FetchRequest = request.body
    by_id = request.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    sessions = broker.sessions
    session_id, session_epoch = body.session_id, body.session_epoch
    if session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        if session_id:
            sessions.remove(session_id)
        if session_epoch == FINAL_EPOCH:
            return None
        is_follower = Reader(body, request.api_version).is_follower
        session = sessions.create(is_follower, by_id, now_ms)
        if session is not None:
            _update(broker, session, body, by_id)
        return session
    found = sessions.find(session_id, session_epoch, by_id, now_ms)
    if not isinstance(found, FetchSession):
        return found
    if found.parked is not None:
        found.parked.supersede()
    _update(broker, found, body, by_id)
    if not found.partitions:
        sessions.remove(found.session_id)
        return None
    return found


def _update(broker: BrokerNode, session: FetchSession, body: m.FetchRequest, by_id: bool) -> None:
    """Take what the request names into its session."""
    for forgotten in body.forgotten_topics_data:
        id_or_name = forgotten.topic_id if by_id else forgotten.topic
        for partition in forgotten.partitions:
            session.forget((id_or_name, partition))
    partitions, moved = session.partitions, session.moved
    for topic in body.topics:
        name, topic_id = _topic_of(broker, topic, by_id)
        for asked in topic.partitions:
            key: PartitionKey = (topic_id if by_id else name, asked.partition)
            known = partitions.get(key)
            if known is None:
                known = partitions[key] = SessionPartition(key, name, topic_id, asked)
            else:
                known.ask(asked)
            moved[known] = None


def _named(
    broker: BrokerNode, body: m.FetchRequest, by_id: bool
) -> dict[PartitionKey, SessionPartition]:
    """The partitions named in a request without a session, in its order."""
    named: dict[PartitionKey, SessionPartition] = {}
    for topic in body.topics:
        name, topic_id = _topic_of(broker, topic, by_id)
        for asked in topic.partitions:
            key: PartitionKey = (topic_id if by_id else name, asked.partition)
            named[key] = SessionPartition(key, name, topic_id, asked)
    return named


def _topic_of(
    broker: BrokerNode, topic: m.FetchRequest.FetchTopic, by_id: bool
) -> tuple[str, bytes]:
    """(name, id) of a topic, one of which the request has."""
    image = broker.image
    if by_id:
        return image.topic_names.get(topic.topic_id, ""), topic.topic_id
    known = image.topics.get(topic.topic)
    return topic.topic, ZERO_UUID if known is None else known.topic_id


@mypyc_attr(acyclic=True, free_list_len=1)
@final
class Found:
    """What the partitions of one fetch have to tell."""

    __slots__ = ("reads", "size_bytes", "urgent")

    def __init__(self) -> None:
        self.reads: list[PartitionRead] = []
        self.size_bytes = 0
        self.urgent = False

    def enough(self, min_bytes: int) -> bool:
        return self.urgent or self.size_bytes >= min_bytes


@final
class PendingFetch(DelayedOperation):
    """One fetch, from its arrival to its answer.  Kafka: DelayedFetch."""

    __slots__ = (
        "_by_id", "_watched", "broker", "connection_id", "max_bytes", "min_bytes", "partitions",
        "reader", "request", "session",
    )  # fmt: skip

    def __init__(self, broker: BrokerNode, request: Request, session: FetchSession | None) -> None:
        super().__init__()
        body: m.FetchRequest = request.body
        version = request.api_version
        self.broker = broker
        self.request = request
        self.connection_id = request.connection_id
        self.session = session
        self._by_id = version >= FIRST_VERSION_WITH_TOPIC_IDS
        reader = None if session is None else session.reader
        if reader is None or not reader.reads(body, version):
            reader = Reader(body, version)
            if session is not None:
                session.reader = reader
        self.reader = reader
        max_bytes = body.max_bytes
        if not reader.is_follower:
            max_bytes = min(max_bytes, broker.config.fetch_max_bytes)
            if broker.quotas is not None:
                max_bytes = broker.quotas.fetch_limit_bytes(request.client_id, max_bytes)
        self.max_bytes = max_bytes
        self.min_bytes = min(body.min_bytes, max_bytes)
        self.partitions = (
            _named(broker, body, self._by_id) if session is None else session.partitions
        )
        self._watched = _NONE_WATCHED

    # ------------------------------------------------------------------------------- reading

    def collect(self, now_ms: int, record_progress: bool = False) -> Found:
        """Read what there is; a follower's progress is recorded after reading, as in Kafka, so
        that the watermark it hears of is the one before its own fetch."""
        found = Found()
        session, reader = self.session, self.reader
        throttle = self.broker.throttles.leader if reader.is_follower else None
        all_wanted = list(self.partitions.values() if session is None else session.moved)
        budget = self.max_bytes
        for wanted in all_wanted:
            replica = self._replica_of(wanted)
            held = False
            if not isinstance(replica, Replica):
                read = refusal(wanted, replica)
            else:
                read = read_partition(replica, wanted, reader, budget, not found.size_bytes)
                if record_progress and not read.must_be_told:
                    self._record_progress(replica, wanted, now_ms)
                if throttle is not None and read.size_bytes:
                    held = throttle.holds_from(replica, reader.follower_id, now_ms)
                    if held:
                        read.batches = None
                        read.size_bytes = 0
            if read.must_be_told:
                found.urgent = True
            elif read.size_bytes:
                found.size_bytes += read.size_bytes
                budget = max(0, budget - read.size_bytes)
            elif (
                session is not None
                and read.high_watermark == wanted.sent_high_watermark
                and read.log_start_offset == wanted.sent_log_start_offset
            ):
                # Quiet until it moves; unless the budget or a throttle kept its records back.
                if budget > 0 and not held:
                    del session.moved[wanted]
                continue
            found.reads.append(read)
        return found

    def _replica_of(self, wanted: SessionPartition) -> Replica | ErrorCode:
        """The replica that serves `wanted`; a session watches it from then on."""
        known = wanted.replica
        if known is not None and known.role is not NO_ROLE:
            return known
        found = find_replica(self.broker, wanted, self._by_id)
        if self.session is not None and isinstance(found, Replica):
            self.session.watch(wanted, found)
        return found

    def _record_progress(self, replica: Replica, wanted: SessionPartition, now_ms: int) -> None:
        reader = self.reader
        if replica.record_fetch(
            reader.follower_id, reader.follower_epoch, wanted.fetch_offset,
            wanted.log_start_offset, now_ms,
        ):  # fmt: skip
            self.broker.replicas.moved[replica] = None

    # ------------------------------------------------------------------------------- waiting

    def park(self, now_ms: int) -> None:
        """Wait for partitions to move, or for max_wait_ms."""
        broker = self.broker
        if self.session is not None:
            self.session.parked = self
        else:
            self._watched = []
            for wanted in self.partitions.values():
                replica = find_replica(broker, wanted, self._by_id)
                if isinstance(replica, Replica):
                    replica.fetches_waiting[self] = None
                    self._watched.append(replica)
        broker.parked_fetches[self.connection_id] = self
        broker.purgatory.park(self, self.request.body.max_wait_ms, now_ms)

    def is_told_of(self, replica: Replica, wanted: SessionPartition) -> bool:
        """A partition of the session has moved: is that to be looked at?  If only its watermark
        has, a follower hears of that with the next records."""
        return not (
            self.reader.is_follower
            and replica.is_leader
            and wanted.fetch_offset == replica.log.log_end_offset
        )

    def try_complete(self, now_ms: int) -> None:
        """Something has moved: answer if that is enough."""
        if self.done:
            return
        found = self.collect(now_ms)
        if found.enough(self.min_bytes):
            self._finish(self.response(found, now_ms))

    def expire(self, now_ms: int) -> None:
        self._finish(self.response(self.collect(now_ms), now_ms))

    def supersede(self) -> None:
        """The session went on elsewhere: this fetch is of the past."""
        self._finish(m.FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH))

    def abandon(self) -> None:
        """Nobody waits for an answer any more: it was given, or the client is gone."""
        self.done = True
        parked = self.broker.parked_fetches
        if parked.get(self.connection_id) is self:
            del parked[self.connection_id]
        if self.session is not None:
            self.session.parked = None
        for replica in self._watched:
            replica.fetches_waiting.pop(self, None)
        self._watched = _NONE_WATCHED

    def _finish(self, response: m.FetchResponse) -> None:
        self.abandon()
        self.broker.reply(self.request, response)

    # ------------------------------------------------------------------------------ answering

    def response(self, found: Found, now_ms: int) -> m.FetchResponse:
        """All that was found; in a session only what is news (KIP-227)."""
        if self.reader.is_follower and self.broker.throttles.leader is not None:
            self.broker.throttles.leader.record_answer(found.reads, now_ms)
        session, version = self.session, self.request.api_version
        topics: list[m.FetchResponse.FetchableTopicResponse] = []
        partitions: list[m.FetchResponse.PartitionData] = []
        id_or_name: Any = None
        leaders: dict[int, None] = {}
        for read in found.reads:
            wanted = read.wanted
            data = partition_data(self.broker, read, self.reader)
            if version < FIRST_FETCH_OF_ZSTD:
                convert_fetched(self.broker, data, read, version)
            if session is not None:
                # A fetcher does not take a watermark that comes with an error, or a divergence.
                told = -1 if read.must_be_told else read.high_watermark
                wanted.sent_high_watermark = told
                wanted.sent_log_start_offset = read.log_start_offset
                if read.size_bytes and len(session.moved) > 1:
                    # Those that got a turn go to the end of the queue.
                    del session.moved[wanted]
                    session.moved[wanted] = None
            if read.must_be_told and data.current_leader.leader_id >= 0:
                leaders[data.current_leader.leader_id] = None
            if wanted.key[0] != id_or_name:
                # As from Kafka, those of a topic are together if they come one behind the other.
                id_or_name, partitions = wanted.key[0], []
                topics.append(TopicAnswer(wanted.topic, wanted.topic_id, partitions))
            partitions.append(data)
        response = FetchAnswer(0, NO_ERROR, 0 if session is None else session.session_id, topics)
        if leaders and not self.reader.is_follower:
            response.node_endpoints = node_endpoints(
                self.broker, leaders, m.FetchResponse.NodeEndpoint
            )
        return response
