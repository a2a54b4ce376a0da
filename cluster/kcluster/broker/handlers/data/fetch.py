"""Fetch (API 1, v4-18): serve consumers up to the high watermark, followers up to the log end.

Owns: the time and the content of an answer; the parked fetch.  Never: remembers a fetcher's
partitions (serving/sessions.py), reads a log (serving/reading.py), moves a watermark
(partition/replica.py).
Kafka: KafkaApis.handleFetchRequest, DelayedFetch.
Behaviour:
- answered at once with min_bytes of records, an error, a divergence, or nothing to wait for;
  otherwise when one of these arrives, or after max_wait_ms;
- the first batch is returned however large (KIP-74);
- a consumer's fetch that should go to the follower in its rack is answered at once (KIP-392);
- a follower's position is recorded after reading, so it learns of a watermark with its next fetch.
Versions:
- v0-3 (to 3.9): message sets (old_formats.py)
- v7: incremental sessions (KIP-227)
- v9: leader epochs (KIP-320)
- v11: consumers read from any replica (KIP-392)
- v12: divergence (KIP-595)
- v13: topic ids (KIP-516)
- v15: replica epochs (KIP-903)
- v16: leader hints (KIP-951)
- v17: directory ids (KIP-853), ignored
- v18: the follower's high watermark (KIP-1166), ignored
Not done: tiered storage.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import mypyc_attr

from kcluster.broker import registry
from kcluster.broker.access import Access
from kcluster.broker.broker import Broker
from kcluster.broker.old_formats import FIRST_FETCH_OF_ZSTD, convert_fetched
from kcluster.broker.registry import PARKED, handles
from kcluster.broker.serving.leader_hints import current_leader, node_endpoints
from kcluster.broker.serving.nearest_replica import redirection
from kcluster.broker.serving.reading import (
    NO_DIVERGENCE,
    NO_PREFERENCE,
    READ_COMMITTED,
    Bounds,
    PartitionRead,
    read_partition,
    refusal,
)
from kcluster.broker.serving.sessions import (
    FIRST_VERSION_WITH_TOPIC_IDS,
    FetchSession,
    ParkedFetch,
    Reader,
    SessionPartition,
    named_partitions,
)
from kcluster.contract import Request
from kcluster.metadata.image import MetadataImage
from kcluster.partition.replica import NO_ROLE, Replica
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.compression import Allowance
from kcluster.security.acls import AclOperation

READ_UNCOMMITTED: Final = 0

NO_ERROR: Final = ErrorCode.NONE
_HINTED: Final = frozenset((ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH))
"""Errors that are answered with a hint at the leader (KIP-951)."""
_UNKNOWN: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }
)  # fmt: skip
"""Errors found before anything is read; their answers have an empty list where other answers have
null."""
_NONE_WATCHED: Final[list[Replica]] = []

FetchAnswer: Final = m.FetchResponse
TopicAnswer: Final = m.FetchResponse.FetchableTopicResponse
PartitionData: Final = m.FetchResponse.PartitionData
# Defaults that all answers share; they are replaced, never changed.
_NO_HINT: Final = m.FetchResponse.LeaderIdAndEpoch()
_NO_SNAPSHOT: Final = m.FetchResponse.SnapshotId()


@handles(ApiKey.FETCH, versions=(4, 18))
def fetch(broker: Broker, request: Request, now_ms: int) -> registry.Answer:
    """Answer, or park, one fetch."""
    body: m.FetchRequest = request.body
    if not READ_UNCOMMITTED <= body.isolation_level <= READ_COMMITTED:
        return _unknown_isolation_level(body, request.api_version)
    session = broker.sessions.session_of(body, request.api_version, now_ms)
    if session is not None and not isinstance(session, FetchSession):
        return m.FetchResponse(error_code=session)
    pending = PendingFetch(broker, request, session)
    reader = pending.reader
    if reader.is_follower:
        broker.replicas.last_fetches[reader.follower_id] = now_ms
    collected = pending.collect(now_ms, record_progress=reader.is_follower)
    if reader.is_follower:
        broker.isr.propose_expansions(reader.follower_id, now_ms)
    if body.max_wait_ms <= 0 or not pending.partitions or collected.enough(pending.min_bytes):
        return pending.response(collected, now_ms)
    pending.park(now_ms)
    return PARKED


def _unknown_isolation_level(body: m.FetchRequest, version: int) -> m.FetchResponse:
    """The answer with an error for the whole request and, in versions without topic ids, for each
    partition, as from Kafka."""
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
        if version < FIRST_VERSION_WITH_TOPIC_IDS
    ]
    return m.FetchResponse(error_code=error, responses=topics)


@mypyc_attr(free_list_len=1)
@final
class CollectedReads:
    """The records read from all partitions of one fetch."""

    __slots__ = ("is_urgent", "reads", "size_bytes")

    def __init__(self) -> None:
        self.reads: list[PartitionRead] = []
        self.size_bytes = 0
        self.is_urgent = False

    def enough(self, min_bytes: int) -> bool:
        """Whether the records suffice for an answer."""
        return self.is_urgent or self.size_bytes >= min_bytes


_NOTHING: Final = CollectedReads()
"""The reads of a session in which nothing has moved; never changed."""


def _readable_end(replica: Replica, reader: Reader) -> int:
    """The end of what a fetcher may read of a partition, apart from open transactions."""
    return replica.log.log_end_offset if reader.is_follower else replica.high_watermark


def _place(read: PartitionRead) -> int:
    """A read's place in the answer: unknown topic ids, then other refused topics, come last.
    Kafka: `erroneous` of KafkaApis.handleFetchRequest."""
    if read.error not in _UNKNOWN:
        return 0
    return 1 if read.error == ErrorCode.UNKNOWN_TOPIC_ID else 2


@final
class PendingFetch(ParkedFetch):
    """One fetch, from its arrival to its answer.  Kafka: DelayedFetch."""

    __slots__ = (
        "_by_id", "_denied", "_rack", "_watched", "broker", "connection_id", "max_bytes",
        "min_bytes", "partitions", "reader", "request", "session",
    )  # fmt: skip

    def __init__(self, broker: Broker, request: Request, session: FetchSession | None) -> None:
        super().__init__()
        body: m.FetchRequest = request.body
        version = request.api_version
        self.broker = broker
        self.request = request
        self.connection_id = request.connection_id
        self.session = session
        self._by_id = version >= FIRST_VERSION_WITH_TOPIC_IDS
        reader = None if session is None else session.reader
        if reader is None or not reader.sent(body, version):
            reader = Reader(body, version)
            if session is not None:
                session.reader = reader
        self.reader = reader
        max_bytes = body.max_bytes
        self._rack = ""
        if not reader.is_follower:
            if broker.view.config.replica_selector_class is not None and not reader.leader_only:
                self._rack = body.rack_id
            max_bytes = min(max_bytes, broker.view.config.fetch_max_bytes)
            if broker.quotas.is_active:
                max_bytes = broker.quotas.fetch_limit_bytes(request, max_bytes)
        self.max_bytes = max_bytes
        self.min_bytes = min(body.min_bytes, max_bytes)
        self.partitions = (
            named_partitions(broker.image, body, self._by_id)
            if session is None
            else session.partitions
        )
        self._watched = _NONE_WATCHED
        self._denied: frozenset[str] | None = None
        if broker.access is not None and request.connection_id >= 0:
            self._deny(broker.access)

    def _deny(self, access: Access) -> None:
        """Find the topics that the client may not read.  They stay in the session, and are answered
        with an error in each fetch until they are allowed."""
        wanted = list(self.partitions.values())
        topics = [each.topic for each in wanted if each.topic]
        if not self.reader.is_follower:
            denied = access.unreadable(self.request, topics)
        elif access.rights_of(self.request).may_on_cluster(AclOperation.CLUSTER_ACTION):
            return
        else:
            denied = frozenset(topics)
        if denied:
            self._denied = denied
            if self.session is not None:
                self.session.moved.update({x: None for x in wanted if x.topic in denied})

    # ------------------------------------------------------------------------------- reading

    def collect(
        self, now_ms: int, record_progress: bool = False, may_redirect: bool = True
    ) -> CollectedReads:
        """Read the available records.  As in Kafka a follower's progress is recorded after reading,
        so the answer has the watermark from before its fetch.  `may_redirect`: send a consumer to
        the follower in its rack."""
        session, reader, denied = self.session, self.reader, self._denied
        if session is not None and not session.moved:
            return _NOTHING
        collected = CollectedReads()
        throttle = self.broker.throttles.leader if reader.is_follower else None
        all_wanted = list(self.partitions.values() if session is None else session.moved)
        budget = self.max_bytes
        redirects = may_redirect and self._rack != ""
        for wanted in all_wanted:
            if denied is not None and wanted.topic in denied:
                collected.is_urgent = True
                collected.reads.append(refusal(wanted, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
                continue
            replica = self._replica_of(wanted)
            is_held_back = False
            is_first = not collected.size_bytes
            if not isinstance(replica, Replica):
                read = refusal(wanted, replica)
            else:
                redirected = self._redirection(replica, wanted) if redirects else None
                read = redirected or read_partition(replica, wanted, reader, budget, is_first)
                if record_progress and not read.is_urgent:
                    self._record_progress(replica, wanted, now_ms)
                if throttle is not None and read.size_bytes:
                    is_held_back = throttle.withholds_from(replica, reader.follower_id, now_ms)
                    if is_held_back:
                        read.batches = None
                        read.size_bytes = 0
            if read.is_urgent:
                collected.is_urgent = True
            elif read.size_bytes:
                collected.size_bytes += read.size_bytes
                budget = max(0, budget - read.size_bytes)
            elif (
                session is not None
                and isinstance(replica, Replica)
                and read.high_watermark == wanted.sent_high_watermark
                and read.log_start_offset == wanted.sent_log_start_offset
            ):
                # The partition has nothing new until it moves, unless a throttle held its records
                # back, or they did not fit beside what was read before them.
                fits = is_first or wanted.fetch_offset >= _readable_end(replica, reader)
                if fits and not is_held_back and not self._rack:
                    del session.moved[wanted]
                continue
            collected.reads.append(read)
        if session is not None and not session.moved:
            # A drained dict keeps its size, and a later look would go through it.
            session.moved = {}
        if collected.is_urgent:
            collected.reads.sort(key=_place)
        return collected

    def _redirection(self, replica: Replica, wanted: SessionPartition) -> PartitionRead | None:
        listener = self.request.identity.listener
        return redirection(self.broker.image, replica, wanted, self._rack, listener)

    def _replica_of(self, wanted: SessionPartition) -> Replica | ErrorCode:
        """The replica that serves `wanted`; a session watches it from then on."""
        known = wanted.replica
        if known is not None and known.role is not NO_ROLE:
            return known
        replica = self.broker.replicas.find_wanted(wanted, self._by_id)
        if self.session is not None and isinstance(replica, Replica):
            self.session.watch(wanted, replica)
        return replica

    def _record_progress(self, replica: Replica, wanted: SessionPartition, now_ms: int) -> None:
        reader = self.reader
        if replica.record_fetch(
            reader.follower_id,
            reader.follower_epoch,
            wanted.fetch_offset,
            wanted.log_start_offset,
            now_ms,
        ):
            self.broker.replicas.touch(replica)

    # ------------------------------------------------------------------------------- waiting

    def park(self, now_ms: int) -> None:
        """Wait for partitions to move, or for max_wait_ms."""
        broker = self.broker
        if self.session is not None:
            self.session.parked = self
        else:
            self._watched = []
            for wanted in self.partitions.values():
                replica = broker.replicas.find_wanted(wanted, self._by_id)
                if isinstance(replica, Replica):
                    replica.fetches_waiting[self] = self.try_complete
                    self._watched.append(replica)
        broker.parked_fetches[self.connection_id] = self
        broker.purgatory.park(self, self.request.body.max_wait_ms, now_ms)

    def is_news(self, replica: Replica, wanted: SessionPartition) -> bool:
        """Whether a move of `replica` is news.  A follower that has every record learns of a moved
        watermark with its next records."""
        return not (
            self.reader.is_follower
            and replica.is_leader
            and wanted.fetch_offset == replica.log.log_end_offset
        )

    def try_complete(self, now_ms: int) -> None:
        if self.done:
            return
        # As in Kafka a parked fetch waits for records, and its answer chooses a replica.
        collected = self.collect(now_ms, may_redirect=False)
        if collected.enough(self.min_bytes):
            if self._rack:
                collected = self.collect(now_ms)
            self._finish(self.response(collected, now_ms))

    def expire(self, now_ms: int) -> None:
        self._finish(self.response(self.collect(now_ms), now_ms))

    def supersede(self) -> None:
        self._finish(m.FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH))

    def abandon(self) -> None:
        """Unregister this fetch wherever it waits, even after its answer."""
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

    # ----------------------------------------------------------------------------- answering

    def response(self, collected: CollectedReads, now_ms: int) -> m.FetchResponse:
        """The response with all reads; in a session, only with the changes (KIP-227)."""
        if self.reader.is_follower and self.broker.throttles.leader is not None:
            self.broker.throttles.leader.record_answer(collected.reads, now_ms)
        session, version = self.session, self.request.api_version
        session_id = 0 if session is None else session.session_id
        if not collected.reads:
            return FetchAnswer(0, NO_ERROR, session_id, [])
        topics: list[m.FetchResponse.FetchableTopicResponse] = []
        partitions: list[m.FetchResponse.PartitionData] = []
        id_or_name: object = None
        leaders: dict[int, None] = {}
        allowance = Allowance(0) if version < FIRST_FETCH_OF_ZSTD else None
        for read in collected.reads:
            wanted = read.wanted
            data = _partition_data(self.broker.image, read, self.reader)
            if allowance is not None:
                convert_fetched(
                    self.broker.release, self.broker.replicas, data, read, version, allowance
                )
            if session is not None:
                # A fetcher ignores the watermark beside an error or a divergence.
                wanted.sent_high_watermark = -1 if read.is_urgent else read.high_watermark
                wanted.sent_log_start_offset = read.log_start_offset
                if read.size_bytes and len(session.moved) > 1:
                    # Partitions that were served go to the end of the queue.
                    del session.moved[wanted]
                    session.moved[wanted] = None
            if read.is_urgent and data.current_leader.leader_id >= 0:
                leaders[data.current_leader.leader_id] = None
            if wanted.key[0] != id_or_name:
                # As from Kafka, adjacent partitions of one topic share an entry.
                id_or_name, partitions = wanted.key[0], []
                topics.append(TopicAnswer(wanted.topic, wanted.topic_id, partitions))
            partitions.append(data)
        response = FetchAnswer(0, NO_ERROR, session_id, topics)
        if leaders and not self.reader.is_follower:
            response.node_endpoints = node_endpoints(
                self.broker.image,
                leaders,
                self.request.identity.listener,
                m.FetchResponse.NodeEndpoint,
            )
        return response


def _aborted(bounds: Bounds | None) -> list[m.FetchResponse.AbortedTransaction]:
    if bounds is None:
        return []
    return [
        m.FetchResponse.AbortedTransaction(one.producer_id, one.first_offset)
        for one in bounds.aborted
    ]


def _partition_data(
    image: MetadataImage, read: PartitionRead, reader: Reader
) -> m.FetchResponse.PartitionData:
    """The part of a FetchResponse for one partition."""
    wanted = read.wanted
    batches, bounds = read.batches, read.bounds
    data = PartitionData(
        wanted.partition,
        read.error,
        read.high_watermark,
        read.high_watermark if bounds is None else bounds.last_stable_offset,
        read.log_start_offset,
        NO_DIVERGENCE,
        _NO_HINT,
        _NO_SNAPSHOT,
        _aborted(bounds)
        if reader.isolation_level == READ_COMMITTED or (read.is_urgent and read.error in _UNKNOWN)
        else None,
        NO_PREFERENCE,
        b"" if batches is None else batches,
    )
    if read.preferred_read_replica != NO_PREFERENCE:
        data.preferred_read_replica = read.preferred_read_replica
        data.aborted_transactions = None
    if read.diverging_end_offset >= 0:
        data.diverging_epoch = m.FetchResponse.EpochEndOffset(
            epoch=read.diverging_epoch, end_offset=read.diverging_end_offset
        )
    if read.is_urgent and reader.wants_hints and read.error in _HINTED:
        data.current_leader = m.FetchResponse.LeaderIdAndEpoch(
            *current_leader(image, wanted.topic, wanted.topic_id, wanted.partition)
        )
    return data
