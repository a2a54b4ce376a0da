"""BrokerConfig and TopicConfig: defaults, profiles, precedence."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from kcluster.config.kafka.broker import PROFILES
from kcluster.config.kafka.catalog import (
    broker_catalog,
    documentation,
    internal_configs,
    not_simulated,
    sentences,
)
from kcluster.config.kafka.client_metrics import CLIENT_METRICS_CONFIGS
from kcluster.config.kafka.definitions import (
    BROKER_CONFIGS,
    GROUP_CONFIGS,
    TOPIC_CONFIGS,
    BrokerConfig,
    ConfigDef,
    ConfigError,
    TopicConfig,
    check_broker_config,
    check_topic_overrides,
    describe,
    format_value,
    parse_value,
)

DAY_MS = 86_400_000

with (Path(__file__).parent / "kafka_4_4_0.tsv").open(encoding="utf-8") as table:
    KAFKA = list(csv.DictReader(table, delimiter="\t"))
"""Every config of Kafka 4.4.0 as its own ConfigDefs say: scope, name, type, default, valid; since:
the first release that has it, if 4.3.1 has not."""

SET_BY_THE_TOPOLOGY = {"broker.id", "node.id", "broker.rack", "listeners", "advertised.listeners"}
OURS_ALONE = {"allow.everyone.if.no.acl.found", "eligible.leader.replicas.version", "super.users"}
"""A feature level in Kafka, and two configs of its authorizer, which Kafka does not define."""


def defaults_of(scope: str) -> dict[str, ConfigDef]:
    return {"broker": broker_catalog(), "topic": TOPIC_CONFIGS, "group": GROUP_CONFIGS}[scope]


def valid_in_words(definition: ConfigDef) -> str:
    """Range and words as Kafka's validators print themselves."""
    spec = definition.spec
    if spec.one_of:
        return f"[{', '.join(spec.one_of)}]"
    if spec.or_equal is not None:
        return f"[{spec.minimum},...,{spec.maximum}] or {spec.or_equal}"
    if spec.minimum is None:
        return ""
    most = "" if spec.maximum is None else f",{whole(spec.maximum)}"
    return f"[{whole(spec.minimum)},...{most}]"


def whole(bound: float) -> float:
    return int(bound) if bound == int(bound) else bound


@pytest.mark.parametrize("row", KAFKA, ids=lambda row: f"{row['scope']}-{row['name']}")
def test_definitions__agree_with_kafka(row: dict[str, str]) -> None:
    definition = defaults_of(row["scope"])[row["name"]]
    assert definition.type == row["type"]
    default = format_value(definition.default)
    assert ("null" if default is None else default) == row["default"].replace("<none>", "null")
    if not row["valid"].startswith(("[partitionId]", "(case", "[latest", "non-")):
        assert valid_in_words(definition) == row["valid"]
    assert definition.is_in((4, 3)) == (not row["since"])
    assert definition.is_in((4, 4))


def test_definitions__have_no_config_that_kafka_lacks() -> None:
    for scope in ("broker", "topic", "group"):
        names = {row["name"] for row in KAFKA if row["scope"] == scope}
        assert set(defaults_of(scope)) - names <= OURS_ALONE
    assert not set(not_simulated()) & set(BROKER_CONFIGS)


def test_broker_config__without_overrides_has_kafkas_defaults() -> None:
    config = BrokerConfig.resolve("kafka")
    assert config == BrokerConfig()
    assert config.broker_session_timeout_ms == 9_000
    assert config.replica_lag_time_max_ms == 30_000
    assert config.default_replication_factor == 1
    assert config.log_retention_ms is None


def test_broker_config__fast_divides_the_machinerys_times_by_100() -> None:
    config = BrokerConfig.resolve("fast")
    assert config.broker_heartbeat_interval_ms == 20
    assert config.broker_session_timeout_ms == 90
    assert config.replica_lag_time_max_ms == 300
    assert config.group_initial_rebalance_delay_ms == 30
    assert config.controller_quorum_request_timeout_ms == 20
    assert BrokerConfig.resolve("fast").controller_socket_timeout_ms == 300


