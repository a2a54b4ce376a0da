"""Text to values, as Kafka 4.3.1 converts it (LogConfig.validate, KafkaConfig)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcluster.config.kafka.broker import PROFILES
from kcluster.config.kafka.definitions import (
    BROKER_CONFIGS,
    TOPIC_CONFIGS,
    ConfigDef,
    ConfigError,
    format_value,
    parse_value,
)

GZIP = "gzip"
CODECS = "uncompressed, zstd, lz4, snappy, gzip, producer"
THROTTLED = "leader.replication.throttled.replicas"


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("retention.ms", " 5 ", 5),
        ("retention.ms", "+5", 5),
        ("retention.ms", "-1", -1),
        ("retention.ms", "010", 10),
        ("retention.ms", 7, 7),
        ("cleanup.policy", "compact, delete", ("compact", "delete")),
        ("cleanup.policy", "compact,compact", ("compact",)),
        ("cleanup.policy", "", ()),
        ("compression.type", GZIP, GZIP),
        ("compression.gzip.level", "-1", -1),
        ("preallocate", "TRUE", True),
        ("preallocate", False, False),
        ("min.cleanable.dirty.ratio", "1e-1", 0.1),
        ("min.cleanable.dirty.ratio", "0.5f", 0.5),
        (THROTTLED, "*", ("*",)),
        (THROTTLED, "1:2,3:4", ("1:2", "3:4")),
    ],
)
def test_values__text_is_read_as_kafka_reads_it(name: str, text: str, value: object) -> None:
    parsed = parse_value(TOPIC_CONFIGS[name], text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("retention.ms", "abc", "Not a number of type LONG"),
        ("retention.ms", "", "Not a number of type LONG"),
        ("retention.ms", "1.5", "Not a number of type LONG"),
        ("retention.ms", "1_000", "Not a number of type LONG"),
        ("retention.ms", "99999999999999999999", "Not a number of type LONG"),
        ("retention.ms", "-2", "Value must be at least -1"),
        ("min.insync.replicas", "0", "Value must be at least 1"),
        ("min.insync.replicas", "2147483648", "Not a number of type INT"),
        ("segment.bytes", "1", "Value must be at least 1048576"),
        ("cleanup.policy", "foo", "String must be one of: compact, delete"),
        ("cleanup.policy", "Delete", "String must be one of: compact, delete"),
        ("compression.type", "none", f"String must be one of: {CODECS}"),
        ("compression.type", "GZIP", f"String must be one of: {CODECS}"),
        ("compression.gzip.level", "0", "Value must be between 1 and 9 or equal to -1"),
        ("compression.gzip.level", "10", "Value must be between 1 and 9 or equal to -1"),
        ("compression.lz4.level", "18", "Value must be no more than 17"),
        ("compression.zstd.level", "23", "Value must be no more than 22"),
        ("preallocate", "maybe", "Expected value to be either true or false"),
        ("preallocate", "yes", "Expected value to be either true or false"),
        ("min.cleanable.dirty.ratio", "x", "Not a number of type DOUBLE"),
        ("message.timestamp.type", "x", "String must be one of: CreateTime, LogAppendTime"),
    ],
)
def test_values__a_bad_value_gets_kafkas_message(name: str, text: str, reason: str) -> None:
    error = parse_value(TOPIC_CONFIGS[name], text)
    assert isinstance(error, ConfigError)
    assert str(error) == f"Invalid value {text} for configuration {name}: {reason}"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "min.cleanable.dirty.ratio",
            "2",
            "Invalid value 2.0 for configuration min.cleanable.dirty.ratio:"
            " Value must be no more than 1",
        ),
        ("cleanup.policy", "compact,", "Configuration 'cleanup.policy' values must not be empty."),
        (
            THROTTLED,
            "1:2,x",
            f"Invalid value [1:2, x] for configuration {THROTTLED}: {THROTTLED} must be the literal"
            " '*' or a list of replicas in the following format:"
            " [partitionId]:[brokerId],[partitionId]:[brokerId],...",
        ),
    ],
)
def test_values__some_bad_values_get_a_special_message(name: str, text: str, message: str) -> None:
    assert str(parse_value(TOPIC_CONFIGS[name], text)) == message


ALL = [*BROKER_CONFIGS.values(), *TOPIC_CONFIGS.values()]


@pytest.mark.parametrize("definition", ALL, ids=lambda d: f"{d.scope}-{d.name}")
def test_values__every_default_is_valid_and_survives_a_round_trip(definition: ConfigDef) -> None:
    for profile in PROFILES:
        default = definition.default_for(profile)
        written = format_value(default)
        if written is None:
            assert definition.default is None
        else:
            assert parse_value(definition, written) == default


@given(st.sampled_from(ALL), st.text(max_size=30) | st.integers().map(str) | st.floats().map(str))
def test_values__any_text_gives_a_value_or_an_error(definition: ConfigDef, text: str) -> None:
    value = parse_value(definition, text)
    if not isinstance(value, ConfigError):
        written = format_value(value)
        assert written is not None
        again = parse_value(definition, written)
        assert not isinstance(again, ConfigError)
        assert format_value(again) == written
