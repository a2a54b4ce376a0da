"""RF 3, min.insync.replicas 2: one loss is tolerated, the second stops writes, not reads.

Owns: the boundary that everybody should have seen once.  Never: uses anything but the public
interface.
"""

from __future__ import annotations

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from kcluster import Cluster, Topology

ORDERS = {"orders": {"assignment": [[1, 2, 3]], "config": {"min.insync.replicas": 2}}}


def test_scenario__the_second_loss_stops_writes_but_not_reads() -> None:
    with Cluster(Topology.of(brokers=3, topics=ORDERS, profile="fast")) as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "retries": 0})

        def send(value: bytes) -> str:
            """The error that the producer gets; NO_ERROR for none."""
            errors: list[KafkaError | None] = []
            producer.produce("orders", value, on_delivery=lambda error, _: errors.append(error))
            assert producer.flush(20) == 0
            return "NO_ERROR" if errors[0] is None else str(errors[0].name())

        assert send(b"with three") == "NO_ERROR"
        cluster.kill(3)
        cluster.wait_for(isr=("orders", 0, 2))
        assert send(b"with two") == "NO_ERROR"
        cluster.kill(2)
        cluster.wait_for(isr=("orders", 0, 1))
        assert send(b"with one") == "NOT_ENOUGH_REPLICAS"

        consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "reader"})
        consumer.assign([TopicPartition("orders", 0, 0)])
        read = [message.value() for message in consumer.consume(2, timeout=20)]
        consumer.close()
        assert read == [b"with three", b"with two"]
