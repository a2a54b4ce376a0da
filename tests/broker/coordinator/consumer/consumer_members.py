"""Members of a consumer group (KIP-848), as a client library would be one.

    a, b = ModernMember(broker, "a"), ModernMember(broker, "b")
    a.join()                       # a has everything
    b.join()                       # b has nothing yet
    a.beat()                       # a is asked to revoke some, and then has revoked it
    settle(a, b)                   # until nothing changes any more
    assert b.owned == {"orders": [3, 4, 5]}

Owns: ConsumerGroupHeartbeat as one member sends it.  Never: plays the broker; sends anything by
itself.

`broker` is a GroupBroker, or anything with its `call` and `image`.
"""

from __future__ import annotations

from typing import Any

from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode, error_of

Partitions = m.ConsumerGroupHeartbeatRequest.TopicPartitions


class ModernMember:
    """One member.  `owned`: what it has, by topic name; `epoch`: its member epoch."""

    def __init__(
        self,
        broker: Any,
        member_id: str,
        group: str = "g",
        topics: tuple[str, ...] | None = ("orders",),
        **more: Any,
    ) -> None:
        self.broker = broker
        self.member_id = member_id
        self.group = group
        self.topics = None if topics is None else list(topics)
        self.more = more
        """Other fields of the first heartbeat."""
        self.epoch = 0
        self.owned: dict[str, list[int]] = {}
        self._topic_ids: dict[str, bytes] = {}
        self.answer: Any = None
        """The last one."""

    def join(self, version: int = 1, **more: Any) -> ErrorCode:
        """Join, or join again: without partitions."""
        self.epoch, self.owned = 0, {}
        first = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": self.topics}
        return self.send(version, **{**first, **self.more, **more})

    def beat(self, version: int = 1, **more: Any) -> ErrorCode:
        """Heartbeat with what it owns."""
        return self.send(version, **more)

    def post_join(self, **more: Any) -> None:
        """As `join`, if the answer may still be to come: then the member does not know it."""
        self.epoch, self.owned = 0, {}
        first = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": self.topics}
        self.post(**{**first, **self.more, **more})

    def post(self, **more: Any) -> None:
        """A heartbeat of which the answer may still be to come."""
        request = self.broker.post(self.heartbeat(**more), 1)
        answer = self.broker.answer(request)
        if answer is not None:
            self.take(answer)

    def leave(self, epoch: int = -1) -> ErrorCode:
        self.epoch = epoch
        return self.send(1, instance_id=self.more.get("instance_id"))

    def send(self, version: int, **more: Any) -> ErrorCode:
        return self.take(self.broker.call(self.heartbeat(**more), version))

    def heartbeat(self, **more: Any) -> m.ConsumerGroupHeartbeatRequest:
        """The request."""
        if "instance_id" in self.more:
            more.setdefault("instance_id", self.more["instance_id"])
        more.setdefault("topic_partitions", [self._entry(name) for name in self.owned])
        return m.ConsumerGroupHeartbeatRequest(
            group_id=self.group, member_id=self.member_id, member_epoch=self.epoch, **more
        )

    def _entry(self, name: str) -> Partitions:
        if name not in self._topic_ids:
            self._topic_ids[name] = self.broker.image.topics[name].topic_id
        return Partitions(self._topic_ids[name], self.owned[name])

    def take(self, answer: Any) -> ErrorCode:
        """Obey an answer: the epoch, and what it has from now on."""
        self.answer = answer
        error = error_of(answer.error_code)
        if error is not ErrorCode.NONE:
            return error
        self.member_id = answer.member_id or self.member_id
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            names = self.broker.image.topic_names
            self._topic_ids = {name: topic_id for topic_id, name in names.items()}
            self.owned = {
                names[one.topic_id]: list(one.partitions)
                for one in answer.assignment.topic_partitions
            }
        return error


def settle(*members: ModernMember) -> None:
    """Heartbeats in turn, until none changes anything; the assignment interval passes before."""
    broker = members[0].broker
    broker.at(broker.now_ms + 1_000)
    for _ in range(10):
        before = [(one.epoch, one.owned) for one in members]
        for member in members:
            assert member.beat() is ErrorCode.NONE, member.answer
        if [(one.epoch, one.owned) for one in members] == before:
            return
    raise AssertionError("the group does not settle")


def owned_by(*members: ModernMember) -> list[list[int]]:
    """The partitions of `orders` of each member."""
    return [sorted(one.owned.get("orders", [])) for one in members]
