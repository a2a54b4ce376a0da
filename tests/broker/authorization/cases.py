"""Requests of users without rights, and what Apache Kafka 4.4.0 answers.

Owns: the requests.  Never: the answers, which are in the two files beside it, recorded from a real
broker with StandardAuthorizer, SASL PLAIN and the super user `admin`.

`DENIED`: asked by bob, whom no ACL knows.  `PARTLY`: asked by bob with the ACLs of `RIGHTS`.
There are the topics orders, secret and log, of two partitions each.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey as K
from tests.rig.requests import batch
from tests.rig.secured import acl

Ids = dict[str, bytes]
RIGHTS = (
    acl("bob", "read", topic="orders"),
    acl("bob", "write", topic="orders"),
    acl("bob", "describe", topic="log"),
    acl("bob", "create", topic="new*"),
    acl("bob", "alter", topic="orders"),
    acl("bob", "alter_configs", topic="orders"),
    acl("bob", "read", group="g"),
    acl("bob", "delete", group="g"),
    acl("bob", "read", group="gg"),
    acl("bob", "write", transactional_id="tx"),
)
UNKNOWN_ID = bytes(15) + b"\5"


class Case(NamedTuple):
    name: str
    api: K
    version: int
    body: Callable[[Ids], Any]


def _case(name: str, api: K, version: int, body: Any) -> Case:
    return Case(name, api, version, body if callable(body) else lambda _ids: body)


# ------------------------------------------------------------------------------ parts of requests

_C = m.CreateTopicsRequest.CreatableTopic
_D = m.DeleteTopicsRequest.DeleteTopicState
_M = m.MetadataRequest
_OF = m.OffsetFetchRequest


def _named(*names: str) -> list[Any]:
    return [_M.MetadataRequestTopic(name=name) for name in names]


def _partitions(name: str, count: int) -> Any:
    return m.CreatePartitionsRequest.CreatePartitionsTopic(name, count, None)


def _resources(*kinds: tuple[int, str]) -> Any:
    request = m.IncrementalAlterConfigsRequest
    return request([request.AlterConfigsResource(kind, name, []) for kind, name in kinds])


def _legacy(*kinds: tuple[int, str]) -> Any:
    request = m.AlterConfigsRequest
    return request([request.AlterConfigsResource(kind, name, []) for kind, name in kinds])


def _described(*kinds: tuple[int, str]) -> Any:
    resource = m.DescribeConfigsRequest.DescribeConfigsResource
    names = ["retention.ms"]
    return m.DescribeConfigsRequest([resource(kind, name, names) for kind, name in kinds])


def _produced(acks: int, *partitions: tuple[str, int], **header: Any) -> Any:
    request = m.ProduceRequest
    topics = [
        request.TopicProduceData(
            name, bytes(16), [request.PartitionProduceData(index, batch(b"x", **header))]
        )
        for name, index in partitions
    ]
    return request("other" if header else None, acks, 1_000, topics)


def _produced_by_id(ids: Ids) -> Any:
    request = m.ProduceRequest
    wanted = (ids["secret"], ids["log"], UNKNOWN_ID)
    topics = [
        request.TopicProduceData("", id_, [request.PartitionProduceData(0, batch(b"x"))])
        for id_ in wanted
    ]
    return request(None, -1, 1_000, topics)


def _fetched(*names: str, **more: Any) -> Any:
    request = m.FetchRequest
    partition = request.FetchPartition(0, partition_max_bytes=1_000)
    topics = [request.FetchTopic(topic=name, partitions=[partition]) for name in names]
    return request(max_wait_ms=10, min_bytes=1, topics=topics, **more)


def _offsets(*names: str) -> Any:
    request = m.ListOffsetsRequest
    row = request.ListOffsetsPartition
    topics = [request.ListOffsetsTopic(name, [row(0, timestamp=-1)]) for name in names]
    return request(-1, topics=topics)


def _epochs(*names: str) -> Any:
    request = m.OffsetForLeaderEpochRequest
    row = request.OffsetForLeaderPartition(0, 0, 0)
    return request(-1, [request.OffsetForLeaderTopic(name, [row]) for name in names])


def _before(*names: str) -> Any:
    request = m.DeleteRecordsRequest
    row = request.DeleteRecordsPartition(0, 0)
    return request([request.DeleteRecordsTopic(name, [row]) for name in names], 1_000)


def _committed(group: str, *partitions: tuple[str, int]) -> Any:
    request = m.OffsetCommitRequest
    return request(
        group,
        topics=[
            request.OffsetCommitRequestTopic(
                name=name, partitions=[request.OffsetCommitRequestPartition(index, 5)]
            )
            for name, index in partitions
        ],
    )


def _committed_by_id(ids: Ids) -> Any:
    request = m.OffsetCommitRequest
    row = request.OffsetCommitRequestPartition(0, 5)
    topics = [
        request.OffsetCommitRequestTopic(topic_id=id_, partitions=[row])
        for id_ in (ids["secret"], UNKNOWN_ID)
    ]
    return request("g", topics=topics)


def _read(group: str, *names: str) -> Any:
    topics = [_OF.OffsetFetchRequestTopics(name=name, partition_indexes=[0]) for name in names]
    return _OF.OffsetFetchRequestGroup(group, topics=topics or None)


def _deleted_offsets(group: str, *names: str) -> Any:
    request = m.OffsetDeleteRequest
    row = request.OffsetDeleteRequestPartition(0)
    return request(group, [request.OffsetDeleteRequestTopic(name, [row]) for name in names])


def _added(*names: str) -> Any:
    request = m.AddPartitionsToTxnRequest
    return request(
        v3_and_below_transactional_id="tx",
        v3_and_below_producer_id=1,
        v3_and_below_topics=[request.AddPartitionsToTxnTopic(name, [0, 5]) for name in names],
    )


def _added_by_broker() -> Any:
    request = m.AddPartitionsToTxnRequest
    topics = [request.AddPartitionsToTxnTopic("orders", [0])]
    return request([request.AddPartitionsToTxnTransaction("tx", 1, 0, False, topics)])


def _txn_committed(transactional_id: str, group: str, *names: str) -> Any:
    request = m.TxnOffsetCommitRequest
    row = request.TxnOffsetCommitRequestPartition(0, 1)
    topics = [request.TxnOffsetCommitRequestTopic(name=name, partitions=[row]) for name in names]
    return request(transactional_id, group, 1, 0, topics=topics)


def _markers() -> Any:
    request = m.WriteTxnMarkersRequest
    topic = request.WritableTxnMarkerTopic("orders", [0])
    return request([request.WritableTxnMarker(1, 0, True, [topic], 0)])


def _producers(*names: str) -> Any:
    request = m.DescribeProducersRequest
    return request([request.TopicRequest(name, [0]) for name in names])


def _joined(group: str, *topics: str) -> Any:
    return m.ConsumerGroupHeartbeatRequest(
        group, "member", 0, subscribed_topic_names=list(topics), rebalance_timeout_ms=1_000,
        topic_partitions=[],
    )  # fmt: skip


def _shared_offsets(group: str, *names: str) -> Any:
    request = m.DescribeShareGroupOffsetsRequest
    topics = [request.DescribeShareGroupOffsetsRequestTopic(name, [0]) for name in names]
    return request([request.DescribeShareGroupOffsetsRequestGroup(group, topics)])


def _altered_offsets() -> Any:
    request = m.AlterShareGroupOffsetsRequest
    row = request.AlterShareGroupOffsetsRequestPartition(0, 1)
    return request("h", [request.AlterShareGroupOffsetsRequestTopic("orders", [row])])


def _state(request: Any, data: Any, *row: int) -> Any:
    return request("g", [data(UNKNOWN_ID, [request.PartitionData(*row)])])


def _reassigned() -> Any:
    request = m.AlterPartitionReassignmentsRequest
    topic = request.ReassignableTopic("orders", [request.ReassignablePartition(0, [1])])
    return request(topics=[topic])


def _quotas() -> Any:
    request = m.AlterClientQuotasRequest
    op = request.OpData("consumer_byte_rate", 1.0, False)
    return request([request.EntryData([request.EntityData("user", "bob")], [op])])


def _features(version: int) -> Case:
    request = m.UpdateFeaturesRequest
    body = request(feature_updates=[request.FeatureUpdateKey("group.version", 1)])
    return _case(f"features {version}", K.UPDATE_FEATURES, version, body)


def _passwords() -> Any:
    request = m.AlterUserScramCredentialsRequest
    return request(
        [request.ScramCredentialDeletion("u", 1)],
        [request.ScramCredentialUpsertion("v", 1, 4096, b"s", b"p")],
    )


def _moved_logs() -> Any:
    request = m.AlterReplicaLogDirsRequest
    topic = request.AlterReplicaLogDirTopic("orders", [0])
    return request([request.AlterReplicaLogDir("/x", [topic])])


def _quorum() -> Any:
    request = m.DescribeQuorumRequest
    return request([request.TopicData("__cluster_metadata", [request.PartitionData(0)])])


_ACL = m.CreateAclsRequest.AclCreation(2, "t", 3, "User:bob", "*", 3, 3)
_FILTER = m.DeleteAclsRequest.DeleteAclsFilter(1, None, 1, None, None, 1, 1)
_ELECTED = m.ElectLeadersRequest.TopicPartitions("orders", [0])
_ONE = (2, "orders"), (4, ""), (4, "1"), (8, "1"), (16, "x"), (32, "g")
_I, _R, _W = (
    m.InitializeShareGroupStateRequest, m.ReadShareGroupStateRequest, m.WriteShareGroupStateRequest,
)  # fmt: skip
_X, _S = m.DeleteShareGroupStateRequest, m.ReadShareGroupStateSummaryRequest

DENIED = [
    _case("create topics", K.CREATE_TOPICS, 7, m.CreateTopicsRequest(
        [_C("n1", 1, 1), _C("orders", 1, 1), _C("dup", 1, 1), _C("dup", 1, 1)], timeout_ms=5_000)),
    _case("delete topics", K.DELETE_TOPICS, 5, m.DeleteTopicsRequest(
        topic_names=["orders"], timeout_ms=5_000)),
    _case("delete topics by id", K.DELETE_TOPICS, 6, lambda ids: m.DeleteTopicsRequest(
        topics=[_D(None, ids["orders"])], timeout_ms=5_000)),
    _case("create partitions", K.CREATE_PARTITIONS, 3, m.CreatePartitionsRequest(
        [_partitions("orders", 5), _partitions("d", 4), _partitions("d", 4)], timeout_ms=5_000)),
    _case("incremental alter configs", K.INCREMENTAL_ALTER_CONFIGS, 1, _resources(*_ONE)),
    _case("alter configs", K.ALTER_CONFIGS, 2, _legacy((2, "orders"), (4, ""), (16, "x"))),
    _case("describe configs", K.DESCRIBE_CONFIGS, 4, _described(*_ONE)),
    _case("alter quotas", K.ALTER_CLIENT_QUOTAS, 1, _quotas()),
    _case("describe quotas", K.DESCRIBE_CLIENT_QUOTAS, 1, m.DescribeClientQuotasRequest([])),
    _case("list reassignments", K.LIST_PARTITION_REASSIGNMENTS, 0,
          m.ListPartitionReassignmentsRequest(topics=None)),
    _case("reassign", K.ALTER_PARTITION_REASSIGNMENTS, 1, _reassigned()),
    _case("elect", K.ELECT_LEADERS, 2, m.ElectLeadersRequest(0, [_ELECTED])),
    _case("elect all", K.ELECT_LEADERS, 2, m.ElectLeadersRequest(0, None)),
    _features(1),
    _features(2),
    _case("unregister broker", K.UNREGISTER_BROKER, 0, m.UnregisterBrokerRequest(7)),
    _case("quorum", K.DESCRIBE_QUORUM, 2, _quorum()),
    _case("add voter", K.ADD_RAFT_VOTER, 1, m.AddRaftVoterRequest(
        "x", 1_000, 9, bytes(16), [m.AddRaftVoterRequest.Listener("C", "h", 1)])),
    _case("remove voter", K.REMOVE_RAFT_VOTER, 0, m.RemoveRaftVoterRequest("x", 9, bytes(16))),
    _case("alter scram", K.ALTER_USER_SCRAM_CREDENTIALS, 0, _passwords()),
    _case("describe scram", K.DESCRIBE_USER_SCRAM_CREDENTIALS, 0,
          m.DescribeUserScramCredentialsRequest(
              [m.DescribeUserScramCredentialsRequest.UserName("u")])),
    _case("create acls", K.CREATE_ACLS, 3, m.CreateAclsRequest([_ACL, _ACL])),
    _case("delete acls", K.DELETE_ACLS, 3, m.DeleteAclsRequest([_FILTER])),
    _case("describe acls", K.DESCRIBE_ACLS, 3, m.DescribeAclsRequest(1, None, 1, None, None, 1, 1)),
    _case("log dirs", K.DESCRIBE_LOG_DIRS, 4, m.DescribeLogDirsRequest(topics=None)),
    _case("move logs", K.ALTER_REPLICA_LOG_DIRS, 2, _moved_logs()),
    _case("list configs", K.LIST_CONFIG_RESOURCES, 1, m.ListConfigResourcesRequest([])),
    _case("cluster", K.DESCRIBE_CLUSTER, 2,
          m.DescribeClusterRequest(include_cluster_authorized_operations=True)),
    _case("metadata", K.METADATA, 13, _M(_named("orders", "nope", "__consumer_offsets"),
                                         include_topic_authorized_operations=True)),
    _case("metadata 0", K.METADATA, 0, _M(_named("orders"))),
    _case("metadata 8", K.METADATA, 8, _M(_named("orders"),
                                          include_topic_authorized_operations=True,
                                          include_cluster_authorized_operations=True)),
    _case("metadata of all", K.METADATA, 12, _M(None, include_topic_authorized_operations=True)),
    _case("metadata by id", K.METADATA, 12, lambda ids: _M(
        [_M.MetadataRequestTopic(name=None, topic_id=id_) for id_ in (ids["orders"], UNKNOWN_ID)])),
    _case("topic partitions", K.DESCRIBE_TOPIC_PARTITIONS, 0, m.DescribeTopicPartitionsRequest(
        [m.DescribeTopicPartitionsRequest.TopicRequest("orders")])),
    _case("partitions of all", K.DESCRIBE_TOPIC_PARTITIONS, 0,
          m.DescribeTopicPartitionsRequest([])),
    _case("join", K.JOIN_GROUP, 9, m.JoinGroupRequest("g", 9_000, 9_000, "", None, "consumer", [])),
    _case("join 2", K.JOIN_GROUP, 2, m.JoinGroupRequest("g", 9_000, 9_000, "", None, "x", [])),
    _case("sync", K.SYNC_GROUP, 5, m.SyncGroupRequest("g", 1, "m", None, "consumer", "range", [])),
    _case("sync without a protocol", K.SYNC_GROUP, 5, m.SyncGroupRequest("g", 1, "m")),
    _case("heartbeat", K.HEARTBEAT, 4, m.HeartbeatRequest("g", 1, "m")),
    _case("leave", K.LEAVE_GROUP, 5, m.LeaveGroupRequest(
        "g", members=[m.LeaveGroupRequest.MemberIdentity("a")])),
    _case("leave 2", K.LEAVE_GROUP, 2, m.LeaveGroupRequest("g", member_id="a")),
    _case("commit", K.OFFSET_COMMIT, 9, _committed("g", ("orders", 0))),
    _case("offsets", K.OFFSET_FETCH, 9, _OF(groups=[_read("g", "orders")])),
    _case("offsets 7", K.OFFSET_FETCH, 7, _OF(
        group_id="g", topics=[_OF.OffsetFetchRequestTopic("orders", [0])])),
    _case("all offsets 7", K.OFFSET_FETCH, 7, _OF(group_id="g", topics=None)),
    _case("find group", K.FIND_COORDINATOR, 6, m.FindCoordinatorRequest(
        key_type=0, coordinator_keys=["g", "h"])),
    _case("find transaction", K.FIND_COORDINATOR, 6, m.FindCoordinatorRequest(
        key_type=1, coordinator_keys=["g"])),
    _case("find share", K.FIND_COORDINATOR, 6, m.FindCoordinatorRequest(
        key_type=2, coordinator_keys=["g:AAAAAAAAAAAAAAAAAAAAAQ:0"])),
    _case("find group 3", K.FIND_COORDINATOR, 3, m.FindCoordinatorRequest(key="g", key_type=0)),
    _case("describe groups", K.DESCRIBE_GROUPS, 6, m.DescribeGroupsRequest(["g", "h"], True)),
    _case("list groups", K.LIST_GROUPS, 5, m.ListGroupsRequest()),
    _case("delete groups", K.DELETE_GROUPS, 2, m.DeleteGroupsRequest(["g", "h"])),
    _case("delete offsets", K.OFFSET_DELETE, 0, _deleted_offsets("g", "orders")),
    _case("consumer heartbeat", K.CONSUMER_GROUP_HEARTBEAT, 1, _joined("g", "orders")),
    _case("consumer groups", K.CONSUMER_GROUP_DESCRIBE, 1,
          m.ConsumerGroupDescribeRequest(["g"], True)),
    _case("share heartbeat", K.SHARE_GROUP_HEARTBEAT, 1,
          m.ShareGroupHeartbeatRequest("g", "member", 0, None, ["orders"])),
    _case("share groups", K.SHARE_GROUP_DESCRIBE, 1, m.ShareGroupDescribeRequest(["g"], True)),
    _case("streams groups", K.STREAMS_GROUP_DESCRIBE, 0,
          m.StreamsGroupDescribeRequest(["g"], True)),
    _case("streams heartbeat", K.STREAMS_GROUP_HEARTBEAT, 0,
          m.StreamsGroupHeartbeatRequest("g", "member", 0, 1)),
    _case("streams topology", K.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE, 0,
          m.StreamsGroupTopologyDescriptionUpdateRequest(group_id="g")),
    _case("share fetch", K.SHARE_FETCH, 1, m.ShareFetchRequest("g", "member", 0, 100, 1, 1_000)),
    _case("share acknowledge", K.SHARE_ACKNOWLEDGE, 1,
          m.ShareAcknowledgeRequest("g", "member", 1)),
    _case("share offsets", K.DESCRIBE_SHARE_GROUP_OFFSETS, 1, _shared_offsets("h", "orders")),
    _case("alter share offsets", K.ALTER_SHARE_GROUP_OFFSETS, 0, _altered_offsets()),
    _case("delete share offsets", K.DELETE_SHARE_GROUP_OFFSETS, 0,
          m.DeleteShareGroupOffsetsRequest("h", [
              m.DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic("orders")])),
    _case("init state", K.INITIALIZE_SHARE_GROUP_STATE, 0, _state(_I, _I.InitializeStateData, 0)),
    _case("read state", K.READ_SHARE_GROUP_STATE, 0, _state(_R, _R.ReadStateData, 0)),
    _case("write state", K.WRITE_SHARE_GROUP_STATE, 0, _state(_W, _W.WriteStateData, 0)),
    _case("delete state", K.DELETE_SHARE_GROUP_STATE, 0, _state(_X, _X.DeleteStateData, 0)),
    _case("sum up state", K.READ_SHARE_GROUP_STATE_SUMMARY, 0,
          _state(_S, _S.ReadStateSummaryData, 0)),
    _case("producer id of a transaction", K.INIT_PRODUCER_ID, 5,
          m.InitProducerIdRequest("tx", 1_000)),
    _case("producer id", K.INIT_PRODUCER_ID, 5, m.InitProducerIdRequest(None, 1_000)),
    _case("add partitions", K.ADD_PARTITIONS_TO_TXN, 3, _added("orders")),
    _case("add partitions as a broker", K.ADD_PARTITIONS_TO_TXN, 5, _added_by_broker()),
    _case("add offsets", K.ADD_OFFSETS_TO_TXN, 4, m.AddOffsetsToTxnRequest("tx", 1, 0, "g")),
    _case("end transaction", K.END_TXN, 5, m.EndTxnRequest("tx", 1, 0, True)),
    _case("commit in transaction", K.TXN_OFFSET_COMMIT, 5, _txn_committed("tx", "g", "orders")),
    _case("write markers", K.WRITE_TXN_MARKERS, 1, _markers()),
    _case("describe transactions", K.DESCRIBE_TRANSACTIONS, 0,
          m.DescribeTransactionsRequest(["tx"])),
    _case("list transactions", K.LIST_TRANSACTIONS, 2, m.ListTransactionsRequest([], [])),
    _case("describe producers", K.DESCRIBE_PRODUCERS, 0, _producers("orders")),
    _case("list offsets", K.LIST_OFFSETS, 9, _offsets("orders")),
    _case("epochs", K.OFFSET_FOR_LEADER_EPOCH, 4, _epochs("orders")),
    _case("delete records", K.DELETE_RECORDS, 2, _before("orders")),
    _case("fetch", K.FETCH, 12, _fetched("orders")),
    _case("fetch as a follower", K.FETCH, 12, _fetched("orders", replica_id=1)),
    _case("produce", K.PRODUCE, 9, _produced(-1, ("orders", 0))),
    _case("produce by id", K.PRODUCE, 13, _produced_by_id),
    _case("produce without acks", K.PRODUCE, 9, _produced(0, ("orders", 0))),
]  # fmt: skip

PARTLY = [
    _case("create topics", K.CREATE_TOPICS, 7, m.CreateTopicsRequest(
        [_C("new1", 1, 1), _C("other", 1, 1)], timeout_ms=5_000, validate_only=True)),
    _case("create partitions", K.CREATE_PARTITIONS, 3, m.CreatePartitionsRequest(
        [_partitions("orders", 3), _partitions("secret", 3)], timeout_ms=5_000,
        validate_only=True)),
    _case("delete topics", K.DELETE_TOPICS, 6, m.DeleteTopicsRequest(
        topics=[_D("log"), _D("nope")], timeout_ms=5_000)),
    _case("incremental alter configs", K.INCREMENTAL_ALTER_CONFIGS, 1,
          _resources((2, "secret"), (2, "orders"), (4, ""))),
    _case("describe configs", K.DESCRIBE_CONFIGS, 4, _described((2, "secret"), (32, "g"))),
    _case("metadata", K.METADATA, 13, _M(_named("secret", "nope", "log"),
                                         include_topic_authorized_operations=True)),
    _case("list offsets", K.LIST_OFFSETS, 9, _offsets("secret", "log")),
    _case("delete records", K.DELETE_RECORDS, 2, _before("orders")),
    _case("produce in another's transaction", K.PRODUCE, 9, _produced(
        -1, ("orders", 0), producer_id=5, producer_epoch=0, base_sequence=0, transactional=True)),
    _case("commit", K.OFFSET_COMMIT, 9, _committed("g", ("secret", 0), ("nope", 0))),
    _case("commit by id", K.OFFSET_COMMIT, 10, _committed_by_id),
    _case("offsets", K.OFFSET_FETCH, 9, _OF(
        groups=[_read("h"), _read("g", "secret", "orders"), _read("g")])),
    _case("add partitions", K.ADD_PARTITIONS_TO_TXN, 3, _added("orders", "nope")),
    _case("add another's group", K.ADD_OFFSETS_TO_TXN, 3,
          m.AddOffsetsToTxnRequest("tx", 1, 0, "h")),
    _case("commit of another's group", K.TXN_OFFSET_COMMIT, 3, _txn_committed("tx", "h", "orders")),
    _case("consumer heartbeat", K.CONSUMER_GROUP_HEARTBEAT, 1, _joined("gg", "orders", "secret")),
    _case("describe producers", K.DESCRIBE_PRODUCERS, 0, _producers("secret", "log")),
    _case("delete offsets", K.OFFSET_DELETE, 0, _deleted_offsets("h", "orders")),
]  # fmt: skip


def shown(answer: Any) -> str:
    """An answer as text, with the rows of each list in order, and without what differs between
    clusters."""
    _sort(answer)
    text = re.sub(r"(topic_id|cluster_id)=[^,)]*", r"\1=…", repr(answer))
    text = re.sub(r"port=\d{4,5}", "port=…", text)
    return re.sub(
        r"Request Request\(.*?\) needs \w+ permission\.", "Cluster authorization failed.", text
    )


def _sort(message: Any) -> None:
    for field in message.__struct_fields__:
        rows = getattr(message, field)
        if isinstance(rows, list) and rows and hasattr(rows[0], "__struct_fields__"):
            for row in rows:
                _sort(row)
            rows.sort(key=_without_ids)


def _without_ids(row: Any) -> str:
    return re.sub(r"topic_id=[^,)]*", "", repr(row))
