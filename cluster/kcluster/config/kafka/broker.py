"""A broker's configs: names, types, ranges and defaults of Kafka 4.4.0.

Owns: BrokerConfig, BROKER_CONFIGS: the configs that take effect here, and the defaults of all topic
configs.  Never: reads text (values.py does); holds what the topology sets by other keys (node.id,
broker.rack, listeners), or configs without an effect here (catalog.txt: TLS, SASL, tiered storage,
the KRaft quorum, thread pools, …).
Kafka: KafkaConfig, AbstractKafkaConfig, GroupCoordinatorConfig, ReplicationConfigs, …

`scaled` marks time constants of the machinery: `profile: fast` makes them 100 times shorter, `slow`
3 times longer.
Never scaled: the times for which data or ids are kept, and the upper bounds of clients' values.
"""

# No `from __future__ import annotations`: the annotations are used as values, and compiling them
# from text would take 10 ms at each start.

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from kcluster.config.kafka import connection_limits
from kcluster.config.kafka.values import (
    NEWEST,
    ConfigDef,
    ConfigError,
    ConfigFields,
    ConfigType,
    Dynamic,
    ReleaseNumber,
    Spec,
    Value,
    definitions_of,
    field_of,
    invalid,
    parse_overrides,
    parse_value,
)
from kcluster.security.authorizer import STANDARD_AUTHORIZER

Profile = Literal["kafka", "fast", "slow"]
PROFILES: Final = ("kafka", "fast", "slow")

_MAX_INT: Final = 2**31 - 1
_MAX_LONG: Final = 2**63 - 1
MAX_JAVA_ARRAY_BYTES: Final = _MAX_INT - 8
NO_SIZE_LIMIT: Final = 0
"""A value of max.decompressed.message.bytes: brokers before 4.4 do not limit the length of a
record."""
_HOUR_MS: Final = 3_600_000
_DAY_MS: Final = 24 * _HOUR_MS
_CODECS: Final = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
_CLUSTER: Final[Dynamic] = "cluster-wide"
CONSUMER_ASSIGNORS: Final = ("uniform", "range")
STREAMS_ASSIGNORS: Final = ("sticky",)
_4_4: Final = (4, 4)


DEFAULT_PERSISTER: Final = "org.apache.kafka.server.share.persister.DefaultStatePersister"
NO_PERSISTER: Final = "org.apache.kafka.server.share.persister.NoOpStatePersister"
PERSISTERS: Final = (DEFAULT_PERSISTER, NO_PERSISTER, "")
"""The valid values of group.share.persister.class.name; empty: no persister, like
NoOpStatePersister."""

RACK_AWARE_SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"

AUTHORIZERS: Final = (STANDARD_AUTHORIZER, "")
"""The valid values of authorizer.class.name; empty: every client may do everything."""


_int: Final = partial(Spec, "INT")
_long: Final = partial(Spec, "LONG")


def _unused(kind: ConfigType, minimum: float | None = None) -> Spec:
    return Spec(kind, minimum, dynamic=_CLUSTER, obeyed=False)


def _strings(
    kind: Literal["STRING", "LIST"],
    *one_of: str,
    dynamic: Dynamic = "read-only",
    ignores_case: bool = False,
) -> Spec:
    return Spec(kind, one_of=one_of, dynamic=dynamic, ignores_case=ignores_case)


def _check_directories(definition: ConfigDef, value: Value) -> str | None:
    """Check log.dirs: a broker needs a directory to store anything."""
    if value:
        return None
    return invalid(definition.name, "", "at least one log directory must be named")


def _check_codec(definition: ConfigDef, value: Value) -> str | None:
    """Check a codec's id.  Kafka's own definition has no range: a broker with another id does not
    start."""
    if isinstance(value, int) and 0 <= value <= 4:
        return None
    return invalid(definition.name, value, "no compression has this id; they are 0 to 4")


def _check_overrides(_definition: ConfigDef, value: Value) -> str | None:
    assert isinstance(value, str), value
    read = connection_limits.parse_overrides(value)
    return read if isinstance(read, str) else None


def _check_share_assignors(definition: ConfigDef, value: Value) -> str | None:
    """Check group.share.assignors.  Kafka also loads classes by name."""
    return _only(("simple",), definition, value)


def _check_streams_assignors(definition: ConfigDef, value: Value) -> str | None:
    """Check group.streams.assignors.  Kafka also loads classes by name."""
    return _only(STREAMS_ASSIGNORS, definition, value)


def _only(assignors: tuple[str, ...], definition: ConfigDef, value: Value) -> str | None:
    if value == assignors:
        return None
    assert isinstance(value, tuple), value
    return invalid(definition.name, ",".join(value), f"the one assignor here is {assignors[0]}")


