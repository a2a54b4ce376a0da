"""Every API asked by users without rights, and with each right alone: which right it takes, which
one is looked for first, and what is shown to users who lack it.

Owns: these cases.  Never: sends them (running.py).
"""

from __future__ import annotations

from kcluster.conform.bodies import (
    batch,
    commit,
    fetch,
    produce,
    share_acknowledge,
    share_fetch,
    sync,
)
from kcluster.conform.case import COORDINATOR, Ask, Body, Case, passed_on
from kcluster.conform.cases.share_state import FOUND, found_of
from kcluster.conform.cases.share_state import of as share_state
from kcluster.conform.transactions import AT, add, add_offsets, init, of_broker, offsets
from kcluster.json_types import JsonObject
from kcluster.protocol.apis import ApiKey as K

SECURED = True
"""It is asked in the cluster with logins and an authorizer."""

TOPICS = ("{topic}", "{missing}")

LENGTHY = {"brokers": "as for everyone", "configs": "as for everyone"}


def rows(
    name: str, *rest: object, names: tuple[str, ...] = TOPICS, of: str = ""
) -> list[JsonObject]:
    """A row for each of the topics, with the fields of `rest` in it."""
    more = {of: list(rest)} if of else {}
    return [{name: one, **more} for one in names]


NO_FIELDS: Body = {}


def asked(name: str, api: K, body: Body = NO_FIELDS, **more: object) -> Case:
    """By each role; at broker 1 unless `to` says otherwise."""
    return Case(name, api, body, by_each_role=True, **passed_on(more))


def at_coordinator(name: str, api: K, body: Body, **more: object) -> Case:
    return asked(name, api, body, to=COORDINATOR, **more)


RESOURCES = (
    (2, "{topic}"), (2, "{missing}"), (4, ""), (4, "1"), (4, "2"), (8, "1"), (16, "{tag}.x"),
    (32, "{tag}.g"), (32, "elsewhere"), (1, "x"),
)  # fmt: skip
"""Of configs: type and name."""


def resources(**more: object) -> JsonObject:
    return {
        "resources": [
            {"resource_type": kind, "resource_name": name, **more} for kind, name in RESOURCES
        ]
    }


def epochs(name: str, *names: str) -> JsonObject:
    return {"topics": [{name: one, "partitions": [{"partition": 0}]} for one in names]}


