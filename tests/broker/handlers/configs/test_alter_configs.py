"""Both APIs that alter configs: what the broker refuses, and what the controller decides."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from tests.rig.one_broker import OneBroker

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
BAD = ErrorCode.INVALID_REQUEST
INCREMENTAL = m.IncrementalAlterConfigsRequest


def change(
    kind: int, resource: str, *configs: tuple[str, int, str | None]
) -> m.IncrementalAlterConfigsRequest.AlterConfigsResource:
    return INCREMENTAL.AlterConfigsResource(
        resource_type=kind,
        resource_name=resource,
        configs=[
            INCREMENTAL.AlterableConfig(name=name, config_operation=operation, value=value)
            for name, operation, value in configs
        ],
    )


def alter(one: OneBroker, *resources: Any) -> Any:
    return one.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, INCREMENTAL(resources=list(resources)))


def errors(response: Any) -> list[tuple[str, int]]:
    return [(r.resource_name, r.error_code) for r in response.responses]


def test_configs__accepted_changes_are_forwarded_to_the_controller(one: OneBroker) -> None:
    answer = alter(
        one,
        change(TOPIC, "a", ("retention.ms", 0, "5")),
        change(BROKER, "9", ("log.retention.ms", 0, "5")),
        change(TOPIC, "b", ("retention.ms", 0, "5")),
    )
    assert answer is None
    assert [r.resource_name for r in one.asked[0].message.body.resources] == ["a", "b"]
    new = m.IncrementalAlterConfigsResponse
    verdicts = [
        new.AlterConfigsResourceResponse(resource_type=TOPIC, resource_name="b"),
        new.AlterConfigsResourceResponse(
            resource_type=TOPIC,
            resource_name="a",
            error_code=ErrorCode.INVALID_CONFIG,
            error_message="why",
        ),
    ]
    response = one.controller_answers(new(responses=verdicts))
    assert errors(response) == [("a", ErrorCode.INVALID_CONFIG), ("9", BAD), ("b", ErrorCode.NONE)]
    assert response.responses[0].error_message == "why"


def test_configs__silence_of_the_controller_times_out(one: OneBroker) -> None:
    alter(one, change(TOPIC, "a"), change(BROKER, "x"))
    response = one.pass_time(one.config.request_timeout_ms)
    assert errors(response) == [("a", ErrorCode.REQUEST_TIMED_OUT), ("x", BAD)]


@pytest.mark.parametrize(
    "resource",
    [
        change(TOPIC, "a", ("retention.ms", 0, None)),
        change(TOPIC, "a", ("retention.ms", 0, "1"), ("retention.ms", 0, "2")),
        change(99, "a"),
        change(BROKER, "x", ("log.retention.ms", 0, "1")),
        change(BROKER, "2", ("log.retention.ms", 0, "1")),
        change(BROKER, "1", ("num.partitions", 0, "1")),
        change(BROKER, "1", ("log.retention.ms", 0, "soon")),
        change(BROKER, "", ("message.max.bytes", 0, "-1")),
        change(BROKER, "1", ("log.retention.ms", 9, "1")),
        change(BROKER, "", ("ssl.keystore.type", 0, "JKS")),
        change(BROKER, "", ("listener.name.x.ssl.keystore.type", 0, "JKS")),
        change(BROKER, "", ("principal.builder.class", 0, "x")),
        change(BROKER, "1", ("listeners", 0, "PLAINTEXT://:1")),
        change(BROKER, "1", ("num.io.threads", 0, "17")),
        change(BROKER, "1", ("num.io.threads", 0, "3")),
        change(BROKER, "1", ("log.retention.ms", 0, "0")),
        change(BROKER, "1", ("max.connections.per.ip", 0, "0")),
        change(BROKER, "1", ("log.cleaner.dedupe.buffer.size", 0, "1000000")),
        change(LOGGER, "2", ("root", 0, "INFO")),
        change(LOGGER, "1", ("root", 1, None)),
    ],
)
def test_configs__changes_that_the_broker_refuses(one: OneBroker, resource: Any) -> None:
    assert errors(alter(one, resource)) == [(resource.resource_name, BAD)]
    assert one.asked == []


@pytest.mark.parametrize(
    "resource",
    [
        change(TOPIC, "a", ("retention.ms", 1, None)),
        change(TOPIC, "a", ("no.such.config", 0, "1")),
        change(BROKER, "1", ("log.retention.ms", 0, "1")),
        change(BROKER, "", ("log.retention.ms", 1, None)),
        change(BROKER, "1", ("no.such.config", 0, "1")),
        change(BROKER, "1", ("num.partitions", 1, None)),
        change(BROKER, "1", ("listener.name.x.ssl.keystore.type", 0, "JKS")),
        change(BROKER, "", ("listener.name.x.max.connections", 0, "9")),
        change(BROKER, "1", ("background.threads", 0, "20")),
        change(BROKER, "1", ("max.connections.per.ip.overrides", 0, "10.0.0.1:0, h:7")),
        change(BROKER, "1", ("log.cleanup.policy", 2, "compact")),
        change(METRICS, "m", ("metrics", 0, "*")),
        change(GROUP, "g", ("consumer.session.timeout.ms", 0, "50000")),
    ],
)
def test_configs__changes_that_the_controller_decides(one: OneBroker, resource: Any) -> None:
    assert alter(one, resource) is None
    assert len(one.asked) == 1


def test_configs__a_resource_named_twice_is_refused_both_times(one: OneBroker) -> None:
    alter(one, change(TOPIC, "a"), change(TOPIC, "a"), change(TOPIC, "b"))
    (left,) = one.asked[0].message.body.resources
    assert left.resource_name == "b"


@pytest.mark.parametrize(
    ("level", "operation", "error"),
    [
        ("DEBUG", 0, ErrorCode.NONE),
        ("debug", 0, ErrorCode.INVALID_CONFIG),
        ("DEBUG", 2, BAD),
        ("DEBUG", 9, BAD),
    ],
)
def test_configs__logger_levels_belong_to_one_broker(
    one: OneBroker, level: str, operation: int, error: ErrorCode
) -> None:
    name = "kafka.server.KafkaApis"
    answer = alter(one, change(LOGGER, "1", (name, operation, level)))
    assert errors(answer) == [("1", error)]
    assert one.asked == []
    assert one.broker.loggers == ({} if error else {name: level})


def test_configs__levels_change_all_or_none(one: OneBroker) -> None:
    alter(one, change(LOGGER, "1", ("root", 0, "DEBUG"), ("no.such", 0, "INFO")))
    assert one.broker.loggers == {}
    dry = INCREMENTAL(resources=[change(LOGGER, "1", ("root", 0, "WARN"))], validate_only=True)
    assert errors(one.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, dry)) == [("1", 0)]
    assert one.broker.loggers == {}


def test_configs__an_empty_request_changes_nothing(one: OneBroker) -> None:
    assert alter(one).responses == []
    assert one.asked == []


@pytest.mark.parametrize("version", [0, 1, 2])
def test_configs__the_legacy_api_is_forwarded_as_itself(one: OneBroker, version: int) -> None:
    new = m.AlterConfigsRequest
    config = new.AlterableConfig(name="retention.ms", value="5")
    resources = [
        new.AlterConfigsResource(resource_type=TOPIC, resource_name="a", configs=[config]),
        new.AlterConfigsResource(resource_type=BROKER, resource_name="7"),
    ]
    request = new(resources=resources, validate_only=True)
    assert one.ask(ApiKey.ALTER_CONFIGS, version, request) is None
    body = one.asked[0].message.body
    assert (type(body), body.validate_only) == (m.AlterConfigsRequest, True)
    done = m.AlterConfigsResponse.AlterConfigsResourceResponse
    answer = m.AlterConfigsResponse(responses=[done(resource_type=TOPIC, resource_name="a")])
    assert errors(one.controller_answers(answer)) == [("a", ErrorCode.NONE), ("7", BAD)]
