"""Clients' metrics: which metrics a client pushes, and when."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.contract import ConnectionClosed, Note, Request
from kcluster.events.clients import TelemetryPushed
from kcluster.metadata.records import ConfigRecord, MetadataRecord
from kcluster.protocol import messages as m
from kcluster.protocol.apis import TELEMETRY, ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.compression import compress
from tests.rig.one_broker import OneBroker, broker_records

METRICS = 16
THROTTLED = ErrorCode.THROTTLING_QUOTA_EXCEEDED
MY_ID = bytes(range(16))


def subscription(name: str = "m", **configs: str) -> list[MetadataRecord]:
    return [
        ConfigRecord(METRICS, name, key.replace("_", "."), text) for key, text in configs.items()
    ]


def get(one: OneBroker, instance_id: bytes = MY_ID) -> Any:
    body = m.GetTelemetrySubscriptionsRequest(client_instance_id=instance_id)
    return one.ask(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, 0, body)


def push(one: OneBroker, subscribed: Any, metrics: bytes = b"some", **fields: Any) -> ErrorCode:
    body = m.PushTelemetryRequest(
        client_instance_id=subscribed.client_instance_id,
        subscription_id=subscribed.subscription_id,
        metrics=metrics,
    )
    for name, value in fields.items():
        setattr(body, name, value)
    return ErrorCode(one.ask(ApiKey.PUSH_TELEMETRY, 0, body).error_code)


@pytest.fixture
def one() -> OneBroker:
    return OneBroker(broker_records(1), subscription(metrics="a.b", interval_ms="1000"))


def test_telemetry__a_client_without_an_id_gets_one() -> None:
    one = OneBroker(broker_records(1))
    first, second = get(one, bytes(16)), get(one, bytes(16))
    assert bytes(16) != first.client_instance_id != second.client_instance_id
    assert (first.push_interval_ms, first.requested_metrics) == (300_000, [])


def test_telemetry__matching_subscriptions_are_merged() -> None:
    one = OneBroker(
        broker_records(1),
        subscription("1", metrics="b,a", match="client_id=te.*"),
        subscription("2", metrics="a,c", interval_ms="500", match="client_source_address=127.*"),
        subscription("3", metrics="d", interval_ms="100", match="client_id=tes"),
    )
    subscribed = get(one)
    assert (subscribed.requested_metrics, subscribed.push_interval_ms) == (["a", "b", "c"], 500)


def test_telemetry__a_star_subscribes_to_all_metrics() -> None:
    records = subscription("1", metrics="*"), subscription("2", metrics="a")
    assert get(OneBroker(broker_records(1), *records)).requested_metrics == ["*"]


def test_telemetry__software_is_known_from_api_versions() -> None:
    record = subscription(metrics="a", match="client_software_name=lib.*")
    one = OneBroker(broker_records(1), record)
    body = m.ApiVersionsRequest(client_software_name="librdkafka", client_software_version="2")
    one.ask(ApiKey.API_VERSIONS, 3, body)
    assert get(one).requested_metrics == ["a"]
    one.broker.step(one.now_ms, ConnectionClosed(1))
    assert get(one).requested_metrics == []


def test_telemetry__is_listed_while_a_subscription_exists(one: OneBroker) -> None:
    body = m.ApiVersionsRequest(client_software_name="a", client_software_version="1")
    listed = {key.api_key for key in one.ask(ApiKey.API_VERSIONS, 3, body).api_keys}
    assert set(TELEMETRY) <= listed
    listed = {
        key.api_key
        for key in OneBroker(broker_records(1)).ask(ApiKey.API_VERSIONS, 3, body).api_keys
    }
    assert not set(TELEMETRY) & listed


def test_telemetry__asking_again_too_early_is_throttled(one: OneBroker) -> None:
    get(one)
    assert get(one).error_code == THROTTLED
    one.now_ms += 1_000
    assert get(one).error_code == ErrorCode.NONE


def test_telemetry__the_first_push_is_immediate_the_next_waits_an_interval(one: OneBroker) -> None:
    subscribed = get(one)
    assert push(one, subscribed) == ErrorCode.NONE
    one.now_ms += 999
    assert push(one, subscribed) == THROTTLED
    one.now_ms += 1
    assert push(one, subscribed) == ErrorCode.NONE


def test_telemetry__a_push_for_changed_subscriptions_is_refused(one: OneBroker) -> None:
    subscribed = get(one)
    one.apply(subscription("other", metrics="c"), one.now_ms)
    assert push(one, subscribed) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    renewed = get(one)
    assert (renewed.error_code, renewed.requested_metrics) == (ErrorCode.NONE, ["a.b", "c"])


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"client_instance_id": bytes(16)}, ErrorCode.INVALID_REQUEST),
        ({"subscription_id": 7}, ErrorCode.UNKNOWN_SUBSCRIPTION_ID),
        ({"compression_type": 5}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"compression_type": 4}, ErrorCode.INVALID_RECORD),
        ({"compression_type": 4, "metrics": compress(4, b"some")}, ErrorCode.NONE),
        ({"metrics": bytes((1 << 20) + 1)}, ErrorCode.TELEMETRY_TOO_LARGE),
        ({"metrics": bytes(1 << 20)}, ErrorCode.NONE),
    ],
)
def test_telemetry__pushes_are_checked(
    one: OneBroker, fields: dict[str, Any], error: ErrorCode
) -> None:
    assert push(one, get(one), **fields) == error


def test_telemetry__nothing_is_accepted_after_the_terminating_push(one: OneBroker) -> None:
    subscribed = get(one)
    assert push(one, subscribed) == ErrorCode.NONE
    assert push(one, subscribed, terminating=True) == ErrorCode.NONE  # early, but the last
    one.now_ms += 5_000
    assert push(one, subscribed) == ErrorCode.INVALID_REQUEST


def test_telemetry__pushes_are_counted_and_reported(one: OneBroker) -> None:
    subscribed = get(one)
    push(one, subscribed)
    one.now_ms += 1_000
    body = m.PushTelemetryRequest(
        client_instance_id=MY_ID, subscription_id=subscribed.subscription_id, metrics=b"12"
    )
    effects = one.broker.step(one.now_ms, Request(1, ApiKey.PUSH_TELEMETRY, 0, 1, "test", body))
    (note,) = [e for e in effects if isinstance(e, Note)]
    assert isinstance(note.event, TelemetryPushed)
    assert note.event.size_bytes == 2
    client = one.broker.telemetry.instances[MY_ID]
    assert (client.pushes, client.pushed_bytes) == (2, 6)


def test_telemetry__a_client_is_forgotten_with_its_connection(one: OneBroker) -> None:
    get(one)
    one.broker.step(one.now_ms, ConnectionClosed(1))
    assert one.broker.telemetry.instances == {}
    assert get(one).error_code == ErrorCode.NONE