ADMIN = (
    asked("create topics", K.CREATE_TOPICS, {
        "topics": [
            {"name": name, "num_partitions": 1, "replication_factor": 1}
            for name in ("{new}", "{topic}", "elsewhere")
        ],
        "timeout_ms": 5_000, "validate_only": True,
    }, mask=LENGTHY),
    asked("create topics, one of them twice", K.CREATE_TOPICS, {
        "topics": [
            {"name": name, "num_partitions": 1, "replication_factor": 1}
            for name in ("{new}", "{new2}", "{new2}")
        ],
        "timeout_ms": 5_000, "validate_only": True,
    }, versions="newest", mask=LENGTHY),
    asked("delete topics", K.DELETE_TOPICS, {
        "topics": [{"name": "{missing}"}, {"name": "elsewhere"}],
        "topic_names": ["{missing}", "elsewhere"], "timeout_ms": 5_000,
    }),
    asked("delete topics that are there", K.DELETE_TOPICS, {
        "topics": [{"name": "{fresh}"}, {"name": None, "topic_id": "{missing_id}"}],
        "timeout_ms": 5_000,
    }, versions="6"),
    asked("delete topics by id", K.DELETE_TOPICS, {
        "topics": [{"name": None, "topic_id": "{fresh_id}"}], "timeout_ms": 5_000,
    }, versions="6"),
    asked("create partitions", K.CREATE_PARTITIONS, {
        "topics": [
            {"name": name, "count": 4, "assignments": None} for name in (*TOPICS, "elsewhere")
        ],
        "timeout_ms": 5_000, "validate_only": True,
    }),
    asked("create partitions, a topic twice", K.CREATE_PARTITIONS, {
        "topics": [
            {"name": name, "count": 4, "assignments": None} for name in ("{topic}", "{topic}")
        ],
        "timeout_ms": 5_000, "validate_only": True,
    }, versions="newest"),
    asked("alter configs", K.INCREMENTAL_ALTER_CONFIGS, {**resources(), "validate_only": True}),
    asked("replace configs", K.ALTER_CONFIGS, {**resources(), "validate_only": True}),
    asked("describe configs", K.DESCRIBE_CONFIGS, resources(configuration_keys=["retention.ms"])),
    asked("list configs", K.LIST_CONFIG_RESOURCES, {"resource_types": [4]}),
    asked("alter quotas", K.ALTER_CLIENT_QUOTAS, {
        "entries": [
            {"entity": [{"entity_type": "user", "entity_name": "u"}],
             "ops": [{"key": "producer_byte_rate", "value": 1.0}]},
        ],
        "validate_only": True,
    }),
    asked("describe quotas", K.DESCRIBE_CLIENT_QUOTAS, {
        "components": [{"entity_type": "user", "match_type": 0, "match": "u"}]}),
    asked("describe passwords", K.DESCRIBE_USER_SCRAM_CREDENTIALS, {"users": [{"name": "u"}]}),
    asked("alter passwords", K.ALTER_USER_SCRAM_CREDENTIALS, {
        "deletions": [{"name": "u", "mechanism": 1}],
        "upsertions": [{"name": "", "mechanism": 1, "iterations": 4_096, "salt": b"s",
                        "salted_password": b"p"}],
    }),
    asked("describe acls", K.DESCRIBE_ACLS, {
        "resource_type_filter": 2, "resource_name_filter": "{topic}", "pattern_type_filter": 3,
        "operation": 1, "permission_type": 1,
    }),
    asked("create acls", K.CREATE_ACLS, {
        "creations": [
            {"resource_type": 2, "resource_name": "{tag}.t", "resource_pattern_type": 3,
             "principal": who, "host": "*", "operation": 3, "permission_type": 3}
            for who in ("without a type", "without a type")
        ]
    }),
    asked("delete acls", K.DELETE_ACLS, {
        "filters": [
            {"resource_type_filter": 2, "resource_name_filter": "{missing}",
             "pattern_type_filter": 3, "operation": 1, "permission_type": 1},
        ]
    }),
    asked("elect leaders", K.ELECT_LEADERS, {
        "topic_partitions": [{"topic": name, "partitions": [0]} for name in TOPICS],
        "timeout_ms": 5_000,
    }),
    asked("elect leaders of nothing", K.ELECT_LEADERS, {"topic_partitions": []}),
    asked("reassign", K.ALTER_PARTITION_REASSIGNMENTS, {
        "topics": [
            {"name": name, "partitions": [{"partition_index": 0, "replicas": [9]}]}
            for name in TOPICS
        ],
        "timeout_ms": 5_000,
    }),
    asked("list reassignments", K.LIST_PARTITION_REASSIGNMENTS, {
        "topics": [{"name": "{topic}", "partition_indexes": [0]}], "timeout_ms": 5_000}),
    asked("quorum", K.DESCRIBE_QUORUM, {
        "topics": [{"topic_name": "{topic}", "partitions": [{"partition_index": 0}]}]}),
    asked("add a voter", K.ADD_RAFT_VOTER, {
        "cluster_id": "no cluster's", "voter_id": 9, "voter_directory_id": "{missing_id}",
        "timeout_ms": 1_000, "listeners": [{"name": "CONTROLLER", "host": "h", "port": 1}],
    }),
    asked("remove a voter", K.REMOVE_RAFT_VOTER, {
        "cluster_id": "no cluster's", "voter_id": 9, "voter_directory_id": "{missing_id}"}),
    asked("update features", K.UPDATE_FEATURES, {
        "feature_updates": [{"feature": "nosuch", "max_version_level": 1, "upgrade_type": 1}],
        "timeout_ms": 5_000, "validate_only": True,
    }),
    asked("unregister a broker", K.UNREGISTER_BROKER, {"broker_id": 99}),
    asked("unregister a controller", K.UNREGISTER_CONTROLLER, {"controller_id": 99}),
    asked("disks", K.DESCRIBE_LOG_DIRS, {"topics": [{"topic": "{missing}", "partitions": [0]}]},
          mask={"results": "directories"}),
    asked("move logs", K.ALTER_REPLICA_LOG_DIRS, {
        "dirs": [{"path": "/no/such", "topics": [{"name": "{topic}", "partitions": [0]}]}]}),
    asked("the cluster", K.DESCRIBE_CLUSTER, {"include_cluster_authorized_operations": True}),
)  # fmt: skip

