"""What is recorded of groups: every change, at a cost that does not grow with the members."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from kcluster.broker.node import BrokerNode
from kcluster.config.topology.model import Topology
from kcluster.evidence.coordinator_states import LARGE_GROUP, CoordinatorStates
from kcluster.evidence.sampling import LOOK_MS, SamplingRecorder
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from tests.rig.cluster import TOPIC, VirtualRig
from tests.rig.counting import calls_of


class LargeGroup:
    """A consumer group whose members join at one moment."""

    def __init__(self) -> None:
        self.t = VirtualRig(Topology.of(brokers=1, topics={TOPIC: {"partitions": 10}}))
        self.t.open()
        self.t.run_for(1_000)
        find = m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
        self.t.ask_and_wait(1, ApiKey.FIND_COORDINATOR, 4, find)
        self.t.run_for(1_000)
        self.states = CoordinatorStates({})
        self.joined = 0
        self.line = self.t.line(1)

    def heartbeat(self, number: int, epoch: int) -> Any:
        body = m.ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id=f"member-{number}",
            member_epoch=epoch,
            rebalance_timeout_ms=60_000 if epoch == 0 else -1,
            subscribed_topic_names=[TOPIC] if epoch == 0 else None,
            topic_partitions=[] if epoch == 0 else None,
        )
        answer = self.t.ask_and_wait(1, ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, body)
        assert not answer.error_code, answer
        return answer

    def join(self) -> None:
        self.joined += 1
        self.heartbeat(self.joined, 0)

    def look(self) -> None:
        node = self.t.dispatcher.processes[1].node
        assert isinstance(node, BrokerNode)
        self.states.look(self.t.now_ms, node)

    @property
    def rows(self) -> int:
        return len(self.states.groups.rows)


@pytest.mark.pure_python  # compiled functions are not counted
def test_look__reads_the_member_that_joined_not_all_others_again() -> None:
    group = LargeGroup()
    costs = []
    for size in (10, 50):
        while group.joined < size:
            group.join()
        group.look()
        group.join()
        costs.append(calls_of(group.look))
    assert costs[1] - costs[0] <= 40, "each other member is compared, for the group's state"


def test_look__sees_each_change_once() -> None:
    group = LargeGroup()
    group.join()
    group.look()
    rows = group.rows
    group.look()
    assert group.rows == rows
    group.join()
    group.look()
    assert group.rows == rows + 1
    assert [one.id for one in group.states.groups.newest["g"].members] == ["member-1", "member-2"]
    group.heartbeat(1, -1)
    group.look()
    assert [one.id for one in group.states.groups.newest["g"].members] == ["member-2"]


@pytest.mark.pure_python  # compiled functions are not counted
def test_recorder__sees_members_of_a_large_group_that_join_one_by_one_together() -> None:
    group = LargeGroup()
    recorder = SamplingRecorder(group.t.dispatcher, group.t.plan)

    def join_until(count: int) -> None:
        while group.joined < count:
            group.join()

    costs = []
    for size in (LARGE_GROUP, 2 * LARGE_GROUP):
        join_until(size)
        costs.append(calls_of(partial(join_until, size + 10)))
    assert costs[1] - costs[0] <= 10, "no member reads all others again"
    group.t.run_for(LOOK_MS)
    assert len(recorder.states.groups.newest["g"].members) == group.joined
