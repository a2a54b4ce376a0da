"""What coordinators do in bulk: a log is loaded, a large group settles.

Owns: these cases and their input.  Never: measures time (micro.py).
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from bench.micro_cases import Call, Case
from kcluster.broker.node import BrokerNode
from kcluster.config.topology.model import Topology
from kcluster.contract import Reply, Request
from kcluster.deaths import ProcessState
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.runtime.build import build
from kcluster.runtime.dispatch import Dispatcher
from kcluster.runtime.process import Process

TOPIC: Final = "orders"
GROUPS: Final = 1_000
OFFSETS_OF_EACH: Final = 10
MEMBERS: Final = 1_000
START_US: Final = 5_000_000
MEMBER_ID_REQUIRED: Final = 79


class Members:
    """The client side of a dispatcher: replies by connection, in the order in which they come."""

    def __init__(self) -> None:
        self.replies: deque[Reply] = deque()

    def reply(self, node_id: int, reply: Reply) -> None:
        self.replies.append(reply)

    def close_connection(self, node_id: int, connection_id: int, reason: str) -> None:
        raise AssertionError(reason)

    def new_ports(self, node_id: int, count: int) -> tuple[int, ...]:
        raise AssertionError("no broker moves")

    def outside_clients(self, pattern: str, by_host: bool) -> tuple[int, ...]:
        return ()

    def process_changed(self, process: Process, was: ProcessState) -> None:
        pass

    def accept_clients(self, node_id: int) -> None:
        pass


class Groups:
    """Three brokers, and the one that coordinates all groups."""

    def __init__(self) -> None:
        topology = Topology.of(
            brokers=3,
            topics={TOPIC: {"partitions": OFFSETS_OF_EACH}},
            profile="fast",
            config={"offsets.topic.num.partitions": 1},
        )
        plan = build(topology, 1, {1: [9092], 2: [9093], 3: [9094]})
        self.members = Members()
        self.dispatcher = Dispatcher(plan.fabric, plan.processes, self.members)
        self.dispatcher.at(0)
        for process in plan.processes:
            self.dispatcher.start(process.node_id)
        self.dispatcher.at(START_US)
        found = self.ask(
            1, ApiKey.FIND_COORDINATOR, 4, m.FindCoordinatorRequest(coordinator_keys=["g"])
        )
        assert found.coordinators, "the first one creates the topic"
        self.dispatcher.at(2 * START_US)
        self.node = next(
            process.node
            for process in plan.processes
            if isinstance(process.node, BrokerNode) and process.node.coordinator.shards
        )

    def ask(self, broker: int, key: ApiKey, version: int, body: Any) -> Any:
        """The answer of one request, which comes within the dispatch."""
        self.send(broker, 1, key, version, body)
        return self.members.replies.popleft().body

    def send(self, broker: int, connection: int, key: ApiKey, version: int, body: Any) -> None:
        self.dispatcher.dispatch(broker, Request(connection, key, version, 7, "bench", body))


def loading_offsets() -> Call:
    """A new leader of `__consumer_offsets` reads the offsets of 1,000 groups."""
    groups = Groups()
    for number in range(GROUPS):
        partitions = [
            m.OffsetCommitRequest.OffsetCommitRequestPartition(
                partition_index=index, committed_offset=number
            )
            for index in range(OFFSETS_OF_EACH)
        ]
        topic = m.OffsetCommitRequest.OffsetCommitRequestTopic(name=TOPIC, partitions=partitions)
        body = m.OffsetCommitRequest(group_id=f"group-{number}", topics=[topic])
        groups.ask(groups.node.node_id, ApiKey.OFFSET_COMMIT, 8, body)
    now_ms = groups.dispatcher.now_ms

    def call() -> None:
        shard = groups.node.coordinator.new_shard(0)
        shard.load(now_ms)
        assert len(shard.groups) == GROUPS

    return call


def settling_group() -> Call:
    """1,000 members of a classic group join, its leader assigns, all get their assignment."""
    groups = Groups()
    broker, replies = groups.node.node_id, groups.members.replies
    rounds = iter(range(10**6))

    def call() -> None:
        name = f"group-{next(rounds)}"
        for connection in range(MEMBERS):
            groups.send(broker, connection, ApiKey.JOIN_GROUP, 9, _join(name, ""))
        generations: dict[int, int] = {}
        while len(generations) < MEMBERS:
            if not replies:
                groups.dispatcher.at(groups.dispatcher.now_us + 10_000)
                continue
            reply = replies.popleft()
            connection, answer = reply.request.connection_id, reply.body
            if isinstance(answer, m.SyncGroupResponse):
                assert not answer.error_code
                assert answer.assignment
                generations[connection] = reply.request.body.generation_id
            elif answer.error_code == MEMBER_ID_REQUIRED:
                body = _join(name, answer.member_id)
                groups.send(broker, connection, ApiKey.JOIN_GROUP, 9, body)
            else:
                assert not answer.error_code
                groups.send(broker, connection, ApiKey.SYNC_GROUP, 5, _sync(name, answer))
        assert set(generations.values()) == {1}

    return call


def _join(group: str, member_id: str) -> Any:
    protocol = m.JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0")
    return m.JoinGroupRequest(
        group_id=group,
        session_timeout_ms=45_000,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[protocol],
    )


def _sync(group: str, joined: Any) -> Any:
    return m.SyncGroupRequest(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[
            m.SyncGroupRequest.SyncGroupRequestAssignment(member.member_id, b"all of it")
            for member in joined.members
        ],
    )


def coordinator_cases() -> dict[str, Case]:
    """Every case by its name."""
    return {
        "load 10,000 committed offsets": loading_offsets,
        "a classic group of 1,000 members settles": settling_group,
    }
