"""Any bytes give a message or a ProtocolError, in bounded memory, and both decoders agree."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcluster.protocol import messages as m
from kcluster.protocol.apis import APIS, codec, record_codec
from kcluster.protocol.codec.primitives import decode_carefully, uvarint
from kcluster.protocol.codec.schema import message_schema
from kcluster.protocol.errors import ProtocolError
from kcluster.protocol.messages import message_class
from tests.protocol.generated import Generator

Bytes = bytes | memoryview
NAMES = [line.name for line in APIS.values()]


def outcome(decode: Callable[..., Any], *arguments: Any) -> Any:
    """The message, or the error of the bytes."""
    try:
        return decode(*arguments)
    except ProtocolError as error:
        return (error.reason, error.position, error.field_path)


def check(name: str, version: int, decode: Callable[..., Any], data: Bytes) -> bool:
    """Both decoders on the same bytes; whether they are a message."""
    schema, top = message_schema(name), message_class(name)
    fast = outcome(decode, data, 0)
    careful = outcome(decode_carefully, schema, top, version, data, 0)
    assert fast == careful or repr(fast) == repr(careful)  # nan is not equal to itself
    failed = isinstance(fast, tuple)
    assert not failed or 0 <= fast[1] <= len(data)
    return not failed


def cases(name: str) -> Iterator[tuple[str, int, Callable[..., Any], Callable[..., Any]]]:
    line = next(line for line in APIS.values() if line.name == name)
    low, high = line.all_versions
    for version in sorted({low, (low + high) // 2, high}):
        found = codec(line.key, version)
        yield name + "Request", version, found.encode_request, found.decode_request
        yield name + "Response", version, found.encode_response, found.decode_response


@pytest.mark.parametrize("name", NAMES)
def test_fuzz__mutated_and_cut_messages(name: str) -> None:
    for kind, version, encode, decode in cases(name):
        rng = Random(f"{kind} {version}")
        for seed in range(2):
            message = Generator(f"{kind} {seed}", wild=False).message(kind, version)
            data = b"".join(encode(message))
            for _ in range(8):
                check(kind, version, decode, mutated(data, rng))
            assert check(kind, version, decode, data)


def mutated(data: bytes, rng: Random) -> bytes:
    found = bytearray(data[:3000])
    choice = rng.randrange(4)
    if choice == 0:
        return bytes(found[: rng.randrange(len(found) + 1)])
    for _ in range(rng.choice((1, 1, 3))):
        if found:
            at = rng.randrange(len(found))
            found[at] = rng.choice((0, 1, 2, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    if choice == 1:
        del found[(at := rng.randrange(len(found) + 1)) : at + rng.randrange(4)]
    if choice == 2:
        found[rng.randrange(len(found) + 1) :] += rng.randbytes(rng.randrange(6))
    return bytes(found)


@pytest.mark.parametrize("name", NAMES)
def test_fuzz__random_bytes(name: str) -> None:
    for kind, version, _, decode in cases(name):
        rng = Random(f"random {kind} {version}")
        for size in (0, 1, 2, 7, 20, 60):
            check(kind, version, decode, rng.randbytes(size))
            check(kind, version, decode, bytes(rng.choice((0, 1, 255)) for _ in range(size)))


def test_fuzz__every_cut_of_a_message_that_is_read_is_an_error() -> None:
    request = Generator("cut", wild=False).message("ProduceRequest", 9)
    data = b"".join(codec(0, 9).encode_request(request))
    for size in range(len(data)):
        assert not check("ProduceRequest", 9, codec(0, 9).decode_request, data[:size])
        assert not check("ProduceRequest", 9, codec(0, 9).decode_request, memoryview(data)[:size])


@settings(max_examples=150, deadline=None, derandomize=True)
@given(data=st.binary(max_size=200), version=st.integers(0, 13))
def test_fuzz__produce_requests_found_by_hypothesis(data: Bytes, version: int) -> None:
    check("ProduceRequest", version, codec(0, version).decode_request, data)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(data=st.binary(max_size=200), version=st.integers(0, 4))
def test_fuzz__stored_offsets_found_by_hypothesis(data: Bytes, version: int) -> None:
    decode = record_codec("OffsetCommitValue", version).decode
    check("OffsetCommitValue", version, decode, data)


# ------------------------------------------------------------------------------ error messages


def failure(api_key: int, version: int, data: Bytes, kind: str = "request") -> tuple[str, int, str]:
    found = codec(api_key, version)
    with pytest.raises(ProtocolError) as caught:
        (found.decode_request if kind == "request" else found.decode_response)(data)
    return (caught.value.reason, caught.value.position, caught.value.field_path)


START = b"\x00\xff\xff\x00\x00\x00\x64"  # Produce v9: no transactional id, acks=-1, 100 ms


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", ("the bytes end inside a varint", 0, "transactional_id")),
        (b"\x00\xff", ("2 bytes needed, 1 left", 1, "acks")),
        (START + b"\x00", ("null is not allowed here", 7, "topic_data")),
        (START + b"\x09\x01", ("8 elements in 1 bytes", 7, "topic_data")),
        (START + b"\x02\x00\x01\x00", ("null is not allowed here", 8, "topic_data[0].name")),
        (START + b"\x02\x03a\xff\x01\x00", ("not UTF-8", 10, "topic_data[0].name")),
        (START + b"\x02\x09abcdefg", ("8 bytes claimed, 7 left", 8, "topic_data[0].name")),
        (
            START + b"\x02\x02a\x02\x00\x00\x00\x07\x90\x01abc",
            ("143 bytes claimed, 3 left", 15, "topic_data[0].partition_data[0].records"),
        ),
        (
            START + b"\x02\xff\xff\xff\xff\xff\x01",
            ("varint of more than 31 bits", 8, "topic_data[0].name"),
        ),
        (
            START + b"\x02" + uvarint(40_001) + b"x" * 50_000,
            ("string of 40000 bytes", 8, "topic_data[0].name"),
        ),
        (START + b"\x01\x05", ("5 tagged fields in 0 bytes", 9, "tags")),
        (START + b"\x01\x01\x00\x09a", ("tag 0 of 9 bytes, 1 left", 11, "tags")),
    ],
)
def test_protocol_error__names_the_mistake_its_position_and_its_field(
    data: bytes, expected: tuple[str, int, str]
) -> None:
    assert failure(0, 9, data) == expected


def test_protocol_error__of_a_tagged_field_names_the_field() -> None:
    data = b"".join(codec(1, 12).encode_request(m.FetchRequest(cluster_id="abc")))
    assert data.endswith(b"\x01\x00\x04\x04abc")
    wrong = data[:-5] + b"\x05\x04abcd"
    assert failure(1, 12, wrong) == (
        "tag 0 is not of the 5 bytes it claims",
        len(wrong) - 1,
        "cluster_id",
    )


def test_protocol_error__bytes_after_a_response_but_not_after_a_request() -> None:
    data = b"".join(codec(12, 4).encode_response(m.HeartbeatResponse(0, 27)))
    expected = ("2 bytes follow the message", len(data), "")
    assert failure(12, 4, data + b"ab", "response") == expected
    # As a 4.4.0 broker: AbstractRequest.parseRequest does not look at what is left.
    request = b"".join(codec(12, 4).encode_request(m.HeartbeatRequest("g", 1, "m")))
    assert codec(12, 4).decode_request(request + b"ab") == m.HeartbeatRequest("g", 1, "m")


def test_limits__a_claimed_size_is_not_allocated() -> None:
    """Each of these claims up to 2 GiB."""
    huge = uvarint((1 << 31) - 1)
    claims = [
        (3, 12, huge + b"\x00" * 20),  # topics
        (3, 12, b"\x02" + b"a" * 16 + huge),  # a topic's name
        (8, 1, b"\x00\x01g" + b"\x00\x00\x00\x01" + b"\x00\x01m" + b"\x7f\xff\xff\xff"),
        (74, 1, huge + b"\x01\x02"),  # an array of bytes
        (43, 2, b"\x00" + b"\x02\x02t" + huge + b"\x00\x00"),  # an array of integers
        (0, 9, START + b"\x02\x02a\x02\x00\x00\x00\x07" + huge + b"abc"),  # records
        (0, 9, START + b"\x01" + huge),  # tags
        (0, 9, START + b"\x01\x01\x07" + huge),  # a tag's size
    ]
    for key, version, data in claims:
        failure(key, version, data)  # imports and compiles
    tracemalloc.start()
    for key, version, data in claims:
        failure(key, version, data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000
