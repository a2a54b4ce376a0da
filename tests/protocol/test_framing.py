"""Frames, wherever the stream is split, and their headers."""

from __future__ import annotations

import struct
import tracemalloc
from random import Random

import pytest

from kcluster.protocol import messages as m
from kcluster.protocol.apis import APIS, ApiKey, codec
from kcluster.protocol.errors import ErrorCode, ProtocolError
from kcluster.protocol.framing import (
    FrameReader,
    decode_request_header,
    decode_response_frame,
    encode_request_frame,
    encode_response_frame,
    frame_response,
)


def framed(*bodies: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(body)) + body for body in bodies)


# ------------------------------------------------------------------------------------- frames


def fed(reader: FrameReader, chunk: bytes | bytearray) -> list[memoryview]:
    """The frames that `chunk` completes."""
    frames: list[memoryview] = []
    reader.feed(chunk, frames)
    return frames


@pytest.mark.parametrize("seed", range(20))
def test_frame_reader__any_cut_of_the_stream_gives_the_same_frames(seed: int) -> None:
    rng = Random(seed)
    bodies = [rng.randbytes(rng.choice((0, 1, 3, 10, 1000, 40_000))) for _ in range(20)]
    stream = framed(*bodies)
    reader, found, at = FrameReader(1 << 20), [], 0
    while at < len(stream):
        size = rng.choice((1, 2, 3, 5, 100, 10_000, 100_000))
        found += [bytes(frame) for frame in fed(reader, stream[at : at + size])]
        at += size
    assert found == bodies


def test_frame_reader__each_frame_has_its_own_memory() -> None:
    chunk = bytearray(framed(b"one", b"two"))
    first, second = fed(FrameReader(100), chunk)
    chunk[:] = bytes(len(chunk))
    first[0] = 0
    assert (bytes(first), bytes(second)) == (b"\0ne", b"two")
    assert isinstance(first.obj, bytearray)
    assert first.obj is not second.obj


def test_frame_reader__a_big_frame_is_received_in_place() -> None:
    body = Random(1).randbytes(3_000_000)
    stream = framed(body, b"next")
    reader = FrameReader(1 << 24)
    assert reader.buffer_for_rest() is None
    assert fed(reader, stream[:1000]) == []
    at, frame = 1000, None
    while frame is None:
        room = reader.buffer_for_rest()
        if room is None:
            (frame, following) = fed(reader, stream[at:])
            assert bytes(following) == b"next"
            break
        count = min(len(room), 300_000)
        room[:count] = stream[at : at + count]
        at += count
        frame = reader.received(count)
    assert bytes(frame) == body
    assert reader.buffer_for_rest() is None


def test_frame_reader__memory_grows_with_received_bytes_not_with_the_claimed_size() -> None:
    tracemalloc.start()
    try:
        readers = [FrameReader(100 << 20) for _ in range(50)]
        for reader in readers:
            assert fed(reader, struct.pack(">i", 100 << 20) + b"x") == []
        assert tracemalloc.get_traced_memory()[0] < 50 * 5_000
        assert fed(readers[0], bytes(1 << 20)) == []
        assert tracemalloc.get_traced_memory()[0] < 5 << 20
        readers[0].forget()
        assert tracemalloc.get_traced_memory()[0] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("size", [-1, -(1 << 31), 101, (1 << 31) - 1])
def test_frame_reader__a_bad_length_is_an_error_after_the_frames_before_it(size: int) -> None:
    frames: list[memoryview] = []
    with pytest.raises(ProtocolError, match=f"frame of {size} bytes, limit 100"):
        FrameReader(100).feed(framed(b"good") + struct.pack(">i", size) + b"rest", frames)
    assert [bytes(frame) for frame in frames] == [b"good"]


def test_frame_reader__the_greatest_size_is_allowed() -> None:
    (frame,) = fed(FrameReader(100), framed(bytes(100)))
    assert len(frame) == 100


# ------------------------------------------------------------------------------------ headers


@pytest.mark.parametrize("client_id", [None, "", "producer-1", "ä€"])
def test_headers__every_api_and_version_round_trip(client_id: str | None) -> None:
    for key, line in APIS.items():
        for version in range(line.all_versions[0], line.all_versions[1] + 1):
            request = getattr(m, line.name + "Request")()
            buffers = encode_request_frame(key, version, 77, client_id, request)
            (frame,) = fed(FrameReader(1 << 20), b"".join(map(bytes, buffers)))
            header = decode_request_header(frame)
            assert (header.api_key, header.api_version) == (key, version)
            assert header.correlation_id == 77
            has_client_id = codec(key, version).request_header_version > 0
            assert header.client_id == (client_id if has_client_id else None)
            assert bytes(frame[header.body_position :]) == b"".join(
                map(bytes, codec(key, version).encode_request(request))
            )


def test_headers__only_controlled_shutdown_0_has_header_version_0() -> None:
    assert codec(ApiKey.CONTROLLED_SHUTDOWN, 0).request_header_version == 0
    assert codec(ApiKey.CONTROLLED_SHUTDOWN, 1).request_header_version == 1
    assert codec(ApiKey.METADATA, 8).request_header_version == 1
    assert codec(ApiKey.METADATA, 9).request_header_version == 2


