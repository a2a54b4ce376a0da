"""The reasons for deliberate differences.

Owns: the table.  Never: hides a bug: a difference without a good reason is fixed.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class Reason(Struct, frozen=True):
    """Explains the differences of some cases (`family: case`) at some paths; both are globs.
    `kafka`: the release that it is about, such as `4.3.1`; empty: all."""

    area: str
    text: str
    cases: tuple[str, ...]
    paths: tuple[str, ...] = ("*",)
    kafka: str = ""


REASONS: Final[tuple[Reason, ...]] = (
    Reason(
        "quorum",
        "The controller is a separate node without a listener, so all brokers are observers.",
        ("quorum: quorum*",),
        ("*current_voters*", "*observers*", "*nodes*"),
    ),
    Reason(
        "transactions",
        "AddPartitionsToTxn of a broker that names no transaction is answered; Kafka never responds"
        " to it.",
        ("wire: add_partitions_to_txn: *",),
        ("answer",),
    ),
    Reason(
        "transactions",
        "WriteTxnMarkers that names a partition twice is answered; Kafka never responds to it.",
        ("transaction_data: marker: partition twice",),
        ("answer",),
    ),
    Reason(
        "bytes",
        "A string that is not valid UTF-8 closes the connection. Kafka inserts replacement"
        " characters, so that two clients may end up with the same name.",
        ("wire: client id that is no utf-8",),
    ),
    Reason(
        "produce",
        "Null records are INVALID_RECORD. Kafka never responds to them, nor to any later request on"
        " the connection.",
        ("produce: no records",),
    ),
    Reason(
        "produce",
        "Bytes that contain no valid batch are CORRUPT_MESSAGE without an error message. Kafka"
        " checks them before it looks up the partition, and sends a message.",
        ("produce: format 3", "produce: length *"),
        ("*.error_message",),
    ),
    Reason(
        "groups",
        "A member's subscription is decoded only when it is needed. If it is invalid, Kafka's"
        " coordinator fails internally and never responds to JoinGroup.",
        ("groups: join: no subscription",),
    ),
    Reason(
        "groups",
        "If a classic member's assignment claims more entries than it has bytes, a consumer that"
        " joins gets GROUP_ID_NOT_FOUND, as for every other malformed assignment. Kafka's"
        " coordinator fails internally.",
        ("group_kinds: classic, a member: joins as a consumer",),
    ),
    Reason(
        "configs",
        "A resource that is named twice in AlterConfigs is INVALID_REQUEST both times. Kafka never"
        " responds, nor to any later request on the connection.",
        ("alter_configs: a topic replaced twice",),
    ),
    Reason(
        "configs",
        "An unknown operation on a logger is INVALID_REQUEST at every `kafka_version`, as in 4.4.",
        ("alter_configs: logger: operation 9",),
        kafka="4.3.1",
    ),
    Reason(
        "quotas",
        "A quota that is no finite number is refused at every `kafka_version`, as in 4.4. 4.3 takes"
        " NaN and some infinite ones.",
        ("quotas: quotas, * nan", "quotas: quotas, * inf"),
        kafka="4.3.1",
    ),
    Reason(
        "security",
        "An ACL without a host is INVALID_REQUEST at every `kafka_version`, as in 4.4. 4.3 creates"
        " it; it is about no client.",
        ("conversation: acls that are refused",),
        kafka="4.3.1",
    ),
    Reason(
        "configs",
        "Loggers start at level INFO; the log4j2.properties of the Kafka compared with sets WARN.",
        ("alter_configs: logger: made",),
        ("*.value",),
    ),
)

WITHOUT_CASE: Final[tuple[str, ...]] = (
    "The first InitProducerId at a broker waits for the broker's block of producer ids. Kafka"
    " returns COORDINATOR_LOAD_IN_PROGRESS, and the client retries.",
    "After a write of a transaction's state has timed out, other changes of the transaction are"
    " CONCURRENT_TRANSACTIONS until it takes effect. Kafka forgets it, and decides the next change"
    " without it.",
    "A coordinator sends its markers in one WriteTxnMarkers for each transaction and broker. Kafka"
    " collects those of several transactions.",
    "The controller in Metadata and DescribeCluster changes with the metadata, not with each"
    " response, so that one seed gives one trace.",
    "AlterReplicaLogDirs moves the log to the other directory at once. Kafka copies it, and shows"
    " the copy with its lag.",
    "If a member repeats its JoinGroup or SyncGroup on another connection, the request that was"
    " waiting gets REBALANCE_IN_PROGRESS. Kafka never responds to it.",
    "The settings of `profile: fast` appear as configs of source STATIC_BROKER_CONFIG.",
    "default.replication.factor is 3, or the number of brokers if that is less, and is shown as a"
    " STATIC_BROKER_CONFIG. Kafka's default is 1; `config: {default.replication.factor: 1}` in the"
    " topology brings it back.",
    "max.connections.per.ip.overrides and quotas of addresses: host names other than localhost"
    " match no address. Kafka resolves them by DNS.",
    "When max.connections is lowered, the connections idle the longest are closed within a second;"
    " Kafka takes 0.3 s. Simulated clients of the virtual driver have no connection limits.",
)
"""Known differences that no case can show: they depend on timing, or cannot be masked."""