def _check_authorizer(definition: ConfigDef, value: Value) -> str | None:
    """Check the authorizer.  Kafka loads any class; here only AUTHORIZERS exist."""
    if value in AUTHORIZERS:
        return None
    return invalid(definition.name, value, f"the one authorizer here is {STANDARD_AUTHORIZER}")


def _check_selector(definition: ConfigDef, value: Value) -> str | None:
    """Check the replica selector.  Kafka loads any class; it has one of its own."""
    if value == RACK_AWARE_SELECTOR:
        return None
    return invalid(definition.name, value, f"the only selector here is {RACK_AWARE_SELECTOR}")


def _check_super_users(definition: ConfigDef, value: Value) -> str | None:
    assert isinstance(value, str), value
    users = (user.strip() for user in value.split(";"))
    nameless = next((user for user in users if user and ":" not in user), None)
    if nameless is None:
        return None
    return invalid(definition.name, value, f"principals are written as User:{nameless}")


def _check_persister(definition: ConfigDef, value: Value) -> str | None:
    """Check the persister.  Kafka loads any class; here only PERSISTERS exist."""
    if value in PERSISTERS:
        return None
    return invalid(definition.name, value, f"String must be one of: {', '.join(PERSISTERS)}")


def _check_assignors(definition: ConfigDef, value: Value) -> str | None:
    """Check group.consumer.assignors, of which the first is a group's default.  Kafka also loads
    classes by name."""
    assert isinstance(value, tuple), value
    unknown = next((one for one in value if one not in CONSUMER_ASSIGNORS), None)
    if unknown is not None:
        names = ", ".join(CONSUMER_ASSIGNORS)
        return invalid(definition.name, unknown, f"the assignors here are {names}")
    return None if value else invalid(definition.name, "", "at least one assignor must be named")


_ASSIGNORS: Final = Spec("LIST", check=_check_assignors)
_STREAMS_ASSIGNORS: Final = Spec("LIST", check=_check_streams_assignors, since=_4_4)
_MIGRATION: Final = _strings(
    "STRING", "disabled", "downgrade", "upgrade", "bidirectional", ignores_case=True
)
_FLAG: Final = Spec("BOOLEAN")
_DYNAMIC_FLAG: Final = Spec("BOOLEAN", dynamic=_CLUSTER)
_DIRECTORIES: Final = Spec("LIST", check=_check_directories)
_INT: Final = _int()
_INT_0: Final = _int(0)
_INT_1: Final = _int(1)
_LONG: Final = _long()
_TIME: Final = _int(scaled=True)
_TIME_0: Final = _int(0, scaled=True)
_TIME_1: Final = _int(1, scaled=True)
_INTERNAL_TIME_1: Final = _int(1, scaled=True, internal=True)
_LONG_TIME: Final = _long(scaled=True)
_LONG_TIME_1: Final = _long(1, scaled=True)
_INTERNAL_LONG_TIME_1: Final = _long(1, scaled=True, internal=True)
_LOG_INT_0: Final = _int(0, dynamic=_CLUSTER)
_LOG_LONG: Final = _long(dynamic=_CLUSTER)
_LOG_LONG_0: Final = _long(0, dynamic=_CLUSTER)
_LOG_LONG_1: Final = _long(1, dynamic=_CLUSTER)
_OVERRIDES: Final = Spec("STRING", check=_check_overrides, dynamic=_CLUSTER)
_REPLICATION: Final = Spec("SHORT", 1)
_SHARE_ASSIGNORS: Final = Spec("LIST", check=_check_share_assignors)
_SUPER_USERS: Final = Spec("STRING", check=_check_super_users, internal=True, of_plugin=True)
_OF_AUTHORIZER: Final = Spec("BOOLEAN", internal=True, of_plugin=True)
_PERSISTER: Final = Spec("STRING", check=_check_persister, internal=True)
_MAX_RECORD_BYTES: Final = _int(1, maximum=MAX_JAVA_ARRAY_BYTES, dynamic=_CLUSTER, since=_4_4)
_DLQ_PREFIX: Final = Spec("STRING", dynamic=_CLUSTER, since=_4_4)
_DLQ_CREATION: Final = Spec("BOOLEAN", dynamic=_CLUSTER, since=_4_4)
_COPY_LAG: Final = Spec("LONG", -1, dynamic=_CLUSTER, obeyed=False, since=_4_4)
_WARMUP_0: Final = _int(0, obeyed=False, internal=True, since=_4_4)
_OFFSET_INTERVAL: Final = _int(1, scaled=True, internal=True, since=_4_4)
_WARMUP_LAG: Final = _long(0, internal=True, since=_4_4)
_TAGS: Final = Spec("LIST", since=_4_4)


