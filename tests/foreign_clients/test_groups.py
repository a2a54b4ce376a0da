"""Consumer groups of real clients: members come and go, commits survive the coordinator."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import confluent_kafka as ck
import kafka
import pytest
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.errors import (
    CommitFailedError,
    IllegalGenerationError,
    KafkaConnectionError,
    UnknownMemberIdError,
)

from kcluster.handle.cluster import Cluster
from tests.foreign_clients.conftest import MakeTopic
from tests.foreign_clients.real_clients import (
    LIMIT_S,
    Read,
    confluent_consumer,
    confluent_poll,
    confluent_producer,
    confluent_take,
    python_consumer,
    python_poll,
    python_take,
    until,
)

PARTITIONS = 6
RECORDS = 120


@pytest.fixture
def filled(shared: Cluster, make_topic: MakeTopic) -> str:
    topic = make_topic(PARTITIONS)
    fill(shared, topic, range(RECORDS))
    return topic


def fill(cluster: Cluster, topic: str, numbers: range, partitions: int = PARTITIONS) -> None:
    with confluent_producer(cluster.bootstrap) as producer:
        for number in numbers:
            producer.produce(topic, b"%d" % number, partition=number % partitions)
        assert producer.flush(LIMIT_S) == 0


class Member(threading.Thread):
    """One consumer, polled by its own thread."""

    def __init__(self, group: Group, settings: dict[str, Any]) -> None:
        super().__init__(name="member", daemon=True)
        self._group, self._settings = group, settings
        self._stopping = threading.Event()
        self.consumer: Any = None
        self.commits = False
        """Before it leaves."""
        self.share: frozenset[int] = frozenset()
        """Its partitions after its last poll. Only its own thread asks the client for them: while
        another one consumes, librdkafka may take long to answer."""

    def run(self) -> None:
        group = self._group
        if group.library == "kafka-python":
            settings = {"group_id": group.group_id, **self._settings}
            with python_consumer(group.bootstrap, group.topic, **settings) as consumer:
                self._serve(consumer, python_poll)
                if self.commits:
                    consumer.commit(timeout_ms=5_000)
        else:
            settings = {"group_id": group.group_id, **self._settings}
            with confluent_consumer(group.bootstrap, **settings) as consumer:
                consumer.subscribe([group.topic])
                self._serve(consumer, confluent_poll)
                if self.commits:
                    consumer.commit(asynchronous=False)

    def _serve(self, consumer: Any, poll: Callable[[Any], list[Read]]) -> None:
        self.consumer = consumer
        while not self._stopping.is_set():
            read = poll(consumer)
            share = frozenset(at.partition for at in consumer.assignment())
            with self._group.moved:
                self.share = share
                self._group.read += read
                self._group.moved.notify_all()

    def leave(self) -> None:
        self._stopping.set()
        self.join(LIMIT_S)
        assert not self.is_alive()


class Group:
    """Members of one group, of either library."""

    def __init__(self, cluster: Cluster, topic: str, group_id: str) -> None:
        self.bootstrap, self.topic, self.group_id = cluster.bootstrap, topic, group_id
        self.library = "kafka-python"
        self.members: list[Member] = []
        self.read: list[Read] = []
        self.moved = threading.Condition()

    def __enter__(self) -> Group:
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members:
            member.leave()

    def join(self, library: str, **settings: Any) -> Member:
        """A new member, which has polled."""
        self.library = library
        member = Member(self, settings)
        member.start()
        self.members.append(member)
        with self.moved:
            assert self.moved.wait_for(lambda: member.consumer is not None, LIMIT_S)
        return member

    def shares(self) -> list[frozenset[int]]:
        """The partitions of each member."""
        return [member.share for member in self.members]

    def wait_shared(self) -> list[frozenset[int]]:
        """Wait until the members have equal shares of all the partitions."""
        size = PARTITIONS // len(self.members)

        def is_shared() -> bool:
            shares = self.shares()
            return {len(share) for share in shares} == {size} and (
                len(frozenset().union(*shares)) == PARTITIONS
            )

        with self.moved:
            assert self.moved.wait_for(is_shared, LIMIT_S), self.shares()
        return self.shares()

    def numbers(self) -> set[int]:
        """The records read; some twice, if they were not committed before a rebalance."""
        return {int(record.value or b"") for record in self.read}

    def wait_read(self, count: int) -> None:
        """Wait until this many different records have been read."""
        with self.moved:
            came = self.moved.wait_for(lambda: len(self.numbers()) >= count, LIMIT_S)
            assert came, f"{len(self.numbers())} of {count}"


ASSIGNORS = [
    ("kafka-python", {}),
    ("kafka-python", {"partition_assignment_strategy": [RoundRobinPartitionAssignor]}),
    ("confluent-kafka", {"partition_assignment_strategy": "range"}),
    ("confluent-kafka", {"partition_assignment_strategy": "cooperative-sticky"}),
    ("confluent-kafka", {"group_protocol": "consumer"}),
    ("confluent-kafka", {"group_protocol": "consumer", "group_remote_assignor": "range"}),
]


@pytest.mark.parametrize(
    ("library", "settings"),
    ASSIGNORS,
    ids=["python", "python-rr", "confluent", "cooperative", "kip848", "kip848-range"],
)
def test_groups__members_come_and_go(
    shared: Cluster, filled: str, group: str, library: str, settings: Any
) -> None:
    with Group(shared, filled, group) as them:
        for _ in range(3):
            them.join(library, **settings)
            them.wait_shared()
        them.members.pop().leave()
        them.wait_shared()
        them.wait_read(RECORDS)
    assert them.numbers() == set(range(RECORDS))


def test_groups__cooperative_members_keep_their_partitions(
    shared: Cluster, filled: str, group: str
) -> None:
    with Group(shared, filled, group) as them:
        shares = []
        for _ in range(3):
            them.join("confluent-kafka", partition_assignment_strategy="cooperative-sticky")
            shares.append(them.wait_shared())
    assert shares[1][0] < shares[0][0]
    assert shares[2][0] < shares[1][0]
    assert shares[2][1] < shares[1][1]


def test_groups__libraries_share_a_group(shared: Cluster, filled: str, group: str) -> None:
    with Group(shared, filled, group) as them:
        them.join("kafka-python")
        them.join("confluent-kafka", partition_assignment_strategy="range")
        them.wait_shared()


def test_groups__a_new_member_continues_at_the_last_commit(
    shared: Cluster, filled: str, group: str
) -> None:
    with python_consumer(shared.bootstrap, filled, group_id=group) as consumer:
        first = python_take(consumer, RECORDS)
        consumer.commit()
    fill(shared, filled, range(RECORDS, RECORDS + 30))
    with confluent_consumer(shared.bootstrap, group_id=group) as consumer:
        consumer.subscribe([filled])
        second = confluent_take(consumer, 30)
        consumer.commit(asynchronous=False)
    fill(shared, filled, range(RECORDS + 30, RECORDS + 60))
    with python_consumer(shared.bootstrap, filled, group_id=group) as consumer:
        third = python_take(consumer, 30)
    values = [int(record.value or b"") for record in first + second + third]
    assert sorted(values) == list(range(RECORDS + 60))


def test_groups__offsets_committed_by_hand_carry_metadata(
    shared: Cluster, filled: str, group: str
) -> None:
    part = kafka.TopicPartition(filled, 0)
    with python_consumer(shared.bootstrap, group_id=group, enable_auto_commit=False) as consumer:
        consumer.assign([part])
        assert consumer.committed(part) is None
        consumer.commit({part: kafka.OffsetAndMetadata(7, "why", 0)})
        assert consumer.committed(part) == 7
        assert consumer.committed(part, metadata=True).metadata == "why"
    with confluent_consumer(shared.bootstrap, group_id=group) as consumer:
        places = [ck.TopicPartition(filled, 0), ck.TopicPartition(filled, 1)]
        found = consumer.committed(places, LIMIT_S)
        assert [place.offset for place in found] == [7, ck.OFFSET_INVALID]
        consumer.commit(offsets=[ck.TopicPartition(filled, 1, 9)], asynchronous=False)
        assert [place.offset for place in consumer.committed(places, LIMIT_S)] == [7, 9]


def test_groups__a_static_member_keeps_its_partitions_across_a_restart(
    shared: Cluster, filled: str, group: str
) -> None:
    with Group(shared, filled, group) as them:
        for name in ("a", "b"):
            them.join("confluent-kafka", group_instance_id=name)
        before = them.wait_shared()
        them.members.pop().leave()
        seen = shared.events()[-1].sequence
        them.join("confluent-kafka", group_instance_id="b")
        assert them.wait_shared() == before
        assert "group_rebalanced" not in {entry.kind for entry in shared.events(seen)}


def test_groups__a_member_that_stops_polling_is_removed(
    shared: Cluster, filled: str, group: str
) -> None:
    settings = {"session_timeout_ms": 500, "max_poll_interval_ms": 600, "enable_auto_commit": False}
    with (
        python_consumer(shared.bootstrap, filled, group_id=group, **settings) as slow,
        Group(shared, filled, group) as them,
    ):
        python_take(slow, 1)
        assert len(slow.assignment()) == PARTITIONS
        them.join("kafka-python")
        them.wait_shared()
        with pytest.raises((CommitFailedError, IllegalGenerationError, UnknownMemberIdError)):
            slow.commit()


# ------------------------------------------------------------------ when the coordinator dies


def coordinator(cluster: Cluster, group_id: str) -> int:
    """The broker that leads the group's partition of __consumer_offsets."""
    code = 0
    for letter in group_id:
        code = (31 * code + ord(letter)) & 0xFFFF_FFFF
    return cluster.leader("__consumer_offsets", (code & 0x7FFF_FFFF) % 50)


