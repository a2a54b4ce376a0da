"""Addresses that are set after the start: clients reach brokers through a forwarder, as through the
host ports of a container."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.web.api.test_evidence import send
from tests.web.api_client import Api


@contextmanager
def forwarder(to: tuple[str, int]) -> Iterator[tuple[int, list[int]]]:
    """A port that forwards to an address; and a list with an entry per connection."""
    listener = socket.create_server(("127.0.0.1", 0))
    seen: list[int] = []
    pairs: list[socket.socket] = []

    def pump(source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            return  # one side has closed

    def accept() -> None:
        while True:
            try:
                inside, _ = listener.accept()
            except OSError:
                return
            outside = socket.create_connection(to, 5)
            seen.append(1)
            pairs.extend((inside, outside))
            for ends in ((inside, outside), (outside, inside)):
                threading.Thread(target=pump, args=ends, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()[1], seen
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for one in pairs:
            one.close()


@pytest.mark.clients
def test_advertised__clients_go_where_they_are_sent(api: Api, cluster: str) -> None:
    found = api.ok("GET", cluster)
    leader = found["partitions"][0]["leader"]
    broker = next(one for one in found["brokers"] if one["id"] == leader)
    path = f"{cluster}/brokers/{leader}/advertised"
    with forwarder((broker["host"], broker["port"])) as (port, seen):
        answer = api.ok("PUT", path, {"address": f"localhost:{port}"})
        assert f"localhost:{port}" in answer["bootstrap"].split(",")
        others = [x for x in found["bootstrap"].split(",") if not x.endswith(f":{broker['port']}")]
        send(api, cluster, 3, ",".join(others))
        assert seen
        # A restarted broker keeps it.
        api.ok("POST", f"{cluster}/actions", {"restart": leader})
        api.ok("POST", f"{cluster}/wait", {"until": "settled", "within": "20s"})
        shown = {one["id"]: (one["host"], one["port"]) for one in api.ok("GET", cluster)["brokers"]}
        assert shown[leader] == ("localhost", port)


def test_advertised__wrong_ones(api: Api, cluster: str) -> None:
    answer = api.ask("PUT", f"{cluster}/brokers/1/advertised", {"address": "localhost"})
    assert (answer.status, answer.value["problems"][0]["path"]) == (422, "address")
    answer = api.ask("PUT", f"{cluster}/brokers/9/advertised", {"address": "localhost:1"})
    assert answer.status == 404


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("localhost:99999", "the port of an address for clients is from 1 to 65535"),
        ("localhost:0", "the port of an address for clients is from 1 to 65535"),
        ("0.0.0.0:9092", "clients cannot connect to it"),
        ("", "is not an address like"),
    ],
)
def test_advertised__an_unusable_one_is_refused_at_once(
    api: Api, cluster: str, address: str, reason: str
) -> None:
    answer = api.ask("PUT", f"{cluster}/brokers/1/advertised", {"address": address})
    assert (answer.status, answer.value["problems"][0]["path"]) == (422, "address")
    assert reason in answer.value["problems"][0]["text"]