class BrokerConfig(Struct, frozen=True):
    """The effective configs of one broker.  Without arguments, they are Kafka's defaults."""

    # --------------------------------------------------------- sessions with the controller
    broker_heartbeat_interval_ms: Annotated[int, _TIME] = 2_000
    broker_session_timeout_ms: Annotated[int, _TIME] = 9_000
    controller_socket_timeout_ms: Annotated[int, _TIME] = 30_000
    controller_quorum_request_timeout_ms: Annotated[int, _TIME_0] = 2_000
    request_timeout_ms: Annotated[int, _TIME] = 30_000
    controlled_shutdown_enable: Annotated[bool, _FLAG] = True

    # ------------------------------------------------------------------------------ leaders
    auto_leader_rebalance_enable: Annotated[bool, _FLAG] = True
    leader_imbalance_check_interval_seconds: Annotated[int, _long(1)] = 300
    """Not scaled by profiles: a leader that a test has moved must not go back a moment later."""
    unclean_leader_election_enable: Annotated[bool, _DYNAMIC_FLAG] = False
    unclean_leader_election_interval_ms: Annotated[int, _INTERNAL_LONG_TIME_1] = 300_000
    min_insync_replicas: Annotated[int, _int(1, dynamic=_CLUSTER)] = 1
    eligible_leader_replicas_version: Annotated[int, _int(0, maximum=1, feature=True)] = 1
    """The level of a feature in Kafka: 1 keeps ELRs (KIP-966), 0 does not."""

    # ------------------------------------------------------------------------------- topics
    auto_create_topics_enable: Annotated[bool, _FLAG] = True
    delete_topic_enable: Annotated[bool, _FLAG] = True
    num_partitions: Annotated[int, _INT_1] = 1
    default_replication_factor: Annotated[int, _INT] = 1
    max_request_partition_size_limit: Annotated[int, _INT_1] = 2_000
    """The most partitions in one DescribeTopicPartitions response."""

    # -------------------------------------------------------------------------- replication
    replica_lag_time_max_ms: Annotated[int, _LONG_TIME] = 30_000
    replica_socket_timeout_ms: Annotated[int, _TIME] = 30_000
    replica_fetch_max_bytes: Annotated[int, _INT_0] = 1_048_576
    replica_fetch_wait_max_ms: Annotated[int, _int(scaled=True, fast=50)] = 500
    """A tenth of Kafka's value under `fast`: at 5 ms, the fetches of idle followers would keep a
    core busy."""
    replica_fetch_backoff_ms: Annotated[int, _TIME_0] = 1_000
    replica_fetch_min_bytes: Annotated[int, _INT] = 1
    replica_fetch_response_max_bytes: Annotated[int, _INT_0] = 10_485_760
    replica_selector_class: Annotated[str | None, Spec("STRING", check=_check_selector)] = None
    replica_high_watermark_checkpoint_interval_ms: Annotated[int, _LONG_TIME] = 5_000

    # ------------------------------------------------------------------ fetching, producing
    fetch_max_bytes: Annotated[int, _int(1024)] = 57_671_680
    max_incremental_fetch_session_cache_slots: Annotated[int, _INT_0] = 1_000
    message_max_bytes: Annotated[int, _LOG_INT_0] = 1_048_588
    max_decompressed_message_bytes: Annotated[int, _MAX_RECORD_BYTES] = MAX_JAVA_ARRAY_BYTES
    compression_type: Annotated[str, _strings("STRING", *_CODECS, dynamic=_CLUSTER)] = "producer"
    compression_gzip_level: Annotated[int, _int(1, maximum=9, or_equal=-1, dynamic=_CLUSTER)] = -1
    compression_lz4_level: Annotated[int, _int(1, maximum=17, dynamic=_CLUSTER)] = 9
    compression_zstd_level: Annotated[int, _int(-131_072, maximum=22, dynamic=_CLUSTER)] = 3

    # ------------------------------------------------------------------------------ sockets
    socket_request_max_bytes: Annotated[int, _INT_1] = 104_857_600
    queued_max_request_bytes: Annotated[int, _LONG] = -1
    connections_max_idle_ms: Annotated[int, _LONG] = 600_000
    max_connections: Annotated[int, _LOG_INT_0] = _MAX_INT
    max_connections_per_ip: Annotated[int, _LOG_INT_0] = _MAX_INT
    max_connections_per_ip_overrides: Annotated[str, _OVERRIDES] = ""
    max_connection_creation_rate: Annotated[int, _LOG_INT_0] = _MAX_INT
    num_network_threads: Annotated[int, _int(1, dynamic=_CLUSTER)] = 3

    # ------------------------------------------------------------- groups and their offsets
    group_initial_rebalance_delay_ms: Annotated[int, _TIME] = 3_000
    group_min_session_timeout_ms: Annotated[int, _TIME] = 6_000
    group_max_session_timeout_ms: Annotated[int, _INT] = 1_800_000
    group_max_size: Annotated[int, _INT_1] = _MAX_INT
    group_coordinator_rebalance_protocols: Annotated[
        tuple[str, ...], _strings("LIST", "consumer", "classic", "share", "streams")
    ] = ("classic", "consumer", "streams")
    group_consumer_assignment_interval_ms: Annotated[
        int, _int(0, scaled=True, dynamic=_CLUSTER)
    ] = 1_000
    group_consumer_assignors: Annotated[tuple[str, ...], _ASSIGNORS] = CONSUMER_ASSIGNORS
    group_consumer_heartbeat_interval_ms: Annotated[int, _TIME_1] = 5_000
    group_consumer_max_assignment_interval_ms: Annotated[int, _INT_0] = 15_000
    group_consumer_max_heartbeat_interval_ms: Annotated[int, _int(1, scaled=True, fast=15_000)] = (
        15_000
    )
    group_consumer_max_session_timeout_ms: Annotated[int, _int(1, scaled=True, fast=60_000)] = (
        60_000
    )
    group_consumer_max_size: Annotated[int, _INT_1] = _MAX_INT
    group_consumer_migration_policy: Annotated[str, _MIGRATION] = "bidirectional"
    group_consumer_min_assignment_interval_ms: Annotated[int, _INT_0] = 0
    group_consumer_min_heartbeat_interval_ms: Annotated[int, _TIME_1] = 5_000
    group_consumer_min_session_timeout_ms: Annotated[int, _TIME_1] = 45_000
    group_consumer_regex_refresh_interval_ms: Annotated[int, _int(10_000, internal=True)] = 600_000
    group_consumer_session_timeout_ms: Annotated[int, _TIME_1] = 45_000
    group_streams_acceptable_recovery_lag: Annotated[int, _WARMUP_LAG] = 10_000
    """The acceptable lag, as a number of offsets."""
    group_streams_assignment_interval_ms: Annotated[int, _int(0, scaled=True, dynamic=_CLUSTER)] = (
        1_000
    )
    group_streams_assignors: Annotated[tuple[str, ...], _STREAMS_ASSIGNORS] = STREAMS_ASSIGNORS
    group_streams_heartbeat_interval_ms: Annotated[int, _TIME_1] = 5_000
    group_streams_initial_rebalance_delay_ms: Annotated[int, _TIME_0] = 3_000
    group_streams_max_assignment_interval_ms: Annotated[int, _INT_0] = 15_000
    group_streams_max_heartbeat_interval_ms: Annotated[int, _int(1, scaled=True, fast=15_000)] = (
        15_000
    )
    group_streams_max_session_timeout_ms: Annotated[int, _int(1, scaled=True, fast=60_000)] = 60_000
    group_streams_max_size: Annotated[int, _INT_1] = _MAX_INT
    group_streams_max_standby_replicas: Annotated[int, _INT_0] = 2
    group_streams_max_warmup_replicas: Annotated[int, _WARMUP_0] = 20
    group_streams_min_assignment_interval_ms: Annotated[int, _INT_0] = 0
    group_streams_min_heartbeat_interval_ms: Annotated[int, _TIME_1] = 5_000
    group_streams_min_session_timeout_ms: Annotated[int, _TIME_1] = 45_000
    group_streams_min_task_offset_interval_ms: Annotated[int, _OFFSET_INTERVAL] = 15_000
    group_streams_num_standby_replicas: Annotated[int, _INT_0] = 0
    group_streams_num_warmup_replicas: Annotated[int, _WARMUP_0] = 2
    group_streams_rack_aware_assignment_tags: Annotated[tuple[str, ...], _TAGS] = ()
    group_streams_session_timeout_ms: Annotated[int, _TIME_1] = 45_000
    group_streams_task_offset_interval_ms: Annotated[int, _OFFSET_INTERVAL] = 60_000
    offset_metadata_max_bytes: Annotated[int, _INT] = 4_096
    offsets_commit_timeout_ms: Annotated[int, _TIME_1] = 5_000
    offsets_load_buffer_size: Annotated[int, _INT_1] = 5_242_880
    offsets_retention_check_interval_ms: Annotated[int, _LONG_TIME_1] = 600_000
    offsets_retention_minutes: Annotated[int, _INT_1] = 10_080
    offsets_topic_compression_codec: Annotated[int, _int(check=_check_codec)] = 0
    """The codec's id: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."""
    offsets_topic_num_partitions: Annotated[int, _INT_1] = 50
    offsets_topic_replication_factor: Annotated[int, _REPLICATION] = 3
    offsets_topic_segment_bytes: Annotated[int, _INT_1] = 104_857_600

    # ----------------------------------------------------------- producer ids, transactions
    producer_id_expiration_ms: Annotated[int, _int(1, dynamic=_CLUSTER)] = _DAY_MS
    producer_id_expiration_check_interval_ms: Annotated[int, _INTERNAL_TIME_1] = 600_000
    add_partitions_to_txn_retry_backoff_ms: Annotated[int, _TIME_1] = 20
    add_partitions_to_txn_retry_backoff_max_ms: Annotated[int, _TIME_0] = 100
    transaction_abort_timed_out_transaction_cleanup_interval_ms: Annotated[int, _TIME_1] = 10_000
    transaction_max_timeout_ms: Annotated[int, _INT_1] = 900_000
    transaction_partition_verification_enable: Annotated[bool, _DYNAMIC_FLAG] = True
    transaction_remove_expired_transaction_cleanup_interval_ms: Annotated[int, _TIME_1] = _HOUR_MS
    transaction_state_log_load_buffer_size: Annotated[int, _INT_1] = 5_242_880
    transaction_state_log_min_isr: Annotated[int, _INT_1] = 2
    transaction_state_log_num_partitions: Annotated[int, _INT_1] = 50
    transaction_state_log_replication_factor: Annotated[int, _REPLICATION] = 3
    transaction_state_log_segment_bytes: Annotated[int, _INT_1] = 104_857_600
    transactional_id_expiration_ms: Annotated[int, _INT_1] = 7 * _DAY_MS

    # ------------------------------------------------------------------------- share groups
    errors_deadletterqueue_auto_create_topics_enable: Annotated[bool, _DLQ_CREATION] = False
    errors_deadletterqueue_topic_name_prefix: Annotated[str, _DLQ_PREFIX] = "dlq."
    """The prefix of a dead letter queue's name; empty: the queue may have any name."""
    group_share_assignment_interval_ms: Annotated[int, _int(0, dynamic=_CLUSTER, scaled=True)] = (
        1_000
    )
    group_share_assignors: Annotated[tuple[str, ...], _SHARE_ASSIGNORS] = ("simple",)
    group_share_delivery_count_limit: Annotated[int, _int(2, maximum=10)] = 5
    group_share_heartbeat_interval_ms: Annotated[int, _TIME_1] = 5_000
    group_share_initialize_retry_interval_ms: Annotated[int, _INTERNAL_TIME_1] = 30_000
    group_share_max_assignment_interval_ms: Annotated[int, _INT_0] = 15_000
    group_share_max_delivery_count_limit: Annotated[int, _int(5, maximum=25)] = 10
    group_share_max_heartbeat_interval_ms: Annotated[int, _int(1, scaled=True, fast=15_000)] = (
        15_000
    )
    group_share_max_partition_max_record_locks: Annotated[int, _int(2_000, maximum=10_000)] = 4_000
    group_share_max_record_lock_duration_ms: Annotated[int, _int(30_000, maximum=_HOUR_MS)] = 60_000
    group_share_max_session_timeout_ms: Annotated[int, _int(1, scaled=True, fast=60_000)] = 60_000
    group_share_max_share_sessions: Annotated[int, _INT_1] = 2_000
    group_share_max_size: Annotated[int, _int(1, maximum=1_000)] = 200
    group_share_min_assignment_interval_ms: Annotated[int, _INT_0] = 0
    group_share_min_delivery_count_limit: Annotated[int, _int(2, maximum=5)] = 2
    group_share_min_heartbeat_interval_ms: Annotated[int, _TIME_1] = 5_000
    group_share_min_partition_max_record_locks: Annotated[int, _int(100, maximum=2_000)] = 100
    group_share_min_record_lock_duration_ms: Annotated[int, _int(1_000, maximum=30_000)] = 15_000
    group_share_min_session_timeout_ms: Annotated[int, _TIME_1] = 45_000
    group_share_partition_max_record_locks: Annotated[int, _int(100, maximum=10_000)] = 2_000
    group_share_persister_class_name: Annotated[str, _PERSISTER] = DEFAULT_PERSISTER
    group_share_record_lock_duration_ms: Annotated[int, _int(1_000, maximum=_HOUR_MS)] = 30_000
    """Not scaled by profiles: a client has this time to process its records."""
    group_share_session_timeout_ms: Annotated[int, _TIME_1] = 45_000
    share_coordinator_cold_partition_snapshot_interval_ms: Annotated[int, _INTERNAL_TIME_1] = (
        300_000
    )
    share_coordinator_load_buffer_size: Annotated[int, _INT_1] = 5_242_880
    share_coordinator_snapshot_update_records_per_snapshot: Annotated[int, _int(0, maximum=500)] = (
        500
    )
    share_coordinator_state_topic_compression_codec: Annotated[int, _int(check=_check_codec)] = 0
    share_coordinator_state_topic_min_isr: Annotated[int, _REPLICATION] = 2
    share_coordinator_state_topic_num_partitions: Annotated[int, _INT_1] = 50
    share_coordinator_state_topic_prune_interval_ms: Annotated[int, _INTERNAL_TIME_1] = 300_000
    share_coordinator_state_topic_replication_factor: Annotated[int, _REPLICATION] = 3
    share_coordinator_state_topic_segment_bytes: Annotated[int, _INT_1] = 104_857_600
    share_coordinator_write_timeout_ms: Annotated[int, _TIME_1] = 5_000

    # ----------------------------------------------------------------------------- security
    authorizer_class_name: Annotated[str, Spec("STRING", check=_check_authorizer)] = ""
    super_users: Annotated[str, _SUPER_USERS] = ""
    """Principals that may do everything, with `;` between them: `User:admin;User:broker`."""
    allow_everyone_if_no_acl_found: Annotated[bool, _OF_AUTHORIZER] = False

    # ------------------------------------------------------------------------------- quotas
    quota_window_num: Annotated[int, _INT_1] = 11
    quota_window_size_seconds: Annotated[int, _INT_1] = 1
    controller_quota_window_num: Annotated[int, _INT_1] = 11
    controller_quota_window_size_seconds: Annotated[int, _INT_1] = 1
    replication_quota_window_num: Annotated[int, _INT_1] = 11
    replication_quota_window_size_seconds: Annotated[int, _INT_1] = 1

    # --------------------------------------------------------------------------------- logs
    log_dir: Annotated[tuple[str, ...], _DIRECTORIES] = ("/tmp/kafka-logs",)
    log_dirs: Annotated[tuple[str, ...] | None, _DIRECTORIES] = None
    log_retention_ms: Annotated[int | None, _LOG_LONG] = None
    """The retention in ms, which overrides the value in minutes, which overrides the value in
    hours; -1: no limit."""
    log_retention_minutes: Annotated[int | None, _INT] = None
    log_retention_hours: Annotated[int, _INT] = 168
    log_retention_bytes: Annotated[int, _LOG_LONG] = -1
    log_retention_check_interval_ms: Annotated[int, _LONG_TIME_1] = 300_000
    log_roll_ms: Annotated[int | None, _LOG_LONG] = None
    log_roll_hours: Annotated[int, _INT_1] = 168
    log_segment_bytes: Annotated[int, _int(1_048_576, dynamic=_CLUSTER)] = 2**30
    log_flush_interval_messages: Annotated[int, _LOG_LONG_1] = _MAX_LONG
    log_flush_interval_ms: Annotated[int | None, _LOG_LONG] = None
    log_flush_scheduler_interval_ms: Annotated[int, _LONG] = _MAX_LONG
    log_message_timestamp_type: Annotated[
        str, _strings("STRING", "CreateTime", "LogAppendTime", dynamic=_CLUSTER)
    ] = "CreateTime"
    log_message_timestamp_before_max_ms: Annotated[int, _LOG_LONG_0] = _MAX_LONG
    log_message_timestamp_after_max_ms: Annotated[int, _LOG_LONG_0] = _HOUR_MS
    log_cleanup_policy: Annotated[
        tuple[str, ...], _strings("LIST", "compact", "delete", dynamic=_CLUSTER)
    ] = ("delete",)
    log_cleaner_enable: Annotated[bool, _FLAG] = True
    log_cleaner_backoff_ms: Annotated[int, _long(0, dynamic=_CLUSTER, scaled=True, fast=1_500)] = (
        15_000
    )
    """A tenth of Kafka's value under `fast`: each check of the cleaner is a step of every
    broker."""
    log_cleaner_delete_retention_ms: Annotated[int, _LOG_LONG_0] = _DAY_MS
    log_cleaner_max_compaction_lag_ms: Annotated[int, _LOG_LONG_1] = _MAX_LONG
    log_cleaner_min_cleanable_ratio: Annotated[
        float, Spec("DOUBLE", 0, maximum=1, dynamic=_CLUSTER)
    ] = 0.5
    log_cleaner_min_compaction_lag_ms: Annotated[int, _LOG_LONG_0] = 0

    # ------------------------------------- defaults of topic configs without an effect here
    log_index_interval_bytes: Annotated[int, _unused("INT", 0)] = 4_096
    log_index_size_max_bytes: Annotated[int, _unused("INT", 4)] = 10_485_760
    log_local_retention_bytes: Annotated[int, _unused("LONG", -2)] = -2
    log_local_retention_ms: Annotated[int, _unused("LONG", -2)] = -2
    log_preallocate: Annotated[bool, _unused("BOOLEAN")] = False
    log_remote_copy_lag_bytes: Annotated[int, _COPY_LAG] = -1
    log_remote_copy_lag_ms: Annotated[int, _COPY_LAG] = 0
    log_roll_jitter_hours: Annotated[int, _int(0, obeyed=False)] = 0
    log_roll_jitter_ms: Annotated[int | None, _unused("LONG")] = None
    log_segment_delete_delay_ms: Annotated[int, _unused("LONG", 0)] = 60_000

    @classmethod
    def resolve(
        cls, profile: str = "kafka", *overrides: Mapping[str, str | bool | int | float]
    ) -> "BrokerConfig":
        """The defaults of `profile`, then each of `overrides` (by Kafka's names) over the previous
        ones.

        Raises ConfigError for an unknown name or a bad value: topology files have been checked
        before.
        """
        assert profile in PROFILES, profile
        fields: ConfigFields = dict(_SCALED[profile])
        for mapping in overrides:
            values = parse_overrides(BROKER_CONFIGS, mapping, "broker")
            fields.update((field_of(name), value) for name, value in values.items())
        return replace(cls(), **fields)

    def override(
        self, *overrides: Mapping[str, str], release: ReleaseNumber = NEWEST
    ) -> "BrokerConfig":
        """These configs, overridden by `overrides`, the dynamic broker configs, in order.
        As in Kafka's brokers, names that `release` does not know, and invalid values, are left out:
        they may belong to a plugin."""
        fields: dict[str, object] = {}
        for mapping in overrides:
            for name, text in mapping.items():
                definition = BROKER_CONFIGS.get(name)
                if definition is None or definition.feature or definition.dynamic == "read-only":
                    continue
                if not definition.is_in(release):
                    continue
                value = parse_value(definition, text)
                if not isinstance(value, ConfigError):
                    fields[definition.field] = value
        return replace(self, **fields) if fields else self

    def in_release(self, release: ReleaseNumber) -> "BrokerConfig":
        """The configs of a broker of `release`: configs that the release does not have get their
        defaults."""
        fields: dict[str, object] = {
            definition.field: definition.default
            for definition in _LATER_CONFIGS
            if not definition.is_in(release)
        }
        if "max_decompressed_message_bytes" in fields:
            fields["max_decompressed_message_bytes"] = NO_SIZE_LIMIT
        return replace(self, **fields) if fields else self

    def capped(self) -> "BrokerConfig":
        """These configs, with the assignment intervals of groups moved into their bounds: an
        interval may have been stored when the bounds, which are static, were wider.  Kafka:
        GroupCoordinatorConfig.clampDynamicConfigs."""
        fields: dict[str, object] = {}
        for kind in ("consumer", "share", "streams"):
            name = f"group_{kind}_assignment_interval_ms"
            low, high = (
                getattr(self, f"group_{kind}_{which}_assignment_interval_ms")
                for which in ("min", "max")
            )
            interval_ms = getattr(self, name)
            if not low <= interval_ms <= high:
                fields[name] = low if interval_ms < low else high
        return replace(self, **fields) if fields else self

    @property
    def effective_retention_ms(self) -> int:
        """The retention in ms: log.retention.ms, else .minutes, else .hours; -1 (no limit) for any
        negative value."""
        if self.log_retention_ms is not None:
            retention_ms = self.log_retention_ms
        elif self.log_retention_minutes is not None:
            retention_ms = self.log_retention_minutes * 60_000
        else:
            retention_ms = self.log_retention_hours * _HOUR_MS
        return max(-1, retention_ms)

    @property
    def effective_roll_ms(self) -> int:
        """The time until a roll: log.roll.ms, else .hours."""
        return self.log_roll_hours * _HOUR_MS if self.log_roll_ms is None else self.log_roll_ms

    @property
    def effective_roll_jitter_ms(self) -> int:
        """The jitter of rolls: log.roll.jitter.ms, else .hours."""
        jitter_ms = self.log_roll_jitter_ms
        return self.log_roll_jitter_hours * _HOUR_MS if jitter_ms is None else jitter_ms

    @property
    def effective_flush_ms(self) -> int:
        """The flush interval: log.flush.interval.ms, else the scheduler's interval."""
        interval_ms = self.log_flush_interval_ms
        return self.log_flush_scheduler_interval_ms if interval_ms is None else interval_ms


