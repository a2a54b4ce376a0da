"""GetTelemetrySubscriptions (71, v0) and PushTelemetry (72, v0): clients' own metrics.

Owns: both answers.  Never: decides whether a client may ask or push now (broker/telemetry.py),
stores pushed metrics.  Kafka: ClientMetricsManager.process…Request, KafkaApis; KIP-714.

ApiVersions lists both only while there are subscriptions.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final

from kcluster.broker.broker import Broker
from kcluster.broker.registry import handles
from kcluster.broker.telemetry import ClientInstance
from kcluster.config.kafka.catalog import broker_catalog
from kcluster.contract import Request
from kcluster.events.clients import TelemetryPushed
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.compression import CompressionError, decompress

ZSTD: Final = 4
ACCEPTED: Final = (ZSTD, 3, 1, 2)
"""The offered codecs, the best first: zstd, lz4, gzip, snappy."""
MAX_OPENED_BYTES: Final = 1 << 26
"""DIFFERS: Kafka's plug-ins do not bound the decompressed size of a push."""
_RESERVED: Final = (bytes(16), bytes(15) + b"\x01")
"""Reserved ids: none, and the metadata topic."""


@handles(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, versions=(0, 0))
def get_telemetry_subscriptions(
    broker: Broker, request: Request, now_ms: int
) -> m.GetTelemetrySubscriptionsResponse:
    """The metrics that a client must push, and the interval.

    Behaviour:
    - the subscriptions whose patterns match the client count together: all of their metrics, at the
      shortest interval;
    - a client without an id gets one;
    - THROTTLING_QUOTA_EXCEEDED less than an interval after the last request or push, unless
      subscriptions have changed.
    Versions:
    - v0: KIP-714
    """
    instance_id = request.body.client_instance_id
    if instance_id == _RESERVED[0]:
        instance_id = _new_id(broker)
    client = _instance(broker, request, instance_id, now_ms)
    if not client.may_get(now_ms):
        return m.GetTelemetrySubscriptionsResponse(error_code=ErrorCode.THROTTLING_QUOTA_EXCEEDED)
    client.last_error = ErrorCode.NONE
    return m.GetTelemetrySubscriptionsResponse(
        client_instance_id=instance_id,
        subscription_id=client.subscription_id,
        accepted_compression_types=list(ACCEPTED),
        push_interval_ms=client.push_interval_ms,
        telemetry_max_bytes=_max_bytes(),
        delta_temporality=True,
        requested_metrics=list(client.metrics),
    )


@handles(ApiKey.PUSH_TELEMETRY, versions=(0, 0))
def push_telemetry(broker: Broker, request: Request, now_ms: int) -> m.PushTelemetryResponse:
    """Take a client's metrics: they are counted, and reported in a note.

    Behaviour, in this order:
    - INVALID_REQUEST without an id, and after a push marked as the last one;
    - THROTTLING_QUOTA_EXCEEDED before the interval has passed, except for the last push;
    - UNKNOWN_SUBSCRIPTION_ID when subscriptions have changed;
    - UNSUPPORTED_COMPRESSION_TYPE;
    - TELEMETRY_TOO_LARGE;
    - INVALID_RECORD if the metrics do not decompress.
    Versions:
    - v0: KIP-714
    """
    body: m.PushTelemetryRequest = request.body
    if body.client_instance_id in _RESERVED:
        return m.PushTelemetryResponse(error_code=ErrorCode.INVALID_REQUEST)
    client = _instance(broker, request, body.client_instance_id, now_ms)
    error = _refusal(client, body, now_ms)
    client.last_error = error
    client.terminating = body.terminating
    size_bytes = len(body.metrics)
    if error is ErrorCode.NONE and size_bytes:
        client.pushes += 1
        client.pushed_bytes += size_bytes
        name = client.attributes["client_instance_id"]
        broker.note(
            TelemetryPushed(
                client_id=request.client_id or "",
                client_instance_id=name,
                size_bytes=size_bytes,
                pushes=client.pushes,
                total_bytes=client.pushed_bytes,
            )
        )
    return m.PushTelemetryResponse(error_code=error)


def _refusal(client: ClientInstance, body: m.PushTelemetryRequest, now_ms: int) -> ErrorCode:
    if client.terminating:
        return ErrorCode.INVALID_REQUEST
    if not client.may_push(now_ms) and not body.terminating:
        return ErrorCode.THROTTLING_QUOTA_EXCEEDED
    if body.subscription_id != client.subscription_id:
        return ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    if not 0 <= body.compression_type <= ZSTD:
        return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    if len(body.metrics) > _max_bytes():
        return ErrorCode.TELEMETRY_TOO_LARGE
    if body.metrics and body.compression_type:
        try:
            decompress(body.compression_type, body.metrics, MAX_OPENED_BYTES)
        except CompressionError:
            return ErrorCode.INVALID_RECORD
    return ErrorCode.NONE


def _instance(broker: Broker, request: Request, instance_id: bytes, now_ms: int) -> ClientInstance:
    telemetry = broker.telemetry
    return telemetry.instance(
        instance_id,
        _attributes(broker, request, instance_id),
        request.connection_id,
        broker.image,
        now_ms,
    )


def _attributes(broker: Broker, request: Request, instance_id: bytes) -> Mapping[str, str]:
    software, version = broker.telemetry.software.get(request.connection_id, ("", ""))
    return {
        "client_instance_id": base64.urlsafe_b64encode(instance_id).decode().rstrip("="),
        "client_id": request.client_id or "",
        "client_software_name": software,
        "client_software_version": version,
        "client_source_address": request.client_host,
        # DIFFERS: no client_source_port: a request does not carry its client's port.
    }


def _new_id(broker: Broker) -> bytes:
    while True:
        drawn = bytearray(broker.rng.randbytes(16))
        drawn[6], drawn[8] = drawn[6] & 0x0F | 0x40, drawn[8] & 0x3F | 0x80  # UUID version 4
        if bytes(drawn) not in broker.telemetry.instances:
            return bytes(drawn)


def _max_bytes() -> int:
    limit = broker_catalog()["telemetry.max.bytes"].default
    assert isinstance(limit, int)
    return limit