BY_NAME = {"topics": rows("name"), "allow_auto_topic_creation": False}
DATA = (
    asked("metadata, old", K.METADATA, {"topics": [{"name": "{topic}"}]}, versions="0-3",
          mask=LENGTHY),
    asked("metadata", K.METADATA, {
        **BY_NAME, "include_topic_authorized_operations": True,
        "include_cluster_authorized_operations": True,
    }, versions="4+", mask=LENGTHY),
    asked("metadata, to create topics", K.METADATA, {
        "topics": [{"name": "not a name"}, {"name": "{tag}.not a name"}],
        "allow_auto_topic_creation": True,
    }, mask=LENGTHY),
    asked("metadata by id", K.METADATA, {
        "topics": [{"name": None, "topic_id": id_} for id_ in ("{topic_id}", "{missing_id}")],
        "include_topic_authorized_operations": True,
    }, versions="12+", mask=LENGTHY),
    asked("topic partitions", K.DESCRIBE_TOPIC_PARTITIONS, {"topics": rows("name")}),
    asked("topic partitions of all", K.DESCRIBE_TOPIC_PARTITIONS, {
        "topics": [], "cursor": {"topic_name": "{topic}", "partition_index": 2}}),
    asked("produce", K.PRODUCE, {
        "acks": -1, "timeout_ms": 5_000,
        "topic_data": [
            {"name": "{fresh}", "topic_id": "{fresh_id}", "partition_data": [
                {"index": index, "records": batch(producer_id=9, producer_epoch=0, base_sequence=5)}
                for index in (0, 9)
            ]},
            {"name": "{missing}", "topic_id": "{missing_id}", "partition_data": [
                {"index": 0, "records": batch()}]},
        ],
    }, mask={"base_offset": "how many were written before"}),
    asked("produce in a transaction", K.PRODUCE, produce(
        "{fresh}", "{fresh_id}", transactional_id="{tag}.t", records=batch(
            producer_id=9, producer_epoch=0, base_sequence=5, transactional=True))),
    asked("produce in no transaction", K.PRODUCE, produce(
        "{fresh}", "{fresh_id}", records=batch(
        producer_id=9, producer_epoch=0, base_sequence=5, transactional=True)), versions="newest"),
    asked("fetch", K.FETCH, {
        "max_wait_ms": 0, "min_bytes": 1, "topics": [
            {"topic": name, "topic_id": id_, "partitions": [
                {"partition": 0, "fetch_offset": 10, "partition_max_bytes": 1_000}]}
            for name, id_ in (("{topic}", "{topic_id}"), ("{missing}", "{missing_id}"))
        ],
    }),
    asked("fetch as a follower", K.FETCH, fetch(10, request={
        "replica_id": 9, "replica_state": {"replica_id": 9, "replica_epoch": 1},
    }), versions="12"),
    asked("list offsets", K.LIST_OFFSETS, {
        "replica_id": -1, "topics": rows("name", {"partition_index": 0, "timestamp": -1},
                                         of="partitions")}),
    asked("epochs", K.OFFSET_FOR_LEADER_EPOCH, {
        "replica_id": -1, "topics": rows("topic", {"partition": 0, "leader_epoch": 0},
                                         of="partitions")}),
    asked("delete records", K.DELETE_RECORDS, {
        "timeout_ms": 5_000, "topics": rows("name", {"partition_index": 0, "offset": 0},
                                            of="partitions")}),
    asked("producers", K.DESCRIBE_PRODUCERS, {"topics": rows("name", 0, of="partition_indexes")}),
)  # fmt: skip