BROKER_CONFIGS: Final[dict[str, ConfigDef]] = definitions_of(BrokerConfig, "broker")
"""Every broker config known here, by name."""

_LATER_CONFIGS: Final = tuple(one for one in BROKER_CONFIGS.values() if one.spec.since > (0, 0))

_SCALED: Final[dict[str, ConfigFields]] = {
    profile: {
        definition.field: definition.default_for(profile)
        for definition in BROKER_CONFIGS.values()
        if definition.scaled and profile != "kafka"
    }
    for profile in PROFILES
}
"""The values that each profile changes."""


_REPLICAS: Final = 3


def replication_defaults(brokers: int) -> dict[str, int]:
    """The default replication factors of a cluster with this many brokers: three, or the number of
    brokers if that is less.  min.isr of transactions and of share state is two, or one for a single
    replica.

    DIFFERS: default.replication.factor is 1 in Kafka, so that a topic without a given factor is
    lost with one broker.  Here it survives the loss.  `default.replication.factor: 1` in the
    topology's `config` brings Kafka's default back.
    """
    factor = max(1, min(_REPLICAS, brokers))
    return {
        "default.replication.factor": factor,
        "offsets.topic.replication.factor": factor,
        "transaction.state.log.replication.factor": factor,
        "transaction.state.log.min.isr": min(2, factor),
        "share.coordinator.state.topic.replication.factor": factor,
        "share.coordinator.state.topic.min.isr": min(2, factor),
    }


