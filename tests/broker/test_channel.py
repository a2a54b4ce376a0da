"""The channel of a broker that consists only of its image."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any

import pytest

import kcluster.broker.handlers  # noqa: F401  # registers what is served
from kcluster.broker.channel import MAX_CACHED_ANSWERS, Channel
from kcluster.contract import Reply, Request
from kcluster.metadata.image import MetadataImage
from kcluster.metadata.records import TopicRecord
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey, codec
from kcluster.protocol.errors import ErrorCode, ProtocolError
from kcluster.protocol.framing import decode_response_frame, encode_request_frame
from kcluster.protocol.releases import latest


class Broker:
    def __init__(self) -> None:
        self.image = MetadataImage()
        self.release = latest()
        self.quotas = SimpleNamespace(is_active=False)
        self.access: object | None = None


def frame_of(api_key: int, version: int, correlation_id: int, body: Any) -> memoryview:
    sent = b"".join(encode_request_frame(api_key, version, correlation_id, "test", body))
    return memoryview(bytearray(sent))[4:]


def metadata(correlation_id: int, topic: str | None = None) -> memoryview:
    topics = None if topic is None else [m.MetadataRequest.MetadataRequestTopic(name=topic)]
    return frame_of(ApiKey.METADATA, 9, correlation_id, m.MetadataRequest(topics=topics))


def receive(channel: Channel, frame: memoryview, connection_id: int = 1) -> Any:
    return channel.receive(frame, connection_id, "10.0.0.1", 5)


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def channel(broker: Broker) -> Channel:
    return Channel(broker)


def test_receive__returns_the_request_with_its_header_fields(channel: Channel) -> None:
    request = receive(channel, metadata(77, "orders"))
    assert isinstance(request, Request)
    assert (request.api_key, request.api_version, request.correlation_id) == (3, 9, 77)
    assert (request.client_id, request.client_host, request.arrived_ms) == ("test", "10.0.0.1", 5)
    assert request.body.topics[0].name == "orders"


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ((999, 0), "API key 999 is not served"),
        ((ApiKey.ALTER_PARTITION, 3), "API key 56 is not served"),
        ((ApiKey.FETCH, 0), r"FETCH version 0 is not served \(4 to 18 are\)"),
        ((ApiKey.PRODUCE, -1), "PRODUCE version -1"),
    ],
)
def test_receive__an_unserved_api_closes_the_connection(
    channel: Channel, header: tuple[int, int], words: str
) -> None:
    with pytest.raises(ProtocolError, match=words):
        receive(channel, memoryview(bytearray(struct.pack(">hhih", *header, 7, -1))))


@pytest.mark.parametrize("version", [6, 99, -1])
def test_receive__an_unserved_api_versions_version_is_answered_as_0(
    channel: Channel, version: int
) -> None:
    # Bytes of 4.4.0.
    frame = struct.pack(">hhih", ApiKey.API_VERSIONS, version, 7, -1) + b"\0"
    answer = receive(channel, memoryview(bytearray(frame)))
    assert b"".join(answer).hex() == "0000001000000007002300000001001200000005"


def test_receive__bytes_behind_the_body_are_ignored_as_4_3_1_does(channel: Channel) -> None:
    frame = memoryview(bytearray(metadata(1)) + b"zz")
    assert isinstance(receive(channel, frame), Request)


def test_receive__an_api_is_compiled_once(channel: Channel) -> None:
    receive(channel, metadata(1, "orders"))
    compiled = codec(ApiKey.METADATA, 9).decode_request
    receive(channel, metadata(2, "payments"))
    assert codec(ApiKey.METADATA, 9).decode_request is compiled


def test_answer__without_a_body_sends_no_bytes(channel: Channel) -> None:
    request = receive(channel, metadata(1))
    assert channel.answer(Reply(request, None)) == []


def test_cache__with_an_authorizer_answers_depend_on_the_client(broker: Broker) -> None:
    broker.access = object()
    channel = Channel(broker)
    request = receive(channel, metadata(1))
    channel.answer(Reply(request, m.MetadataResponse(cluster_id="c")))
    assert isinstance(receive(channel, metadata(2)), Request)


def test_cache__an_equal_request_gets_the_same_bytes_except_correlation_id(
    channel: Channel,
) -> None:
    request = receive(channel, metadata(1))
    first = b"".join(channel.answer(Reply(request, m.MetadataResponse(cluster_id="c"))))
    second = b"".join(receive(channel, metadata(2), connection_id=2))
    assert second[4:8] == struct.pack(">i", 2)
    assert second[:4] + second[8:] == first[:4] + first[8:]
    assert decode_response_frame(ApiKey.METADATA, 9, second[4:])[1].cluster_id == "c"
    assert isinstance(receive(channel, metadata(3, "orders")), Request), "another request"


def test_cache__is_cleared_when_the_image_changes(channel: Channel, broker: Broker) -> None:
    channel.answer(Reply(receive(channel, metadata(1)), m.MetadataResponse()))
    broker.image.apply(TopicRecord("orders", bytes(16)))
    assert isinstance(receive(channel, metadata(2)), Request)


def test_cache__an_answer_after_an_image_change_is_of_the_new_image(
    channel: Channel, broker: Broker
) -> None:
    request = receive(channel, metadata(1))
    broker.image.apply(TopicRecord("orders", bytes(16)))
    channel.answer(Reply(request, m.MetadataResponse()))
    assert not isinstance(receive(channel, metadata(2)), Request)


def test_cache__does_not_store_answers_with_errors(channel: Channel) -> None:
    topic = m.MetadataResponse.MetadataResponseTopic(
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name="orders"
    )
    request = receive(channel, metadata(1, "orders"))
    channel.answer(Reply(request, m.MetadataResponse(topics=[topic])))
    assert isinstance(receive(channel, metadata(2, "orders")), Request)


def test_cache__is_bounded(channel: Channel) -> None:
    for at in range(MAX_CACHED_ANSWERS + 10):
        request = receive(channel, metadata(at, f"topic-{at}"))
        channel.answer(Reply(request, m.MetadataResponse()))
    assert len(channel._answers) == MAX_CACHED_ANSWERS


def test_cache__a_closed_connection_leaves_nothing_behind(channel: Channel) -> None:
    receive(channel, metadata(1))
    channel.connection_closed(1)
    assert channel._questions == {}


LONG = "d" * 32_767


def test_answer__one_that_repeats_too_long_a_name_becomes_an_error(channel: Channel) -> None:
    entry = m.AlterClientQuotasRequest.EntryData(
        [m.AlterClientQuotasRequest.EntityData(LONG, None)], []
    )
    body = m.AlterClientQuotasRequest(entries=[entry])
    request = receive(channel, frame_of(ApiKey.ALTER_CLIENT_QUOTAS, 0, 9, body))
    answer = m.AlterClientQuotasResponse
    named = [answer.EntityData(LONG, None)]
    said = answer(entries=[answer.EntryData(42, f"{LONG} is not a kind of client", named)])
    frame = b"".join(channel.answer(Reply(request, said)))
    number, decoded = decode_response_frame(ApiKey.ALTER_CLIENT_QUOTAS, 0, frame[4:])
    (entry,) = decoded.entries
    assert number == 9
    assert entry.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("version", [1, 2])
def test_answer__one_without_a_place_for_errors_closes_the_connection(
    channel: Channel, version: int
) -> None:
    body = m.DescribeLogDirsRequest(topics=None)
    request = receive(channel, frame_of(ApiKey.DESCRIBE_LOG_DIRS, version, 9, body))
    directory = m.DescribeLogDirsResponse.DescribeLogDirsResult(log_dir=LONG + "d")
    with pytest.raises(ProtocolError, match="a string of 32,768 bytes"):
        channel.answer(Reply(request, m.DescribeLogDirsResponse(results=[directory])))
