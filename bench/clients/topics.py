"""The topic under load, and its leaders: python -m bench.clients.topics BOOTSTRAP.

Owns: creating it, waiting until each partition has a leader.  Never: times anything.
As a program it prints the name of a new `topic`.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from typing import Any, Final

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.wire import Wire, address_of
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey

QUIET: Final = {"log_level": 0}
WAIT_S: Final = 60.0
SETTLE_S: Final = 1.0
"""A follower's fetch in flight does not include a new partition.  It ends within half a second
(replica.fetch.wait.max.ms), and the next one includes it.  The same holds in Kafka."""


def admin(bootstrap: str) -> AdminClient:
    """An admin client."""
    return AdminClient({"bootstrap.servers": bootstrap, **QUIET})


def make_topic(
    bootstrap: str, partitions: int, replication_factor: int = 3, **config: str
) -> tuple[str, dict[int, tuple[int, str, int]]]:
    """Create a topic, by its first use if CreateTopics is not served, and wait for all its leaders.

    Returns its name, and (leader, its host, its port) by partition.
    """
    name = f"bench-{os.urandom(4).hex()}"
    wanted = {key.replace("_", "."): value for key, value in config.items()}
    client = admin(bootstrap)
    until_s = time.monotonic() + WAIT_S
    if not can_create(bootstrap):
        Producer({"bootstrap.servers": bootstrap, **QUIET}).list_topics(name, timeout=WAIT_S)
        return name, leaders(client, name, until_s)
    topic = NewTopic(name, partitions, replication_factor, config=wanted)
    while True:
        try:
            client.create_topics([topic])[name].result(WAIT_S)
            break
        except KafkaException as error:
            # Brokers that have only just started may still be fenced.
            if error.args[0].name() != "INVALID_REPLICATION_FACTOR" or time.monotonic() > until_s:
                raise
            time.sleep(0.1)
    found = leaders(client, name, until_s)
    time.sleep(SETTLE_S)
    return name, found


def can_create(bootstrap: str) -> bool:
    """Whether CreateTopics is served; if not, topics are auto-created."""
    with Wire(address_of(bootstrap)) as wire:
        answer = wire.ask(ApiKey.API_VERSIONS, 0, m.ApiVersionsRequest())
    return any(api.api_key == ApiKey.CREATE_TOPICS for api in answer.api_keys)


def leaders(client: Any, topic: str, until_s: float) -> dict[int, tuple[int, str, int]]:
    """(leader, its host, its port) by partition."""
    while True:
        known = client.list_topics(topic, timeout=WAIT_S)
        found = known.topics[topic].partitions
        if found and all(partition.leader in known.brokers for partition in found.values()):
            brokers = {number: (x.host, x.port) for number, x in known.brokers.items()}
            return {
                number: (partition.leader, *brokers[partition.leader])
                for number, partition in sorted(found.items())
            }
        if time.monotonic() > until_s:
            raise SystemExit(f"{topic} has no leaders after {WAIT_S:g} s")
        time.sleep(0.02)


def main() -> None:
    parser = argparse.ArgumentParser(description="a topic for a load")
    parser.add_argument("bootstrap")
    parser.add_argument("--partitions", type=int, default=6)
    options = parser.parse_args()
    print(json.dumps({"topic": make_topic(options.bootstrap, options.partitions)[0]}))


if __name__ == "__main__":
    main()
