"""Members of a group, as a client library would be one.

    a, b = Consumer(broker, name="a").join(), Consumer(broker, name="b").join()
    broker.at(6_000)
    settle(a, b)                   # both are in generation 1 and have their parts
    a.commit(42)
    assert committed(broker, "g") == 42

Owns: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, OffsetCommit and OffsetFetch as one member sends
them.  Never: plays the broker; sends anything by itself: no retry, no heartbeat in the background.

`broker` is a GroupBroker, or anything with its `post`, `answer` and `call`.
"""

from __future__ import annotations

from typing import Any

from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode, error_of
from tests.rig.requests import commit_request, offset_fetch_request


class Consumer:
    """One member.  `join` and `sync` return at once; `joined` and `synced`: the answers so far."""

    def __init__(
        self,
        broker: Any,
        group: str = "g",
        instance_id: str | None = None,
        protocols: dict[str, bytes] | None = None,
        session_timeout_ms: int = 10_000,
        rebalance_timeout_ms: int = 60_000,
        protocol_type: str = "consumer",
        name: str = "c",
    ) -> None:
        self.broker = broker
        self.group = group
        self.instance_id = instance_id
        self.protocols = protocols or {"range": subscription("orders")}
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.protocol_type = protocol_type
        self.name = name
        self.member_id = ""
        self.generation = -1
        self.joining: Any = None
        self.syncing: Any = None

    def join(self, version: int = 9) -> Consumer:
        """Send JoinGroup; with MEMBER_ID_REQUIRED, once more with the id."""
        self.joining = self._send_join(version)
        answer = self.broker.answer(self.joining)
        if answer is not None and answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            self.joining = self._send_join(version)
        return self

    def _send_join(self, version: int) -> Any:
        protocol = m.JoinGroupRequest.JoinGroupRequestProtocol
        return self.broker.post(
            m.JoinGroupRequest(
                group_id=self.group,
                session_timeout_ms=self.session_timeout_ms,
                rebalance_timeout_ms=self.rebalance_timeout_ms,
                member_id=self.member_id,
                group_instance_id=self.instance_id,
                protocol_type=self.protocol_type,
                protocols=[protocol(name=n, metadata=d) for n, d in self.protocols.items()],
            ),
            version,
            client_id=self.name,
        )

    @property
    def joined(self) -> Any:
        """The answer to JoinGroup, or None while it waits; takes over id and generation."""
        assert self.joining is not None
        answer = self.broker.answer(self.joining)
        if answer is not None and answer.error_code == ErrorCode.NONE:
            self.member_id = answer.member_id
            self.generation = answer.generation_id
        return answer

    def sync(self, assignment: dict[str, bytes] | None = None, version: int = 5) -> Consumer:
        one = m.SyncGroupRequest.SyncGroupRequestAssignment
        self.syncing = self.broker.post(
            m.SyncGroupRequest(
                group_id=self.group,
                generation_id=self.generation,
                member_id=self.member_id,
                group_instance_id=self.instance_id,
                protocol_type=self.protocol_type,
                protocol_name=next(iter(self.protocols)),
                assignments=[one(member_id=k, assignment=v) for k, v in (assignment or {}).items()],
            ),
            version,
        )
        return self

    @property
    def synced(self) -> Any:
        assert self.syncing is not None
        return self.broker.answer(self.syncing)

    @property
    def is_joining(self) -> bool:
        """JoinGroup is unanswered."""
        return self.joined is None

    @property
    def is_syncing(self) -> bool:
        """SyncGroup is unanswered."""
        return self.synced is None

    def post_heartbeat(self, generation: int | None = None) -> Any:
        """Send Heartbeat; returns the request."""
        return self.broker.post(
            m.HeartbeatRequest(
                group_id=self.group,
                generation_id=self.generation if generation is None else generation,
                member_id=self.member_id,
                group_instance_id=self.instance_id,
            )
        )

    def heartbeat(self, generation: int | None = None) -> ErrorCode:
        """The answer to Heartbeat, which must come at once."""
        answer = self.broker.answer(self.post_heartbeat(generation))
        assert answer is not None, "parked"
        return error_of(answer.error_code)

    def leave(self, version: int = 5) -> ErrorCode:
        identity = m.LeaveGroupRequest.MemberIdentity
        if version < 3:
            answer = self.broker.call(
                m.LeaveGroupRequest(group_id=self.group, member_id=self.member_id), version
            )
            return error_of(answer.error_code)
        answer = self.broker.call(
            m.LeaveGroupRequest(
                group_id=self.group,
                members=[identity(member_id=self.member_id, group_instance_id=self.instance_id)],
            ),
            version,
        )
        return error_of(answer.error_code or answer.members[0].error_code)

    def commit(self, offset: int, partition: int = 0, topic: str = "orders") -> ErrorCode:
        answer = self.broker.call(self.commit_request(offset, partition, topic), 9)
        return error_of(answer.topics[0].partitions[0].error_code)

    def commit_request(self, offset: int, partition: int = 0, topic: str = "orders") -> Any:
        return commit_request(
            self.group,
            offset,
            partition,
            topic,
            generation=self.generation,
            member_id=self.member_id,
            instance_id=self.instance_id,
        )


def committed(broker: Any, group: str, partition: int = 0, topic: str = "orders") -> int:
    """The group's offset, by OffsetFetch; -1 for none."""
    answer = broker.call(offset_fetch_request(group, partition, topic), 9)
    return int(answer.groups[0].topics[0].partitions[0].committed_offset)


def subscription(*topics: str) -> bytes:
    """ConsumerProtocolSubscription, version 0."""
    names = b"".join(len(t).to_bytes(2) + t.encode() for t in topics)
    return b"\0\0" + len(topics).to_bytes(4) + names + b"\xff\xff\xff\xff"


def settle(*consumers: Consumer) -> None:
    """All have been answered their JoinGroup: the leader assigns, all sync."""
    answers = [consumer.joined for consumer in consumers]
    assert all(a is not None and a.error_code == ErrorCode.NONE for a in answers), answers
    leader = next(c for c, a in zip(consumers, answers, strict=True) if a.leader == c.member_id)
    for consumer in consumers:
        if consumer is not leader:
            consumer.sync()
    leader.sync({c.member_id: f"part of {c.name}".encode() for c in consumers})
    assert all(c.synced.error_code == ErrorCode.NONE for c in consumers)
