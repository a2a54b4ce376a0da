"""From the death of a leader to the next ack: python -m bench.clients.failover BOOTSTRAP COMMAND…

Owns: the clock between the two.  Never: counts how long the kill command takes: the clock starts
when a connection to the leader ends.  `{leader}` in the command becomes the leader's id.
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

WARM_UP: Final = 50
DEATH_S: Final = 30.0
ACK_S: Final = 60
SETTINGS: Final = {
    "acks": "all",
    "linger.ms": 0,
    "message.timeout.ms": ACK_S * 1000,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 50,
    "topic.metadata.refresh.fast.interval.ms": 20,
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 50,
    **QUIET,
}


def one(producer: Any, topic: str) -> None:
    """Append one record and wait for its ack."""
    outcome: list[Any] = []
    producer.produce(topic, b"x", partition=0, on_delivery=lambda error, _: outcome.append(error))
    producer.flush(ACK_S)
    if outcome != [None]:
        raise SystemExit(f"a record was not acked: {outcome}")


def main() -> None:
    bootstrap, *command = sys.argv[1:]
    topic, leaders = make_topic(bootstrap, 1)
    leader, host, port = leaders[0]
    producer = Producer({"bootstrap.servers": bootstrap, **SETTINGS})
    for _ in range(WARM_UP):
        one(producer, topic)
    with socket.create_connection((host, port), DEATH_S) as watch:
        kill = subprocess.Popen(
            [word.replace("{leader}", str(leader)) for word in command],
            stdout=subprocess.DEVNULL,
        )
        try:
            alive = watch.recv(1)
        except ConnectionResetError:
            alive = b""
    began_s = time.perf_counter()
    if alive:
        raise SystemExit("the leader spoke instead of dying")
    one(producer, topic)
    took_ms = (time.perf_counter() - began_s) * 1e3
    try:
        kill.wait(ACK_S)
    except subprocess.TimeoutExpired:
        kill.kill()
    print(json.dumps({"failover_ms": took_ms, "leader": leader}))


if __name__ == "__main__":
    main()
