"""From the death of a leader to the next ack: python -m bench.clients.failover BOOTSTRAP COMMAND…

Owns: the clock between the two.  Never: counts the time of the kill command: the clock starts when
a connection to the leader ends.  `{leader}` in the command becomes the leader's id.

Two clients wait for that ack.  One polls another broker's Metadata every few ms: it measures the
cluster.  The other is librdkafka, which looks for new leaders once per second, whatever its
settings: it measures what a user sees.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from typing import Any, Final

from confluent_kafka import Producer

from bench.clients.topics import QUIET, make_topic
from bench.wire import METADATA_VERSION, PRODUCE_VERSION, Wire, batch_of, produce_body
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey

PARTITIONS: Final = 6
"""Enough that every broker leads some, so that the clients know all brokers."""
WARM_UP: Final = 60
DEATH_S: Final = 30.0
ACK_S: Final = 60
POLL_S: Final = 0.005
SETTINGS: Final = {
    "acks": "all",
    "linger.ms": 0,
    "message.timeout.ms": ACK_S * 1000,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 50,
    "topic.metadata.refresh.fast.interval.ms": 20,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 50,
    **QUIET,
}


class Librdkafka:
    """Sends one record at a time; `acked_s`: when the last one was acked."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.acked_s: float | None = None
        self._topic = topic
        self._producer = Producer({"bootstrap.servers": bootstrap, **SETTINGS})

    def send(self, partition: int) -> None:
        self.acked_s = None
        self._producer.produce(
            self._topic, b"x", partition=partition, on_delivery=self._on_delivery
        )

    def poll(self) -> None:
        self._producer.poll(0)

    def wait(self) -> float:
        """When the ack came."""
        self._producer.flush(ACK_S)
        if self.acked_s is None:
            raise SystemExit("librdkafka got no ack")
        return self.acked_s

    def _on_delivery(self, error: Any, _: Any) -> None:
        if error is not None:
            raise SystemExit(f"a record was not acked: {error}")
        self.acked_s = time.perf_counter()


class MetadataPoller:
    """A client that polls the Metadata of a live broker for the leader of partition 0."""

    def __init__(self, topic: str, living: tuple[str, int]) -> None:
        self._topic = topic
        self._wires = {living: Wire(living)}
        self._living = living
        self._body = produce_body(topic, 0, batch_of(1, 1))
        self._request = m.MetadataRequest(
            topics=[m.MetadataRequest.MetadataRequestTopic(name=topic)],
            allow_auto_topic_creation=False,
        )

    def leader(self) -> tuple[str, int] | None:
        """The address of partition 0's leader in the live broker's Metadata."""
        wire = self._wires[self._living]
        answer = wire.ask(ApiKey.METADATA, METADATA_VERSION, self._request)
        leader_address = {x.partition_index: x.leader_id for x in answer.topics[0].partitions}.get(
            0, -1
        )
        return next(((x.host, x.port) for x in answer.brokers if x.node_id == leader_address), None)

    def is_acked(self, address: tuple[str, int]) -> bool:
        """Whether the broker at this address acks a record."""
        if address not in self._wires:
            self._wires[address] = Wire(address)
        answer = self._wires[address].ask(ApiKey.PRODUCE, PRODUCE_VERSION, self._body)
        return not answer.responses[0].partition_responses[0].error_code


def die(command: list[str], leader: int, address: tuple[str, int]) -> Any:
    """Run the kill command; returns its process when the leader's connections are gone."""
    with socket.create_connection(address, DEATH_S) as watch:
        killing = subprocess.Popen(
            [word.replace("{leader}", str(leader)) for word in command], stdout=subprocess.DEVNULL
        )
        try:
            alive = watch.recv(1)
        except ConnectionResetError:
            alive = b""
    if alive:
        raise SystemExit("the leader sent data instead of dying")
    return killing


def main() -> None:
    bootstrap, *command = sys.argv[1:]
    topic, leaders = make_topic(bootstrap, PARTITIONS)
    leader = leaders[0][0]
    dead = leaders[0][1:]
    living = next((host, port) for number, host, port in leaders.values() if number != leader)
    user, poller = Librdkafka(bootstrap, topic), MetadataPoller(topic, living)
    for at in range(WARM_UP):
        user.send(at % PARTITIONS)
        user.wait()
    if not poller.is_acked(poller.leader() or dead):
        raise SystemExit("the leader does not ack a record")
    killing = die(command, leader, dead)
    began_s = time.perf_counter()
    user.send(0)
    while time.perf_counter() - began_s < ACK_S:
        leader_address = poller.leader()
        if (
            leader_address is not None
            and leader_address != dead
            and poller.is_acked(leader_address)
        ):
            break
        user.poll()
        time.sleep(POLL_S)
    acked_s = time.perf_counter()
    user_s = user.wait()
    try:
        killing.wait(ACK_S)
    except subprocess.TimeoutExpired:
        killing.kill()
    took_ms = {"cluster_ms": (acked_s - began_s) * 1e3, "user_ms": (user_s - began_s) * 1e3}
    print(json.dumps(took_ms))


if __name__ == "__main__":
    main()
