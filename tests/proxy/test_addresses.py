"""Addresses in responses: every place is found, in every version; nothing else is changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kcluster.protocol import messages as m
from kcluster.protocol.apis import APIS, ApiKey, codec
from kcluster.protocol.codec.schema import FieldSchema, StructSchema, message_schema
from kcluster.protocol.framing import decode_response_frame, encode_response_frame
from kcluster.proxy.addresses import address_paths, names_none, rewrite

# What names a host and a port, and is no broker's address for clients.
NO_BROKERS = {
    "DescribeQuorumResponse.nodes.listeners": "controllers' listeners, which the proxy has not",
    "UpdateRaftVoterResponse.current_leader": "a controller, answered to a controller",
    "StreamsGroupHeartbeatResponse.partitions_by_user_endpoint.user_endpoint": "of applications",
    "StreamsGroupDescribeResponse.groups.members.user_endpoint": "of applications",
}


def structs_of(struct: StructSchema, path: str) -> Iterator[tuple[str, set[str]]]:
    yield path, {field.name for field in struct.fields}
    for field in struct.fields:
        if field.struct is not None:
            yield from structs_of(field.struct, f"{path}.{field.name}")


def test_addresses__every_host_and_port_of_the_schema_table_is_replaced_or_listed_above() -> None:
    found = {}
    for key, line in APIS.items():
        name = f"{line.name}Response"
        for path, fields in structs_of(message_schema(name).top, name):
            if any("host" in x for x in fields) and any("port" in x for x in fields):
                found[path] = key
    replaced = {
        ".".join((f"{APIS[key].name}Response", *path))
        for key, line in APIS.items()
        for version in range(line.all_versions[0], line.all_versions[1] + 1)
        for path, _ in address_paths(key, version)
    }
    assert set(found) - replaced == set(NO_BROKERS)
    assert replaced <= set(found)


VERSIONS = [
    (key, version)
    for key, line in APIS.items()
    for version in range(line.all_versions[0], line.all_versions[1] + 1)
    if address_paths(key, version)
]


def value_of(field: FieldSchema, version: int, cls: Any) -> Any:
    """A value of a field, with one element in each list."""
    if field.struct is not None:
        inner = filled(field.struct, version, cls)
        return [inner] if field.is_array else inner
    if field.is_array:
        return []
    return {"string": "old.example", "int32": 7, "uint16": 7}.get(field.type, field.default)


def filled(struct: StructSchema, version: int, cls: Any) -> Any:
    made = getattr(cls, struct.name, cls)
    return made(**{x.name: value_of(x, version, cls) for x in struct.fields if x.is_in(version)})


@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_addresses__each_version_comes_out_with_the_new_address(key: int, version: int) -> None:
    name = f"{APIS[key].name}Response"
    body = filled(message_schema(name).top, version, m.message_class(name))
    frame = b"".join(encode_response_frame(key, version, 5, body))[4:]
    assert not names_none(key, version, memoryview(frame))
    _, body = decode_response_frame(key, version, frame)
    asked = []

    def address_of(*place: Any) -> tuple[str, int]:
        asked.append(place)
        return "new.example", 9

    assert rewrite(key, version, body, address_of)
    assert asked == [(7, "old.example", 7)]
    frame = b"".join(encode_response_frame(key, version, 5, body))
    assert b"new.example" in frame
    (paths,) = address_paths(key, version)
    assert codec(key, version).name == APIS[key].name, paths


PRODUCE_WITH_ADDRESSES = [version for key, version in VERSIONS if key == ApiKey.PRODUCE]


@pytest.mark.parametrize("version", PRODUCE_WITH_ADDRESSES)
def test_addresses__the_last_bytes_of_an_ack_show_that_it_has_none(version: int) -> None:
    def shows_none(**fields: Any) -> bool:
        made = m.ProduceResponse(**fields)
        frame = b"".join(encode_response_frame(ApiKey.PRODUCE, version, 5, made))[4:]
        return names_none(ApiKey.PRODUCE, version, memoryview(frame))

    topics = [value_of(field, version, m.ProduceResponse)
              for field in message_schema("ProduceResponse").top.fields
              if field.name == "responses"]  # fmt: skip
    assert shows_none(responses=topics[0])
    assert not shows_none(responses=topics[0], throttle_time_ms=1)
    for port in (1, 255, 256, 9092, 9216, 65280, 65535):
        for rack in (None, "", "r"):
            end = m.ProduceResponse.NodeEndpoint(0, "h", port, rack)
            assert not shows_none(responses=topics[0], node_endpoints=[end]), (port, rack)


def test_addresses__an_entry_without_a_node_stays() -> None:
    body = m.FindCoordinatorResponse(error_code=15, node_id=-1, host="", port=-1)
    assert not rewrite(ApiKey.FIND_COORDINATOR, 2, body, lambda *_: ("x", 1))
    assert (body.host, body.port) == ("", -1)
