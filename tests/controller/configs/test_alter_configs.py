from __future__ import annotations

from typing import Any

import pytest

from kcluster.metadata.records import BROKER_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.releases import releases
from tests.controller.harness import Controller

E = ErrorCode

SET, DELETE, APPEND, SUBTRACT = range(4)


@pytest.fixture
def t() -> Controller:
    controller = Controller()
    controller.create("orders", [[1, 2, 3]], retention_ms="1000")
    return controller


def alter(
    t: Controller, kind: int, name: str, *configs: tuple[str, int, str | None], **more: bool
) -> Any:
    ask = m.IncrementalAlterConfigsRequest
    request = ask(
        resources=[
            ask.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    ask.AlterableConfig(name=config, config_operation=operation, value=value)
                    for config, operation, value in configs
                ],
            )
        ],
        **more,
    )
    (response,) = t.ask(1, request).responses
    return response


def test_alter_configs__set_and_delete(t: Controller) -> None:
    alter(t, TOPIC_RESOURCE, "orders", ("retention.ms", DELETE, None), ("flush.ms", SET, "7"))
    assert t.follow(2).topic_configs("orders") == {"flush.ms": "7"}


def test_alter_configs__append_and_subtract(t: Controller) -> None:
    alter(t, TOPIC_RESOURCE, "orders", ("cleanup.policy", APPEND, "compact"))
    assert t.node.image.topic_configs("orders")["cleanup.policy"] == "delete,compact"
    alter(t, TOPIC_RESOURCE, "orders", ("cleanup.policy", SUBTRACT, "delete"))
    assert t.node.image.topic_configs("orders")["cleanup.policy"] == "compact"


def test_alter_configs__unchanged_topic_configs_write_nothing(t: Controller) -> None:
    end = t.node.end_offset
    alter(t, TOPIC_RESOURCE, "orders", ("retention.ms", SET, "1000"))
    assert t.node.end_offset == end


def test_alter_configs__validate_only(t: Controller) -> None:
    config = ("retention.ms", SET, "5")
    response = alter(t, TOPIC_RESOURCE, "orders", config, validate_only=True)
    assert response.error_code == ErrorCode.NONE
    assert t.node.image.topic_configs("orders")["retention.ms"] == "1000"


TOPIC, BROKER = TOPIC_RESOURCE, BROKER_RESOURCE
INVALID_CONFIG, INVALID_REQUEST = ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("kind", "name", "config", "error", "text"),
    [
        (TOPIC, "orders", ("retention.ms", SET, "x"), INVALID_CONFIG, "Not a number"),
        (TOPIC, "orders", ("nope", SET, "x"), INVALID_CONFIG, "nope"),
        (TOPIC, "orders", ("retention.ms", APPEND, "1"), INVALID_CONFIG, "not LIST"),
        (TOPIC, "orders", ("retention.ms", SET, None), INVALID_REQUEST, "Null value"),
        (TOPIC, "orders", ("retention.ms", 9, "1"), ErrorCode.UNKNOWN_SERVER_ERROR, None),
        (TOPIC, "zz", ("retention.ms", SET, "1"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "zz"),
        (TOPIC, "a b", ("retention.ms", SET, "1"), ErrorCode.INVALID_TOPIC_EXCEPTION, "a b"),
        (TOPIC, "", ("retention.ms", SET, "1"), INVALID_REQUEST, "Default topic"),
        (77, "orders", ("retention.ms", SET, "1"), INVALID_REQUEST, "resource type 77"),
        (BROKER, "x", ("message.max.bytes", SET, "1"), INVALID_REQUEST, "must be an integer"),
        (BROKER, "9", ("message.max.bytes", SET, "1"), ErrorCode.BROKER_ID_NOT_REGISTERED, "9"),
        (BROKER, "1", ("message.max.bytes", SET, "x"), INVALID_REQUEST, "Not a number"),
        (BROKER, "1", ("num.partitions", SET, "5"), INVALID_REQUEST, "[num.partitions]"),
        (BROKER, "1", ("min.insync.replicas", SET, "2"), INVALID_CONFIG, "Broker-level"),
        (BROKER, "", ("min.insync.replicas", DELETE, None), INVALID_CONFIG, "Cluster-level"),
    ],
)
def test_alter_configs__refused(
    t: Controller, kind: int, name: str, config: Any, error: ErrorCode, text: str | None
) -> None:
    end = t.node.end_offset
    response = alter(t, kind, name, config)
    assert ErrorCode(response.error_code) is error
    assert text is None or text in response.error_message
    assert t.node.end_offset == end


