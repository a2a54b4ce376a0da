"""The options of the source: a table of them, and the user's text as typed values.

Owns: names, kinds, bounds, the options that exclude each other.  Never: asks a broker.
Kafka: of Spark's connector KafkaSourceProvider and its validation; ConsumerConfig, ProducerConfig
(with the defaults of kafka-clients 3.9, which Spark 4.2 uses).

DIFFERS: the connector ignores unknown options, so a job with `startingOffset` would silently read
from another offset.  Here unknown options are refused, with the closest name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from kcluster.config.files.problems import unknown
from kcluster.pipeline.source.errors import OptionError
from kcluster.pipeline.source.offsets import EARLIEST, LATEST, Key, parse_offsets, parse_partitions

READ: Final = "read"
STREAM: Final = "readStream"
WRITE: Final = "write"
_ALL: Final = (READ, STREAM, WRITE)
_READS: Final = (READ, STREAM)

_UNITS_MS: Final = {
    "ms": 1,
    "s": 1_000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}
_DURATION: Final = re.compile(r"(\d+) *(ms|s|min|m|h|d)")
_BROKER: Final = re.compile(r"(?:\[([0-9A-Fa-f:.%]+)\]|([^\s:,/\[\]]+)):(\d{1,5})")
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_INT_MAX: Final = (1 << 31) - 1
_LONG_MAX: Final = (1 << 63) - 1


OptionValues = dict[str, Any]
"""The value of each option, by name."""


class Option(Struct, frozen=True):
    """A row of the table.  `kind`: text, number, duration (ms), flag, or the allowed words."""

    name: str
    kind: str | tuple[str, ...] = "text"
    where: tuple[str, ...] = _ALL
    least: int = 0
    most: int = _LONG_MAX
    default: Any = None

    def value(self, text: str) -> Any:
        """The typed value of a text; OptionError."""
        if self.kind == "text":
            return text
        if self.kind == "flag":
            if text.lower() not in ("true", "false"):
                raise OptionError(f"{self.name} must be true or false, not {text!r}")
            return text.lower() == "true"
        if isinstance(self.kind, tuple):
            if text.lower() not in self.kind:
                raise OptionError(f"{self.name}: {unknown('value', text, self.kind)}")
            return text.lower()
        number = _milliseconds(text) if self.kind == "duration" else _number(text)
        if number is None or not self.least <= number <= self.most:
            kind = "a duration, as in 15m," if self.kind == "duration" else "a number"
            raise OptionError(f"{self.name} must be {kind} of at least {self.least}, not {text!r}")
        return number


def _number_option(name: str, default: int | None, least: int, *where: str) -> Option:
    return Option(name, "number", where or _ALL, least, _INT_MAX, default)


_OPTIONS: Final = (
    Option("kafka.bootstrap.servers"),
    Option("subscribe", where=_READS),
    Option("subscribePattern", where=_READS),
    Option("assign", where=_READS),
    Option("startingOffsets", where=_READS),
    Option("startingTimestamp", "number", _READS),
    Option("startingOffsetsByTimestamp", where=_READS),
    Option("startingOffsetsByTimestampStrategy", ("error", "latest"), _READS, default="error"),
    Option("endingOffsets", where=(READ,)),
    Option("endingTimestamp", "number", (READ,)),
    Option("endingOffsetsByTimestamp", where=(READ,)),
    Option("failOnDataLoss", "flag", _READS, default=True),
    Option("includeHeaders", "flag", default=False),
    Option("maxOffsetsPerTrigger", "number", (STREAM,), 1),
    Option("minOffsetsPerTrigger", "number", (STREAM,), 1),
    Option("maxTriggerDelay", "duration", (STREAM,), 1, default=15 * 60_000),
    Option("minPartitions", "number", _READS, 1, _INT_MAX),
    Option("maxRecordsPerPartition", "number", _READS, 1),
    _number_option("kafkaConsumer.pollTimeoutMs", 120_000, 1, *_READS),
    _number_option("fetchOffset.numRetries", 3, 0, *_READS),
    _number_option("fetchOffset.retryIntervalMs", 10, 0, *_READS),
    Option("kcluster.losses", where=_READS),
    Option("topic", where=(WRITE,)),
    Option("kafka.client.id", default="kcluster-spark"),
    Option("kafka.security.protocol", ("plaintext",), default="plaintext"),
    _number_option("kafka.request.timeout.ms", 30_000, 1),
    _number_option("kafka.default.api.timeout.ms", 60_000, 1),
    _number_option("kafka.retry.backoff.ms", 100, 0),
    _number_option("kafka.socket.connection.setup.timeout.ms", 10_000, 1),
    Option(
        "kafka.isolation.level", ("read_uncommitted", "read_committed"), _READS,
        default="read_uncommitted",
    ),
    _number_option("kafka.fetch.max.bytes", 50 << 20, 0, *_READS),
    _number_option("kafka.max.partition.fetch.bytes", 1 << 20, 1, *_READS),
    _number_option("kafka.fetch.min.bytes", 1, 1, *_READS),
    _number_option("kafka.fetch.max.wait.ms", 500, 0, *_READS),
    Option("kafka.check.crcs", "flag", _READS, default=True),
    Option("kafka.acks", ("all", "-1", "1", "0"), (WRITE,), default="all"),
    Option(
        "kafka.compression.type", ("none", "gzip", "snappy", "lz4", "zstd"), (WRITE,),
        default="none",
    ),
    _number_option("kafka.batch.size", 1 << 19, 1, WRITE),
    _number_option("kafka.max.request.size", 1 << 20, 1, WRITE),
    _number_option("kafka.delivery.timeout.ms", 120_000, 1, WRITE),
    Option("kafka.enable.idempotence", "flag", (WRITE,), default=True),
)  # fmt: skip

_WITHOUT_EFFECT: Final = """
    groupIdPrefix kafka.group.id checkpointLocation queryName kafka.allow.auto.create.topics
    kafka.auto.include.jmx.reporter kafka.buffer.memory kafka.client.dns.lookup kafka.client.rack
    kafka.compression.gzip.level kafka.compression.lz4.level kafka.compression.zstd.level
    kafka.connections.max.idle.ms kafka.enable.metrics.push kafka.exclude.internal.topics
    kafka.group.instance.id kafka.heartbeat.interval.ms kafka.linger.ms kafka.max.block.ms
    kafka.max.in.flight.requests.per.connection kafka.max.poll.interval.ms kafka.max.poll.records
    kafka.metadata.max.age.ms kafka.metadata.max.idle.ms kafka.metadata.recovery.strategy
    kafka.metric.reporters kafka.metrics.num.samples kafka.metrics.recording.level
    kafka.metrics.sample.window.ms kafka.partitioner.adaptive.partitioning.enable
    kafka.partitioner.availability.timeout.ms kafka.receive.buffer.bytes
    kafka.reconnect.backoff.max.ms kafka.reconnect.backoff.ms kafka.retries
    kafka.retry.backoff.max.ms kafka.send.buffer.bytes kafka.session.timeout.ms
    kafka.socket.connection.setup.timeout.max.ms