def committed(consumer: kafka.KafkaConsumer, part: kafka.TopicPartition) -> int | None:
    """kafka-python raises when the coordinator that it knows is gone, and finds the new one at
    the next call."""

    def ask() -> list[int | None]:
        try:
            return [consumer.committed(part)]
        except KafkaConnectionError:
            return []

    answer: list[int | None] = until(ask, "committed offset")
    return answer[0]


@pytest.mark.parametrize("how", ["kill", "clean", "power"])
def test_groups__commits_survive_the_coordinator(own: Cluster, group: str, how: str) -> None:
    fill(own, "orders", range(100), partitions=1)
    part, place = kafka.TopicPartition("orders", 0), ck.TopicPartition("orders", 0)
    with (
        python_consumer(own.bootstrap, group_id=group, enable_auto_commit=False) as one,
        confluent_consumer(own.bootstrap, group_id=group) as two,
    ):
        one.assign([part])
        one.commit({part: kafka.OffsetAndMetadata(42, "", 0)})
        assert two.committed([place], LIMIT_S)[0].offset == 42
        died = coordinator(own, group)
        own.kill(died, how)
        assert coordinator(own, group) != died
        assert committed(one, part) == 42
        assert two.committed([place], LIMIT_S)[0].offset == 42
        two.commit(offsets=[ck.TopicPartition("orders", 0, 77)], asynchronous=False)
        own.start(died)
        own.elect("__consumer_offsets", 0)
        assert committed(one, part) == 77


