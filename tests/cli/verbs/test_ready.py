"""What a client may rely on from the ready line on: its acked records are in the verdict."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kcluster.config.topology.model import Topology
from kcluster.handle.cluster import Cluster
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.framing import decode_response_frame, encode_request_frame
from tests.cli.conftest import Up
from tests.rig.patience import PATIENCE_S
from tests.rig.requests import batch, produce_request

VERSION = 9
RECORDS = 20
CLUSTERS = 3


class Producer:
    """Produces a record per request, with acks=1, on one connection."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.acked = 0
        self.socket = socket.create_connection(address, timeout=10)

    def send(self) -> None:
        """Send a record, and count it if it is acked."""
        body = produce_request("orders", 0, batch(b"order"), acks=1)
        frame = encode_request_frame(ApiKey.PRODUCE, VERSION, 1, "shop", body)
        self.socket.sendall(b"".join(frame))
        size = int.from_bytes(self.socket.recv(4, socket.MSG_WAITALL), "big")
        answer = self.socket.recv(size, socket.MSG_WAITALL)
        response = decode_response_frame(ApiKey.PRODUCE, VERSION, answer)[1]
        error = response.responses[0].partition_responses[0].error_code
        self.acked += error == ErrorCode.NONE

    def close(self) -> None:
        self.socket.close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_ready__a_client_that_was_there_before_is_in_the_verdict() -> None:
    """It connects as soon as anything listens, and does not wait for the ready line."""
    port = free_port()
    producers: list[Producer] = []
    enough, opened = threading.Event(), threading.Event()

    def produce() -> None:
        while not producers:
            try:
                producers.append(Producer(("127.0.0.1", port)))
            except ConnectionRefusedError:
                continue
        while not opened.is_set() or producers[0].acked < RECORDS:
            producers[0].send()
        producers[0].close()
        enough.set()

    thread = threading.Thread(target=produce)
    thread.start()
    topics = {"orders": {"partitions": 1}}
    with Cluster(Topology.of(brokers=[{"id": 1, "port": port}], topics=topics)) as cluster:
        opened.set()
        assert enough.wait(PATIENCE_S)
        verdict = cluster.verdict()
    thread.join()
    assert (verdict.outcome, verdict.acked) == ("valid", producers[0].acked)


def test_ready__what_is_acked_right_after_the_ready_line_is_in_the_verdict(
    start_up: Callable[..., Up], kcluster: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    """Three clusters start at once, so that the machine is busy."""
    topics = "brokers: [{id: 1}]\ntopics: {orders: {}}\n"
    (tmp_path / "topology.yaml").write_text(topics)
    acked: dict[str, int] = {}

    def use(name: str) -> None:
        up = start_up("--base-port", "0", "--name", name, "--profile", "fast")
        host, port = up.bootstrap.split(":")
        producer = Producer((host, int(port)))
        for _ in range(RECORDS):
            producer.send()
        producer.close()
        acked[name] = producer.acked

    threads = [threading.Thread(target=use, args=(f"ready-{n}",)) for n in range(CLUSTERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(acked) == CLUSTERS
    for name, count in acked.items():
        verdict: dict[str, Any] = json.loads(kcluster("verdict", "--name", name, "--json")[1])
        assert (verdict["outcome"], verdict["acked"]) == ("valid", count), name
        assert count == RECORDS