def test_headers__the_bytes_of_a_flexible_request_and_response() -> None:
    buffers = encode_request_frame(ApiKey.HEARTBEAT, 4, 5, "me", m.HeartbeatRequest("g", 1, "m"))
    assert b"".join(buffers) == framed(
        b"\x00\x0c\x00\x04" + b"\x00\x00\x00\x05" + b"\x00\x02me" + b"\x00"
        b"\x02g" + b"\x00\x00\x00\x01" + b"\x02m" + b"\x00" + b"\x00"
    )
    answer = encode_response_frame(ApiKey.HEARTBEAT, 4, 5, m.HeartbeatResponse(0, 27))
    assert b"".join(answer) == framed(b"\x00\x00\x00\x05\x00" + b"\x00\x00\x00\x00\x00\x1b\x00")
    assert decode_response_frame(ApiKey.HEARTBEAT, 4, b"".join(answer)[4:]) == (
        5,
        m.HeartbeatResponse(0, 27),
    )


def test_headers__api_versions_answers_have_header_version_0_always() -> None:
    answer = m.ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    for version in (0, 3, 4):
        data = b"".join(encode_response_frame(ApiKey.API_VERSIONS, version, 9, answer))
        assert data[4:10] == b"\x00\x00\x00\x09\x00\x23"
        assert decode_response_frame(ApiKey.API_VERSIONS, version, data[4:]) == (9, answer)


def test_headers__a_request_of_an_unknown_api_still_has_a_header() -> None:
    start = struct.pack(">hhih", 1234, 7, 42, 2) + b"me"
    header = decode_request_header(start + b"body")
    assert (header.api_key, header.api_version, header.correlation_id) == (1234, 7, 42)
    assert (header.client_id, header.body_position) == ("me", 12)
    newer = decode_request_header(struct.pack(">hhih", 18, 99, 42, 2) + b"me\x00\x07new")
    assert (newer.api_version, newer.body_position) == (99, 13)


def test_headers__tagged_fields_of_a_header_are_skipped() -> None:
    start = struct.pack(">hhih", 3, 12, 1, -1)
    header = decode_request_header(start + b"\x01\x05\x02xy" + b"\x00\x01\x00\x00")
    assert header.body_position == 10 + 5
    assert codec(3, 12).decode_request(start + b"\x01\x05\x02xy" + b"\x00\x01\x00\x00", 15)
    body = b"".join(codec(12, 4).encode_response(m.HeartbeatResponse(1, 2)))
    frame = struct.pack(">i", 5) + b"\x01\x09\x01x" + body
    assert decode_response_frame(12, 4, frame) == (5, m.HeartbeatResponse(1, 2))


@pytest.mark.parametrize(
    ("frame", "position", "path"),
    [
        (b"", 0, ""),
        (b"\x00\x03\x00\x0c\x00\x00\x00\x01\x00", 0, ""),
        (struct.pack(">hhih", 3, 1, 1, 5) + b"abc", 8, "client_id"),
        (struct.pack(">hhih", 3, 1, 1, 2) + b"a\xff", 11, "client_id"),
        (struct.pack(">hhih", 3, 12, 1, 1) + b"a", 11, "tags"),
        (struct.pack(">hhih", 3, 12, 1, 1) + b"a\x01\x01\x09xx", 11, "tags"),
        (struct.pack(">hhih", 3, 12, 1, 1) + b"a\x01\xff\xff\xff\xff\xff\xff", 11, "tags"),
    ],
)
def test_headers__a_malformed_request_header_is_reported_with_its_position(
    frame: bytes, position: int, path: str
) -> None:
    with pytest.raises(ProtocolError) as caught:
        decode_request_header(frame)
    assert (caught.value.position, caught.value.field_path) == (position, path)


@pytest.mark.parametrize("frame", [b"", b"\0\0\0", b"\0\0\0\1", b"\0\0\0\1\1", b"\0\0\0\1\1\1\x09"])
def test_headers__a_malformed_response_header_is_a_protocol_error(frame: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_response_frame(12, 4, frame)


def test_frame_response__puts_a_header_before_a_kept_body_and_leaves_it_alone() -> None:
    found = codec(ApiKey.HEARTBEAT, 4)
    body = found.encode_response(m.HeartbeatResponse(0, 27))
    before = list(body)
    first = b"".join(frame_response(found, 1, body))
    assert body == before
    assert first == b"".join(encode_response_frame(12, 4, 1, m.HeartbeatResponse(0, 27)))


def test_frames__fetched_records_are_not_copied() -> None:
    batch = bytearray(b"r" * 1000)
    partition = m.FetchResponse.PartitionData(0, records=[batch])
    topic = m.FetchResponse.FetchableTopicResponse("orders", partitions=[partition])
    buffers = encode_response_frame(ApiKey.FETCH, 12, 3, m.FetchResponse(responses=[topic]))
    assert buffers[1] is batch
    assert int.from_bytes(bytes(buffers[0])[:4], "big") == sum(map(len, buffers)) - 4
