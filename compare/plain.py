"""Answers as plain data that can be compared, written down and read.

Owns: `plain`, and the rules of what is masked or sorted, each with its reason.  Never: compares.

A field that has its default is left out, so that versions that lack a field read like those that
have it.  What is masked is told by a word in angle brackets: there is something, whatever it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from compare.filling import Values
from kcluster.protocol.codec.schema import FieldSchema, StructSchema, message_schema
from kcluster.protocol.errors import error_of
from kcluster.protocol.records.batches import Batch, InvalidRecords, parse_batches
from kcluster.protocol.records.records import read_records

UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
TIME_FROM_MS: Final = 1_600_000_000_000

WORDS: Final[Mapping[str, str]] = {
    "error_message": "messages are compared by their presence; their words are each project's own",
    "batch_index_error_message": "as error_message",
    "documentation": "compared by its presence; the words are each project's own",
    "controller_id": "Kafka draws one for every answer",
    "finalized_features_epoch": "an offset in the metadata log",
    "session_id": "drawn at random",
    "producer_id": "the next of what other producers left; checked by its sign",
    "leader_recovery_state": "no unclean election leaves a trace of its own here",
}
"""Fields of which only the presence is compared, by name anywhere -> the reason."""

UNORDERED: Final[Mapping[str, str]] = {
    "MetadataResponse.topics": "name",
    "MetadataResponse.brokers": "node_id",
    "DescribeClusterResponse.brokers": "broker_id",
    "ApiVersionsResponse.supported_features": "name",
    "ApiVersionsResponse.finalized_features": "name",
    "DescribeConfigsResponse.configs": "name",
    "CreateTopicsResponse.configs": "name",
    "CreateTopicsResponse.topics": "name",
    "DeleteTopicsResponse.responses": "name",
    "ListGroupsResponse.groups": "group_id",
    "ListOffsetsResponse.topics": "name",
    "ListOffsetsResponse.partitions": "partition_index",
    "ProduceResponse.responses": "name",
    "ProduceResponse.partition_responses": "index",
    "FetchResponse.node_endpoints": "node_id",
    "ProduceResponse.node_endpoints": "node_id",
    "DescribeGroupsResponse.members": "member_id",
    "OffsetFetchResponse.topics": "name",
    "DescribeLogDirsResponse.topics": "name",
    "DescribeLogDirsResponse.partitions": "partition_index",
    "AlterReplicaLogDirsResponse.results": "topic_name",
    "AlterReplicaLogDirsResponse.partitions": "partition_index",
    "DescribeProducersResponse.active_producers": "producer_id",
    "UpdateFeaturesResponse.results": "feature",
    "JoinGroupResponse.members": "member_id",
    "DescribeUserScramCredentialsResponse.credential_infos": "mechanism",
}
"""Lists that Kafka takes out of a hash table: compared in the order of this key."""


def plain(api_name: str, message: Any, values: Values, more_masks: Mapping[str, str] = {}) -> Any:
    """A decoded response as plain data."""
    name = f"{api_name}Response"
    masks = {**WORDS, **more_masks}
    return _struct(message, message_schema(name).top, values, masks, name)


def _struct(
    message: Any, schema: StructSchema, values: Values, masks: Mapping[str, str], where: str
) -> dict[str, Any]:
    out: dict[str, Any] = {}
    defaults = {field.name: field for field in msgspec.structs.fields(message)}
    for field in schema.fields:
        value = getattr(message, field.name)
        if value == _default_of(defaults[field.name]):
            continue
        out[field.name] = _field(value, field, values, masks, where)
    return out


def _default_of(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return field.default


def _field(
    value: Any, field: FieldSchema, values: Values, masks: Mapping[str, str], where: str
) -> Any:
    if field.name in masks and (isinstance(value, list) or field.struct is not None):
        return "<something>"
    if isinstance(value, list):
        found = [_one(one, field, values, masks, where) for one in value]
        key = UNORDERED.get(f"{where}.{field.name}")
        return sorted(found, key=_order_by(key)) if key else found
    return _one(value, field, values, masks, where)


def _order_by(key: str) -> Callable[[Any], tuple[str, str]]:
    return lambda one: (str(one.get(key, "")), str(one))


def _one(
    value: Any, field: FieldSchema, values: Values, masks: Mapping[str, str], where: str
) -> Any:
    if value is None:
        return None
    if field.struct is not None:
        return _struct(value, field.struct, values, masks, where)
    if field.name == "error_code":
        return error_of(value).name
    if field.name in masks:
        return masked(value)
    if field.type == "records":
        return _records(value, values)
    if field.name == "port" or field.name.endswith("_port"):
        ports = {port: n for n, port in values.known.items() if n.startswith("port_")}
        return f"{{{ports[value]}}}" if value in ports else value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _bytes(bytes(value), values)
    return _scalar(values.put_back(value))


def masked(value: Any) -> str:
    """Whether there is something, without what it is."""
    if isinstance(value, bool):
        return "<bool>"
    if isinstance(value, (int, float)):
        return "<negative>" if value == -1 else "<number>"
    return "<text>" if value else "<empty>"


def _scalar(value: Any) -> Any:
    if isinstance(value, int) and value > TIME_FROM_MS and value < 2 * TIME_FROM_MS:
        return "<time>"
    if isinstance(value, str):
        return UUID.sub("<uuid>", value)
    return value


def _bytes(value: bytes, values: Values) -> Any:
    back = values.put_back(value)
    if isinstance(back, str):
        return back
    if len(value) == 16 and any(value) and not value.isascii():
        return "<id>"
    return value.decode() if value.isascii() else f"hex {value.hex()}"


def _records(value: Any, values: Values) -> Any:
    """Batches with their records; what cannot be read as its size."""
    data = memoryview(value)
    try:
        batches = parse_batches(data)
    except InvalidRecords as problem:
        return f"{len(data)} bytes: {problem.error.name}"
    out = [_batch(batch, values) for batch in batches]
    rest = len(data) - sum(batch.size_bytes for batch in batches)
    return [*out, f"{rest} bytes more"] if rest else out


def _batch(batch: Batch, values: Values) -> dict[str, Any]:
    times = (batch.base_timestamp, batch.max_timestamp)
    records = read_records(batch)
    return {
        "offsets": [batch.base_offset, batch.last_offset],
        "epoch": batch.leader_epoch,
        "attributes": batch.attributes,
        "times": [_scalar(values.put_back(time)) for time in times],
        "producer": [batch.producer_id, batch.producer_epoch, batch.base_sequence],
        "count": batch.record_count,
        "size_bytes": batch.size_bytes,
        "records": [[_text(x.key), _text(x.value), *map(str, x.headers)] for x in records],
    }


def _text(value: bytes | None) -> str | None:
    if value is None:
        return None
    shown = bytes(value[:40])
    text = shown.decode() if shown.isascii() else shown.hex()
    return text if len(value) <= 40 else f"{text}… {len(value)} bytes"
