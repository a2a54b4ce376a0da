"""Requests of users who may do a part of what they ask for, and the ACLs that decide: denials,
prefixes, hosts, everyone's rights, operations that imply others.

Owns: these cases.  Never: sends them (running.py).
"""

from __future__ import annotations

from kcluster.conform.bodies import batch, commit, joins_streams
from kcluster.conform.case import COORDINATOR, Ask, Case, CaseBody, Sleep, passed_on
from kcluster.conform.rights import Right, allow, deny
from kcluster.conform.transactions import AT, INIT, add, of_broker
from kcluster.protocol.apis import ApiKey as K

SECURED = True
"""It is asked in the cluster with logins and an authorizer."""

SOME = (
    *(
        allow(operation, topic=name)
        for name in ("{topic}", "{missing}")
        for operation in ("read", "write", "alter", "alter_configs", "describe_configs", "delete")
    ),
    allow("create", topic="{new}"),
    allow("read", group="{tag}.*"), allow("delete", group="{group}"),
    allow("write", transactional_id="{tag}.*"),
)  # fmt: skip
"""Everything with {topic} and with {missing}, nothing with {fresh}."""

NAMES = ("{missing}", "{fresh}", "elsewhere", "{topic}")
IDS = ("{missing_id}", "{fresh_id}", "{topic_id}")
PAIRS = (*zip(("{missing}", "{fresh}", "{topic}"), IDS, strict=True), ("elsewhere", "{missing_id}"))


def part(name: str, api: K, body: CaseBody, **more: object) -> Case:
    return Case(name, api, body, rights=SOME, **passed_on(more))


def named(**more: object) -> list[object]:
    return [{"name": name, **more} for name in NAMES]


def pairs(*pairs: tuple[str, str], **more: object) -> list[object]:
    """Rows with a topic's name and id."""
    return [{"name": name, "topic_id": id_, **more} for name, id_ in pairs or PAIRS]


OFFSETS = [
    {"partition_index": index, "committed_offset": 5, "committed_metadata": ""} for index in (9, 0)
]
OF_TOPICS = (
    part("commit", K.OFFSET_COMMIT, {
        "group_id": "{group}", "generation_id_or_member_epoch": -1,
        "topics": pairs(*PAIRS[:3], partitions=OFFSETS)}, to=COORDINATOR, versions="10"),
    part("commit by names", K.OFFSET_COMMIT, {
        "group_id": "{group}", "generation_id_or_member_epoch": -1,
        "topics": named(partitions=OFFSETS)}, to=COORDINATOR, versions="2-9"),
    part("commit in a transaction", K.TXN_OFFSET_COMMIT, {
        "transactional_id": "{txn}", "group_id": "{group}", "producer_id": 9, "producer_epoch": 0,
        "topics": named(partitions=OFFSETS)}, to=COORDINATOR),
    part("offsets", K.OFFSET_FETCH, {
        "groups": [{"group_id": name, "topics": pairs(*PAIRS[:3], partition_indexes=[0, 9])}
                   for name in ("elsewhere", "{group}")]}, to=COORDINATOR, versions="10"),
    part("offsets by names", K.OFFSET_FETCH, {
        "group_id": "{group}", "topics": named(partition_indexes=[0, 9]),
        "groups": [{"group_id": name, "topics": named(partition_indexes=[0])}
                   for name in ("elsewhere", "{group}")]}, to=COORDINATOR, versions="1-9"),
    part("all offsets", K.OFFSET_FETCH, {
        "group_id": "{group}", "topics": None,
        "groups": [{"group_id": "{group}", "topics": None}],
    }, to=COORDINATOR, versions="2+", before=tuple(
        Ask(K.OFFSET_COMMIT, commit(topic=name, topic_id=id_), to=COORDINATOR)
        for name, id_ in (("{fresh}", "{fresh_id}"), ("{topic}", "{topic_id}")))),
    part("delete offsets", K.OFFSET_DELETE, {
        "group_id": "{group}", "topics": named(partitions=[{"partition_index": 0}])},
        to=COORDINATOR, before=(Ask(K.OFFSET_COMMIT, commit(), to=COORDINATOR),)),
    part("add partitions", K.ADD_PARTITIONS_TO_TXN, add(
        *((name, [0]) for name in NAMES), pid=9, epoch=0), to=AT, versions="0-3"),
    part("produce", K.PRODUCE, {
        "acks": -1, "timeout_ms": 5_000,
        "topic_data": pairs(*PAIRS[:2], partition_data=[{"index": 0, "records": batch()}]),
    }),
    part("produce without acks", K.PRODUCE, {
        "acks": 0, "timeout_ms": 5_000, "topic_data": pairs(
            PAIRS[1], partition_data=[{"index": 0, "records": batch()}]),
    }, answered=False, versions="newest"),
    part("fetch", K.FETCH, {
        "max_wait_ms": 0, "min_bytes": 1, "topics": [
            {"topic": name, "topic_id": id_, "partitions": [
                {"partition": index, "fetch_offset": 10, "partition_max_bytes": 1_000}
                for index in (9, 0)]}
            for name, id_ in PAIRS[:3]
        ],
    }),
    part("list offsets", K.LIST_OFFSETS, {
        "replica_id": -1, "topics": named(partitions=[{"partition_index": 0, "timestamp": -1}])}),
    part("epochs", K.OFFSET_FOR_LEADER_EPOCH, {
        "replica_id": -1, "topics": [
            {"topic": name, "partitions": [{"partition": 0, "leader_epoch": 0}]}
            for name in NAMES]}),
    part("delete records", K.DELETE_RECORDS, {
        "timeout_ms": 5_000, "topics": named(partitions=[{"partition_index": 0, "offset": 0}])}),
    part("producers", K.DESCRIBE_PRODUCERS, {"topics": named(partition_indexes=[0])}),
    part("metadata", K.METADATA, {
        "topics": [{"name": name} for name in NAMES], "allow_auto_topic_creation": False,
    }, versions="4+", mask={"brokers": "as for everyone"}),
    part("topic partitions", K.DESCRIBE_TOPIC_PARTITIONS, {
        "topics": [{"name": name} for name in NAMES]}),
)  # fmt: skip

