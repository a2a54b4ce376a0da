"""A topic's configs: names, types, ranges and defaults of Kafka 4.4.0.

Owns: TopicConfig, TOPIC_CONFIGS, and the derivation of a topic's config from the broker's.
Never: reads text (values.py does).
Kafka: LogConfig, TopicConfig, ServerTopicConfigSynonyms.
"""

# No `from __future__ import annotations`: the annotations are used as values; see broker.py.

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Final, TypedDict, Unpack

from msgspec import Struct, structs

from kcluster.config.kafka.broker import MAX_JAVA_ARRAY_BYTES, BrokerConfig
from kcluster.config.kafka.values import (
    NEWEST,
    ConfigDef,
    ConfigError,
    ConfigFields,
    ConfigType,
    ReleaseNumber,
    Spec,
    Value,
    definitions_of,
    field_of,
    format_value,
    invalid,
    parse_overrides,
)

MAX_LONG: Final = 2**63 - 1
DAY_MS: Final = 86_400_000
_4_4: Final = (4, 4)

CODECS: Final = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
TIMESTAMP_TYPES: Final = ("CreateTime", "LogAppendTime")
CLEANUP_POLICIES: Final = ("compact", "delete")
_THROTTLED: Final = re.compile(r"[0-9]{1,10}:[0-9]{1,10}")


def _check_throttled(definition: ConfigDef, value: Value) -> str | None:
    assert isinstance(value, tuple)
    if value == ("*",) or all(_THROTTLED.fullmatch(item) for item in value):
        return None
    shape = "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
    requirement = f"{definition.name} must be the literal '*' or a list of replicas"
    return invalid(
        definition.name, f"[{', '.join(value)}]", f"{requirement} in the following format: {shape}"
    )


class _More(TypedDict, total=False):
    """The further parts of a config's definition."""

    maximum: float
    or_equal: int
    one_of: tuple[str, ...]
    check: Callable[[ConfigDef, Value], str | None]
    internal: bool
    since: ReleaseNumber
    obeyed: bool


def _topic(
    kind: ConfigType, minimum: float | None = None, *synonyms: str, **more: Unpack[_More]
) -> Spec:
    return Spec(kind, minimum, synonyms=synonyms, dynamic="cluster-wide", **more)


def _unused(
    kind: ConfigType, minimum: float | None = None, *synonyms: str, **more: Unpack[_More]
) -> Spec:
    """Define a config for files, indexes, tiered storage or random rolling, none of which exist
    here."""
    more["obeyed"] = False
    return _topic(kind, minimum, *synonyms, **more)


_MAX_RECORD_BYTES: Final = _topic(
    "INT", 1, "max.decompressed.message.bytes", maximum=MAX_JAVA_ARRAY_BYTES, since=_4_4
)


