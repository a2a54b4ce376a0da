"""Incremental fetch sessions: what a fetcher asked for, so that it need not say it again.

Owns: sessions, their epochs and eviction, and per session the partitions that may have news.
Never: reads a log (fetching.py does).  Kafka: FetchSession, FetchSessionCache; KIP-227.

A session is told when one of its replicas moves (`moved`, by replicas.py), so a fetch looks only at
partitions that were named in it or have moved since: ten thousand idle partitions cost nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

from kcluster.partition.replica import Replica
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kcluster.broker.fetching import Reader
    from kcluster.broker.handlers.fetch import PendingFetch
    from kcluster.broker.node import BrokerNode

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
MIN_EVICTION_MS: Final = 120_000
"""Kafka: FetchSession.MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS."""

PartitionKey = tuple[Any, int]
"""(topic id, or topic name before Fetch v13; partition)."""


@final
class SessionPartition:
    """One partition as its fetcher asked for it last, and what it was told last.

    `replica`: the one that serves it, while a session watches that; else None.
    """

    __slots__ = (
        "current_leader_epoch", "fetch_offset", "key", "last_fetched_epoch", "log_start_offset",
        "max_bytes", "partition", "replica", "sent_high_watermark", "sent_log_start_offset",
        "topic", "topic_id",
    )  # fmt: skip

    def __init__(
        self, key: PartitionKey, topic: str, topic_id: bytes, asked: m.FetchRequest.FetchPartition
    ) -> None:
        self.key = key
        self.topic = topic
        self.topic_id = topic_id
        self.partition: int = asked.partition
        self.replica: Replica | None = None
        self.sent_high_watermark = -1
        self.sent_log_start_offset = -1
        self.ask(asked)

    def ask(self, asked: m.FetchRequest.FetchPartition) -> None:
        """The fetcher names it, anew or again."""
        self.fetch_offset: int = asked.fetch_offset
        self.current_leader_epoch: int = asked.current_leader_epoch
        self.last_fetched_epoch: int = asked.last_fetched_epoch
        self.log_start_offset: int = asked.log_start_offset
        self.max_bytes: int = asked.partition_max_bytes


@final
class FetchSession:
    """The partitions of one fetcher, in the order in which they are to be served."""

    __slots__ = (
        "epoch", "is_closed", "is_follower", "last_used_ms", "moved", "parked", "partitions",
        "reader", "session_id", "uses_topic_ids",
    )  # fmt: skip

    def __init__(
        self, session_id: int, is_follower: bool, uses_topic_ids: bool, now_ms: int
    ) -> None:
        self.session_id = session_id
        self.epoch = INITIAL_EPOCH + 1
        self.is_follower = is_follower
        self.uses_topic_ids = uses_topic_ids
        self.is_closed = False
        self.last_used_ms = now_ms
        self.partitions: dict[PartitionKey, SessionPartition] = {}
        self.moved: dict[SessionPartition, None] = {}
        """Those that may have something to tell; all others have not."""
        self.parked: PendingFetch | None = None
        self.reader: Reader | None = None
        """Who fetched last; the next fetch is mostly by the same rules."""

    def watch(self, wanted: SessionPartition, replica: Replica) -> None:
        """Be told when `replica`, which serves `wanted`, moves."""
        if self.is_closed:
            # It made room for another while its last fetch was parked.
            return
        if wanted.replica is replica:
            return
        self._unwatch(wanted)
        wanted.replica = replica
        replica.sessions[self] = wanted

    def _unwatch(self, wanted: SessionPartition) -> None:
        replica, wanted.replica = wanted.replica, None
        if replica is not None:
            replica.sessions.pop(self, None)

    def forget(self, key: PartitionKey) -> None:
        """The fetcher no longer wants `key`."""
        wanted = self.partitions.pop(key, None)
        if wanted is not None:
            self.moved.pop(wanted, None)
            self._unwatch(wanted)

    def close(self) -> None:
        """Stop watching anything, for good."""
        self.is_closed = True
        for wanted in self.partitions.values():
            self._unwatch(wanted)
        self.partitions = {}


class FetchSessions:
    """All sessions of one broker.  Bounded by max.incremental.fetch.session.cache.slots."""

    def __init__(self, broker: BrokerNode) -> None:
        self._broker = broker
        self._sessions: dict[int, FetchSession] = {}
        """By session id, the least recently used first."""

    def __len__(self) -> int:
        return len(self._sessions)

    def find(
        self, session_id: int, epoch: int, uses_topic_ids: bool, now_ms: int
    ) -> FetchSession | ErrorCode:
        """The session that an incremental fetch goes on with.  Kafka: FetchManager.newContext."""
        session = self._sessions.get(session_id)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.epoch != epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if session.uses_topic_ids != uses_topic_ids:
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        session.epoch = 1 if epoch == 0x7FFFFFFF else epoch + 1
        if session.last_used_ms != now_ms:
            session.last_used_ms = now_ms
            self._sessions[session_id] = self._sessions.pop(session_id)
        return session

    def create(self, is_follower: bool, uses_topic_ids: bool, now_ms: int) -> FetchSession | None:
        """A new session, or None when there is no room for it: the fetch is served without."""
        if not self._make_room(is_follower, now_ms):
            return None
        session_id = 0
        while session_id == 0 or session_id in self._sessions:
            session_id = self._broker.rng.randrange(0x7FFFFFFF)
        session = FetchSession(session_id, is_follower, uses_topic_ids, now_ms)
        self._sessions[session_id] = session
        return session

    def _make_room(self, is_follower: bool, now_ms: int) -> bool:
        """Kafka: FetchSessionCache.tryEvict: the stale go first, and followers before consumers."""
        slots = self._broker.config.max_incremental_fetch_session_cache_slots
        if len(self._sessions) < slots:
            return True
        for session in self._sessions.values():
            stale = now_ms - session.last_used_ms > MIN_EVICTION_MS
            if stale or (is_follower and not session.is_follower):
                self.remove(session.session_id)
                return True
        return False

    def forget_answer(self, session_id: int) -> None:
        """The last answer was not sent: what it told is to be told again."""
        session = self._sessions.get(session_id)
        if session is not None:
            for wanted in session.moved:
                wanted.sent_high_watermark = -1

    def peek(self, session_id: int) -> list[SessionPartition]:
        """What a session has named so far; nothing if there is none."""
        session = self._sessions.get(session_id)
        return [] if session is None else list(session.partitions.values())

    def remove(self, session_id: int) -> None:
        """Close a session; no error if there is none."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.close()
