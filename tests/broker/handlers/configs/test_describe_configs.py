"""DescribeConfigs: values, sources, synonyms; expected values are a real broker's."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.config.kafka.catalog import broker_catalog, internal_configs
from kcluster.config.kafka.definitions import TOPIC_CONFIGS
from kcluster.metadata.records import ConfigRecord, MetadataRecord
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.releases import releases
from tests.rig.one_broker import (
    OneBroker,
    broker_config,
    broker_records,
    topic_config,
    topic_records,
)

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
Entry = m.DescribeConfigsResponse.DescribeConfigsResourceResult


def describe(
    one: OneBroker, kind: int, name: str, *keys: str, version: int = 4, synonyms: bool = True
) -> m.DescribeConfigsResponse.DescribeConfigsResult:
    resource = m.DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=list(keys) or None
    )
    request = m.DescribeConfigsRequest(resources=[resource], include_synonyms=synonyms)
    response = one.ask(ApiKey.DESCRIBE_CONFIGS, version, request)
    (result,) = response.results
    assert isinstance(result, m.DescribeConfigsResponse.DescribeConfigsResult)
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


def entry(one: OneBroker, kind: int, name: str, key: str) -> Entry:
    (only,) = describe(one, kind, name, key).configs
    return only


def synonyms(of: Entry) -> list[tuple[str, str | None, int]]:
    return [(s.name, s.value, s.source) for s in of.synonyms]


BASE = [*broker_records(1), *topic_records("a", (1,))]


def test_describe_configs__a_topologys_config_without_an_effect_is_described_as_set() -> None:
    one = OneBroker(BASE, num_io_threads=16)
    of = entry(one, BROKER, "1", "num.io.threads")
    assert (of.value, of.config_source, of.config_type) == ("16", 4, 3)
    assert synonyms(of) == [("num.io.threads", "16", 4), ("num.io.threads", "8", 5)]


def test_describe_configs__an_untouched_topic_has_defaults() -> None:
    result = describe(OneBroker(BASE), TOPIC, "a")
    names = [config.name for config in result.configs]
    assert names == sorted(name for name in TOPIC_CONFIGS if not name.startswith("internal."))
    assert {config.config_source for config in result.configs} == {5}
    assert not any(config.read_only or config.is_sensitive for config in result.configs)


@pytest.mark.parametrize(
    ("key", "value", "kind", "expected"),
    [
        ("retention.ms", "604800000", 5, []),
        ("segment.bytes", "1073741824", 3, [("log.segment.bytes", "1073741824", 5)]),
        ("cleanup.policy", "delete", 7, [("log.cleanup.policy", "delete", 5)]),
        ("min.cleanable.dirty.ratio", "0.5", 6, [("log.cleaner.min.cleanable.ratio", "0.5", 5)]),
        ("remote.storage.enable", "false", 1, []),
        ("flush.ms", "9223372036854775807", 5, []),
        ("leader.replication.throttled.replicas", "", 7, []),
        ("compression.type", "producer", 2, [("compression.type", "producer", 5)]),
    ],
)
def test_describe_configs__values_types_and_synonyms_are_those_of_a_real_broker(
    key: str, value: str, kind: int, expected: list[tuple[str, str, int]]
) -> None:
    of = entry(OneBroker(BASE), TOPIC, "a", key)
    assert (of.value, of.config_type, synonyms(of)) == (value, kind, expected)


def test_describe_configs__a_config_of_the_topic_itself_comes_first() -> None:
    one = OneBroker(BASE, [topic_config("a", "cleanup.policy", "compact,delete")])
    of = entry(one, TOPIC, "a", "cleanup.policy")
    assert (of.value, of.config_source) == ("compact,delete", 1)
    assert synonyms(of) == [
        ("cleanup.policy", "compact,delete", 1),
        ("log.cleanup.policy", "delete", 5),
    ]


def test_describe_configs__broker_settings_follow_in_their_order() -> None:
    one = OneBroker(
        BASE,
        [
            broker_config("", "log.retention.ms", "888000"),
            broker_config("1", "log.retention.ms", "777000"),
        ],
    )
    chain = [
        ("log.retention.ms", "777000", 2),
        ("log.retention.ms", "888000", 3),
        ("log.retention.hours", "168", 5),
    ]
    for of in (entry(one, TOPIC, "a", "retention.ms"), entry(one, BROKER, "1", "log.retention.ms")):
        assert (of.value, of.config_source, synonyms(of)) == ("777000", 2, chain)


def test_describe_configs__configs_of_the_topology_are_static() -> None:
    of = entry(OneBroker(BASE, num_partitions=4), BROKER, "1", "num.partitions")
    assert (of.value, of.config_source, of.read_only) == ("4", 4, True)
    assert synonyms(of) == [("num.partitions", "4", 4), ("num.partitions", "1", 5)]


def test_describe_configs__retention_in_hours_does_not_show_as_milliseconds() -> None:
    one = OneBroker(BASE, log_retention_hours=24)
    of = entry(one, TOPIC, "a", "retention.ms")
    assert (of.value, of.config_source, synonyms(of)) == ("86400000", 5, [])


@pytest.mark.parametrize(
    ("key", "value", "source", "kind"),
    [
        ("node.id", "1", 4, 3),
        ("broker.rack", "r1", 4, 2),
        ("advertised.listeners", "PLAINTEXT://127.0.0.1:9091", 4, 7),
        ("log.retention.ms", None, 5, 5),
        ("broker.session.timeout.ms", "9000", 5, 3),
    ],
)
def test_describe_configs__a_broker_describes_only_itself(
    key: str, value: str | None, source: int, kind: int
) -> None:
    of = entry(OneBroker(BASE), BROKER, "1", key)
    assert (of.value, of.config_source, of.config_type) == (value, source, kind)


def test_describe_configs__an_empty_broker_name_returns_the_cluster_defaults() -> None:
    one = OneBroker(BASE, [broker_config("", "min.insync.replicas", "2")])
    (only,) = describe(one, BROKER, "").configs
    assert (only.name, only.value, only.config_source) == ("min.insync.replicas", "2", 3)
    assert synonyms(only) == [("min.insync.replicas", "2", 3)]


@pytest.mark.parametrize(
    ("kind", "name", "error"),
    [
        (TOPIC, "nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "bad name", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "2", ErrorCode.INVALID_REQUEST),
        (BROKER, "x", ErrorCode.INVALID_REQUEST),
        (8, "2", ErrorCode.INVALID_REQUEST),
        (8, "", ErrorCode.INVALID_REQUEST),
        (16, "", ErrorCode.INVALID_REQUEST),
        (32, "", ErrorCode.INVALID_REQUEST),
        (99, "x", ErrorCode.INVALID_REQUEST),
    ],
)
def test_describe_configs__unknown_resources_are_refused(
    kind: int, name: str, error: ErrorCode
) -> None:
    result = describe(OneBroker(BASE), kind, name)
    assert (result.error_code, result.configs) == (error, [])


def test_describe_configs__an_unknown_resource_type_fails_the_whole_request() -> None:
    new = m.DescribeConfigsRequest.DescribeConfigsResource
    request = m.DescribeConfigsRequest(
        resources=[new(resource_type=TOPIC, resource_name="a"), new(resource_type=99)]
    )
    response = OneBroker(BASE).ask(ApiKey.DESCRIBE_CONFIGS, 4, request)
    assert [r.error_code for r in response.results] == [ErrorCode.INVALID_REQUEST] * 2


def test_describe_configs__returns_only_requested_and_known_keys() -> None:
    result = describe(OneBroker(BASE), TOPIC, "a", "retention.ms", "nope", synonyms=False)
    assert [config.name for config in result.configs] == ["retention.ms"]


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_describe_configs__every_version_is_answered(version: int) -> None:
    result = describe(OneBroker(BASE), TOPIC, "a", "segment.bytes", version=version)
    assert result.configs[0].value == "1073741824"


LATER = "max.decompressed.message.bytes"


@pytest.mark.parametrize(("release", "knows"), [("4.3", False), ("4.4", True)])
def test_describe_configs__a_config_is_described_since_its_release(
    release: str, knows: bool
) -> None:
    mixed = [topic_config("a", LATER, "5"), ConfigRecord(GROUP, "g", "streams.assignor.name", "x")]
    one = OneBroker(BASE, mixed, release=releases()[release])
    for kind, name, key in ((TOPIC, "a", LATER), (BROKER, "1", LATER)):
        assert len(describe(one, kind, name, key).configs) == knows
    of_group = describe(one, GROUP, "g").configs
    assert ("streams.assignor.name" in [of.name for of in of_group]) == knows
    assert one.broker.view.config.max_decompressed_message_bytes == (2**31 - 9 if knows else 0)


def test_describe_configs__a_later_config_is_as_one_of_a_plugin_to_an_older_broker() -> None:
    set_for_all = [broker_config("", LATER, "100")]
    one = OneBroker(BASE, set_for_all, release=releases()["4.3"])
    of = entry(one, BROKER, "1", LATER)
    assert (of.value, of.is_sensitive, of.read_only) == (None, True, True)
    assert one.broker.view.config.max_decompressed_message_bytes == 0


def test_describe_configs__internal_configs_of_a_group_show_where_they_are_set() -> None:
    one = OneBroker(BASE, [ConfigRecord(GROUP, "g", "streams.num.warmup.replicas", "3")])
    of = entry(one, GROUP, "g", "streams.num.warmup.replicas")
    assert synonyms(of) == [
        ("streams.num.warmup.replicas", "3", 8),
        ("group.streams.num.warmup.replicas", "2", 5),
    ]
    assert not describe(one, GROUP, "other", "streams.num.warmup.replicas").configs


def test_describe_configs__a_streams_group_has_the_brokers_first_assignor() -> None:
    of = entry(OneBroker(BASE), GROUP, "g", "streams.assignor.name")
    assert (of.value, of.config_type) == ("sticky", 2)
    assert synonyms(of) == [("group.streams.assignors", "sticky", 5)]


def test_describe_configs__a_broker_has_every_config_of_kafka_but_internal_ones() -> None:
    described = describe(OneBroker(BASE), BROKER, "1").configs
    assert {config.name for config in described} == broker_catalog().keys() - internal_configs()
    assert all(config.value is None for config in described if config.is_sensitive)
    assert {config.name for config in described if config.is_sensitive} == {
        name for name, definition in broker_catalog().items() if definition.type == "PASSWORD"
    }


def test_describe_configs__an_unknown_config_has_only_a_name() -> None:
    one = OneBroker(BASE, [broker_config("1", "no.such", "secret")])
    of = entry(one, BROKER, "1", "no.such")
    assert (of.value, of.is_sensitive, of.read_only, of.config_source) == (None, True, True, 2)
    assert synonyms(of) == [("no.such", None, 2)]


def test_describe_configs__a_listener_config_has_the_base_as_synonym() -> None:
    name = "listener.name.x.max.connections"
    of = entry(OneBroker(BASE, [broker_config("1", name, "70000")]), BROKER, "1", name)
    assert (of.value, of.read_only, of.config_type) == ("70000", True, 3)
    assert synonyms(of) == [(name, "70000", 2), ("max.connections", "2147483647", 5)]


def test_describe_configs__a_value_is_normalized_and_its_synonym_is_as_written() -> None:
    ratio = "log.cleaner.min.cleanable.ratio"
    of = entry(OneBroker(BASE, [broker_config("1", ratio, " 0.70")]), BROKER, "1", ratio)
    assert (of.value, synonyms(of)) == ("0.7", [(ratio, " 0.70", 2), (ratio, "0.5", 5)])


def test_describe_configs__an_internal_config_shows_where_it_is_set() -> None:
    name = "internal.segment.bytes"
    of = entry(OneBroker(BASE, [topic_config("a", name, "1000")]), TOPIC, "a", name)
    assert (of.value, of.config_source) == ("1000", 1)


def test_describe_configs__a_group_has_the_brokers_defaults() -> None:
    own: list[MetadataRecord] = [ConfigRecord(GROUP, "g", "consumer.session.timeout.ms", "50000")]
    for_all: list[MetadataRecord] = [
        ConfigRecord(BROKER, "", "group.consumer.assignment.interval.ms", "2000")
    ]
    one = OneBroker(BASE, own + for_all)
    of = entry(one, GROUP, "g", "consumer.session.timeout.ms")
    assert (of.value, of.config_source) == ("50000", 8)
    default = ("group.consumer.session.timeout.ms", "45000", 5)
    assert synonyms(of) == [("consumer.session.timeout.ms", "50000", 8), default]
    of = entry(one, GROUP, "other", "consumer.heartbeat.interval.ms")
    assert (of.value, of.config_source) == ("5000", 5)
    of = entry(one, GROUP, "other", "consumer.assignment.interval.ms")
    assert (of.value, of.config_source) == ("2000", 3)
    of = entry(one, GROUP, "other", "share.isolation.level")
    assert synonyms(of) == [("share.isolation.level", "read_uncommitted", 5)]


@pytest.mark.parametrize("kind", ["consumer", "share", "streams"])
@pytest.mark.parametrize(("stored", "in_force"), [("12000", "5000"), ("20", "100"), ("700", "700")])
def test_describe_configs__a_stored_interval_beyond_the_brokers_bounds_is_capped(
    kind: str, stored: str, in_force: str
) -> None:
    """The bounds are static, so a restart may have narrowed them."""
    name, own = f"group.{kind}.assignment.interval.ms", f"{kind}.assignment.interval.ms"
    bounds = {"min": 100, "max": 5_000}
    config: dict[str, Any] = {
        f"group_{kind}_{w}_assignment_interval_ms": number for w, number in bounds.items()
    }
    for_all: list[MetadataRecord] = [
        ConfigRecord(BROKER, "", name, stored),
        ConfigRecord(GROUP, "g", own, "13000"),
    ]
    one = OneBroker(BASE + for_all, **config)
    of = entry(one, BROKER, "1", name)
    assert (of.value, of.config_source) == (in_force, 3)
    assert synonyms(of) == [(name, stored, 3), (name, "1000", 5)]
    assert entry(one, GROUP, "other", own).value == in_force
    assert entry(one, GROUP, "g", own).value == "13000"


def test_describe_configs__client_metrics_need_not_exist() -> None:
    one = OneBroker(BASE, [ConfigRecord(METRICS, "m", "metrics", "a,b")])
    of = entry(one, METRICS, "m", "metrics")
    assert (of.value, of.config_source, synonyms(of)) == ("a,b", 7, [("metrics", "a,b", 7)])
    of = entry(one, METRICS, "other", "interval.ms")
    assert (of.value, of.config_source, synonyms(of)) == ("300000", 5, [])


def test_describe_configs__a_logger_without_its_own_level_has_the_roots() -> None:
    one = OneBroker(BASE)
    one.broker.loggers["root"] = "ERROR"
    one.broker.loggers["kafka.request.logger"] = "TRACE"
    levels = {config.name: config.value for config in describe(one, LOGGER, "1").configs}
    assert levels.pop("kafka.request.logger") == "TRACE"
    assert set(levels.values()) == {"ERROR"}
    assert entry(one, LOGGER, "1", "root").config_source == 6