RESOURCES = [
    {"resource_type": kind, "resource_name": name}
    for kind, name in ((2, "{fresh}"), (4, "1"), (2, "{topic}"), (32, "{group}"), (2, "{missing}"))
]
ADMIN = (
    part("create topics", K.CREATE_TOPICS, {
        "topics": [{"name": name, "num_partitions": 1, "replication_factor": 1}
                   for name in ("{new2}", "{new}", "{topic}")],
        "timeout_ms": 5_000, "validate_only": True,
    }),
    part("create partitions", K.CREATE_PARTITIONS, {
        "topics": [{"name": name, "count": 4, "assignments": None} for name in NAMES],
        "timeout_ms": 5_000, "validate_only": True,
    }),
    part("delete topics", K.DELETE_TOPICS, {
        "topics": [{"name": name} for name in NAMES[:3]], "topic_names": list(NAMES[:3]),
        "timeout_ms": 5_000,
    }),
    part("delete topics by id", K.DELETE_TOPICS, {
        "topics": [{"name": None, "topic_id": id_} for id_ in IDS[:2]], "timeout_ms": 5_000,
    }, versions="6"),
    part("alter configs", K.INCREMENTAL_ALTER_CONFIGS, {
        "resources": RESOURCES, "validate_only": True}),
    part("replace configs", K.ALTER_CONFIGS, {"resources": RESOURCES, "validate_only": True}),
    part("describe configs", K.DESCRIBE_CONFIGS, {
        "resources": [{**one, "configuration_keys": ["retention.ms"]} for one in RESOURCES]}),
    part("describe groups", K.DESCRIBE_GROUPS, {
        "groups": ["elsewhere", "{group}"], "include_authorized_operations": True},
        to=COORDINATOR),
    part("delete groups", K.DELETE_GROUPS, {"groups_names": ["elsewhere", "{group}"]},
         to=COORDINATOR, before=(Ask(K.OFFSET_COMMIT, commit(), to=COORDINATOR),)),
    part("find coordinators", K.FIND_COORDINATOR, {
        "key_type": 0, "coordinator_keys": ["elsewhere", "{tag}.g", "else"]}, versions="4+",
        mask=dict.fromkeys(("node_id", "host", "port"), "which broker it is")),
)  # fmt: skip


GROUP = allow("describe", group="{group}")
COMMITTED = (Ask(K.OFFSET_COMMIT, commit(), to=COORDINATOR),)
JOINED = {
    "group_id": "{group}", "member_id": "anna", "member_epoch": 0, "rebalance_timeout_ms": 10_000,
    "subscribed_topic_names": ["{topic}"], "topic_partitions": [],
}  # fmt: skip
MEMBERS = (
    ("consumer group", K.CONSUMER_GROUP_DESCRIBE, K.CONSUMER_GROUP_HEARTBEAT, JOINED),
    ("share group", K.SHARE_GROUP_DESCRIBE, K.SHARE_GROUP_HEARTBEAT, {
        name: JOINED[name] for name in (
            "group_id", "member_id", "member_epoch", "subscribed_topic_names")}),
    ("streams group", K.STREAMS_GROUP_DESCRIBE, K.STREAMS_GROUP_HEARTBEAT, joins_streams()),
)  # fmt: skip
OPEN = (INIT, Ask(K.ADD_PARTITIONS_TO_TXN, {"transactions": [
    of_broker(("{topic}", [0]), ("{fresh}", [0, 1]))]}, to=AT))  # fmt: skip