"""
"""Options that are accepted without effect: there is no group, connections are short-lived, and so
on."""

_REFUSED: Final = {
    "kafka.auto.offset.reset": "use startingOffsets",
    "kafka.enable.auto.commit": "offsets are in the checkpoint and are not committed to Kafka",
    "kafka.interceptor.classes": "a Java class cannot be run here",
    "kafka.key.deserializer": "keys are bytes; decode them with DataFrame operations",
    "kafka.value.deserializer": "values are bytes; decode them with DataFrame operations",
    "kafka.key.serializer": "keys are strings or bytes; encode them with DataFrame operations",
    "kafka.value.serializer": "values are strings or bytes; encode them with DataFrame operations",
    "kafka.partitioner.class": "a Java class cannot be run here; use a column partition",
    "kafka.transactional.id": "the sink writes at least once, without transactions",
}
_TABLE: Final = {option.name.lower(): option for option in _OPTIONS}
_IDLE: Final = frozenset(_WITHOUT_EFFECT.lower().split())


class SourceClientSettings(Struct, frozen=True):
    """Connection settings."""

    bootstrap: tuple[tuple[str, int], ...]
    client_id: str
    request_timeout_ms: int
    api_timeout_ms: int
    retry_backoff_ms: int
    connect_timeout_ms: int


class Bound(Struct, frozen=True):
    """The beginning or the end of a read: a `word` (earliest or latest), a `timestamp_ms` for all
    partitions, or a value for `each` partition: an offset, or with `is_by_time` a timestamp."""

    word: str = ""
    timestamp_ms: int | None = None
    each: dict[str, dict[int, int]] = {}
    is_by_time: bool = False

    def of(self, key: Key) -> int | None:
        """The value of one partition."""
        return self.each.get(key[0], {}).get(key[1])


class ReadSettings(Struct, frozen=True):
    """The settings of a reader.  One of `topics`, `pattern`, `assigned` selects the partitions."""

    client: SourceClientSettings
    starting: Bound
    ending: Bound
    topics: tuple[str, ...] = ()
    pattern: str = ""
    assigned: dict[str, list[int]] = {}
    after_last: str = "error"
    """The offset for a timestamp after the last record: error or latest."""
    fail_on_data_loss: bool = True
    include_headers: bool = False
    max_offsets: int | None = None
    min_offsets: int | None = None
    max_delay_ms: int = 0
    min_partitions: int | None = None
    max_records: int | None = None
    poll_timeout_ms: int = 120_000
    retries: int = 3
    retry_interval_ms: int = 10
    is_read_committed: bool = False
    fetch_max_bytes: int = 50 << 20
    partition_max_bytes: int = 1 << 20
    fetch_min_bytes: int = 1
    fetch_wait_ms: int = 500
    check_crcs: bool = True
    losses: str = ""
    """A directory that gets a file per lost range; "": only a line on stderr."""


class WriteSettings(Struct, frozen=True):
    """The settings of a writer.  `topic` "": a column has the topic."""

    client: SourceClientSettings
    topic: str = ""
    include_headers: bool = False
    acks: int = -1
    compression: str = "none"
    batch_bytes: int = 1 << 19
    """The size of a batch.  DIFFERS: 16 KiB in Java's producer, which has five requests in flight
    instead of one."""
    request_bytes: int = 1 << 20
    delivery_timeout_ms: int = 120_000
    is_idempotent: bool = True


def read_settings(options: Mapping[str, str], is_stream: bool) -> ReadSettings:
    """The settings of a read; names are case-insensitive.  OptionError."""
    values = _values(options, STREAM if is_stream else READ)
    topics, pattern, assigned = _subscription(values)
    starting = _bound(values, "starting", "latest" if is_stream else "earliest")
    ending = _bound(values, "ending", "latest")
    if not is_stream and starting.word == "latest":
        raise OptionError("startingOffsets cannot be latest in a batch read")
    if ending.word == "earliest":
        raise OptionError("endingOffsets cannot be earliest")
    for bound, name, bad in (
        (starting, "startingOffsets", None if is_stream else LATEST),
        (ending, "endingOffsets", EARLIEST),
    ):
        for topic, each in bound.each.items():
            for index, offset in each.items():
                if bad is not None and offset == bad and not bound.is_by_time:
                    raise OptionError(f"{name}: {topic}-{index}: {offset} is not allowed")
    if (values["minOffsetsPerTrigger"] or 0) > (values["maxOffsetsPerTrigger"] or _LONG_MAX):
        raise OptionError("minOffsetsPerTrigger is more than maxOffsetsPerTrigger")
    return ReadSettings(
        client=_client(values),
        starting=starting,
        ending=ending,
        topics=topics,
        pattern=pattern,
        assigned=assigned,
        after_last=values["startingOffsetsByTimestampStrategy"],
        fail_on_data_loss=values["failOnDataLoss"],
        include_headers=values["includeHeaders"],
        max_offsets=values["maxOffsetsPerTrigger"],
        min_offsets=values["minOffsetsPerTrigger"],
        max_delay_ms=values["maxTriggerDelay"],
        min_partitions=values["minPartitions"],
        max_records=values["maxRecordsPerPartition"],
        poll_timeout_ms=values["kafkaConsumer.pollTimeoutMs"],
        retries=values["fetchOffset.numRetries"],
        retry_interval_ms=values["fetchOffset.retryIntervalMs"],
        is_read_committed=values["kafka.isolation.level"] == "read_committed",
        fetch_max_bytes=values["kafka.fetch.max.bytes"],
        partition_max_bytes=values["kafka.max.partition.fetch.bytes"],
        fetch_min_bytes=values["kafka.fetch.min.bytes"],
        fetch_wait_ms=values["kafka.fetch.max.wait.ms"],
        check_crcs=values["kafka.check.crcs"],
        losses=values["kcluster.losses"] or "",
    )


def write_settings(options: Mapping[str, str]) -> WriteSettings:
    """The settings of a write; names are case-insensitive.  OptionError."""
    values = _values(options, WRITE)
    topic = values["topic"] or ""
    if topic:
        _check_topic("topic", topic)
    acks = -1 if values["kafka.acks"] == "all" else int(values["kafka.acks"])
    return WriteSettings(
        client=_client(values),
        topic=topic,
        include_headers=values["includeHeaders"],
        acks=acks,
        compression=values["kafka.compression.type"],
        batch_bytes=values["kafka.batch.size"],
        request_bytes=values["kafka.max.request.size"],
        delivery_timeout_ms=values["kafka.delivery.timeout.ms"],
        is_idempotent=values["kafka.enable.idempotence"] and acks == -1,
    )


def _values(options: Mapping[str, str], where: str) -> OptionValues:
    """Values by name, with the defaults of missing options."""
    values: dict[str, object] = {option.name: option.default for option in _OPTIONS}
    for name, text in options.items():
        option = _TABLE.get(name.lower())
        if option is not None and where in option.where:
            values[option.name] = option.value(text.strip())
        elif name.lower() in _REFUSED:
            raise OptionError(f"option {name}: {_REFUSED[name.lower()]}")
        elif name.lower().startswith(("kafka.ssl.", "kafka.sasl.")):
            raise OptionError(f"option {name}: connections are plaintext only; use format kafka")
        elif option is None and name.lower() not in _IDLE:
            names = [one.name for one in _OPTIONS if where in one.where]
            raise OptionError(f"option {name}: {_nearest(name, names)}")
        elif option is not None and where == READ and option.where == (STREAM,):
            continue  # the connector ignores them in a batch too
        elif option is not None:
            raise OptionError(f"option {option.name} is not an option of {where}")
    return values


def _nearest(name: str, names: list[str]) -> str:
    """The message for an unknown name, with the closest one; names are case-insensitive."""
    text = unknown("option", name.lower(), [one.lower() for one in names])
    for one in names:
        text = re.sub(rf"(?<![\w.]){re.escape(one.lower())}(?![\w.])", one, text)
    return text


def _client(values: OptionValues) -> SourceClientSettings:
    text = values["kafka.bootstrap.servers"]
    if not text:
        raise OptionError("option kafka.bootstrap.servers is missing: host:port of the brokers")
    brokers = []
    for one in text.split(","):
        match = _BROKER.fullmatch(one.strip())
        if match is None or not 0 < int(match[3]) < 65_536:
            raise OptionError(f"kafka.bootstrap.servers: {one.strip()!r} is not host:port")
        brokers.append((match[1] or match[2], int(match[3])))
    return SourceClientSettings(
        tuple(brokers),
        values["kafka.client.id"],
        values["kafka.request.timeout.ms"],
        values["kafka.default.api.timeout.ms"],
        values["kafka.retry.backoff.ms"],
        values["kafka.socket.connection.setup.timeout.ms"],
    )


def _subscription(values: OptionValues) -> tuple[tuple[str, ...], str, dict[str, list[int]]]:
    ways = ("subscribe", "subscribePattern", "assign")
    chosen = [way for way in ways if values[way] is not None]
    if len(chosen) != 1:
        text = f"not {' and '.join(chosen)}" if chosen else "none is given"
        raise OptionError(f"one of the options {', '.join(ways)} must be set: {text}")
    text = values[chosen[0]]
    if chosen[0] == "assign":
        assigned = parse_partitions("assign", text)
        for topic in assigned:
            _check_topic("assign", topic)
        return (), "", assigned
    if chosen[0] == "subscribePattern":
        try:
            re.compile(text)
        except re.error as error:
            raise OptionError(f"subscribePattern: {error}") from None
        if not text:
            raise OptionError("subscribePattern is empty")
        return (), text, {}
    topics = tuple(dict.fromkeys(one.strip() for one in text.split(",") if one.strip()))
    for topic in topics:
        _check_topic("subscribe", topic)
    if not topics:
        raise OptionError("subscribe: it has no topic")
    return topics, "", {}


def _bound(values: OptionValues, side: str, default: str) -> Bound:
    # The connector's order of precedence.
    if values[f"{side}Timestamp"] is not None:
        return Bound(timestamp_ms=values[f"{side}Timestamp"])
    name = f"{side}OffsetsByTimestamp"
    if values[name] is not None:
        return Bound(each=_by_topic(parse_offsets(name, values[name], 0)), is_by_time=True)
    name = f"{side}Offsets"
    text = (values[name] or default).strip()
    if text.lower() in ("earliest", "latest"):
        return Bound(word=text.lower())
    if not text.startswith("{"):
        raise OptionError(f"{name} must be earliest, latest or JSON, not {text!r}")
    return Bound(each=_by_topic(parse_offsets(name, text)))


def _by_topic(offsets: dict[Key, int]) -> dict[str, dict[int, int]]:
    by_topic: dict[str, dict[int, int]] = {}
    for (topic, partition), offset in offsets.items():
        by_topic.setdefault(topic, {})[partition] = offset
    return by_topic


def _check_topic(option: str, topic: str) -> None:
    if not _TOPIC.fullmatch(topic) or topic in (".", ".."):
        raise OptionError(f"{option}: {topic!r}: a name has letters, digits, '.', '_', '-'")


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"-?\d{1,19}", text) else None


def _milliseconds(text: str) -> int | None:
    match = _DURATION.fullmatch(text.strip().lower())
    return int(match[1]) * _UNITS_MS[match[2]] if match else None
