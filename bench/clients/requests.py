"""Requests over one connection: python -m bench.clients.requests BOOTSTRAP.

Owns: ApiVersions and Metadata, one at a time and 50 in flight.  Never: decodes while it times: all
responses have the same size; lengths and correlation ids are checked afterwards.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any, Final

from bench.clients.topics import make_topic
from bench.wire import LENGTH, METADATA_VERSION, Wire, address_of, request_frames
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey

IN_FLIGHT: Final = 50
API_VERSIONS_VERSION: Final = 3


def rate(
    address: tuple[str, int], key: int, version: int, body: Any, count: int, window: int
) -> float:
    """Thousand responses per second with `window` requests in flight."""
    with Wire(address) as wire:
        sock = wire.socket
        sock.sendall(request_frames(key, version, body, [0])[0])
        size = len(wire.frame())
        frames = request_frames(key, version, body, range(count))
        bursts = [b"".join(frames[at : at + window]) for at in range(0, count, window)]
        answers: list[bytes] = []
        burst_bytes = size * window
        began_s = time.perf_counter()
        for burst in bursts:
            sock.sendall(burst)
            missing = burst_bytes
            while missing > 0:
                data = sock.recv(1 << 18)
                if not data:
                    raise SystemExit("the connection was closed")
                missing -= len(data)
                answers.append(data)
        took_s = time.perf_counter() - began_s
    check(b"".join(answers), size, count)
    return count / took_s / 1e3


def check(answers: bytes, size: int, count: int) -> None:
    """Check that each response is complete and in order."""
    if len(answers) != size * count:
        raise SystemExit(f"{len(answers)} bytes of answers, not {count} times {size}")
    for number in range(count):
        length, correlation_id = (LENGTH.unpack_from(answers, number * size + x)[0] for x in (0, 4))
        if (length, correlation_id) != (size - 4, number):
            raise SystemExit(f"answer {number} has length {length}, id {correlation_id}")


def main() -> None:
    parser = argparse.ArgumentParser(description="ApiVersions and Metadata")
    parser.add_argument("bootstrap")
    parser.add_argument("--partitions", type=int, default=6)
    parser.add_argument("--count", type=int, default=5_000)
    options = parser.parse_args()
    topic, _ = make_topic(options.bootstrap, options.partitions)
    address = address_of(options.bootstrap)
    requests: dict[str, tuple[int, int, Any]] = {
        "api_versions": (
            ApiKey.API_VERSIONS,
            API_VERSIONS_VERSION,
            m.ApiVersionsRequest(client_software_name="bench", client_software_version="1"),
        ),
        "metadata": (
            ApiKey.METADATA,
            METADATA_VERSION,
            m.MetadataRequest(
                topics=[m.MetadataRequest.MetadataRequestTopic(name=topic)],
                allow_auto_topic_creation=False,
            ),
        ),
    }
    found = {}
    for name, question in requests.items():
        rate(address, *question, options.count // 10 // IN_FLIGHT * IN_FLIGHT, IN_FLIGHT)
        found[f"{name}_single"] = rate(address, *question, options.count, 1)
        count = 4 * options.count // IN_FLIGHT * IN_FLIGHT
        found[f"{name}_50"] = rate(address, *question, count, IN_FLIGHT)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
