"""Every API and record in every version survives a round trip through both decoders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kcluster.protocol import messages as m
from kcluster.protocol.apis import APIS, codec, record_codec
from kcluster.protocol.codec.compiler import compile_decoder
from kcluster.protocol.codec.primitives import decode_carefully, min_size_bytes
from kcluster.protocol.codec.schema import StructSchema, message_names, message_schema, record_lines
from kcluster.protocol.errors import ProtocolError
from kcluster.protocol.messages import message_class
from tests.protocol.generated import Generator, visible
from tests.rig.requests import produce_request

PAIRS = [
    (line.name, line.key, version)
    for line in APIS.values()
    for version in range(line.all_versions[0], line.all_versions[1] + 1)
]
SEEDS = range(4)


def test_codec__has_every_api_of_both_releases() -> None:
    assert (len(APIS), len(PAIRS)) == (95, 368)


@pytest.mark.parametrize("api", [line.name for line in APIS.values()])
def test_codec__every_version_round_trips(api: str) -> None:
    for name, key, version in PAIRS:
        if name == api:
            found = codec(key, version)
            check(name + "Request", version, found.encode_request, found.decode_request)
            check(name + "Response", version, found.encode_response, found.decode_response)


def never_called(_buffer: object, _position: int = 0, /) -> Any:
    raise AssertionError("the compiled decoder gave up")


def check(
    name: str, version: int, encode: Callable[[Any], Any], decode: Callable[..., Any]
) -> None:
    schema, top = message_schema(name), message_class(name)
    fast = compile_decoder(name, version, on_failure=never_called)
    messages = [
        top(),
        *(Generator(f"{name} {version} {seed}", True).message(name, version) for seed in SEEDS),
    ]
    for message in messages:
        data = b"".join(encode(message))
        shifted = memoryview(bytearray(b"head" + data))
        expected = visible(message, schema, version)
        assert decode(data) == expected
        assert decode(shifted, 4) == expected
        assert fast(shifted, 4) == expected
        assert decode_carefully(schema, top, version, shifted, 4) == expected


@pytest.mark.parametrize("name", list(record_lines()))
def test_record_codec__every_version_round_trips(name: str) -> None:
    low, high = record_lines()[name].versions
    for version in range(low, high + 1):
        found = record_codec(name, version)
        check(name, version, found.encode_to_buffers, found.decode)
        message = Generator(name, False).message(name, version)
        stored = found.encode_prefixed(message)
        assert found.decode_prefixed(stored) == visible(message, message_schema(name), version)
        assert stored[2:] == found.encode(message)


def test_record_codec__keys_begin_with_their_type_and_values_with_their_version() -> None:
    key = record_codec("GroupMetadataKey", 0).encode_prefixed(m.GroupMetadataKey("g"))
    assert key == b"\x00\x02" + b"\x00\x01g"
    value = m.OffsetCommitValue(offset=5, metadata="m", commit_timestamp=7)
    assert record_codec("OffsetCommitValue", 3).encode_prefixed(value) == (
        b"\x00\x03" + bytes(7) + b"\x05" + b"\xff\xff\xff\xff" + b"\x00\x01m" + bytes(7) + b"\x07"
    )
    with pytest.raises(ProtocolError, match="2 instead of 1 before a OffsetCommitKey"):
        record_codec("OffsetCommitKey", 0).decode_prefixed(key)


def test_record_codec__a_tagged_struct_is_null_as_kafka_writes_it() -> None:
    """Elsewhere -1 stands for a null struct; in a tag it is a varint 0."""
    found = record_codec("ConsumerGroupMemberMetadataValue", 0)
    value = m.ConsumerGroupMemberMetadataValue(
        instance_id="", rack_id="", classic_member_metadata=None
    )
    assert found.encode(value).hex() == "010101010101ffffffff0101000100"
    assert found.decode(found.encode(value)) == value
    value.classic_member_metadata = value.ClassicMemberMetadata(5)
    assert found.encode(value).hex() == "010101010101ffffffff0101000701000000050100"
    assert found.decode(found.encode(value)) == value


def test_codec__no_array_has_elements_without_bytes() -> None:
    """So that a claimed count is always bounded by the bytes that remain."""

    def walk(struct: StructSchema, version: int, flexible: bool) -> None:
        for field in struct.fields:
            if field.struct is not None and field.is_in(version):
                walk(field.struct, version, flexible)
                if field.is_array:
                    assert min_size_bytes(field.struct, version, flexible) > 0, field.name

    for name in message_names():
        schema = message_schema(name)
        for version in range(schema.versions[0], schema.versions[1] + 1):
            walk(schema.top, version, schema.is_flexible(version))


def test_codec__records_are_neither_copied_in_nor_out() -> None:
    batch = bytearray(b"r" * 100)
    buffers = codec(0, 9).encode_request(produce_request("orders", 0, batch, timeout_ms=1000))
    assert buffers[1] is batch
    frame = bytearray(b"".join(buffers))
    decoded = codec(0, 9).decode_request(memoryview(frame))
    records = decoded.topic_data[0].partition_data[0].records
    assert records.obj is frame
    records[0] = 0
    assert frame[frame.index(b"rrr") - 1] == 0


def test_codec__records_may_be_a_list_of_buffers_or_of_things_with_a_buffer() -> None:
    class Batch:
        buffer = b"second"

    partition = m.FetchResponse.PartitionData(0, records=[b"first", Batch(), memoryview(b"third")])
    topic = m.FetchResponse.FetchableTopicResponse("orders", partitions=[partition])
    for version in (4, 11, 12, 17):
        data = b"".join(codec(1, version).encode_response(m.FetchResponse(responses=[topic])))
        decoded = codec(1, version).decode_response(data)
        assert decoded.responses[0].partitions[0].records == b"firstsecondthird"


def test_codec__unknown_tagged_fields_are_skipped_and_known_ones_read() -> None:
    request = m.FetchRequest(cluster_id="c", max_wait_ms=5)
    data = b"".join(codec(1, 12).encode_request(request))
    assert data.endswith(b"\x01\x00\x02\x02c")
    more = data[: -len(b"\x01\x00\x02\x02c")] + b"\x03\x00\x02\x02c\x09\x00\xff\x01\x01x"
    assert codec(1, 12).decode_request(more) == request
