"""Share consumers of confluent-kafka (KIP-932), and what happens to them when brokers die.

Java's share consumer is tested with Kafka's tools (tests/compat).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from kcluster.handle.cluster import Cluster
from kcluster.metadata.placement import coordinator_partition
from kcluster.protocol.uuids import uuid_text
from tests.foreign_clients.real_clients import (
    LIMIT_S,
    confluent_producer,
    confluent_settings,
    until,
)

ACCEPT, RELEASE, REJECT = (
    ck.AcknowledgeType.ACCEPT,
    ck.AcknowledgeType.RELEASE,
    ck.AcknowledgeType.REJECT,
)


Place = tuple[str | None, int | None, int | None]
"""Topic, partition, offset."""


class ShareMember:
    """A share consumer that acknowledges each record by itself.

    `got`: the deliveries of each value; `accepted`: the values whose acknowledgement was confirmed.
    """

    def __init__(self, bootstrap: str, group: str, **more: Any) -> None:
        settings = {"group_id": group, "share_acknowledgement_mode": "explicit", **more}
        self.consumer = ck.ShareConsumer(confluent_settings(bootstrap, **settings))
        self.consumer.set_acknowledgement_commit_callback(self._on_commit)
        self.got: Counter[bytes] = Counter()
        self.accepted: set[bytes] = set()
        self._values: dict[Place, bytes] = {}
        self._accepting: set[Place] = set()

    def poll(self, ack: Any = ACCEPT) -> None:
        """Take what there is and acknowledge it."""
        for message in self.consumer.poll(timeout=0.1):
            if message.error() is not None:
                continue
            place = (message.topic(), message.partition(), message.offset())
            value = message.value()
            assert value is not None
            self.got[value] += 1
            self._values[place] = value
            if ack is ACCEPT:
                self._accepting.add(place)
            else:
                self._accepting.discard(place)
            self.consumer.acknowledge(message, ack)
        self.consumer.commit_async()

    def poll_until(self, condition: Callable[[], bool], what: str, ack: Any = ACCEPT) -> None:
        def holds() -> bool:
            self.poll(ack)
            return condition()

        until(holds, what)

    def _on_commit(self, offsets: Any, failure: Any) -> None:
        if failure is None:
            for part, its_offsets in offsets.items():
                for offset in its_offsets:
                    place = (part.topic, part.partition, offset)
                    if place in self._accepting:
                        self.accepted.add(self._values[place])


@contextmanager
def share_members(cluster: Cluster, group: str, count: int) -> Iterator[list[ShareMember]]:
    """Members that read `orders` from its beginning."""
    admin = AdminClient(confluent_settings(cluster.bootstrap))
    entry = ConfigEntry(
        "share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET
    )
    resource = ConfigResource(ConfigResource.Type.GROUP, group, incremental_configs=[entry])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(LIMIT_S)
    members = [ShareMember(cluster.bootstrap, group) for _ in range(count)]
    try:
        for member in members:
            member.consumer.subscribe(["orders"])
        yield members
    finally:
        for member in members:
            member.consumer.close()


def fill(cluster: Cluster, values: range) -> None:
    with confluent_producer(cluster.bootstrap) as producer:
        for number in values:
            producer.produce("orders", b"%d" % number, partition=0)
        assert producer.flush(LIMIT_S) == 0


def numbers(count: int) -> set[bytes]:
    return {b"%d" % number for number in range(count)}


def test_share_groups__members_share_one_partition(own: Cluster) -> None:
    fill(own, range(200))
    with share_members(own, "g", 2) as (one, two):

        def all_accepted() -> bool:
            one.poll()
            two.poll()
            return one.accepted | two.accepted == numbers(200)

        until(all_accepted, "200 accepted")
    assert one.got + two.got == Counter(numbers(200))  # each was delivered once, to one of them


def test_share_groups__released_records_come_again_and_rejected_ones_do_not(own: Cluster) -> None:
    fill(own, range(10))
    with share_members(own, "g", 1) as (member,):
        member.poll_until(lambda: set(member.got) == numbers(10), "10 records", RELEASE)
        member.poll_until(lambda: min(member.got.values()) >= 2, "them again", REJECT)
        fill(own, range(10, 20))
        member.poll_until(lambda: member.accepted >= numbers(20) - numbers(10), "the next")
    assert all(member.got[value] == 1 for value in numbers(20) - numbers(10))


def test_share_groups__the_delivery_count_has_a_limit(own: Cluster) -> None:
    fill(own, range(3))
    with share_members(own, "g", 1) as (member,):
        member.poll_until(lambda: min(member.got.values(), default=0) >= 5, "5 times", RELEASE)
        fill(own, range(3, 4))
        member.poll_until(lambda: b"3" in member.accepted, "the next record")
    assert [member.got[b"%d" % number] for number in range(3)] == [5, 5, 5]


def leader_of(cluster: Cluster, topic: str, partition: int) -> int:
    found = next(
        one
        for one in cluster.status().partitions
        if (one.topic, one.partition) == (topic, partition)
    )
    assert found.leader is not None
    return found.leader


def victim(cluster: Cluster, whose: str, group: str) -> int:
    """The broker that has this part in the group."""
    if whose == "leader":
        return leader_of(cluster, "orders", 0)
    if whose == "group coordinator":
        return leader_of(cluster, "__consumer_offsets", coordinator_partition(group, 50))
    admin = AdminClient(confluent_settings(cluster.bootstrap))
    described = admin.describe_topics(ck.TopicCollection(["orders"]))["orders"].result(LIMIT_S)
    halves = (
        described.topic_id.get_most_significant_bits(),
        described.topic_id.get_least_significant_bits(),
    )
    topic_id = b"".join(half.to_bytes(8, "big", signed=True) for half in halves)
    key = f"{group}:{uuid_text(topic_id)}:0"
    return leader_of(cluster, "__share_group_state", coordinator_partition(key, 50))


@pytest.mark.parametrize("whose", ["leader", "group coordinator", "share coordinator"])
def test_share_groups__survive_the_death_of_their(own: Cluster, whose: str) -> None:
    fill(own, range(100))
    with share_members(own, "g", 2) as (one, two):

        def accepted(count: int) -> bool:
            one.poll()
            two.poll()
            return one.accepted | two.accepted >= numbers(count)

        until(lambda: accepted(100), "100 accepted")
        died = victim(own, whose, "g")
        own.kill(died)
        before = one.got + two.got
        fill(own, range(100, 200))
        until(lambda: accepted(200), "200 accepted", 3 * LIMIT_S)
        own.start(died)
        fill(own, range(200, 300))
        until(lambda: accepted(300), "300 accepted", 3 * LIMIT_S)
    after = one.got + two.got
    assert {value for value in numbers(100) if after[value] > before[value]} == set()
    assert max(after.values()) <= 5
