"""Responses as plain data, for comparing, recording and reading.

Owns: `plain`, and the rules for masking and sorting, each with its reason.  Never: compares.

A field with its default value is left out, so that versions without the field look the same.  A
masked value is shown as a word in angle brackets: only its presence is compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

import msgspec

from kcluster.conform.filling import Values
from kcluster.json_types import JsonObject
from kcluster.protocol.codec.primitives import Buffer
from kcluster.protocol.codec.schema import FieldSchema, StructSchema, message_schema
from kcluster.protocol.errors import error_of
from kcluster.protocol.messages import Message
from kcluster.protocol.records.batches import Batch, InvalidRecords, parse_batches
from kcluster.protocol.records.records import Record, read_records

LEFT_OUT: Final = object()
"""In place of a field whose rows are all of others."""
UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
TIME_FROM_MS: Final = 1_600_000_000_000

MASKED: Final[Mapping[str, str]] = {
    "error_message": "each project has its own wording",
    "batch_index_error_message": "as error_message",
    "acknowledge_error_message": "as error_message",
    "status_detail": "as error_message",
    "documentation": "each project has its own wording",
    "controller_id": "Kafka draws one for every response",
    "finalized_features_epoch": "an offset in the metadata log",
    "session_id": "drawn at random",
    "producer_id": "depends on earlier producers; only its sign is compared",
    "transaction_start_time_ms": "when it began; only its sign is compared",
    "leader_recovery_state": "unclean elections are not recorded in this field here",
}
"""Fields of which only the presence is compared: name, anywhere in a response -> the reason."""

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
    "StreamsGroupDescribeResponse.members": "member_id",
    "StreamsGroupHeartbeatResponse.partitions_by_user_endpoint": "user_endpoint",
    "ConsumerGroupDescribeResponse.members": "member_id",
    "ConsumerGroupDescribeResponse.topic_partitions": "topic_id",
    "ConsumerGroupHeartbeatResponse.topic_partitions": "topic_id",
    "DescribeLogDirsResponse.topics": "name",
    "DescribeLogDirsResponse.partitions": "partition_index",
    "AlterReplicaLogDirsResponse.results": "topic_name",
    "AlterReplicaLogDirsResponse.partitions": "partition_index",
    "DescribeTransactionsResponse.topics": "topic",
    "DescribeTransactionsResponse.partitions": "itself",
    "AddPartitionsToTxnResponse.results_by_topic_v3_and_below": "name",
    "AddPartitionsToTxnResponse.topic_results": "name",
    "AddPartitionsToTxnResponse.results_by_partition": "partition_index",
    "AddPartitionsToTxnResponse.results_by_transaction": "transactional_id",
    "ListTransactionsResponse.transaction_states": "transactional_id",
    "WriteTxnMarkersResponse.topics": "name",
    "WriteTxnMarkersResponse.partitions": "partition_index",
    "TxnOffsetCommitResponse.topics": "name",
    "FetchResponse.aborted_transactions": "first_offset",
    "DescribeProducersResponse.active_producers": "producer_id",
    "UpdateFeaturesResponse.results": "feature",
    "JoinGroupResponse.members": "member_id",
    "DescribeUserScramCredentialsResponse.credential_infos": "mechanism",
    "DescribeAclsResponse.resources": "resource_name",
    "DescribeAclsResponse.acls": "itself",
    "DeleteAclsResponse.matching_acls": "itself",
    "ShareFetchResponse.responses": "topic_id",
    "ShareFetchResponse.partitions": "partition_index",
    "ShareFetchResponse.node_endpoints": "node_id",
    "ShareAcknowledgeResponse.responses": "topic_id",
    "ShareAcknowledgeResponse.partitions": "partition_index",
}
"""Lists whose order comes from a hash table in Kafka -> the key to sort them by."""


LISTED: Final[Mapping[str, str]] = {
    "DescribeUserScramCredentialsResponse.results": "user",
    "ListConfigResourcesResponse.config_resources": "resource_name",
    "ListGroupsResponse.groups": "group_id",
    "ListTransactionsResponse.transaction_states": "transactional_id",
}
"""Lists of everything that a cluster has -> the name of each row.  In a cluster that others use as
well, rows that are not of the run of this case are left out, but for errors: such a row answers a
name that was asked for."""


def plain(
    api_name: str, message: Message, values: Values, more_masks: Mapping[str, str] = {}
) -> JsonObject:
    """A decoded response as plain data."""
    name = f"{api_name}Response"
    masks = {**MASKED, **more_masks}
    return _struct(message, message_schema(name).top, values, masks, name)


def _struct(
    message: Message, schema: StructSchema, values: Values, masks: Mapping[str, str], where: str
) -> JsonObject:
    out: JsonObject = {}
    defaults = _fields(type(message))
    for field in schema.fields:
        value = getattr(message, field.name)
        if values.version is None or field.is_in(values.version):  # a broker's id may be 0
            value = values.ids.field_to_case(field.name, value)
        if value == _default_of(defaults[field.name]):
            continue
        if field.name == "resource_name":
            value = values.ids.resource_to_case(getattr(message, "resource_type", 0), value)
        shown = _field(value, field, values, masks, where)
        if shown is not LEFT_OUT:
            out[field.name] = shown
    if "port" in out and "host" in out and "port" not in masks:
        address = (getattr(message, "host", ""), getattr(message, "port", 0))
        out["port"] = values.port_names.get(address, out["port"])
    return out


@cache
def _fields(kind: type[Message]) -> dict[str, msgspec.structs.FieldInfo]:
    return {field.name: field for field in msgspec.structs.fields(kind)}


def _default_of(field: msgspec.structs.FieldInfo) -> object:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return field.default


def _field(
    value: object, field: FieldSchema, values: Values, masks: Mapping[str, str], where: str
) -> object:
    key = LISTED.get(f"{where}.{field.name}")
    if key is not None and isinstance(value, list):
        value = [
            one
            for one in value
            if values.is_of_this_run(getattr(one, key)) or getattr(one, "error_code", None)
        ]
        if not value:
            return LEFT_OUT
    if field.name in masks and (isinstance(value, list) or field.struct is not None):
        return "<something>"
    if isinstance(value, list):
        found = [_one(one, field, values, masks, where) for one in value]
        key = UNORDERED.get(f"{where}.{field.name}")
        return sorted(found, key=_order_by(key)) if key else found
    return _one(value, field, values, masks, where)


def _order_by(key: str) -> Callable[[object], tuple[str, str]]:
    return lambda one: (str(one.get(key, "")) if isinstance(one, dict) else "", str(one))


def _one(
    value: object, field: FieldSchema, values: Values, masks: Mapping[str, str], where: str
) -> object:
    if value is None:
        return None
    if field.struct is not None:
        assert isinstance(value, Message)
        return _struct(value, field.struct, values, masks, where)
    if field.name in ("error_code", "acknowledge_error_code"):
        assert isinstance(value, int)
        return error_of(value).name
    if field.name in masks:
        return masked(value)
    if field.type == "records":
        assert isinstance(value, bytes | bytearray | memoryview)
        return _records(value, values, masks)
    if field.name == "port" or field.name.endswith("_port"):
        ports = {port: n for n, port in values.known.items() if "port_" in n}
        return f"{{{ports[value]}}}" if value in ports else value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _bytes(bytes(value), values)
    return _scalar(values.restore(value))


def masked(value: object) -> str:
    """A word for the kind of a value, without the value."""
    if isinstance(value, bool):
        return "<bool>"
    if isinstance(value, (int, float)):
        return "<negative>" if value == -1 else "<number>"
    return "<text>" if value else "<empty>"


def _scalar(value: object) -> object:
    if isinstance(value, int) and value > TIME_FROM_MS and value < 2 * TIME_FROM_MS:
        return "<time>"
    if isinstance(value, str):
        return UUID.sub("<uuid>", value)
    return value


def _bytes(value: bytes, values: Values) -> object:
    back = values.restore(value)
    if isinstance(back, str):
        return back
    if len(value) == 16 and any(value) and not value.isascii():
        return "<id>"
    return value.decode() if value.isascii() else f"hex {value.hex()}"


def _records(value: Buffer, values: Values, masks: Mapping[str, str]) -> object:
    """Batches with their records; invalid bytes by their size and error."""
    data = memoryview(value)
    try:
        batches = parse_batches(data)
        out = [_batch(batch, values, masks) for batch in batches]
    except InvalidRecords as problem:
        return f"{len(data)} bytes: {problem.error.name}"
    rest = len(data) - sum(batch.size_bytes for batch in batches)
    return [*out, f"{rest} bytes more"] if rest else out


def _batch(batch: Batch, values: Values, masks: Mapping[str, str]) -> JsonObject:
    times = (batch.base_timestamp, batch.max_timestamp)
    records = read_records(batch)
    shown = {
        "offsets": [batch.base_offset, batch.last_offset],
        "epoch": batch.leader_epoch,
        "attributes": batch.attributes,
        "times": ["<time>" if batch.is_control else _scalar(values.restore(x)) for x in times],
        "producer": [_producer(batch, values), batch.producer_epoch, batch.base_sequence],
        "count": batch.record_count,
        "size_bytes": batch.size_bytes,
        "records": [[_text(x.key), _text(x.value), *_headers(x, values)] for x in records],
    }
    return {name: masked(one) if name in masks else one for name, one in shown.items()}


def _headers(record: Record, values: Values) -> list[object]:
    return [values.restore(str(one)) for one in record.headers]


def _producer(batch: Batch, values: Values) -> int | str:
    is_saved = batch.producer_id == values.known.get("pid")
    return "{pid}" if is_saved else batch.producer_id


def _text(value: bytes | None) -> str | None:
    if value is None:
        return None
    shown = bytes(value[:40])
    text = shown.decode() if shown.isascii() else shown.hex()
    return text if len(value) <= 40 else f"{text}… {len(value)} bytes"
