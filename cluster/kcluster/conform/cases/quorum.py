"""DescribeQuorum, voters, features, UnregisterBroker; APIs that no broker's listener serves.

Owns: these cases.  Never: sends them (running.py).
"""

from __future__ import annotations

from kcluster.conform.case import Case, passed_on
from kcluster.json_types import JsonObject
from kcluster.protocol.apis import ApiKey

QUORUM, ADD, REMOVE = ApiKey.DESCRIBE_QUORUM, ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER
FEATURES, UNREGISTER = ApiKey.UPDATE_FEATURES, ApiKey.UNREGISTER_BROKER
UP, SAFE, UNSAFE = 1, 2, 3
METADATA, ELR, GROUP = "metadata.version", "eligible.leader.replicas.version", "group.version"
SHARE = "share.version"
LOG = "__cluster_metadata"

MOVING = {
    "leader_id": "ids of controllers", "high_watermark": "an offset in the metadata log",
    "log_end_offset": "an offset in the metadata log",
    "leader_epoch": "how many elections of controllers there were",
    "last_fetch_timestamp": "a time", "last_caught_up_timestamp": "a time",
}  # fmt: skip


def quorum(*topics: tuple[str, list[int]]) -> JsonObject:
    return {
        "topics": [
            {"topic_name": name, "partitions": [{"partition_index": index} for index in partitions]}
            for name, partitions in topics
        ]
    }


def removed(
    voter_id: int, *, directory: object = "{missing_id}", cluster: str | None = None
) -> JsonObject:
    return {"cluster_id": cluster, "voter_id": voter_id, "voter_directory_id": directory}


def added(voter_id: int, *, listener: str = "CONTROLLER", **more: object) -> JsonObject:
    listeners = [{"name": listener, "host": "127.0.0.1", "port": 1}]
    return {**removed(voter_id, **passed_on(more)), "timeout_ms": 1000, "listeners": listeners}


def features(*updates: tuple[str, int | str, int], dry: bool = True) -> JsonObject:
    return {
        "timeout_ms": 5000,
        "validate_only": dry,
        "feature_updates": [
            {"feature": name, "max_version_level": level, "upgrade_type": how}
            for name, level, how in updates
        ],
    }


def dry(name: str, *updates: tuple[str, int | str, int]) -> Case:
    """From v1 on: v0 has no validate_only, and other cases share this cluster."""
    return Case(name, FEATURES, features(*updates), versions="1+")


NOT_A_BROKERS = (
    ApiKey.VOTE, ApiKey.BEGIN_QUORUM_EPOCH, ApiKey.END_QUORUM_EPOCH, ApiKey.ALTER_PARTITION,
    ApiKey.ENVELOPE, ApiKey.FETCH_SNAPSHOT, ApiKey.BROKER_REGISTRATION, ApiKey.BROKER_HEARTBEAT,
    ApiKey.ALLOCATE_PRODUCER_IDS, ApiKey.CONTROLLER_REGISTRATION, ApiKey.ASSIGN_REPLICAS_TO_DIRS,
    ApiKey.UPDATE_RAFT_VOTER,
)  # fmt: skip