WHICH = dict.fromkeys(("node_id", "host", "port"), "which broker it is")
MEMBER = {"group_id": "{group}", "generation_id": 1, "member_id": "m"}
GROUPS = (
    asked("find the coordinator of a group", K.FIND_COORDINATOR, {
        "key": "{tag}.g", "key_type": 0, "coordinator_keys": ["{tag}.g"],
    }, mask=WHICH),
    asked("find the coordinator of a transaction", K.FIND_COORDINATOR, {
        "key": "{txn}", "key_type": 1, "coordinator_keys": ["{txn}"],
    }, mask=WHICH),
    asked("find the coordinator of a share partition", K.FIND_COORDINATOR, {
        "key_type": 2, "coordinator_keys": ["{tag}.g:AAAAAAAAAAAAAAAAAAAAAQ:0"],
    }, versions="6", before=FOUND, mask=WHICH),
    asked("find coordinators of an unknown kind", K.FIND_COORDINATOR, {
        "key": "k", "key_type": 9, "coordinator_keys": ["k"]}, versions="1+"),
    at_coordinator("join", K.JOIN_GROUP, {
        "group_id": "{group}", "session_timeout_ms": 1, "rebalance_timeout_ms": 1,
        "protocol_type": "consumer"}),
    at_coordinator("sync", K.SYNC_GROUP, sync(member="m")),
    at_coordinator("sync without a protocol", K.SYNC_GROUP, MEMBER, versions="newest"),
    at_coordinator("heartbeat", K.HEARTBEAT, MEMBER),
    at_coordinator("leave", K.LEAVE_GROUP, {
        "group_id": "{group}", "member_id": "m", "members": [{"member_id": "m"}]}),
    at_coordinator("describe", K.DESCRIBE_GROUPS, {
        "groups": ["{group}", "elsewhere"], "include_authorized_operations": True},
        mask={"error_message": "as everywhere"}),
    asked("list groups", K.LIST_GROUPS, {"states_filter": ["nosuch"]}, versions="4+"),
    at_coordinator("delete groups", K.DELETE_GROUPS, {"groups_names": ["{group}"]}),
    at_coordinator("commit", K.OFFSET_COMMIT, {
        "group_id": "{group}", "generation_id_or_member_epoch": 5, "member_id": "m",
        "topics": [
            {"name": name, "topic_id": id_, "partitions": [
                {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}]}
            for name, id_ in (("{topic}", "{topic_id}"), ("{missing}", "{missing_id}"))
        ],
    }),
    at_coordinator("offsets", K.OFFSET_FETCH, {
        "group_id": "{group}",
        "topics": rows("name", 0, of="partition_indexes"),
        "groups": [{"group_id": "{group}", "topics": [
            {"name": name, "topic_id": id_, "partition_indexes": [0]}
            for name, id_ in (("{topic}", "{topic_id}"), ("{missing}", "{missing_id}"))
        ]}],
    }),
    at_coordinator("all offsets", K.OFFSET_FETCH, {
        "group_id": "{group}", "topics": None,
        "groups": [{"group_id": "{group}", "topics": None}],
    }, before=(Ask(K.OFFSET_COMMIT, commit(), to=COORDINATOR),), versions="2+"),
    at_coordinator("delete offsets", K.OFFSET_DELETE, {
        "group_id": "{group}", "topics": rows("name", {"partition_index": 0}, of="partitions"),
    }, before=(Ask(K.OFFSET_COMMIT, commit(), to=COORDINATOR),)),
    at_coordinator("consumer heartbeat", K.CONSUMER_GROUP_HEARTBEAT, {
        "group_id": "{group}", "member_id": "m", "member_epoch": 5,
        "subscribed_topic_names": list(TOPICS)}),
    at_coordinator("consumer heartbeat by regex", K.CONSUMER_GROUP_HEARTBEAT, {
        "group_id": "{group}", "member_id": "m", "member_epoch": 5,
        "subscribed_topic_regex": "x.*"}, versions="1"),
    at_coordinator("consumer groups", K.CONSUMER_GROUP_DESCRIBE, {
        "group_ids": ["{group}", "elsewhere"], "include_authorized_operations": True}),
    at_coordinator("share heartbeat", K.SHARE_GROUP_HEARTBEAT, {
        "group_id": "{group}", "member_id": "m", "member_epoch": 5,
        "subscribed_topic_names": list(TOPICS)}),
    at_coordinator("share groups", K.SHARE_GROUP_DESCRIBE, {
        "group_ids": ["{group}", "elsewhere"], "include_authorized_operations": True}),
    at_coordinator("streams heartbeat", K.STREAMS_GROUP_HEARTBEAT, {
        "group_id": "{group}", "member_id": "m", "member_epoch": 5}),
    at_coordinator("streams heartbeat with topics", K.STREAMS_GROUP_HEARTBEAT, {
        "group_id": "{group}", "member_id": "m", "member_epoch": 0, "rebalance_timeout_ms": 1_000,
        "active_tasks": [], "standby_tasks": [], "warmup_tasks": [], "process_id": "",
        "topology": {"epoch": 0, "subtopologies": [{
            "subtopology_id": "0", "source_topics": ["elsewhere", "{topic}"],
            "state_changelog_topics": [{"name": "elsewhere-changelog"}],
            "repartition_sink_topics": [], "repartition_source_topics": [],
        }]},
    }),
    at_coordinator("streams groups", K.STREAMS_GROUP_DESCRIBE, {
        "group_ids": ["{group}", "elsewhere"], "include_authorized_operations": True}),
    at_coordinator("a description of a topology", K.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE, {
        "group_id": "{group}", "member_id": "m"}),
)  # fmt: skip