def test_broker_config__slow_has_three_times_the_machinerys_times() -> None:
    config = BrokerConfig.resolve("slow")
    assert config.broker_session_timeout_ms == 27_000
    assert config.replica_lag_time_max_ms == 90_000
    assert config.log_retention_hours == BrokerConfig().log_retention_hours


def test_broker_config__fast_leaves_some_times_longer() -> None:
    config = BrokerConfig.resolve("fast")
    assert config.replica_fetch_wait_max_ms == 50
    assert config.leader_imbalance_check_interval_seconds == 300


@pytest.mark.parametrize(
    "name",
    [
        "log.retention.hours",
        "offsets.retention.minutes",
        "producer.id.expiration.ms",
        "transaction.max.timeout.ms",
        "group.max.session.timeout.ms",
        "log.segment.delete.delay.ms",
        "log.cleaner.delete.retention.ms",
        "log.message.timestamp.after.max.ms",
        "connections.max.idle.ms",
    ],
)
def test_broker_config__fast_leaves_data_ids_and_clients_bounds_alone(name: str) -> None:
    assert not broker_catalog()[name].scaled


def test_broker_config__no_topic_config_is_scaled() -> None:
    assert not [name for name, definition in TOPIC_CONFIGS.items() if definition.scaled]


@pytest.mark.parametrize("profile", PROFILES)
def test_broker_config__each_profile_fits_together(profile: str) -> None:
    assert check_broker_config(BrokerConfig.resolve(profile)) == []


def test_broker_config__a_later_override_wins_and_is_never_scaled() -> None:
    cluster: dict[str, str | int] = {"broker.session.timeout.ms": "5000", "num.partitions": 3}
    config = BrokerConfig.resolve("fast", cluster, {"num.partitions": "4"})
    assert config.broker_session_timeout_ms == 5_000
    assert config.num_partitions == 4


def test_broker_config__an_unknown_name_or_a_bad_value_is_an_error() -> None:
    with pytest.raises(ConfigError, match="Unknown broker config name: nosuch"):
        BrokerConfig.resolve("kafka", {"nosuch": "1"})
    with pytest.raises(ConfigError, match="Not a number of type INT"):
        BrokerConfig.resolve("kafka", {"num.partitions": "x"})


@pytest.mark.parametrize(
    ("overrides", "wrong"),
    [
        ({"replica.fetch.wait.max.ms": "40000"}, "replica.fetch.wait.max.ms"),
        ({"replica.lag.time.max.ms": "100"}, "replica.fetch.wait.max.ms"),
        ({"log.retention.ms": "0"}, "log.retention.ms"),
        ({"log.retention.hours": "0"}, "log.retention.hours"),
        ({"log.roll.ms": "0"}, "log.roll.ms"),
        ({"group.consumer.session.timeout.ms": "44000"}, "group.consumer.session.timeout.ms"),
        ({"group.consumer.heartbeat.interval.ms": "16000"}, "group.consumer.heartbeat.interval.ms"),
        (
            {"group.coordinator.rebalance.protocols": "consumer"},
            "group.coordinator.rebalance.protocols",
        ),
    ],
)
def test_broker_config__configs_that_prevent_a_start_of_kafka_are_named(
    overrides: dict[str, str], wrong: str
) -> None:
    problems = check_broker_config(BrokerConfig.resolve("kafka", overrides))
    assert wrong in [name for name, _ in problems]


# ------------------------------------------------------------------------------------ topics


def test_topic_config__of_a_broker_with_defaults_has_kafkas_defaults() -> None:
    assert TopicConfig.resolve(BrokerConfig(), {}) == TopicConfig()