CASES = (
    Case("quorum", QUORUM, quorum((LOG, [0])), mask=MOVING),
    Case("quorum, asked elsewhere", QUORUM, quorum((LOG, [0])), mask=MOVING, to=3),
    Case("quorum of nothing", QUORUM, quorum()),
    Case("quorum of no partitions", QUORUM, quorum((LOG, []))),
    Case("quorum of partition 1", QUORUM, quorum((LOG, [1]))),
    Case("quorum of a topic", QUORUM, quorum(("{topic}", [0]))),
    Case("quorum of both", QUORUM, quorum((LOG, [0]), ("{topic}", [0, 1]))),
    Case("quorum twice", QUORUM, quorum((LOG, [0, 0]))),

    Case("add a voter", ADD, added(9)),
    Case("add a voter of another cluster", ADD, added(9, cluster="other")),
    Case("add a voter of this cluster", ADD, added(9, cluster="{cluster_id}")),
    Case("add a voter without its listener", ADD, added(9, listener="PLAINTEXT")),
    Case("add voter -1", ADD, added(-1)),
    Case("add a voter without a directory", ADD, added(9, directory=bytes(16))),
    Case("remove a voter", REMOVE, removed(9)),
    Case("remove a voter of another cluster", REMOVE, removed(9, cluster="other")),
    Case("remove voter -1", REMOVE, removed(-1)),
    Case("remove a voter without a directory", REMOVE, removed(9, directory=bytes(16))),

    Case("no features", FEATURES, features(dry=False)),
    Case("a feature as it is", FEATURES, features((GROUP, 1, UP), dry=False)),
    Case("an unknown feature", FEATURES, features(("none.version", 1, UP), dry=False)),
    Case(
        "a good and an unknown feature", FEATURES,
        features((GROUP, 1, UP), ("none.version", 1, UP), dry=False),
    ),
    Case("allow_downgrade of v0", FEATURES, {
        "feature_updates": [{"feature": GROUP, "max_version_level": 0, "allow_downgrade": True}],
    }, versions="0"),
    dry("unknown feature to 0", ("none.version", 0, UP)),
    dry("feature without a name", ("", 1, UP)),
    dry("feature too high", (GROUP, 2, UP)),
    dry("feature negative", (GROUP, -1, SAFE)),
    dry("feature down as an upgrade", (GROUP, 0, UP)),
    dry("feature down", (GROUP, 0, SAFE)),
    dry("feature down, unsafe", (GROUP, 0, UNSAFE)),
    dry("feature as it is by a downgrade", (GROUP, 1, SAFE)),
    dry("no such upgrade type", (GROUP, 0, 4)),
    dry("upgrade type unknown", (GROUP, 1, 0)),
    dry("transaction.version to 1", ("transaction.version", 1, SAFE)),
    dry("elr off", (ELR, 0, SAFE)),
    dry("share.version to 2", (SHARE, 2, UP)),
    dry("share.version to 1 by an upgrade", (SHARE, 1, UP)),
    dry("share.version to 1", (SHARE, 1, SAFE)),
    dry("share.version to 3", (SHARE, 3, UP)),
    dry("streams.version to 2", ("streams.version", 2, UP)),
    dry("share and streams off", (SHARE, 0, SAFE), ("streams.version", 0, UNSAFE)),
    dry("kraft.version to 1", ("kraft.version", 1, UP)),
    dry("kraft.version to 1 by a downgrade", ("kraft.version", 1, SAFE)),
    dry("kraft.version to 2", ("kraft.version", 2, UP)),
    dry("metadata.version as it is", (METADATA, "{metadata_version}", UP)),
    dry("metadata.version up", (METADATA, "{metadata_version+1}", UP)),
    dry("metadata.version down", (METADATA, "{metadata_version-1}", SAFE)),
    dry("metadata.version down, unsafe", (METADATA, "{metadata_version-1}", UNSAFE)),
    dry("metadata.version down as an upgrade", (METADATA, "{metadata_version-1}", UP)),
    dry("metadata.version of 4.3", (METADATA, 30, UP)),
    dry("metadata.version down to that of 4.3", (METADATA, 30, SAFE)),
    dry("metadata.version of the first KRaft", (METADATA, 7, SAFE)),
    dry("metadata.version to 6", (METADATA, 6, SAFE)),
    dry("a feature twice, first bad", (GROUP, 9, UP), (GROUP, 0, SAFE)),
    dry("a feature twice, last bad", (GROUP, 0, SAFE), (GROUP, 9, UP)),

    Case("unregister a broker that is none", UNREGISTER, {"broker_id": 77}),
    Case("unregister broker -1", UNREGISTER, {"broker_id": -1}),
    *(
        Case(f"unregister controller {controller_id}, asked at {to}", ApiKey.UNREGISTER_CONTROLLER,
             {"controller_id": controller_id}, to=to)
        for controller_id, to in ((77, 1), (77, 2), (-1, 1), (0, 3), (2**31 - 1, 1), (-(2**31), 1))
    ),

    *(Case(f"{api.name} at a broker", api) for api in NOT_A_BROKERS),
)  # fmt: skip