def check_broker_config(config: BrokerConfig) -> list[tuple[str, str]]:
    """The contradictions between valid values of one broker's configs: (config, reason).  Kafka:
    KafkaConfig.validateValues, which stops at the first."""
    problems: list[tuple[str, str]] = []

    def require(holds: bool, name: str, reason: str) -> None:
        if not holds:
            problems.append((name, reason))

    c = config
    require(
        c.replica_fetch_wait_max_ms <= c.replica_socket_timeout_ms,
        "replica.fetch.wait.max.ms",
        f"{c.replica_fetch_wait_max_ms} is above replica.socket.timeout.ms"
        f" ({c.replica_socket_timeout_ms}): every quiet fetch would time out",
    )
    require(
        c.replica_fetch_wait_max_ms <= c.replica_lag_time_max_ms,
        "replica.fetch.wait.max.ms",
        f"{c.replica_fetch_wait_max_ms} is above replica.lag.time.max.ms"
        f" ({c.replica_lag_time_max_ms}): waiting followers would leave the ISR",
    )
    retention = next(
        (
            name
            for name in ("log.retention.ms", "log.retention.minutes")
            if getattr(c, field_of(name)) is not None
        ),
        "log.retention.hours",
    )
    require(c.effective_retention_ms != 0, retention, "must be -1 (no limit) or at least 1")
    require(c.effective_roll_ms >= 1, "log.roll.ms", "must be at least 1")
    require(c.effective_roll_jitter_ms >= 0, "log.roll.jitter.ms", "must be at least 0")
    require(
        "classic" in c.group_coordinator_rebalance_protocols,
        "group.coordinator.rebalance.protocols",
        "must have classic: Kafka cannot do without it",
    )
    problems += _check_bounds(c, "group.consumer", _BOUNDED_OF_CONSUMER_GROUPS)
    return problems + _check_share_groups(c) + _check_streams_groups(c)


