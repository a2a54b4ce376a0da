"""Requests typed by hand and raw frames: a broker's responses to a client with only a socket."""

from __future__ import annotations

import socket
import struct
import time
from typing import Any

import pytest

from kcluster.handle.cluster import Cluster
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.framing import decode_response_frame, encode_request_frame
from kcluster.protocol.records.records import Record, build_batch
from tests.foreign_clients.real_clients import python_read
from tests.rig.patience import PATIENCE_S
from tests.rig.requests import produce_request

PRODUCE_VERSION = 12
NOW_MS = int(time.time() * 1_000)


def exchange(cluster: Cluster, broker_id: int, request: bytes) -> bytes:
    """Send bytes to a broker; the frame it answers with, without its length."""
    with socket.create_connection(cluster.plan.addresses[broker_id], timeout=PATIENCE_S) as sock:
        sock.sendall(request)
        stream = sock.makefile("rb")
        with stream:
            (size,) = struct.unpack(">i", stream.read(4))
            return stream.read(size)


def ask(cluster: Cluster, broker_id: int, api_key: ApiKey, version: int, body: Any) -> Any:
    request = b"".join(encode_request_frame(api_key, version, 7, "by hand", body))
    correlation_id, answer = decode_response_frame(
        api_key, version, exchange(cluster, broker_id, request)
    )
    assert correlation_id == 7
    return answer


def produce(cluster: Cluster, broker_id: int, batch: bytes, acks: int = -1) -> Any:
    """Send a batch to orders-0; the answer."""
    body = produce_request("orders", 0, batch, acks=acks)
    return ask(cluster, broker_id, ApiKey.PRODUCE, PRODUCE_VERSION, body)


def error_of(answer: Any) -> ErrorCode:
    return ErrorCode(answer.responses[0].partition_responses[0].error_code)


def batch_of(*values: bytes, **producer: Any) -> bytes:
    records = [Record(at, NOW_MS, None, value, ()) for at, value in enumerate(values)]
    return bytes(build_batch(records, **producer))


def test_wire__a_metadata_request_typed_by_hand_is_answered(own: Cluster) -> None:
    typed = bytes.fromhex(
        "0000001b"  # 27 bytes follow
        "0003 0000"  # Metadata, version 0
        "0000002a"  # correlation id 42
        "0005 68656c6c6f"  # client id: hello
        "00000001"  # one topic
        "0006 6f7264657273"  # orders
    )
    answer = exchange(own, 1, typed)

    def string(text: str) -> bytes:
        return struct.pack(">h", len(text)) + text.encode()

    expected = struct.pack(">ii", 42, 3)
    for broker_id, (host, port) in own.plan.addresses.items():
        expected += struct.pack(">i", broker_id) + string(host) + struct.pack(">i", port)
    expected += struct.pack(">ih", 1, 0) + string("orders")
    expected += struct.pack(">ihii", 1, 0, 0, 1)  # one partition: no error, index 0, leader 1
    expected += struct.pack(">iiii", 3, 1, 2, 3)  # replicas
    expected += struct.pack(">iiii", 3, 1, 2, 3)  # in sync
    assert answer == expected


def test_wire__a_broker_that_does_not_lead_names_the_leader(own: Cluster) -> None:
    batch = batch_of(b"v")
    assert error_of(produce(own, 1, batch)) == ErrorCode.NONE
    own.move("orders", 0, 3)
    answer = produce(own, 1, batch)
    assert error_of(answer) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    hint = answer.responses[0].partition_responses[0].current_leader
    assert (hint.leader_id, hint.leader_epoch) == (3, 1)
    (endpoint,) = answer.node_endpoints
    assert (endpoint.host, endpoint.port) == own.plan.addresses[3]
    assert error_of(produce(own, 3, batch)) == ErrorCode.NONE


def test_wire__a_batch_sent_twice_is_stored_once(own: Cluster) -> None:
    identity = ask(own, 2, ApiKey.INIT_PRODUCER_ID, 4, m.InitProducerIdRequest(None))
    assert identity.error_code == ErrorCode.NONE
    sent_by = {"producer_id": identity.producer_id, "producer_epoch": identity.producer_epoch}
    first = batch_of(b"a", b"b", base_sequence=0, **sent_by)
    for _ in range(2):
        answer = produce(own, 1, first)
        assert error_of(answer) == ErrorCode.NONE
        assert answer.responses[0].partition_responses[0].base_offset == 0
    own.kill(1)
    answer = produce(own, 2, first)  # the new leader recognizes it as well
    assert (error_of(answer), answer.responses[0].partition_responses[0].base_offset) == (0, 0)
    late = batch_of(b"d", base_sequence=3, **sent_by)
    assert error_of(produce(own, 2, late)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert error_of(produce(own, 2, batch_of(b"c", base_sequence=2, **sent_by))) == ErrorCode.NONE
    assert [record.value for record in python_read(own.bootstrap, "orders")] == [b"a", b"b", b"c"]


@pytest.mark.parametrize(
    ("acks", "error"), [(-1, ErrorCode.NONE), (1, ErrorCode.NONE), (2, 21), (-2, 21)]
)
def test_wire__acks_is_all_one_or_zero(own: Cluster, acks: int, error: int) -> None:
    assert error_of(produce(own, 1, batch_of(b"v"), acks)) == error


def test_wire__a_broken_batch_is_refused(own: Cluster) -> None:
    broken = bytearray(batch_of(b"value"))
    broken[-2] ^= 1
    assert error_of(produce(own, 1, bytes(broken))) == ErrorCode.CORRUPT_MESSAGE
