"""Share sessions: the partitions that a member of a share group fetches from this broker.

Owns: the sessions, their epochs, and the choice of partitions that an answer must name.  Never:
acquires or releases a record (the callers do).  Kafka: ShareSessionCache, ShareSession,
SharePartitionManager.newContext; KIP-932.

A session belongs to a group's member and lives as long as its connection.
"""

from __future__ import annotations

from typing import Final, NamedTuple, final

from kcluster.broker.coordinator.share_state.state import SharePartition
from kcluster.broker.ports import BrokerView
from kcluster.broker.purgatory import DelayedOperation
from kcluster.protocol.errors import ErrorCode

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_MAX_EPOCH: Final = 0x7FFFFFFF


PartitionKey = tuple[bytes, int]
"""(topic id, partition)."""


class TopicIdPartition(NamedTuple):
    """A partition that a request names.  `topic`: the name of the topic id at that time; empty if
    unknown."""

    topic_id: bytes
    partition: int
    topic: str


class ParkedShareFetch(DelayedOperation):
    """A share fetch that waits for records or for a store; handlers/share/share_fetch.py answers
    it."""

    __slots__ = ()

    def abandon(self) -> None:
        """Stop waiting without an answer, because the client is gone."""
        raise AssertionError("a subclass knows where it is registered")


@final
class ShareSession:
    """The session of one member.

    `partitions`: the fetched partitions, in order.  `unanswered`: partitions that the next answer
    must name even without news, because they were added since the first fetch, or were reported
    with an error.
    """

    __slots__ = ("connection_id", "epoch", "group_id", "member_id", "partitions", "unanswered")

    def __init__(self, group_id: str, member_id: str, connection_id: int) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.connection_id = connection_id
        self.epoch = INITIAL_EPOCH + 1
        self.partitions: dict[PartitionKey, TopicIdPartition] = {}
        self.unanswered: dict[PartitionKey, None] = {}

    def add(self, named: TopicIdPartition, must_answer: bool) -> None:
        """Fetch a partition from now on."""
        key = named.topic_id, named.partition
        if key not in self.partitions:
            self.partitions[key] = named
            if must_answer:
                self.unanswered[key] = None

    def forget(self, key: PartitionKey) -> None:
        """Stop fetching a partition."""
        self.partitions.pop(key, None)
        self.unanswered.pop(key, None)

    def key_of(self, named: TopicIdPartition) -> SharePartition:
        """This group's share partition of a partition."""
        return SharePartition(self.group_id, named.topic_id, named.partition)

    def advance(self) -> None:
        """Move to the epoch of the next request."""
        self.epoch = 1 if self.epoch == _MAX_EPOCH else self.epoch + 1


@final
class ShareSessions:
    """All share sessions of one broker, at most group.share.max.share.sessions."""

    def __init__(self, view: BrokerView) -> None:
        self._view = view
        self._sessions: dict[tuple[str, str], ShareSession] = {}
        self._by_connection: dict[int, ShareSession] = {}
        """The last session that each connection has opened, even if it has since ended."""

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, group_id: str, member_id: str, connection_id: int) -> ShareSession | ErrorCode:
        """A new session in place of the member's last one, whose records stay acquired."""
        self._sessions.pop((group_id, member_id), None)
        if len(self._sessions) >= self._view.config.group_share_max_share_sessions:
            return ErrorCode.SHARE_SESSION_LIMIT_REACHED
        session = ShareSession(group_id, member_id, connection_id)
        self._sessions[group_id, member_id] = session
        self._by_connection[connection_id] = session
        return session

    def find(self, group_id: str, member_id: str, epoch: int) -> ShareSession | ErrorCode:
        """The session that a request continues; the request advances it, or ends it
        (FINAL_EPOCH)."""
        session = self._sessions.get((group_id, member_id))
        if session is None:
            return ErrorCode.SHARE_SESSION_NOT_FOUND
        if epoch != FINAL_EPOCH:
            if epoch != session.epoch:
                return ErrorCode.INVALID_SHARE_SESSION_EPOCH
            session.advance()
        return session

    def close(self, session: ShareSession) -> bool:
        """End a session; False if it had ended before."""
        key = session.group_id, session.member_id
        if self._sessions.get(key) is not session:
            return False
        del self._sessions[key]
        return True

    def of_connection(self, connection_id: int) -> ShareSession | None:
        """The last session that a connection, now closed, has opened."""
        return self._by_connection.pop(connection_id, None)

    def has_group(self, group_id: str) -> bool:
        """Whether any member of the group has a session."""
        return any(group == group_id for group, _ in self._sessions)
