"""Fetchers and what they request: readers, their partitions, incremental fetch sessions.

Owns: the state of a fetcher between its fetches; sessions, their epochs and eviction.  Never: reads
a log (reading.py), answers a fetch (handlers/data/fetch.py).  Kafka: FetchParams,
FetchManager.newContext, FetchSession, FetchSessionCache; KIP-227.

Replicas.wake notifies a session when one of its replicas moves.  So a fetch checks only the
partitions that it names or that have moved since: ten thousand idle partitions cost nothing.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import mypyc_attr

from kcluster.broker.ports import BrokerView
from kcluster.broker.purgatory import DelayedOperation
from kcluster.contract import Rng
from kcluster.metadata.image import MetadataImage
from kcluster.partition.replica import Replica
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode

CONSUMER_ID: Final = -1
FIRST_VERSION_WITH_ANY_REPLICA: Final = 11
FIRST_VERSION_WITH_TOPIC_IDS: Final = 13
FIRST_VERSION_WITH_HINTS: Final = 16

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
MAX_EPOCH: Final = 0x7FFFFFFF
MIN_EVICTION_MS: Final = 120_000
"""Kafka: FetchSession.MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS."""
ZERO_UUID: Final = bytes(16)

PartitionKey = tuple[bytes | str, int]
"""(topic id, or topic name before Fetch v13; partition)."""


@mypyc_attr(free_list_len=1)
@final
class Reader:
    """A fetcher, and the rules that apply to it.

    `follower_id`: broker id, or CONSUMER_ID.  `leader_only`: False for a consumer that may read
    from any replica (KIP-392, Fetch v11+).  `wants_hints`: the answer names the leader of
    partitions that this broker does not lead (KIP-951, Fetch v16+).
    """

    __slots__ = (
        "_state", "_version", "follower_epoch", "follower_id", "is_follower", "isolation_level",
        "leader_only", "wants_hints",
    )  # fmt: skip

    def __init__(self, body: m.FetchRequest, version: int) -> None:
        state = self._state = body.replica_state
        self._version = version
        # From v15 on the replica id is in a tagged field, with the broker epoch; earlier versions
        # have a plain field.
        follower_id = state.replica_id
        if follower_id == CONSUMER_ID:
            follower_id = body.replica_id
        self.follower_id = follower_id
        self.is_follower = follower_id >= 0
        self.follower_epoch = state.replica_epoch
        self.leader_only = version < FIRST_VERSION_WITH_ANY_REPLICA
        self.isolation_level = body.isolation_level
        self.wants_hints = version >= FIRST_VERSION_WITH_HINTS

    def sent(self, body: m.FetchRequest, version: int) -> bool:
        """Whether `body` certainly comes from this reader.  True for a follower, which sends one
        replica state object with every fetch of its life; for a client, whose requests are decoded
        from bytes, a new Reader is made."""
        return (
            body.replica_state is self._state
            and version == self._version
            and body.isolation_level == self.isolation_level
        )


@final
class SessionPartition:
    """One partition as last requested by its fetcher, and what the last answer reported.

    `replica`: the replica that serves it, while a session watches the replica; else None.
    """

    __slots__ = (
        "current_leader_epoch", "fetch_offset", "key", "last_fetched_epoch", "log_start_offset",
        "max_bytes", "partition", "replica", "sent_high_watermark", "sent_log_start_offset",
        "topic", "topic_id",
    )  # fmt: skip

    def __init__(
        self,
        key: PartitionKey,
        topic: str,
        topic_id: bytes,
        requested: m.FetchRequest.FetchPartition,
    ) -> None:
        self.key = key
        self.topic = topic
        self.topic_id = topic_id
        self.partition: int = requested.partition
        self.replica: Replica | None = None
        self.sent_high_watermark = -1
        self.sent_log_start_offset = -1
        self.ask(requested)

    def ask(self, requested: m.FetchRequest.FetchPartition) -> None:
        """Apply the request of a fetch, whether the first or a later one."""
        self.fetch_offset: int = requested.fetch_offset
        self.current_leader_epoch: int = requested.current_leader_epoch
        self.last_fetched_epoch: int = requested.last_fetched_epoch
        self.log_start_offset: int = requested.log_start_offset
        self.max_bytes: int = requested.partition_max_bytes


class ParkedFetch(DelayedOperation):
    """A fetch that waits for its partitions to move; handlers/data/fetch.py answers it."""

    __slots__ = ()

    def is_news(self, replica: Replica, wanted: SessionPartition) -> bool:
        """Whether the move of a partition in the fetch's session may complete the fetch."""
        raise AssertionError("a subclass knows what it waits for")

    def try_complete(self, now_ms: int) -> None:
        """Answer if the fetch has enough records.  Called after one of its partitions has
        moved."""
        raise AssertionError("a subclass knows what it waits for")

    def supersede(self) -> None:
        """Answer with an error, because a later fetch has continued the session."""
        raise AssertionError("a subclass knows whom it answers")

    def abandon(self) -> None:
        """Stop waiting without an answer, because the client is gone."""
        raise AssertionError("a subclass knows where it is registered")


