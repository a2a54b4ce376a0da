"""A leader is killed, comes back and leads again; nothing that was acked is lost.

Owns: the first failure to try.  Never: uses anything but the public interface.
"""

from __future__ import annotations

from confluent_kafka import Consumer, Producer, TopicPartition

from kcluster import Cluster, Topology

ORDERS = {"orders": {"replication_factor": 3, "config": {"min.insync.replicas": 2}}}


def test_scenario__a_leader_dies_and_nothing_acked_is_lost() -> None:
    with Cluster(Topology.of(brokers=3, topics=ORDERS, profile="fast")) as cluster:
        producer = Producer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "enable.idempotence": True,
                "topic.metadata.refresh.interval.ms": 50,
            }
        )
        acked: list[bytes | None] = []

        def send(count: int) -> None:
            for _ in range(count):
                value = b"order %d" % (len(acked) + len(producer))
                producer.produce("orders", value, on_delivery=lambda _, m: acked.append(m.value()))
            assert producer.flush(20) == 0

        send(100)
        first = cluster.leader("orders", 0)
        cluster.kill(first)
        assert cluster.leader("orders", 0) != first
        send(100)
        cluster.start(first)
        cluster.wait_for(isr=("orders", 0, 3))
        assert cluster.elect("orders", 0) == first
        send(100)

        consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "audit"})
        consumer.assign([TopicPartition("orders", 0, 0)])
        read = [message.value() for message in consumer.consume(300, timeout=20)]
        consumer.close()
        assert read == acked
