"""A small blocking client of Kafka's protocol, for measurements that librdkafka does not allow.

Owns: a connection, sending and receiving frames.  Never: retries.  Bodies are encoded by the
project's own codec, before timing starts.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from struct import Struct as Layout
from typing import Any, Final

from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.framing import decode_response_frame, encode_request_frame
from kcluster.protocol.records.records import Record, build_batch

LENGTH: Final = Layout(">i")
METADATA_VERSION: Final = 4
PRODUCE_VERSION: Final = 7
"""Versions that all peers and Kafka 4 serve."""
_WHO_IS_THERE: Final = bytes.fromhex("0000000f0003 0001 00000007 0001 62 00000000")
"""Metadata v1 without topics; the number of brokers follows the response's correlation id.  As
bytes, so that the time of a start does not include compiling a codec."""
ACKS_ALL: Final = -1


class Wire:
    """One connection."""

    def __init__(self, address: tuple[str, int], timeout_s: float = 10) -> None:
        self.socket = socket.create_connection(address, timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray()

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def ask(self, api_key: int, api_version: int, body: Any) -> Any:
        """Send a request, return the decoded answer."""
        self.socket.sendall(b"".join(encode_request_frame(api_key, api_version, 7, "bench", body)))
        return decode_response_frame(api_key, api_version, memoryview(self.frame())[4:])[1]

    def frame(self) -> bytes:
        """The next whole frame, its length included."""
        buffer = self._buffer
        while len(buffer) < 4 or len(buffer) < 4 + LENGTH.unpack_from(buffer)[0]:
            data = self.socket.recv(1 << 18)
            if not data:
                raise ConnectionResetError("closed by the broker")
            buffer += data
        size = 4 + LENGTH.unpack_from(buffer)[0]
        frame = bytes(buffer[:size])
        del buffer[:size]
        return frame


def address_of(bootstrap: str) -> tuple[str, int]:
    """The first address of a bootstrap list."""
    host, _, port = bootstrap.split(",")[0].strip().rpartition(":")
    return host, int(port)


def brokers_named(address: tuple[str, int]) -> int:
    """The number of brokers in a system's Metadata; 0 if there is no response."""
    try:
        with Wire(address, 5) as wire:
            wire.socket.sendall(_WHO_IS_THERE)
            brokers: int = LENGTH.unpack_from(wire.frame(), 8)[0]
    except OSError:
        return 0
    return brokers


def batch_of(records: int, size_bytes: int) -> bytes:
    """A batch of equal records with values of `size_bytes`, not idempotent."""
    value = bytes(size_bytes)
    return bytes(build_batch([Record(at, 0, None, value, ()) for at in range(records)]))


def produce_body(topic: str, partition: int, batch: bytes) -> m.ProduceRequest:
    """Append one batch, acks=all."""
    data = m.ProduceRequest.PartitionProduceData(index=partition, records=memoryview(batch))
    return m.ProduceRequest(
        acks=ACKS_ALL,
        timeout_ms=30_000,
        topic_data=[m.ProduceRequest.TopicProduceData(name=topic, partition_data=[data])],
    )


def produce_frame(topic: str, partition: int, batch: bytes) -> bytes:
    """The same as a frame."""
    body = produce_body(topic, partition, batch)
    return b"".join(encode_request_frame(ApiKey.PRODUCE, PRODUCE_VERSION, 7, "bench", body))


def request_frames(api_key: int, api_version: int, body: Any, ids: Iterable[int]) -> list[bytes]:
    """Frames of one request, each with its own correlation id."""
    return [
        b"".join(encode_request_frame(api_key, api_version, number, "bench", body))
        for number in ids
    ]
