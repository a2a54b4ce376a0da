"""Every byte of a frame is shown once, with its meaning; wrong bytes are shown in place."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.protocol import messages as m
from kcluster.protocol.apis import APIS, ApiKey
from kcluster.protocol.framing import encode_request_frame, encode_response_frame
from kcluster.protocol.hexdump import Dump, dump_frames, split_frames
from kcluster.protocol.records.records import Record, build_batch
from tests.protocol.generated import Generator
from tests.rig.requests import produce_request


def covers(dump: Dump, begin: int, end: int) -> bool:
    """Whether the spans are in order, without gaps, from `begin` to `end`."""
    for span in dump.spans:
        if span.offset != begin or span.size <= 0:
            return False
        begin += span.size
    return begin == end


def request_frame(api_key: int, version: int, body: Any) -> bytes:
    return b"".join(encode_request_frame(api_key, version, 7, "shop", body))


def response_frame(api_key: int, version: int, body: Any) -> bytes:
    return b"".join(encode_response_frame(api_key, version, 7, body))


@pytest.mark.parametrize("line", APIS.values(), ids=lambda line: line.name)
def test_hexdump__every_byte_of_every_message_once(line: Any) -> None:
    for version in range(line.all_versions[0], line.all_versions[1] + 1):
        made = Generator(f"{line.name}/{version}", wild=True)
        request = request_frame(line.key, version, made.message(line.name + "Request", version))
        answered = response_frame(line.key, version, made.message(line.name + "Response", version))
        for data, api in ((request, None), (answered, (line.key, version))):
            (dump,) = dump_frames(data, api)
            assert dump.error is None, (line.name, version, dump.error)
            assert covers(dump, 0, len(data))
            assert not any(span.type == "not read" for span in dump.spans)
            (bare,) = dump_frames(data[4:], api, sized=False)
            assert covers(bare, 0, len(data) - 4)
            assert [x.path for x in bare.spans] == [x.path for x in dump.spans[1:]]


@pytest.mark.parametrize("line", list(APIS.values())[::4], ids=lambda line: line.name)
def test_hexdump__every_byte_of_truncated_or_malformed_input(line: Any) -> None:
    version = line.all_versions[1]
    made = Generator(f"{line.name}/wrong", wild=False)
    data = request_frame(line.key, version, made.message(line.name + "Request", version))[4:]
    for end in range(len(data)):
        (dump,) = dump_frames(data[:end], sized=False)
        assert covers(dump, 0, end)
    for at in range(0, len(data), 3):
        (dump,) = dump_frames(data[:at] + b"\xff" + data[at + 1 :], sized=False)
        assert covers(dump, 0, len(data))


def produce(codec: int = 0, spoil: int | None = None) -> bytes:
    records = [Record(0, 5, b"k", b"hello", (("h", b"x"),)), Record(1, 6, None, b"you", ())]
    batch = bytearray(build_batch(records, compression=codec))
    if spoil is not None:
        batch[spoil] ^= 1
    body = produce_request("orders", 3, bytes(batch), timeout_ms=9)
    return request_frame(ApiKey.PRODUCE, 9, body)


def by_path(dump: Dump) -> dict[str, Any]:
    """The last span of each path: of a string that is the text, not the length."""
    return {span.path: span for span in dump.spans}


def test_hexdump__a_produce_request_down_to_its_headers() -> None:
    (dump,) = dump_frames(produce())
    assert dump.title == "Produce request v9"
    spans = by_path(dump)
    assert (spans["size"].value, spans["header.api_key"].note) == (len(produce()) - 4, "Produce")
    assert spans["header.client_id"].value == "shop"
    assert spans["topic_data[0].name"].value == "orders"
    where = "topic_data[0].partition_data[0].records[0]"
    assert spans[f"{where}.record_count"].value == 2
    assert spans[f"{where}.records[0].value"].value == b"hello"
    assert spans[f"{where}.records[0].headers[0].key"].value == b"h"
    assert spans[f"{where}.records[1].key_length"].value == -1
    assert not any(span.problem for span in dump.spans)


def test_hexdump__a_compressed_batch_shows_its_records() -> None:
    (dump,) = dump_frames(produce(codec=1))
    (span,) = [x for x in dump.spans if x.type.startswith("gzip")]
    assert "'hello', 'you'" in span.note
    assert by_path(dump)["topic_data[0].partition_data[0].records[0].attributes"].note == "gzip"


def test_hexdump__a_wrong_checksum_is_reported_at_its_position() -> None:
    (dump,) = dump_frames(produce(spoil=70))
    (span,) = [x for x in dump.spans if x.problem]
    assert span.path.endswith(".crc")
    assert "the bytes have" in span.problem


def test_hexdump__wrong_bytes_have_their_position() -> None:
    data = bytearray(produce())
    at = next(x.offset for x in dump_frames(bytes(data))[0].spans if x.path.endswith("[0].name"))
    data[at] = 0x7F
    (dump,) = dump_frames(bytes(data))
    assert dump.error is not None
    assert (dump.error.position, dump.error.field_path) == (at, "topic_data[0].name")
    assert dump.spans[-1].type == "not read"
    assert dump.spans[-1].problem == dump.error.reason
    assert covers(dump, 0, len(data))


def test_hexdump__errors_by_name_and_ids_as_kafka_writes_them() -> None:
    kind = m.MetadataResponse
    topic = kind.MetadataResponseTopic(error_code=6, name="orders", topic_id=bytes(15) + b"\1")
    data = response_frame(ApiKey.METADATA, 12, kind(topics=[topic]))
    (dump,) = dump_frames(data, (ApiKey.METADATA, 12))
    spans = by_path(dump)
    assert spans["topics[0].error_code"].note == "NOT_LEADER_OR_FOLLOWER"
    assert spans["topics[0].topic_id"].note == "AAAAAAAAAAAAAAAAAAAAAQ"


def test_hexdump__frames_of_a_stream() -> None:
    one = request_frame(ApiKey.HEARTBEAT, 4, m.HeartbeatRequest(group_id="g"))
    assert split_frames(one + one) == [(4, len(one) - 4), (len(one) + 4, len(one) - 4)]
    dumps = dump_frames(one + one)
    assert [dump.title for dump in dumps] == ["Heartbeat request v4"] * 2
    assert dumps[1].spans[0].offset == len(one)


def test_hexdump__a_frame_that_ends_too_soon() -> None:
    data = produce()[:-5]
    (dump,) = dump_frames(data)
    assert dump.spans[0].problem == f"{len(data) + 1} bytes claimed, {len(data) - 4} present"
    assert covers(dump, 0, len(data))
    assert dump.error is not None


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (bytes.fromhex("03e7 0000"), "there is no API 999"),
        (bytes.fromhex("0003 0063 00000001 ffff"), "Metadata has no version 99; it has 0 to 13"),
        (b"", "2 bytes needed, 0 left"),
    ],
)
def test_hexdump__invalid_input_is_refused(data: bytes, text: str) -> None:
    (dump,) = dump_frames(data)
    assert dump.error is not None
    assert text in dump.error.reason
    assert covers(dump, 0, len(data))


def test_hexdump__unknown_tagged_fields() -> None:
    data = bytearray(request_frame(ApiKey.HEARTBEAT, 4, m.HeartbeatRequest())[4:])
    data[-1:] = bytes.fromhex("01 63 03 616263")
    (dump,) = dump_frames(bytes(data), sized=False)
    assert dump.error is None
    (span,) = [x for x in dump.spans if x.type == "unknown tagged field"]
    assert span.value == b"abc"


def test_hexdump__old_message_sets() -> None:
    message = bytes.fromhex("0000000000000005 00000011 00000000 01 00 0000000000000007 ffffffff")
    message = message[:11] + bytes([4 + 2 + 8 + 4 + 4 + 2]) + message[12:] + b"\0\0\0\2hi"
    body = produce_request("t", 0, message, acks=0, timeout_ms=0)
    (dump,) = dump_frames(request_frame(ApiKey.PRODUCE, 3, body))
    spans = by_path(dump)
    where = "topic_data[0].partition_data[0].records[0]"
    assert spans[f"{where}.value"].value == b"hi"
    assert spans[f"{where}.timestamp"].value == 7
    assert "the bytes have" in spans[f"{where}.crc"].problem