@final
class FetchSession:
    """The partitions of one fetcher, in the order in which they are served."""

    __slots__ = (
        "_watchers", "epoch", "is_closed", "is_follower", "last_used_ms", "moved", "parked",
        "partitions", "reader", "session_id", "uses_topic_ids",
    )  # fmt: skip

    def __init__(
        self,
        session_id: int,
        is_follower: bool,
        uses_topic_ids: bool,
        now_ms: int,
        watchers: Watchers,
    ) -> None:
        self._watchers = watchers
        self.session_id = session_id
        self.epoch = INITIAL_EPOCH + 1
        self.is_follower = is_follower
        self.uses_topic_ids = uses_topic_ids
        self.is_closed = False
        self.last_used_ms = now_ms
        self.partitions: dict[PartitionKey, SessionPartition] = {}
        self.moved: dict[SessionPartition, None] = {}
        """The partitions that may have news, in the order in which they are served."""
        self.parked: ParkedFetch | None = None
        self.reader: Reader | None = None
        """The reader that fetched last, and mostly fetches next."""

    def update(self, body: m.FetchRequest, image: MetadataImage) -> None:
        """Add the partitions that a request names, and remove the partitions that it forgets."""
        by_id = self.uses_topic_ids
        for forgotten in body.forgotten_topics_data:
            id_or_name = forgotten.topic_id if by_id else forgotten.topic
            for partition in forgotten.partitions:
                self._forget((id_or_name, partition))
        partitions, moved = self.partitions, self.moved
        for topic in body.topics:
            name, topic_id = _name_and_id(image, topic, by_id)
            for requested in topic.partitions:
                key: PartitionKey = (topic_id if by_id else name, requested.partition)
                known = partitions.get(key)
                if known is None:
                    known = partitions[key] = SessionPartition(key, name, topic_id, requested)
                else:
                    known.ask(requested)
                moved[known] = None

    def watch(self, wanted: SessionPartition, replica: Replica) -> None:
        """Be notified when `replica`, which serves `wanted`, moves."""
        if self.is_closed:
            # The session was evicted for another one while its last fetch was parked.
            return
        if wanted.replica is replica:
            return
        self._unwatch(wanted)
        wanted.replica = replica
        self._watchers.setdefault(replica, {})[self] = wanted

    def _unwatch(self, wanted: SessionPartition) -> None:
        replica, wanted.replica = wanted.replica, None
        if replica is not None:
            sessions = self._watchers[replica]
            del sessions[self]
            if not sessions:
                del self._watchers[replica]

    def _forget(self, key: PartitionKey) -> None:
        wanted = self.partitions.pop(key, None)
        if wanted is not None:
            self.moved.pop(wanted, None)
            self._unwatch(wanted)

    def close(self) -> None:
        """Stop watching replicas, for good."""
        self.is_closed = True
        for wanted in self.partitions.values():
            self._unwatch(wanted)
        self.partitions = {}


Watchers = dict[Replica, dict[FetchSession, SessionPartition]]
"""The sessions that are notified when a replica moves, each with the partition that the replica
serves; by replica."""


