"""Transactional producers and read_committed consumers of both libraries, through failovers too."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import AbstractContextManager

import confluent_kafka as ck
import kafka
import pytest
from kafka.structs import OffsetAndMetadata
from kafka.structs import TopicPartition as PythonPartition

from kcluster.config.topology.model import Topology
from kcluster.handle.cluster import Cluster
from kcluster.metadata.placement import coordinator_partition
from kcluster.protocol.names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from tests.foreign_clients.conftest import MakeTopic
from tests.foreign_clients.real_clients import (
    LIMIT_S,
    confluent_consumer,
    confluent_producer,
    confluent_settings,
    confluent_values,
    python_producer,
    until,
)

_IDS = itertools.count(1)
RECORDS = 10


def transactional_id() -> str:
    return f"txn-{next(_IDS)}"


def transactional(bootstrap: str, name: str | None = None) -> AbstractContextManager[ck.Producer]:
    """librdkafka's producer with a transactional id."""
    return confluent_producer(bootstrap, **{"transactional.id": name or transactional_id()})


def test_transactions__librdkafka_commits_and_aborts(
    shared: Cluster, make_topic: MakeTopic
) -> None:
    topic = make_topic(1)
    with confluent_producer(
        shared.bootstrap, **{"transactional.id": transactional_id()}
    ) as producer:
        producer.init_transactions(LIMIT_S)
        for value, end in ((b"one", True), (b"two", False), (b"three", True)):
            producer.begin_transaction()
            producer.produce(topic, value)
            if end:
                producer.commit_transaction(LIMIT_S)
            else:
                producer.flush(LIMIT_S)
                producer.abort_transaction(LIMIT_S)
        assert confluent_values(shared.bootstrap, topic, "read_committed") == [b"one", b"three"]
        assert confluent_values(shared.bootstrap, topic, "read_uncommitted") == [
            b"one",
            b"two",
            b"three",
        ]


def test_transactions__kafka_python_commits_and_aborts(
    shared: Cluster, make_topic: MakeTopic
) -> None:
    topic = make_topic(1)
    with python_producer(shared.bootstrap, transactional_id=transactional_id()) as producer:
        producer.init_transactions()
        for value, end in ((b"one", True), (b"two", False), (b"three", True)):
            producer.begin_transaction()
            producer.send(topic, value).get(LIMIT_S)
            if end:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=shared.bootstrap,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        group_id=None,
        consumer_timeout_ms=LIMIT_S * 1000,
    )
    try:
        consumer.assign([PythonPartition(topic, 0)])
        assert [next(consumer).value, next(consumer).value] == [b"one", b"three"]
        assert consumer.poll(300) == {}
    finally:
        consumer.close()


def test_transactions__open_one_holds_read_committed_back(
    shared: Cluster, make_topic: MakeTopic
) -> None:
    topic = make_topic(1)
    with transactional(shared.bootstrap) as slow, confluent_producer(shared.bootstrap) as plain:
        slow.init_transactions(LIMIT_S)
        slow.begin_transaction()
        slow.produce(topic, b"in the transaction")
        slow.flush(LIMIT_S)
        plain.produce(topic, b"after it")
        plain.flush(LIMIT_S)
        assert confluent_values(shared.bootstrap, topic, "read_committed") == []
        slow.commit_transaction(LIMIT_S)
        assert confluent_values(shared.bootstrap, topic, "read_committed") == [
            b"in the transaction",
            b"after it",
        ]


def test_transactions__new_producer_fences_the_old_one(
    shared: Cluster, make_topic: MakeTopic
) -> None:
    topic, name = make_topic(1), transactional_id()
    # A fenced producer raises in flush, so nothing flushes it at the end.
    old = ck.Producer(confluent_settings(shared.bootstrap, **{"transactional.id": name}))
    with transactional(shared.bootstrap, name) as new:
        old.init_transactions(LIMIT_S)
        old.begin_transaction()
        old.produce(topic, b"of the old one")
        old.flush(LIMIT_S)
        new.init_transactions(LIMIT_S)
        with pytest.raises(ck.KafkaException) as raised:
            old.commit_transaction(LIMIT_S)
        assert raised.value.args[0].code() == ck.KafkaError._FENCED
        new.begin_transaction()
        new.produce(topic, b"of the new one")
        new.commit_transaction(LIMIT_S)
    assert confluent_values(shared.bootstrap, topic, "read_committed") == [b"of the new one"]


