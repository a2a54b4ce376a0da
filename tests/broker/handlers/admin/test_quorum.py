"""DescribeQuorum and changes of voters, as a broker forwards them."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.protocol import messages as m
from kcluster.protocol.apis import VERSIONS, ApiKey
from kcluster.protocol.errors import ErrorCode
from tests.rig.cluster import CONTROLLER, Simulated
from tests.rig.one_broker import OneBroker, broker_records

FORWARDED = {
    ApiKey.DESCRIBE_QUORUM: m.DescribeQuorumRequest,
    ApiKey.ADD_RAFT_VOTER: m.AddRaftVoterRequest,
    ApiKey.REMOVE_RAFT_VOTER: m.RemoveRaftVoterRequest,
}


@pytest.mark.parametrize("api_key", FORWARDED)
def test_quorum__silence_of_the_controller_times_out(api_key: ApiKey) -> None:
    one = OneBroker(broker_records(1))
    assert one.ask(api_key, VERSIONS[api_key][1], FORWARDED[api_key]()) is None
    answer = one.pass_time(one.config.request_timeout_ms)
    assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT


def described(t: Simulated, version: int, broker: int = 2) -> Any:
    partition = m.DescribeQuorumRequest.PartitionData(partition_index=0)
    topic = m.DescribeQuorumRequest.TopicData("__cluster_metadata", [partition])
    request = m.DescribeQuorumRequest([topic])
    return t.ask(broker, ApiKey.DESCRIBE_QUORUM, version, request).body


def test_quorum__brokers_are_observers_of_the_metadata_log() -> None:
    t = Simulated()
    partition = described(t, 2).topics[0].partitions[0]
    assert partition.leader_id == CONTROLLER
    assert [voter.replica_id for voter in partition.current_voters] == [3000, 3001, 3002]
    assert [observer.replica_id for observer in partition.observers] == [1, 2, 3]
    assert {o.log_end_offset for o in partition.observers} == {partition.high_watermark}
    assert {len(set(o.replica_directory_id)) > 1 for o in partition.observers} == {True}


def test_quorum__a_dead_broker_falls_behind_and_is_removed() -> None:
    t = Simulated()
    t.kill(3)
    killed_ms = t.now_ms
    t.assign_topic("later", [[1, 2]])
    t.run_for(20_000)
    partition = described(t, 1).topics[0].partitions[0]
    *_, dead = partition.observers
    assert dead.replica_id == 3
    assert dead.log_end_offset < partition.high_watermark
    assert dead.last_fetch_timestamp <= killed_ms
    assert partition.observers[0].last_caught_up_timestamp > killed_ms
    t.run_for(300_000)
    observers = described(t, 1).topics[0].partitions[0].observers
    assert [observer.replica_id for observer in observers] == [1, 2]
