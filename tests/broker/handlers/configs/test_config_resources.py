"""ListConfigResources: the resources that have configs."""

from __future__ import annotations

from kcluster.metadata.records import ConfigRecord
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from tests.rig.one_broker import OneBroker, broker_records, topic_records

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32


def listed(*kinds: int, version: int = 1) -> list[tuple[int, str]] | ErrorCode:
    one = OneBroker(
        broker_records(1, 2),
        topic_records("a", (1,)),
        [ConfigRecord(METRICS, "m", "metrics", "*")],
        [ConfigRecord(GROUP, "g", "consumer.session.timeout.ms", "50000")],
    )
    request = m.ListConfigResourcesRequest(resource_types=list(kinds))
    answer = one.ask(ApiKey.LIST_CONFIG_RESOURCES, version, request)
    if answer.error_code:
        return ErrorCode(answer.error_code)
    return [(found.resource_type, found.resource_name) for found in answer.config_resources]


def test_config_resources__lists_the_requested_types() -> None:
    assert listed(TOPIC) == [(TOPIC, "a")]
    assert listed(LOGGER, BROKER) == [(LOGGER, "1"), (LOGGER, "2"), (BROKER, "1"), (BROKER, "2")]
    assert listed(BROKER, BROKER) == [(BROKER, "1"), (BROKER, "2")]


def test_config_resources__no_type_named_is_all() -> None:
    assert listed() == listed(TOPIC, BROKER, LOGGER, METRICS, GROUP)


def test_config_resources__v0_lists_client_metrics_only() -> None:
    answer = OneBroker(broker_records(1), [ConfigRecord(METRICS, "m", "metrics", "*")]).ask(
        ApiKey.LIST_CONFIG_RESOURCES, 0, m.ListConfigResourcesRequest()
    )
    assert [found.resource_name for found in answer.config_resources] == ["m"]


def test_config_resources__one_unknown_type_fails_the_whole_request() -> None:
    assert listed(TOPIC, 3) is ErrorCode.UNSUPPORTED_VERSION