@pytest.mark.parametrize(
    ("library", "settings"),
    [
        ("kafka-python", {}),
        ("confluent-kafka", {}),
        ("confluent-kafka", {"group_protocol": "consumer"}),
    ],
    ids=["python", "confluent", "kip848"],
)
def test_groups__members_survive_the_death_of_the_coordinator(
    own: Cluster, group: str, library: str, settings: Any
) -> None:
    fill(own, "orders", range(100), partitions=1)
    with Group(own, "orders", group) as them:
        them.join(library, **settings).commits = True
        them.wait_read(100)
        own.kill(coordinator(own, group))
        fill(own, "orders", range(100, 200), partitions=1)
        them.wait_read(200)
    assert [int(record.value or b"") for record in them.read] == list(range(200))
    with python_consumer(own.bootstrap, group_id=group) as other:
        assert other.committed(kafka.TopicPartition("orders", 0)) == 200


def test_groups__kip848_members_survive_the_death_of_the_leader(own: Cluster, group: str) -> None:
    fill(own, "orders", range(100), partitions=1)
    with Group(own, "orders", group) as them:
        them.join("confluent-kafka", group_protocol="consumer").commits = True
        them.wait_read(100)
        own.kill(own.leader("orders", 0))
        fill(own, "orders", range(100, 200), partitions=1)
        them.wait_read(200)
    assert [int(record.value or b"") for record in them.read] == list(range(200))


def test_groups__kip848_members_subscribe_by_regular_expression(
    shared: Cluster, filled: str, group: str
) -> None:
    with confluent_consumer(
        shared.bootstrap, group_id=group, group_protocol="consumer"
    ) as consumer:
        consumer.subscribe([f"^{filled[:-1]}[{filled[-1]}]$"])
        read = confluent_take(consumer, RECORDS)
    assert sorted(int(record.value or b"") for record in read) == list(range(RECORDS))


def test_groups__kip848_members_take_over_a_classic_group_and_leave_it(
    shared: Cluster, filled: str, group: str
) -> None:
    with Group(shared, filled, group) as them:
        them.join("confluent-kafka", partition_assignment_strategy="cooperative-sticky")
        them.wait_shared()
        them.join("confluent-kafka", group_protocol="consumer")
        them.wait_shared()
        them.members.pop().leave()
        them.wait_shared()
        them.wait_read(RECORDS)
    assert them.numbers() == set(range(RECORDS))