_BOUNDED_OF_CONSUMER_GROUPS: Final = (
    "assignment.interval.ms", "heartbeat.interval.ms", "session.timeout.ms",
)  # fmt: skip
_BOUNDED_OF_SHARE_GROUPS: Final = (
    "assignment.interval.ms", "delivery.count.limit", "heartbeat.interval.ms",
    "partition.max.record.locks", "record.lock.duration.ms", "session.timeout.ms",
)  # fmt: skip


def _check_share_groups(config: BrokerConfig) -> list[tuple[str, str]]:
    problems = _check_bounds(config, "group.share", _BOUNDED_OF_SHARE_GROUPS)
    if config.group_share_max_share_sessions < config.group_share_max_size:
        reason = f"must be at least group.share.max.size ({config.group_share_max_size})"
        problems.append(("group.share.max.share.sessions", reason))
    return problems


_BOUNDED_OF_STREAMS_GROUPS: Final = (
    "assignment.interval.ms", "heartbeat.interval.ms", "session.timeout.ms",
)  # fmt: skip


def _check_streams_groups(config: BrokerConfig) -> list[tuple[str, str]]:
    problems = _check_bounds(config, "group.streams", _BOUNDED_OF_STREAMS_GROUPS)
    most = config.group_streams_max_standby_replicas
    if config.group_streams_num_standby_replicas > most:
        reason = f"must be at most group.streams.max.standby.replicas ({most})"
        problems.append(("group.streams.num.standby.replicas", reason))
    most = config.group_streams_max_warmup_replicas
    if config.group_streams_num_warmup_replicas > most:
        reason = f"must be at most group.streams.max.warmup.replicas ({most})"
        problems.append(("group.streams.num.warmup.replicas", reason))
    least_ms = config.group_streams_min_task_offset_interval_ms
    if config.group_streams_task_offset_interval_ms < least_ms:
        reason = f"must be at least group.streams.min.task.offset.interval.ms ({least_ms})"
        problems.append(("group.streams.task.offset.interval.ms", reason))
    return problems


def _check_bounds(
    config: BrokerConfig, group: str, names: tuple[str, ...]
) -> list[tuple[str, str]]:
    """The values outside the bounds that also limit the values of groups: (config, reason)."""
    problems = []
    for name in names:
        value, low, high = (
            getattr(config, field_of(f"{group}.{bound}{name}")) for bound in ("", "min.", "max.")
        )
        if value < low:
            problems.append((f"{group}.{name}", f"{value} is below {group}.min.{name} ({low})"))
        if value > high:
            problems.append((f"{group}.{name}", f"{value} is above {group}.max.{name} ({high})"))
    if getattr(config, field_of(f"{group}.heartbeat.interval.ms")) >= getattr(
        config, field_of(f"{group}.session.timeout.ms")
    ):
        reason = f"must be less than {group}.session.timeout.ms"
        problems.append((f"{group}.heartbeat.interval.ms", reason))
    return problems
