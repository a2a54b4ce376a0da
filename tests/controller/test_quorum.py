"""The quorum: observers of the metadata log, and its voters."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.contract import CONTROLLER_ID
from kcluster.metadata.records import FeatureLevelRecord
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from tests.controller.harness import CLUSTER_ID, Controller

LOG = "__cluster_metadata"
DIRECTORY = b"d" * 16


def describe(t: Controller, *topics: tuple[str, tuple[int, ...]]) -> Any:
    Topic, Partition = m.DescribeQuorumRequest.TopicData, m.DescribeQuorumRequest.PartitionData
    requested = [Topic(name, [Partition(index) for index in indexes]) for name, indexes in topics]
    return t.ask(1, m.DescribeQuorumRequest(requested))


def test_describe_quorum__the_controller_leads() -> None:
    t = Controller()
    answer = describe(t, (LOG, (0,)))
    (partition,) = answer.topics[0].partitions
    assert (partition.leader_id, partition.leader_epoch) == (CONTROLLER_ID, 1)
    assert partition.high_watermark == t.node.end_offset
    assert {voter.log_end_offset for voter in partition.current_voters} == {t.node.end_offset}
    assert [node.node_id for node in answer.nodes] == [3000, 3001, 3002]


@pytest.mark.parametrize(
    "topics",
    [
        [(LOG, (1,))],
        [("orders", (0,))],
        [(LOG, (0, 0))],
        [(LOG, (0,)), ("orders", (0,))],
        [(LOG, (0,)), ("orders", ())],
    ],
)
def test_describe_quorum__anything_else_is_unknown(topics: Any) -> None:
    answer = describe(Controller(), *topics)
    assert (answer.error_code, answer.nodes) == (ErrorCode.NONE, [])
    assert [len(topic.partitions) for topic in answer.topics] == [len(at) for _, at in topics]
    assert {p.error_code for topic in answer.topics for p in topic.partitions} == {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    }


def test_observers__caught_up_means_having_all_records_of_an_earlier_fetch() -> None:
    t = Controller()
    quorum, end = t.node.quorum, t.node.end_offset
    quorum.observers.clear()
    quorum.record_fetch(9, end - 2, now_ms=100)
    assert quorum.observers[9].last_caught_up_ms == -1
    quorum.record_fetch(9, end - 1, now_ms=200)
    assert quorum.observers[9].last_caught_up_ms == -1
    quorum.record_fetch(9, end, now_ms=300)
    assert quorum.observers[9].last_caught_up_ms == 300
    t.node.commit([FeatureLevelRecord("group.version", 0)])
    quorum.record_fetch(9, end, now_ms=400)
    # It lacks the newest record, but had all of them at its fetch before.
    assert quorum.observers[9].last_caught_up_ms == 300
    assert (quorum.observers[9].log_end_offset, quorum.observers[9].last_fetch_ms) == (end, 400)


def add(t: Controller, voter_id: int = 9, listener: str = "CONTROLLER", **more: Any) -> ErrorCode:
    listeners = [m.AddRaftVoterRequest.Listener(listener, "localhost", 1)]
    fields = {"cluster_id": None, "voter_directory_id": DIRECTORY} | more
    request = m.AddRaftVoterRequest(voter_id=voter_id, listeners=listeners, **fields)
    return ErrorCode(t.ask(1, request).error_code)


def remove(t: Controller, voter_id: int = 9, **more: Any) -> ErrorCode:
    request = m.RemoveRaftVoterRequest(
        voter_id=voter_id, **({"cluster_id": None, "voter_directory_id": DIRECTORY} | more)
    )
    return ErrorCode(t.ask(1, request).error_code)


def test_voters__a_fixed_quorum_accepts_none() -> None:
    t = Controller()
    assert add(t, cluster_id="other") is ErrorCode.INCONSISTENT_CLUSTER_ID
    assert add(t, -1) is ErrorCode.INVALID_REQUEST
    assert add(t, voter_directory_id=bytes(16)) is ErrorCode.INVALID_REQUEST
    assert add(t, listener="PLAINTEXT") is ErrorCode.INVALID_REQUEST
    assert add(t, cluster_id=CLUSTER_ID) is ErrorCode.UNSUPPORTED_VERSION
    assert remove(t, cluster_id="other") is ErrorCode.INCONSISTENT_CLUSTER_ID
    assert remove(t, -1) is ErrorCode.INVALID_REQUEST
    assert remove(t) is ErrorCode.UNSUPPORTED_VERSION


def test_voters__with_kraft_version_1_none_can_join_or_leave() -> None:
    t = Controller()
    update = m.UpdateFeaturesRequest.FeatureUpdateKey("kraft.version", 1)
    t.ask(1, m.UpdateFeaturesRequest(feature_updates=[update]))
    assert add(t, CONTROLLER_ID) is ErrorCode.DUPLICATE_VOTER
    assert add(t) is ErrorCode.REQUEST_TIMED_OUT
    assert remove(t) is ErrorCode.VOTER_NOT_FOUND
    assert remove(t, CONTROLLER_ID) is ErrorCode.VOTER_NOT_FOUND
    (partition,) = describe(t, (LOG, (0,))).topics[0].partitions
    assert partition.current_voters[0].replica_directory_id != bytes(16)


def unregister(t: Controller, controller_id: int) -> ErrorCode:
    answer = t.ask(1, m.UnregisterControllerRequest(controller_id))
    assert (answer.error_message is None) is (answer.error_code == ErrorCode.NONE)
    return ErrorCode(answer.error_code)


def test_unregister_controller__the_active_one_and_unknown_ones_are_refused() -> None:
    t = Controller()
    assert unregister(t, CONTROLLER_ID) is ErrorCode.INVALID_REQUEST
    assert unregister(t, CONTROLLER_ID + 1) is ErrorCode.NONE, "it runs, and registers again"
    for unknown in (1, -1, 0, 2**31 - 1, -(2**31)):
        assert unregister(t, unknown) is ErrorCode.CONTROLLER_ID_NOT_REGISTERED


def test_unregister_controller__an_older_metadata_version_has_no_record_for_it() -> None:
    t = Controller(features={"metadata.version": 32})
    assert unregister(t, 77) is ErrorCode.UNSUPPORTED_VERSION
    assert unregister(t, CONTROLLER_ID) is ErrorCode.INVALID_REQUEST, "checked first"