@final
class FetchSessions:
    """All sessions of one broker.  Bounded by max.incremental.fetch.session.cache.slots."""

    __slots__ = ("_rng", "_sessions", "_view", "watchers")

    def __init__(self, view: BrokerView, rng: Rng) -> None:
        self._view = view
        self._rng = rng
        self._sessions: dict[int, FetchSession] = {}
        """The sessions by id, the least recently used first."""
        self.watchers: Watchers = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def session_of(
        self, body: m.FetchRequest, version: int, now_ms: int
    ) -> FetchSession | ErrorCode | None:
        """The session that a fetch starts or continues, updated with the partitions that it names;
        None: the fetch has no session.

        Kafka: FetchManager.newContext.
        """
        by_id = version >= FIRST_VERSION_WITH_TOPIC_IDS
        session_id, session_epoch = body.session_id, body.session_epoch
        if session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if session_id:
                self.remove(session_id)
            if session_epoch == FINAL_EPOCH:
                return None
            session = self._create(Reader(body, version).is_follower, by_id, now_ms)
            if session is not None:
                session.update(body, self._view.image)
            return session
        existing = self._find(session_id, session_epoch, by_id, now_ms)
        if not isinstance(existing, FetchSession):
            return existing
        if existing.parked is not None:
            existing.parked.supersede()
        if body.topics or body.forgotten_topics_data:
            existing.update(body, self._view.image)
        if not existing.partitions:
            self.remove(existing.session_id)
            return None
        return existing

    def _find(
        self, session_id: int, epoch: int, uses_topic_ids: bool, now_ms: int
    ) -> FetchSession | ErrorCode:
        session = self._sessions.get(session_id)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if session.uses_topic_ids != uses_topic_ids:
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        session.epoch = 1 if epoch == MAX_EPOCH else epoch + 1
        if session.last_used_ms != now_ms:
            session.last_used_ms = now_ms
            self._sessions[session_id] = self._sessions.pop(session_id)
        return session

    def _create(self, is_follower: bool, uses_topic_ids: bool, now_ms: int) -> FetchSession | None:
        """Create a session; None if there is no room, so that the fetch is served without one."""
        if not self._make_room(is_follower, now_ms):
            return None
        session_id = 0
        while session_id == 0 or session_id in self._sessions:
            session_id = self._rng.randrange(0x7FFFFFFF)
        session = FetchSession(session_id, is_follower, uses_topic_ids, now_ms, self.watchers)
        self._sessions[session_id] = session
        return session

    def _make_room(self, is_follower: bool, now_ms: int) -> bool:
        """Evict the least recently used session that is stale; for a follower, a consumer's session
        is evicted even if it is not stale. Returns whether there is room for another session.

        Kafka: FetchSessionCache.tryEvict.
        """
        slots = self._view.config.max_incremental_fetch_session_cache_slots
        if len(self._sessions) < slots:
            return True
        for session in self._sessions.values():
            stale = now_ms - session.last_used_ms > MIN_EVICTION_MS
            if stale or (is_follower and not session.is_follower):
                self.remove(session.session_id)
                return True
        return False

    def forget_answer(self, session_id: int) -> None:
        """Have the next answer repeat the content of the last one, which was not sent."""
        session = self._sessions.get(session_id)
        if session is not None:
            for wanted in session.moved:
                wanted.sent_high_watermark = -1

    def peek(self, session_id: int) -> list[SessionPartition]:
        """The partitions that a session has named so far; empty if there is no such session."""
        session = self._sessions.get(session_id)
        return [] if session is None else list(session.partitions.values())

    def remove(self, session_id: int) -> None:
        """Close a session; no error if there is none."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.close()


def named_partitions(
    image: MetadataImage, body: m.FetchRequest, by_id: bool
) -> dict[PartitionKey, SessionPartition]:
    """The partitions that a request without a session names, in its order."""
    named: dict[PartitionKey, SessionPartition] = {}
    for topic in body.topics:
        name, topic_id = _name_and_id(image, topic, by_id)
        for requested in topic.partitions:
            key: PartitionKey = (topic_id if by_id else name, requested.partition)
            named[key] = SessionPartition(key, name, topic_id, requested)
    return named


def _name_and_id(
    image: MetadataImage, topic: m.FetchRequest.FetchTopic, by_id: bool
) -> tuple[str, bytes]:
    """(name, id) of a topic, of which the request has one."""
    if by_id:
        return image.topic_names.get(topic.topic_id, ""), topic.topic_id
    known = image.topics.get(topic.topic)
    return topic.topic, ZERO_UUID if known is None else known.topic_id