class Copier:
    """Reads a topic and writes it to another, record by record, with the offset in the same
    transaction.

    librdkafka 2.16 may wait for ever for a group coordinator that dies, with Apache Kafka 4.3.1
    too: it drops the broker that its metadata no longer names, and nothing wakes the request up
    that waits for it.  So the brokers to kill do not coordinate this group.
    """

    def __init__(self, cluster: Cluster, protocol: str) -> None:
        bootstrap = cluster.bootstrap
        with transactional(bootstrap) as first:
            first.init_transactions(LIMIT_S)  # creates __transaction_state
        group = f"copier-{next(_IDS)}"
        self.consumer = ck.Consumer(
            confluent_settings(
                bootstrap,
                **{
                    "group.id": group,
                    "enable.auto.commit": False,
                    "auto.offset.reset": "earliest",
                    "isolation.level": "read_committed",
                    "group.protocol": protocol,
                },
            )
        )
        self.consumer.subscribe(["source"])
        self._read: list[ck.Message] = []
        self._poll()
        self._avoided = coordinator(cluster, GROUP_METADATA_TOPIC, group)
        self.sink_leader = next(one for one in (1, 2, 3) if one != self._avoided)
        self.sink = f"sink-{self.sink_leader}"
        name = next(
            name
            for name in (f"{group}-{number}" for number in itertools.count())
            if coordinator(cluster, TRANSACTION_STATE_TOPIC, name) != self._avoided
        )
        self.coordinator = coordinator(cluster, TRANSACTION_STATE_TOPIC, name)
        self.producer = ck.Producer(confluent_settings(bootstrap, **{"transactional.id": name}))
        self.producer.init_transactions(LIMIT_S)

    def _poll(self) -> None:
        message = until(lambda: self.consumer.poll(0.1), "record to copy")
        assert message.error() is None, message.error()
        self._read.append(message)

    def copy(self, count: int, between: Callable[[int], None]) -> None:
        """Copy `count` records; `between(number)` is called before each commit."""
        for number in range(count):
            if not self._read:
                self._poll()
            message = self._read.pop()
            offset = message.offset()
            assert offset is not None
            self.producer.begin_transaction()
            self.producer.produce(self.sink, message.value())
            self.producer.send_offsets_to_transaction(
                [ck.TopicPartition("source", 0, offset + 1)],
                self.consumer.consumer_group_metadata(),
                LIMIT_S,
            )
            between(number)
            self.producer.commit_transaction(LIMIT_S)


def coordinator(cluster: Cluster, topic: str, key: str) -> int:
    """The broker that coordinates a group or a transactional id."""
    leaders = {
        one.partition: one.leader for one in cluster.status().partitions if one.topic == topic
    }
    return leaders[coordinator_partition(key, len(leaders))] or -1


@pytest.mark.parametrize(
    ("victim", "protocol"),
    [("leader", "classic"), ("coordinator", "classic"), ("coordinator", "consumer")],
)
def test_transactions__copies_exactly_once_through_a_kill(victim: str, protocol: str) -> None:
    topics = {
        "source": {"assignment": [[1, 2, 3]]},
        "sink-1": {"assignment": [[1, 2, 3]]},
        "sink-2": {"assignment": [[2, 3, 1]]},
    }
    with Cluster(Topology.of(brokers=3, profile="fast", topics=topics)) as cluster:
        with confluent_producer(cluster.bootstrap) as producer:
            for number in range(RECORDS):
                producer.produce("source", b"%d" % number)
            assert producer.flush(LIMIT_S) == 0
        copier = Copier(cluster, protocol)
        killed = copier.sink_leader if victim == "leader" else copier.coordinator

        def kill(number: int) -> None:
            if number == RECORDS // 2:
                cluster.kill(killed)

        copier.copy(RECORDS, kill)
        offset = ck.TopicPartition("source", 0)
        assert copier.consumer.committed([offset], LIMIT_S)[0].offset == RECORDS
        copier.consumer.close()
        expected = [b"%d" % number for number in range(RECORDS)]
        assert confluent_values(cluster.bootstrap, copier.sink, "read_committed") == expected


def test_transactions__kafka_python_copies_exactly_once_through_a_kill() -> None:
    """The sink's leader dies, and coordinates neither the group nor the transactions: kafka-python
    3.0.12 finds the new coordinator and then sends it nothing."""
    shape = {"assignment": [[1, 2, 3]]}
    topology = Topology.of(brokers=3, profile="fast", topics={"source": shape, "sink": shape})
    values = [b"%d" % number for number in range(RECORDS)]
    with (
        Cluster(topology) as cluster,
        python_producer(cluster.bootstrap, transactional_id="copier") as producer,
        confluent_consumer(cluster.bootstrap, group_id="copiers") as group,
    ):
        producer.init_transactions()
        for number, value in enumerate(values):
            producer.begin_transaction()
            producer.send("sink", value)
            if number == RECORDS // 2:
                coordinators = {
                    coordinator(cluster, GROUP_METADATA_TOPIC, "copiers"),
                    coordinator(cluster, TRANSACTION_STATE_TOPIC, "copier"),
                }
                victim = next(one for one in (1, 2, 3) if one not in coordinators)
                cluster.move("sink-0", to=victim)
                cluster.kill(victim)
            offset = OffsetAndMetadata(number + 1, "", -1)
            producer.send_offsets_to_transaction({PythonPartition("source", 0): offset}, "copiers")
            producer.commit_transaction()
        assert group.committed([ck.TopicPartition("source", 0)], LIMIT_S)[0].offset == RECORDS
        assert confluent_values(cluster.bootstrap, "sink", "read_committed") == values