@pytest.mark.parametrize(
    ("broker", "retention_ms"),
    [
        ({}, 7 * DAY_MS),
        ({"log.retention.hours": "1"}, 3_600_000),
        ({"log.retention.hours": "1", "log.retention.minutes": "2"}, 120_000),
        ({"log.retention.minutes": "2", "log.retention.ms": "3"}, 3),
        ({"log.retention.minutes": "-1"}, -1),
        ({"log.retention.ms": "-5"}, -1),
    ],
)
def test_topic_config__retention_is_ms_over_minutes_over_hours(
    broker: dict[str, str], retention_ms: int
) -> None:
    config = BrokerConfig.resolve("kafka", broker)
    assert TopicConfig.resolve(config, {}).retention_ms == retention_ms
    assert TopicConfig.resolve(config, {"retention.ms": "9"}).retention_ms == 9


def test_topic_config__rolling_and_flushing_follow_their_broker_synonyms() -> None:
    broker = BrokerConfig.resolve(
        "kafka",
        {"log.roll.hours": "2", "log.roll.jitter.hours": "1", "log.flush.scheduler.interval.ms": 7},
    )
    config = TopicConfig.resolve(broker, {})
    assert (config.segment_ms, config.segment_jitter_ms) == (7_200_000, 3_600_000)
    assert config.flush_ms == 7


def test_topic_config__every_synonym_is_a_broker_config_of_the_same_kind() -> None:
    for definition in TOPIC_CONFIGS.values():
        for synonym in definition.synonyms:
            assert synonym in BROKER_CONFIGS, (definition.name, synonym)
        if len(definition.synonyms) == 1:
            broker = BROKER_CONFIGS[definition.synonyms[0]]
            assert broker.default == definition.default, definition.name
            assert broker.type == definition.type, definition.name


def test_topic_config__internal_segment_bytes_wins_over_segment_bytes() -> None:
    config = TopicConfig.resolve(BrokerConfig(), {"internal.segment.bytes": "4096"})
    assert config.max_segment_bytes == 4_096
    assert TopicConfig().max_segment_bytes == 2**30


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"min.insync.replicas": "2"}, None),
        ({"nosuch": "1"}, "Unknown topic config name: nosuch"),
        (
            {"retention.ms": "x"},
            "Invalid value x for configuration retention.ms: Not a number of type LONG",
        ),
        (
            {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"},
            "conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (5)",
        ),
    ],
)
def test_topic_config__bad_overrides_get_kafkas_message(
    overrides: dict[str, str], message: str | None
) -> None:
    assert check_topic_overrides(BrokerConfig(), overrides) == message


def test_topic_config__values_are_described_as_text() -> None:
    config = TopicConfig.resolve(BrokerConfig(), {"cleanup.policy": "compact,delete"})
    described = {name: describe(definition, config) for name, definition in TOPIC_CONFIGS.items()}
    assert described["cleanup.policy"] == "compact,delete"
    assert described["preallocate"] == "false"
    assert described["min.cleanable.dirty.ratio"] == "0.5"
    assert described["internal.segment.bytes"] is None
    assert described["follower.replication.throttled.replicas"] == ""


@pytest.mark.parametrize("name", ["log.dir", "log.dirs"])
def test_broker_config__a_broker_has_a_log_directory(name: str) -> None:
    definition = BROKER_CONFIGS[name]
    assert parse_value(definition, "/a, /b") == ("/a", "/b")
    problem = parse_value(definition, "")
    assert isinstance(problem, ConfigError)
    assert "at least one log directory" in str(problem)


def test_documentation__there_is_a_sentence_for_every_config_and_no_other() -> None:
    public = (d for n, d in broker_catalog().items() if n not in internal_configs())
    described = [
        *(documentation("broker", definition) for definition in public),
        *(documentation("topic", definition) for definition in TOPIC_CONFIGS.values()),
        *(documentation("group", definition) for definition in GROUP_CONFIGS.values()),
        *(
            documentation("client-metrics", definition)
            for definition in CLIENT_METRICS_CONFIGS.values()
        ),
    ]
    assert all(words and words.endswith(".") for words in described)
    assert set(described) == set(sentences().values())