SHARE = (
    asked("share fetch", K.SHARE_FETCH, share_fetch("{topic_id}", member="m", epoch=5)),
    asked("share acknowledge", K.SHARE_ACKNOWLEDGE, share_acknowledge("{topic_id}", member="m")),
    at_coordinator("share offsets", K.DESCRIBE_SHARE_GROUP_OFFSETS, {
        "groups": [
            {"group_id": "{group}", "topics": rows("topic_name", 0, of="partitions")},
            {"group_id": "{group}", "topics": None},
        ]
    }),
    at_coordinator("alter share offsets", K.ALTER_SHARE_GROUP_OFFSETS, {
        "group_id": "{group}", "topics": rows(
            "topic_name", {"partition_index": 0, "start_offset": 1}, names=("{missing}",),
            of="partitions")}),
    at_coordinator("delete share offsets", K.DELETE_SHARE_GROUP_OFFSETS, {
        "group_id": "{group}", "topics": rows("topic_name")}),
    *(
        asked(name, api, share_state("{missing_id}", "{group}", **row), to="{share_coordinator}",
              before=found_of("missing_id"))
        for name, api, row in (
            ("initialize a share state", K.INITIALIZE_SHARE_GROUP_STATE, {"start_offset": 0}),
            ("read a share state", K.READ_SHARE_GROUP_STATE, {}),
            ("write a share state", K.WRITE_SHARE_GROUP_STATE, {}),
            ("delete a share state", K.DELETE_SHARE_GROUP_STATE, {}),
            ("sum up a share state", K.READ_SHARE_GROUP_STATE_SUMMARY, {}),
        )
    ),
)  # fmt: skip

PRODUCER: JsonObject = {"pid": 9, "epoch": 0}
TRANSACTIONS = (
    asked("a producer id", K.INIT_PRODUCER_ID, init(None)),
    asked("a producer id of a transaction", K.INIT_PRODUCER_ID, init(timeout_ms=-1), to=AT),
    asked("a producer id of two phases", K.INIT_PRODUCER_ID, {
        **init(timeout_ms=-1), "enable_2pc": True}, to=AT, versions="newest"),
    asked("add partitions", K.ADD_PARTITIONS_TO_TXN, add(
        ("{topic}", [0, 5]), ("{missing}", [0]), **PRODUCER), to=AT, versions="0-3"),
    asked("add partitions as a broker", K.ADD_PARTITIONS_TO_TXN, {
        "transactions": [of_broker(("{topic}", [0]), **PRODUCER)]}, to=AT, versions="4+"),
    asked("add offsets", K.ADD_OFFSETS_TO_TXN, add_offsets("{tag}.g", **PRODUCER), to=AT),
    asked("end a transaction", K.END_TXN, {
        "transactional_id": "{txn}", "producer_id": 9, "producer_epoch": 0}, to=AT),
    at_coordinator("commit in a transaction", K.TXN_OFFSET_COMMIT, offsets(
        txn="{tag}.t", **PRODUCER)),
    asked("write markers", K.WRITE_TXN_MARKERS, {
        "markers": [{"producer_id": 9, "producer_epoch": 0, "topics": rows(
            "name", 0, names=("{missing}",), of="partition_indexes")}]}),
    asked("transactions", K.DESCRIBE_TRANSACTIONS, {
        "transactional_ids": ["{txn}", "elsewhere"]}, to=AT),
    asked("list transactions", K.LIST_TRANSACTIONS, {"producer_id_filters": [99]}),
)  # fmt: skip

TOKENS = (
    asked("a token for another", K.CREATE_DELEGATION_TOKEN, {
        "owner_principal_type": "User", "owner_principal_name": "u", "max_lifetime_ms": 1_000,
    }, versions="3", mask={
        "hmac": "a key", "token_id": "drawn at random", "token_requester_principal_name": "a role",
        **{f"{which}_timestamp_ms": "a time" for which in ("issue", "expiry", "max")},
    }),
    asked("renew a token that is not there", K.RENEW_DELEGATION_TOKEN, {"hmac": b"abc"}),
    asked("expire a token that is not there", K.EXPIRE_DELEGATION_TOKEN, {"hmac": b"abc"}),
    asked("tokens of nobody", K.DESCRIBE_DELEGATION_TOKEN, {"owners": []}),
)  # fmt: skip

OTHERS = (
    asked("versions", K.API_VERSIONS, {
        "client_software_name": "n", "client_software_version": "1",
    }, versions="newest", mask=dict.fromkeys(
        ("api_keys", "supported_features", "finalized_features"), "as for everyone")),
    *(
        asked(f"{api.name.lower()}, brokers' own", api, versions="newest")
        for api in (
            K.ALLOCATE_PRODUCER_IDS, K.ALTER_PARTITION, K.BROKER_HEARTBEAT, K.ENVELOPE,
        )
    ),
)  # fmt: skip

CASES = (*ADMIN, *DATA, *GROUPS, *SHARE, *TRANSACTIONS, *TOKENS, *OTHERS)
