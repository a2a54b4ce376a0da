"""Members of a streams group (KIP-1071), as threads of a Kafka Streams application would be one.

    a, b = StreamsThread(broker, "a", WORDS), StreamsThread(broker, "b", WORDS)
    a.join()
    broker.at(3_000)               # the initial rebalance delay is over
    settle(a, b)                   # until nothing changes any more
    assert a.active == ["0_0", "0_2"]

Owns: StreamsGroupHeartbeat as one member sends it, and a broker that serves it.  Never: sends
anything by itself.

`broker` is a GroupBroker, or anything with its `call`.
"""

from __future__ import annotations

from typing import Any

from kcluster.metadata.records import FeatureLevelRecord
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode, error_of
from kcluster.protocol.features import STREAMS_VERSION
from tests.broker.coordinator.group_broker import GroupBroker, fresh_broker

Heartbeat = m.StreamsGroupHeartbeatRequest


class StreamsThread:
    """One member.  `active`, `standby`: the tasks that it has, as `subtopology_partition`."""

    def __init__(
        self,
        broker: Any,
        member_id: str,
        topology: m.StreamsGroupHeartbeatRequest.Topology,
        group: str = "g",
        process_id: str = "",
        **more: Any,
    ) -> None:
        self.broker = broker
        self.member_id = member_id
        self.topology = topology
        self.group = group
        self.first = {"process_id": process_id or member_id, "rebalance_timeout_ms": 60_000, **more}
        """Of the heartbeat that joins."""
        self.epoch = 0
        self.active: list[str] = []
        self.standby: list[str] = []
        self.answer: Any = None
        """The last one."""

    def join(self, **more: Any) -> ErrorCode:
        """Join, or join again: without tasks."""
        self.epoch, self.active, self.standby = 0, [], []
        return self.send(topology=self.topology, **{**self.first, **more})

    def beat(self, **more: Any) -> ErrorCode:
        """Heartbeat with the tasks that it has."""
        return self.send(**more)

    def leave(self, **more: Any) -> ErrorCode:
        return self.take(self.broker.call(self._request(-1, **more)))

    def send(self, **more: Any) -> ErrorCode:
        return self.take(self.broker.call(self.heartbeat(**more)))

    def heartbeat(self, **more: Any) -> m.StreamsGroupHeartbeatRequest:
        """The request."""
        owned = {
            "active_tasks": listed(self.active),
            "standby_tasks": listed(self.standby),
            "warmup_tasks": [],
        }
        return self._request(self.epoch, **{**owned, **more})

    def _request(self, epoch: int, **more: Any) -> m.StreamsGroupHeartbeatRequest:
        return Heartbeat(group_id=self.group, member_id=self.member_id, member_epoch=epoch, **more)

    def take(self, answer: Any) -> ErrorCode:
        """Obey an answer: the epoch, and the tasks that it has from now on."""
        self.answer = answer
        error = error_of(answer.error_code)
        if error is ErrorCode.NONE:
            self.epoch = answer.member_epoch
            if answer.active_tasks is not None:
                self.active = names(answer.active_tasks)
                self.standby = names(answer.standby_tasks)
        return error

    @property
    def statuses(self) -> list[int]:
        """The statuses of the last answer."""
        return [status.status_code for status in self.answer.status]


def streams_broker(**config: Any) -> GroupBroker:
    """A broker of a cluster with streams groups, that leads `lines`, of three partitions."""
    broker = fresh_broker(**config)
    broker.publish([FeatureLevelRecord(STREAMS_VERSION, 1)])
    broker.create_topic("lines", 3)
    return broker


def names(rows: list[Any]) -> list[str]:
    """Tasks of an answer as Kafka Streams writes them."""
    return [f"{row.subtopology_id}_{one}" for row in rows for one in row.partitions]


def listed(tasks: list[str]) -> list[m.StreamsGroupHeartbeatRequest.TaskIds]:
    """The same as a request has them."""
    by_id: dict[str, list[int]] = {}
    for task in tasks:
        subtopology_id, _, partition = task.rpartition("_")
        by_id.setdefault(subtopology_id, []).append(int(partition))
    return [Heartbeat.TaskIds(*each) for each in by_id.items()]


def settle(*threads: StreamsThread) -> None:
    """Let them heartbeat in turns until all have one epoch and nothing changes any more."""
    for _ in range(10):
        before = [(each.epoch, each.active, each.standby) for each in threads]
        for each in threads:
            error = each.beat()
            assert error is ErrorCode.NONE, error
        after = [(each.epoch, each.active, each.standby) for each in threads]
        if after == before and len({each.epoch for each in threads}) == 1:
            return
    raise AssertionError(f"never settled: {after}")