class TopicConfig(Struct, frozen=True):
    """The effective configs of one topic.  Without arguments, they are Kafka's defaults."""

    cleanup_policy: Annotated[
        tuple[str, ...], _topic("LIST", None, "log.cleanup.policy", one_of=CLEANUP_POLICIES)
    ] = ("delete",)
    """The cleanup policies; empty: nothing is cleaned."""
    compression_gzip_level: Annotated[
        int, _topic("INT", 1, "compression.gzip.level", maximum=9, or_equal=-1)
    ] = -1
    compression_lz4_level: Annotated[int, _topic("INT", 1, "compression.lz4.level", maximum=17)] = 9
    compression_type: Annotated[str, _topic("STRING", None, "compression.type", one_of=CODECS)] = (
        "producer"
    )
    compression_zstd_level: Annotated[
        int, _topic("INT", -131_072, "compression.zstd.level", maximum=22)
    ] = 3
    delete_retention_ms: Annotated[int, _topic("LONG", 0, "log.cleaner.delete.retention.ms")] = (
        DAY_MS
    )
    errors_deadletterqueue_group_enable: Annotated[bool, _topic("BOOLEAN", since=_4_4)] = False
    """Whether share groups may use the topic as a dead letter queue (KIP-1191)."""
    file_delete_delay_ms: Annotated[int, _unused("LONG", 0, "log.segment.delete.delay.ms")] = 60_000
    flush_messages: Annotated[int, _topic("LONG", 1, "log.flush.interval.messages")] = MAX_LONG
    flush_ms: Annotated[
        int, _topic("LONG", 0, "log.flush.interval.ms", "log.flush.scheduler.interval.ms")
    ] = MAX_LONG
    follower_replication_throttled_replicas: Annotated[
        tuple[str, ...], _topic("LIST", check=_check_throttled)
    ] = ()
    index_interval_bytes: Annotated[int, _unused("INT", 0, "log.index.interval.bytes")] = 4096
    internal_segment_bytes: Annotated[int | None, _topic("INT", internal=True)] = None
    """Kafka's own back door for tests: it allows segments below 1 MiB."""
    leader_replication_throttled_replicas: Annotated[
        tuple[str, ...], _topic("LIST", check=_check_throttled)
    ] = ()
    local_retention_bytes: Annotated[int, _unused("LONG", -2, "log.local.retention.bytes")] = -2
    local_retention_ms: Annotated[int, _unused("LONG", -2, "log.local.retention.ms")] = -2
    max_compaction_lag_ms: Annotated[
        int, _topic("LONG", 1, "log.cleaner.max.compaction.lag.ms")
    ] = MAX_LONG
    max_decompressed_message_bytes: Annotated[int, _MAX_RECORD_BYTES] = MAX_JAVA_ARRAY_BYTES
    """The largest size of one record in a compressed batch.  NO_SIZE_LIMIT in brokers before
    4.4."""
    max_message_bytes: Annotated[int, _topic("INT", 0, "message.max.bytes")] = 1_048_588
    message_timestamp_after_max_ms: Annotated[
        int, _topic("LONG", 0, "log.message.timestamp.after.max.ms")
    ] = 3_600_000
    message_timestamp_before_max_ms: Annotated[
        int, _topic("LONG", 0, "log.message.timestamp.before.max.ms")
    ] = MAX_LONG
    message_timestamp_type: Annotated[
        str, _topic("STRING", None, "log.message.timestamp.type", one_of=TIMESTAMP_TYPES)
    ] = "CreateTime"
    min_cleanable_dirty_ratio: Annotated[
        float, _topic("DOUBLE", 0, "log.cleaner.min.cleanable.ratio", maximum=1)
    ] = 0.5
    min_compaction_lag_ms: Annotated[
        int, _topic("LONG", 0, "log.cleaner.min.compaction.lag.ms")
    ] = 0
    min_insync_replicas: Annotated[int, _topic("INT", 1, "min.insync.replicas")] = 1
    preallocate: Annotated[bool, _unused("BOOLEAN", None, "log.preallocate")] = False
    remote_copy_lag_bytes: Annotated[
        int, _unused("LONG", -1, "log.remote.copy.lag.bytes", since=_4_4)
    ] = -1
    remote_copy_lag_ms: Annotated[
        int, _unused("LONG", -1, "log.remote.copy.lag.ms", since=_4_4)
    ] = 0
    remote_log_copy_disable: Annotated[bool, _unused("BOOLEAN")] = False
    remote_log_delete_on_disable: Annotated[bool, _unused("BOOLEAN")] = False
    remote_storage_enable: Annotated[bool, _unused("BOOLEAN")] = False
    retention_bytes: Annotated[int, _topic("LONG", None, "log.retention.bytes")] = -1
    """The size limit of a partition; no limit below 0."""
    retention_ms: Annotated[
        int, _topic("LONG", -1, "log.retention.ms", "log.retention.minutes", "log.retention.hours")
    ] = 7 * DAY_MS
    """The age limit of records; -1: no limit."""
    segment_bytes: Annotated[int, _topic("INT", 1_048_576, "log.segment.bytes")] = 2**30
    segment_index_bytes: Annotated[int, _unused("INT", 4, "log.index.size.max.bytes")] = 10_485_760
    segment_jitter_ms: Annotated[
        int, _unused("LONG", 0, "log.roll.jitter.ms", "log.roll.jitter.hours")
    ] = 0
    segment_ms: Annotated[int, _topic("LONG", 1, "log.roll.ms", "log.roll.hours")] = 7 * DAY_MS
    unclean_leader_election_enable: Annotated[
        bool, _topic("BOOLEAN", None, "unclean.leader.election.enable")
    ] = False

    @classmethod
    def resolve(
        cls,
        broker: BrokerConfig,
        overrides: Mapping[str, str | bool | int | float] | None = None,
        release: ReleaseNumber = NEWEST,
    ) -> "TopicConfig":
        """The configs of a topic: `overrides` (by Kafka's names) over the broker's defaults.

        Raises ConfigError for an unknown name (in `release`) or a bad value: check external input
        with `check_topic_config` first.
        """
        own = parse_overrides(TOPIC_CONFIGS, overrides or {}, "topic", release)
        fields: ConfigFields = broker_defaults(broker)
        fields.update((field_of(name), value) for name, value in own.items())
        return structs.replace(cls(), **fields)

    @property
    def max_segment_bytes(self) -> int:
        """The size at which a segment is rolled."""
        internal = self.internal_segment_bytes
        return self.segment_bytes if internal is None else internal


TOPIC_CONFIGS: Final[dict[str, ConfigDef]] = definitions_of(TopicConfig, "topic")
"""Every topic config, by name."""

_PLAIN_SYNONYMS: Final = tuple(
    (definition.field, field_of(definition.synonyms[0]))
    for definition in TOPIC_CONFIGS.values()
    if len(definition.synonyms) == 1
)


def broker_defaults(broker: BrokerConfig) -> dict[str, Value]:
    """The values that a topic inherits from its broker, by field name."""
    fields: dict[str, Value] = {
        field: getattr(broker, synonym) for field, synonym in _PLAIN_SYNONYMS
    }
    fields["retention_ms"] = broker.effective_retention_ms
    fields["segment_ms"] = broker.effective_roll_ms
    fields["segment_jitter_ms"] = broker.effective_roll_jitter_ms
    fields["flush_ms"] = broker.effective_flush_ms
    return fields


def check_topic_config(config: TopicConfig) -> str | None:
    """The contradiction between valid values of one topic's configs, or None."""
    if config.remote_storage_enable:
        return "Tiered Storage functionality is disabled in the broker."
    low, high = config.min_compaction_lag_ms, config.max_compaction_lag_ms
    if low > high:
        return (
            f"conflict topic config setting min.compaction.lag.ms ({low})"
            f" > max.compaction.lag.ms ({high})"
        )
    return None


def check_topic_overrides(
    broker: BrokerConfig,
    overrides: Mapping[str, str | bool | int | float],
    release: ReleaseNumber = NEWEST,
) -> str | None:
    """The reason why Kafka (of `release`) would refuse these configs of a topic (INVALID_CONFIG),
    or None.  KIP-133."""
    try:
        config = TopicConfig.resolve(broker, overrides, release)
    except ConfigError as error:
        return str(error)
    return check_topic_config(config)


def describe(definition: ConfigDef, config: Struct) -> str | None:
    """The value of one config in `config`, as DescribeConfigs writes it."""
    return format_value(getattr(config, definition.field))
