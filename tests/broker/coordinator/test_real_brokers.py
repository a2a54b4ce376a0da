"""Groups on three real brokers in virtual time: what a failover of the coordinator keeps."""

from __future__ import annotations

from typing import Any

from kcluster.config.topology.model import Topology
from kcluster.drivers.virtual import VirtualDriver
from kcluster.drivers.wires.virtual import ClientWire
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.names import GROUP_METADATA_TOPIC
from tests.broker.coordinator.members import commit_request, subscription

TOPOLOGY = """
profile: fast
config: {offsets.topic.num.partitions: 3}
brokers: 3
topics:
  orders: {partitions: 3, replication_factor: 3}
"""


class Asker:
    """A client that sends one request after the other, each to a chosen broker."""

    deadline_ms: int | None = None

    def __init__(self, driver: VirtualDriver) -> None:
        self.driver = driver
        self.answers: dict[int, Any] = {}
        self.wire: ClientWire = driver.add_client(self)

    def start(self, wire: ClientWire, now_ms: int) -> None:
        self.wire = wire

    def on_reply(self, broker_id: int, correlation_id: int, body: Any, now_ms: int) -> None:
        self.answers[correlation_id] = body

    def on_disconnected(self, broker_id: int, now_ms: int) -> None:
        pass

    def on_tick(self, now_ms: int) -> None:
        pass

    def send(self, broker_id: int, api_key: ApiKey, version: int, body: Any) -> int:
        return self.wire.send(broker_id, api_key, version, body)

    def ask(self, broker_id: int, api_key: ApiKey, version: int, body: Any) -> Any:
        sent = self.send(broker_id, api_key, version, body)
        assert self.driver.run_until_condition(lambda: sent in self.answers, 5_000)
        return self.answers[sent]

    def coordinator(self, of: str, via: int) -> int:
        """Broker id of the group's coordinator, asked of broker `via` until it knows."""
        request = m.FindCoordinatorRequest(coordinator_keys=[of])
        for _ in range(200):
            (found,) = self.ask(via, ApiKey.FIND_COORDINATOR, 4, request).coordinators
            if found.error_code == ErrorCode.NONE:
                return int(found.node_id)
            self.driver.run_for(10)
        raise AssertionError("no coordinator")

    def committed(self, broker_id: int, group: str) -> int:
        group_type = m.OffsetFetchRequest.OffsetFetchRequestGroup
        request = m.OffsetFetchRequest(groups=[group_type(group_id=group, topics=None)])
        (found,) = self.ask(broker_id, ApiKey.OFFSET_FETCH, 9, request).groups
        if found.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            self.driver.run_for(20)
            return self.committed(broker_id, group)
        assert found.error_code == ErrorCode.NONE
        return int(found.topics[0].partitions[0].committed_offset) if found.topics else -1


def started() -> tuple[VirtualDriver, Asker, int]:
    """A cluster, a client, and the coordinator of group `g`."""
    driver = VirtualDriver(Topology.parse(TOPOLOGY, "test"), seed=5)
    driver.open()
    driver.run_for(500)
    asker = Asker(driver)
    coordinator = asker.coordinator("g", via=1)
    # Followers have fetched the new topic's partitions from their leaders.
    driver.run_for(200)
    return driver, asker, coordinator


def join_alone(asker: Asker, broker_id: int) -> str:
    """Make group `g` stable with one member, in generation 1; its id."""
    protocol = m.JoinGroupRequest.JoinGroupRequestProtocol
    request = m.JoinGroupRequest(
        group_id="g",
        session_timeout_ms=1000,
        rebalance_timeout_ms=1000,
        protocol_type="consumer",
        protocols=[protocol(name="range", metadata=subscription("orders"))],
    )
    request.member_id = asker.ask(broker_id, ApiKey.JOIN_GROUP, 9, request).member_id
    joined = asker.ask(broker_id, ApiKey.JOIN_GROUP, 9, request)
    assert joined.generation_id == 1
    sync = m.SyncGroupRequest(
        group_id="g",
        generation_id=1,
        member_id=joined.member_id,
        protocol_type="consumer",
        protocol_name="range",
    )
    assert asker.ask(broker_id, ApiKey.SYNC_GROUP, 5, sync).error_code == ErrorCode.NONE
    return str(joined.member_id)


def test_real_brokers__killed_coordinator_loses_no_offset_and_no_member() -> None:
    driver, asker, first = started()
    member_id = join_alone(asker, first)
    commit = commit_request("g", 42, generation=1, member_id=member_id)
    answer = asker.ask(first, ApiKey.OFFSET_COMMIT, 9, commit)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE

    driver.kill(first)
    driver.run_for(500)
    second = asker.coordinator("g", via=first % 3 + 1)
    assert second != first
    assert asker.committed(second, "g") == 42
    beat = m.HeartbeatRequest(group_id="g", generation_id=1, member_id=member_id)
    assert asker.ask(second, ApiKey.HEARTBEAT, 4, beat).error_code == ErrorCode.NONE


def test_real_brokers__a_moved_coordinator_redirects_waiting_members() -> None:
    driver, asker, first = started()
    protocol = m.JoinGroupRequest.JoinGroupRequestProtocol
    waiting = asker.send(
        first,
        ApiKey.JOIN_GROUP,
        3,
        m.JoinGroupRequest(
            group_id="g",
            session_timeout_ms=1000,
            rebalance_timeout_ms=1000,
            protocol_type="consumer",
            protocols=[protocol(name="range")],
        ),
    )
    driver.run_for(1)
    topic = driver.plan.processes[0].node.image.topics[GROUP_METADATA_TOPIC]
    partition = next(
        p.partition for p in topic.partitions if p.leader == first and _is_of(driver, first, "g", p)
    )
    driver.move(GROUP_METADATA_TOPIC, partition, to=first % 3 + 1)
    driver.run_for(50)
    assert asker.answers[waiting].error_code == ErrorCode.NOT_COORDINATOR
    assert asker.coordinator("g", via=first) == first % 3 + 1


def _is_of(driver: VirtualDriver, broker_id: int, group: str, partition: Any) -> bool:
    node: Any = next(p.node for p in driver.plan.processes if p.node_id == broker_id)
    return bool(node.coordinator.partition_for(group) == partition.partition)


def test_real_brokers__coordinator_cut_off_from_followers_commits_nothing() -> None:
    driver, asker, first = started()
    asker.ask(first, ApiKey.OFFSET_COMMIT, 9, commit_request("g", 1))
    others = [broker for broker in (1, 2, 3) if broker != first]
    for other in (*others, 3000):
        driver.cut(first, other)
    sent = asker.send(first, ApiKey.OFFSET_COMMIT, 9, commit_request("g", 2))
    driver.run_for(1000)
    answer = asker.answers[sent].topics[0].partitions[0]
    assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert asker.committed(first, "g") == 1
    second = asker.coordinator("g", via=others[0])
    assert second in others
    assert asker.committed(second, "g") == 1

    driver.heal()
    driver.run_for(500)
    asker.ask(second, ApiKey.OFFSET_COMMIT, 9, commit_request("g", 3))
    assert asker.committed(second, "g") == 3
