"""Groups on three real brokers in virtual time: what a failover of the coordinator keeps."""

from __future__ import annotations

from typing import Any

from kcluster.broker.node import BrokerNode
from kcluster.config.topology.model import Topology
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.names import GROUP_METADATA_TOPIC
from tests.broker.coordinator.members import Consumer
from tests.rig.cluster import Answer, VirtualRig
from tests.rig.requests import api_of, commit_request

TOPOLOGY = """
profile: fast
config: {offsets.topic.num.partitions: 3}
brokers: 3
topics:
  orders: {partitions: 3, replication_factor: 3}
"""


class Broker:
    """One of the three, as a member of a group talks to it."""

    def __init__(self, rig: VirtualRig, broker_id: int) -> None:
        self.rig = rig
        self.id = broker_id
        self.others = [other for other in (1, 2, 3) if other != broker_id]

    def post(self, body: Any, version: int | None = None, client_id: str = "c") -> Answer:
        return self.rig.ask(self.id, *api_of(body, version), body)

    def answer(self, request: Answer) -> Any:
        return request.body

    def call(self, body: Any, version: int | None = None) -> Any:
        """Send a request and wait for the answer."""
        request = self.post(body, version)
        self.rig.wait(lambda: request.body is not None, "answer", limit_ms=5_000)
        return request.body

    def committed(self, group: str) -> int:
        group_type = m.OffsetFetchRequest.OffsetFetchRequestGroup
        request = m.OffsetFetchRequest(groups=[group_type(group_id=group, topics=None)])
        (found,) = self.call(request, 9).groups
        if found.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            self.rig.run_for(20)
            return self.committed(group)
        assert found.error_code == ErrorCode.NONE
        return int(found.topics[0].partitions[0].committed_offset) if found.topics else -1


def coordinator(rig: VirtualRig, via: int) -> Broker:
    """The coordinator of group `g`, asked of broker `via` until it knows."""
    request = m.FindCoordinatorRequest(coordinator_keys=["g"])
    for _ in range(200):
        (found,) = Broker(rig, via).call(request, 4).coordinators
        if found.error_code == ErrorCode.NONE:
            return Broker(rig, found.node_id)
        rig.run_for(10)
    raise AssertionError("no coordinator")


def started() -> tuple[VirtualRig, Broker]:
    """A cluster, and the coordinator of group `g`."""
    rig = VirtualRig(Topology.parse(TOPOLOGY, "test"), seed=5)
    rig.open()
    rig.run_for(500)
    first = coordinator(rig, via=1)
    # Followers have fetched the new topic's partitions from their leaders.
    rig.run_for(200)
    return rig, first


def member(broker: Broker) -> Consumer:
    return Consumer(broker, session_timeout_ms=1000, rebalance_timeout_ms=1000)


def test_real_brokers__killed_coordinator_loses_no_offset_and_no_member() -> None:
    rig, first = started()
    a = member(first).join()
    rig.wait(lambda: a.joined is not None, "generation")
    assert a.joined.generation_id == 1
    a.sync()
    rig.wait(lambda: a.synced is not None, "part")
    assert a.synced.error_code == ErrorCode.NONE
    assert a.commit(42) is ErrorCode.NONE

    rig.kill(first.id)
    rig.run_for(500)
    second = coordinator(rig, via=first.others[0])
    assert second.id != first.id
    assert second.committed("g") == 42
    a.broker = second
    assert a.heartbeat() is ErrorCode.NONE


def test_real_brokers__a_moved_coordinator_redirects_waiting_members() -> None:
    rig, first = started()
    waiting = member(first).join(version=3)
    rig.run_for(1)
    assert waiting.is_joining
    node = rig.dispatcher.processes[first.id].node
    assert isinstance(node, BrokerNode)
    partition = node.coordinator.partition_for("g")
    to = first.others[0]
    rig.move(GROUP_METADATA_TOPIC, partition, to=to)
    rig.run_for(50)
    assert waiting.joined.error_code == ErrorCode.NOT_COORDINATOR
    assert coordinator(rig, via=first.id).id == to


def test_real_brokers__coordinator_cut_off_from_followers_commits_nothing() -> None:
    rig, first = started()
    first.call(commit_request("g", 1), 9)
    rig.cut_off(first.id)
    sent = first.post(commit_request("g", 2), 9)
    rig.run_for(1000)
    assert sent.error == "COORDINATOR_NOT_AVAILABLE"
    assert first.committed("g") == 1
    second = coordinator(rig, via=first.others[0])
    assert second.id in first.others
    assert second.committed("g") == 1

    rig.heal()
    rig.run_for(500)
    second.call(commit_request("g", 3), 9)
    assert second.committed("g") == 3