TXN = allow("describe", transactional_id="{txn}")
SHOWN = (
    Case("shown: its groups", K.LIST_GROUPS, {}, to=COORDINATOR, before=COMMITTED, rights=(GROUP,)),
    Case("shown: no group", K.LIST_GROUPS, {}, to=COORDINATOR, before=COMMITTED, rights=()),
    *(
        Case(f"shown: a {kind}{how}", describe, {"group_ids": ["{group}"]}, to=COORDINATOR,
             before=(Ask(join, body, to=COORDINATOR), Sleep(300)), rights=(GROUP, *more),
             versions="newest",
             mask={"assignment": "as without rights", "target_assignment": "as without rights",
                   "group_epoch": "how often it was computed",
                   "assignment_epoch": "as group_epoch", "member_epoch": "as group_epoch"})
        for kind, describe, join, body in MEMBERS
        for how, more in (
            (", without its topics", ()), ("", (allow("describe", topic="{topic}"),)))
    ),
    Case("shown: its transactions", K.LIST_TRANSACTIONS, {}, to=AT, before=OPEN, rights=(TXN,)),
    Case("shown: no transaction", K.LIST_TRANSACTIONS, {}, to=AT, before=OPEN, rights=()),
    *(
        Case(f"shown: a transaction{how}", K.DESCRIBE_TRANSACTIONS, {
            "transactional_ids": ["elsewhere", "{txn}"]}, to=AT, before=OPEN, rights=(TXN, *more))
        for how, more in (
            (" without topics", ()), (" with one", (allow("describe", topic="{fresh}"),)))
    ),
    Case("shown: all topics", K.METADATA, {"topics": None}, rights=(
        allow("describe", topic="{fresh}"),), versions="1+", mask={"brokers": "as for everyone"}),
    Case("shown: no topics", K.METADATA, {"topics": None}, rights=(), versions="newest",
         mask={"brokers": "as for everyone"}),
    Case("shown: all topics' partitions", K.DESCRIBE_TOPIC_PARTITIONS, {"topics": []}, rights=(
        allow("describe", topic="{fresh}"),)),
    Case("shown: all reassignments", K.LIST_PARTITION_REASSIGNMENTS, {"topics": None}, rights=()),
)  # fmt: skip


def decided(name: str, *rights: Right) -> Case:
    """What one may do with {fresh}: read, produce, and its authorized operations."""
    return Case(name, K.METADATA, {
        "topics": [{"name": "{fresh}"}], "allow_auto_topic_creation": False,
        "include_topic_authorized_operations": True,
    }, rights=rights, versions="newest", mask={
        "brokers": "as for everyone", "partitions": "as for everyone"})  # fmt: skip


EVERYONE = {"principal": "User:*"}
READ, ALL = allow("read", topic="{fresh}"), allow("all", topic="{fresh}")
DECISIONS = (
    decided("decided: no acl"),
    decided("decided: all but write", ALL, deny("write", topic="{fresh}")),
    decided("decided: all denied", ALL, deny("all", topic="{fresh}")),
    decided("decided: read without describe", READ, deny("describe", topic="{fresh}")),
    decided("decided: describe without read", allow("describe", topic="{fresh}"),
            deny("read", topic="{fresh}")),
    decided("decided: from here", allow("read", "127.0.0.1", topic="{fresh}")),
    decided("decided: from elsewhere", allow("read", "10.9.9.9", topic="{fresh}")),
    decided("decided: denied from elsewhere", READ, deny("all", "10.9.9.9", topic="{fresh}")),
    decided("decided: denied from here", READ, deny("all", "127.0.0.1", topic="{fresh}")),
    decided("decided: everyone", {**READ, **EVERYONE}),
    decided("decided: everyone but one", {**READ, **EVERYONE}, deny("all", topic="{fresh}")),
    decided("decided: by a prefix", allow("alter", topic="{tag}.*")),
    decided("decided: by the whole name as a prefix", allow("alter", topic="{fresh}*")),
    decided("decided: by any name", allow("alter_configs", topic="*"),
            deny("describe_configs", topic="{fresh}")),
    decided("decided: a prefix denied", ALL, deny("read", topic="{tag}*")),
    decided("decided: a longer prefix allowed", deny("read", topic="{tag}*"),
            allow("read", topic="{fresh}*")),
    decided("decided: of another type", allow("read", group="{fresh}"),
            {**READ, "principal": "Group:{user}"}),
    decided("decided: the cluster's create is no topic's", allow("create", cluster=True), READ),
)  # fmt: skip

CASES = (*OF_TOPICS, *ADMIN, *SHOWN, *DECISIONS)
