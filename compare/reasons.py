"""Why an answer differs on purpose.

Owns: the table.  Never: hides a bug: what has no good reason is fixed.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class Reason(Struct, frozen=True):
    """Explains differences of some cases (`family: case`) at some paths; both are globs."""

    area: str
    text: str
    cases: tuple[str, ...]
    paths: tuple[str, ...] = ("*",)


def apis(*keys: int) -> tuple[str, ...]:
    """Paths of some APIs in ApiVersions."""
    return tuple(f"answer.api_keys.{key}" for key in keys)


VERSIONS = ("metadata: versions*", "wire: api_versions*")

REASONS: Final[tuple[Reason, ...]] = (
    Reason(
        "quorum",
        "There is one controller, which is no broker and has no listener: brokers are observers.",
        ("quorum: quorum*",),
        ("*current_voters*", "*observers*", "*nodes*"),
    ),
    Reason(
        "APIs",
        "Transactions are not served.",
        VERSIONS,
        apis(24, 25, 26, 27, 28),
    ),
    Reason(
        "APIs",
        "Groups of KIP-848, share groups and groups of Kafka Streams are not served.",
        VERSIONS,
        apis(68, 69, 76, 77, 78, 79, 83, 84, 85, 86, 87, 88, 89, 90, 91, 92),
    ),
    Reason(
        "bytes",
        "A string that is not UTF-8 closes the connection; Kafka puts replacement characters, so"
        " that two clients may come to have one name.",
        ("wire: client id that is no utf-8",),
    ),
    Reason(
        "produce",
        "Null records are INVALID_RECORD. Kafka never answers them, and nothing behind them on the"
        " connection.",
        ("produce: no records",),
    ),
    Reason(
        "produce",
        "Records are opened only where something depends on them, so a batch that says that it is"
        " compressed, and is not, is taken; its consumers find out.",
        ("produce: codec, but not compressed",),
    ),
    Reason(
        "produce",
        "Bytes in which no batch can be told are CORRUPT_MESSAGE without a message; Kafka, which"
        " finds them before it looks for the partition, has one.",
        ("produce: format 3", "produce: length *"),
        ("*.error_message",),
    ),
    Reason(
        "groups",
        "What a consumer subscribes to is not read before somebody asks for it. Where it cannot be"
        " read Kafka's coordinator fails within and never answers JoinGroup.",
        ("groups: join: no subscription",),
    ),
    Reason(
        "configs",
        "A resource named twice in AlterConfigs is INVALID_REQUEST both times. Kafka never answers"
        " it, and nothing behind it on the connection.",
        ("alter_configs: a topic replaced twice",),
    ),
    Reason(
        "configs",
        "Loggers have the level INFO at first; this Kafka's log4j2.properties says WARN.",
        ("alter_configs: logger: made",),
        ("*.value",),
    ),
)

BESIDE: Final[tuple[str, ...]] = (
    "The first InitProducerId at a broker waits for its block of ids; Kafka answers"
    " COORDINATOR_LOAD_IN_PROGRESS, and the client asks again.",
    "InitProducerId with a transactional id: COORDINATOR_NOT_AVAILABLE, as transactions are not"
    " served.",
    "The controller that Metadata and DescribeCluster name changes with the metadata, not with each"
    " answer, so that one seed gives one trace.",
    "AlterReplicaLogDirs: the log is in the other directory at once; Kafka copies it and shows the"
    " copy with its lag.",
    "A member that repeats its JoinGroup or SyncGroup on another connection: the one that waited is"
    " answered REBALANCE_IN_PROGRESS; Kafka never answers it.",
    "`profile: fast` shows as configs of source STATIC_BROKER_CONFIG.",
    "default.replication.factor is 3, or the number of brokers if that is less, and shows as a"
    " STATIC_BROKER_CONFIG; Kafka's default is 1, and `config: {default.replication.factor: 1}` in"
    " the topology brings it back.",
    "max.connections.per.ip.overrides and quotas of addresses: names other than localhost are"
    " nobody's; Kafka asks the name service.",
    "A lowered max.connections closes the idlest within a second, Kafka within 0.3 s; simulated"
    " clients of the virtual driver have no limits on connections.",
)
"""What is known to differ and no case can show, as it depends on the moment or cannot be masked."""