def test_alter_configs__one_bad_config_fails_its_resource_only(t: Controller) -> None:
    t.create("other")
    ask = m.IncrementalAlterConfigsRequest
    request = ask(
        resources=[
            ask.AlterConfigsResource(
                resource_type=TOPIC,
                resource_name=name,
                configs=[
                    ask.AlterableConfig(name="flush.ms", value="7"),
                    ask.AlterableConfig(name="retention.ms", value=value),
                ],
            )
            for name, value in (("orders", "x"), ("other", "5"))
        ]
    )
    codes = [response.error_code for response in t.ask(1, request).responses]
    assert codes == [INVALID_CONFIG, ErrorCode.NONE]
    assert t.node.image.topic_configs("orders") == {"retention.ms": "1000"}
    assert t.node.image.topic_configs("other") == {"flush.ms": "7", "retention.ms": "5"}


def test_alter_configs__legacy_removes_what_it_does_not_name(t: Controller) -> None:
    ask = m.AlterConfigsRequest
    resource = ask.AlterConfigsResource(
        resource_type=TOPIC,
        resource_name="orders",
        configs=[ask.AlterableConfig(name="flush.ms", value="7")],
    )
    (response,) = t.ask(1, ask(resources=[resource])).responses
    assert response.error_code == ErrorCode.NONE
    assert t.node.image.topic_configs("orders") == {"flush.ms": "7"}


def test_alter_configs__cluster_defaults_reach_decisions(t: Controller) -> None:
    t.alter(1, "orders", [1])
    t.set_config(BROKER, "", "unclean.leader.election.enable", "true")
    assert t.node.partitions.unclean_allowed("orders")
    t.set_config(BROKER, "", "min.insync.replicas", "2")
    assert t.node.partitions.min_isr("orders") == 2
    t.set_config(BROKER, "", "unclean.leader.election.enable", None)
    assert not t.node.partitions.unclean_allowed("orders")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("streams.assignor.name", "x", "must be one of sticky"),
        ("streams.num.warmup.replicas", "21", "above group.streams.max.warmup.replicas (20)"),
        ("streams.task.offset.interval.ms", "9", "below group.streams.min.task.offset.interval.ms"),
        ("streams.acceptable.recovery.lag", "-1", "Value must be at least 0"),
        ("streams.rack.aware.assignment.tags", "a, a", "names a tag twice"),
        ("streams.rack.aware.assignment.tags", "a,,b", "must not be empty"),
        ("errors.deadletterqueue.topic.name", "__x", "must not start with __"),
    ],
)
def test_alter_configs__a_groups_configs_of_4_4_have_bounds(
    t: Controller, name: str, value: str, message: str
) -> None:
    refused = alter(t, GROUP_RESOURCE, "g", (name, SET, value))
    assert (refused.error_code, message in refused.error_message) == (E.INVALID_CONFIG, True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("streams.assignor.name", "sticky"),
        ("streams.num.warmup.replicas", "20"),
        ("streams.task.offset.interval.ms", "15000"),
        ("streams.rack.aware.assignment.tags", "b,a"),
        ("errors.deadletterqueue.topic.name", "no.prefix/and no name"),
        ("errors.deadletterqueue.copy.record.enable", "TRUE"),
        ("consumer.assignor.offload.enable", "false"),
    ],
)
def test_alter_configs__a_4_3_controller_knows_no_config_of_4_4(name: str, value: str) -> None:
    for release, error in ((None, E.NONE), (releases()["4.3"], E.INVALID_CONFIG)):
        answer = alter(Controller(release=release), GROUP_RESOURCE, "g", (name, SET, value))
        assert answer.error_code == error, answer


def test_alter_configs__a_topics_configs_are_those_of_the_controllers_release() -> None:
    old = Controller(release=releases()["4.3"])
    old.create("orders", [[1, 2, 3]])
    later = ("max.decompressed.message.bytes", SET, "1000")
    refused = alter(old, TOPIC_RESOURCE, "orders", later)
    assert (refused.error_code, refused.error_message) == (
        E.INVALID_CONFIG, "Unknown topic config name: max.decompressed.message.bytes"
    )  # fmt: skip
    assert alter(old, BROKER_RESOURCE, "", later).error_code == E.NONE  # as one of a plugin
    wrong = ("max.decompressed.message.bytes", SET, "x")
    assert alter(old, BROKER_RESOURCE, "", wrong).error_code == E.NONE
    assert alter(Controller(), BROKER_RESOURCE, "", wrong).error_code == E.INVALID_REQUEST
