"""DescribeConfigs: values, sources, synonyms; expected values are a real broker's."""

from __future__ import annotations

import pytest

from cluster.config.definitions import TOPIC_CONFIGS
from cluster.protocol import messages as m
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from tests.broker.handlers.one_broker import (
    OneBroker,
    broker_config,
    broker_records,
    topic_config,
    topic_records,
)

TOPIC, BROKER = 2, 4
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
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


def entry(one: OneBroker, kind: int, name: str, key: str) -> Entry:
    (only,) = describe(one, kind, name, key).configs
    return only


def synonyms(of: Entry) -> list[tuple[str, str | None, int]]:
    return [(s.name, s.value, s.source) for s in of.synonyms]


BASE = [*broker_records(1), *topic_records("a", (1,))]


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
        ("cleanup.policy", "compact,delete", 1), ("log.cleanup.policy", "delete", 5),
    ]  # fmt: skip


def test_describe_configs__brokers_settings_show_through_in_their_order() -> None:
    one = OneBroker(
        BASE,
        [broker_config("", "log.retention.ms", "888000"),
         broker_config("1", "log.retention.ms", "777000")],
    )  # fmt: skip
    chain = [
        ("log.retention.ms", "777000", 2),
        ("log.retention.ms", "888000", 3),
        ("log.retention.hours", "168", 5),
    ]
    for of in (
        entry(one, TOPIC, "a", "retention.ms"), entry(one, BROKER, "1", "log.retention.ms"),
    ):  # fmt: skip
        assert (of.value, of.config_source, synonyms(of)) == ("777000", 2, chain)


def test_describe_configs__what_the_topology_sets_is_static() -> None:
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
        ("node.id", "1", 4, 3), ("broker.rack", "r1", 4, 2),
        ("advertised.listeners", "PLAINTEXT://127.0.0.1:9091", 4, 7),
        ("log.retention.ms", None, 5, 5), ("broker.session.timeout.ms", "9000", 5, 3),
    ],
)  # fmt: skip
def test_describe_configs__a_broker_speaks_for_itself(
    key: str, value: str | None, source: int, kind: int
) -> None:
    of = entry(OneBroker(BASE), BROKER, "1", key)
    assert (of.value, of.config_source, of.config_type) == (value, source, kind)


def test_describe_configs__no_name_is_what_is_set_for_all_brokers() -> None:
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
        (32, "group", ErrorCode.NONE),
        (8, "1", ErrorCode.NONE),
    ],
)
def test_describe_configs__what_has_no_configs_here(kind: int, name: str, error: ErrorCode) -> None:
    result = describe(OneBroker(BASE), kind, name)
    assert (result.error_code, result.configs) == (error, [])


def test_describe_configs__an_unknown_kind_of_resource_spoils_the_whole_request() -> None:
    new = m.DescribeConfigsRequest.DescribeConfigsResource
    request = m.DescribeConfigsRequest(
        resources=[new(resource_type=TOPIC, resource_name="a"), new(resource_type=99)]
    )
    response = OneBroker(BASE).ask(ApiKey.DESCRIBE_CONFIGS, 4, request)
    assert [r.error_code for r in response.results] == [ErrorCode.INVALID_REQUEST] * 2


def test_describe_configs__only_keys_asked_for_and_known_are_told() -> None:
    result = describe(OneBroker(BASE), TOPIC, "a", "retention.ms", "nope", synonyms=False)
    assert [config.name for config in result.configs] == ["retention.ms"]


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_describe_configs__every_version_is_answered(version: int) -> None:
    result = describe(OneBroker(BASE), TOPIC, "a", "segment.bytes", version=version)
    assert result.configs[0].value == "1073741824"
