"""What changed in the answers of Apache Kafka from one release to the next, in words.

Owns: the table.  Never: has a change that no recorded answer shows (what_changed.py finds them).
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from kcluster.protocol.apis import ApiKey


class Change(Struct, frozen=True):
    """Explains the changed answers of some cases (`family: case`) at some paths; both are globs.
    Without a text, a table of the page shows it."""

    area: str
    text: str
    cases: tuple[str, ...]
    paths: tuple[str, ...] = ("*",)


NEW_VERSIONS: Final[dict[int, str]] = {
    ApiKey.API_VERSIONS: "the client may name the cluster and the node that it expects; if it has"
    " reached another one, the answer is REBOOTSTRAP_REQUIRED (KIP-1242)",
    ApiKey.TXN_OFFSET_COMMIT: "topic ids in place of names, member epochs; GROUP_ID_NOT_FOUND,"
    " STALE_MEMBER_EPOCH and UNKNOWN_TOPIC_ID (KIP-1319)",
    ApiKey.DELETE_GROUPS: "an error message for each group",
    ApiKey.STREAMS_GROUP_HEARTBEAT: "asks for a description of the topology (KIP-1331); the"
    " acceptable recovery lag is an int64; the status MISSING_CLIENT_TAGS",
    ApiKey.STREAMS_GROUP_DESCRIBE: "the topology's description (KIP-1331), the assignor's name"
    " (KIP-1357)",
    ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: "a member describes the topology (KIP-1331)",
    ApiKey.UNREGISTER_CONTROLLER: "forgets a controller that will not return (KIP-1312)",
}
"""What the versions bring that only the newest release has."""

_NEW_CONFIGS = (
    "*.errors.deadletterqueue.*", "*.max.decompressed.message.bytes", "*.remote.copy.lag.*",
    "*.group.streams.*", "*.streams.assignor.name", "*.streams.rack.aware.assignment.tags",
    "*.sasl.oauthbearer.allow.unverified.*", "*.group.*.assignor.offload.enable",
)  # fmt: skip

CHANGES: Final[tuple[Change, ...]] = (
    Change(
        "tables",
        "",
        ("metadata: versions*", "wire: api_versions: *"),
        ("*.api_keys*", "*.supported_features*", "*.finalized_features*"),
    ),
    Change(
        "tables", "", ("describe_configs: *", "topics: create*", "conversation: *"), _NEW_CONFIGS
    ),
    Change(
        "Configs and quotas",
        "Configs that came with 4.4 are checked. 4.3 refuses an unknown one of a topic or a group"
        " (INVALID_CONFIG), but takes any value of a broker's, and describes it as sensitive.",
        (
            "alter_configs: *decompressed size*",
            "alter_configs: *copied *",
            "alter_configs: *dead letters*",
            "alter_configs: broker: *",
            "alter_configs: streams: *",
            "describe_configs: group, internal keys",
            "topics: create: config max.decompressed.*",
            "topics: create: config errors.*",
            "topics: create: config remote.copy.*",
        ),
    ),
    Change(
        "Features",
        "UpdateFeatures knows metadata.version up to 33 and share.version up to 2. Levels 32 and"
        " 33 of metadata.version have new records, so a cluster that has one cannot go back to"
        " 4.3's 30.",
        ("quorum: share.version to *", "quorum: metadata.version *"),
    ),
    Change(
        "Produce",
        "Of a compressed batch that is stored as it came, the length of each record is checked: a"
        " negative one, or one above max.decompressed.message.bytes, is INVALID_RECORD. 4.3 appends"
        " such a batch, and its consumers get the error.",
        ("produce: records, *: length *",),
    ),
    Change(
        "Configs and quotas",
        "An unknown operation on a broker's logger is INVALID_REQUEST, no longer"
        " UNKNOWN_SERVER_ERROR.",
        ("alter_configs: logger: operation 9",),
    ),
    Change(
        "Configs and quotas",
        "A client without the right to alter a broker's configs gets CLUSTER_AUTHORIZATION_FAILED"
        " whichever broker it names, without an error message. 4.3 looks first which broker it is:"
        " another one is INVALID_REQUEST.",
        ("*rights: alter configs", "*rights: replace configs"),
    ),
    Change(
        "Configs and quotas",
        "A quota must be a finite number. 4.3 takes NaN, and an infinite request_percentage.",
        ("quotas: quotas, * nan", "quotas: quotas, * inf"),
    ),
    Change(
        "Security",
        "CreateAcls refuses an ACL without a host (INVALID_REQUEST). 4.3 creates it.",
        ("conversation: acls that are refused",),
    ),
    Change(
        "Groups",
        "JoinGroup with a subscription that cannot be decoded is answered. 4.3 never responds to"
        " it.",
        ("groups: join: no subscription",),
    ),
    Change(
        "Groups",
        "A consumer that joins a classic group whose member has a malformed assignment gets"
        " GROUP_ID_NOT_FOUND, no longer UNKNOWN_SERVER_ERROR.",
        ("group_kinds: classic, a member: joins as a consumer",),
    ),
    Change(
        "Streams groups",
        "Members may be static, and may report the offsets of their tasks: StreamsGroupHeartbeat"
        " accepts an instance id, task offsets and task end offsets, which are INVALID_REQUEST in"
        " 4.3.",
        (
            "streams_groups: join: static*",
            "streams_groups: join: task *",
            "conversation: streams: a static *",
        ),
    ),
    Change(
        "Groups",
        "The assignment of a consumer, share or streams group that has become empty ends: its epoch"
        " is the group's, and the next consumer gets partitions with its first heartbeat. In 4.3 it"
        " keeps the old epoch, and the member waits for the next assignment.",
        (
            "conversation: consumer member*",
            "conversation: share group: *",
            "conversation: streams: *",
        ),
        ("*epoch", "*assignment*", "*group_state", "*.error_*", "*.member_id", "*interval_ms"),
    ),
    Change(
        "Share groups",
        "An unknown topic id in ShareFetch is UNKNOWN_TOPIC_ID for its partitions, and the rest of"
        " the request is answered. In 4.3 the whole request is UNKNOWN_SERVER_ERROR.",
        ("share: fetch: unknown topic", "conversation: share: requests that make no sense"),
    ),
    Change(
        "Share groups",
        "The share coordinator refuses requests without an epoch: a state epoch of -1 in"
        " InitializeShareGroupState, a leader epoch of -1 in ReadShareGroupState and"
        " WriteShareGroupState are INVALID_REQUEST.",
        ("share_state: initialize: epoch -1", "share_state: * no epoch*"),
    ),
    Change(
        "Share groups",
        "After a write that does not count the completed deliveries, ReadShareGroupStateSummary has"
        " a delivery_complete_count of 0. 4.3 has -1, for unknown.",
        ("share_state: *",),
        ("*.delivery_complete_count",),
    ),
    Change(
        "Share groups",
        "Records that a share group rejects, or gives up, go to its dead letter queue"
        " (KIP-1191), if errors.deadletterqueue.topic.name of the group names a topic whose"
        " errors.deadletterqueue.group.enable is true, and share.version is 2.",
        ("conversation: dead letters: *",),
    ),
    Change(
        "Streams groups",
        "A member's task changes its role, from a standby to an active task or back, in one"
        " heartbeat. In 4.3 the member gives it back first.",
        ("conversation: streams: standbys take over",),
        ("*_tasks*",),
    ),
    Change(
        "Streams groups",
        "A member that names a new endpoint gets the endpoints of the group, its own included, in"
        " the same answer; in 4.3 in a later one.",
        ("streams_groups: heartbeat: a new endpoint",),
        ("*endpoint*",),
    ),
    Change(
        "Streams groups",
        "StreamsGroupDescribe names the assignor (v1).",
        ("conversation: streams: *", "streams_groups: *"),
        ("*.assignor_name",),
    ),
    Change(
        "Streams groups",
        "Heartbeats have the interval in which clients report their tasks' offsets,"
        " `task_offset_interval_ms`: 60,000 by default. 4.3 sends 0.",
        ("*",),
        ("*.task_offset_interval_ms", "*.acceptable_recovery_lag*"),
    ),
)
