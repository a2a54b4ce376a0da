"""acks=1: a leader acks what nobody else has yet, then dies: acked, lost, and no error anywhere.

Owns: the loss that acks=all is for.  Never: uses anything but the public interface.
"""

from __future__ import annotations

from confluent_kafka import Consumer, Producer, TopicPartition

from kcluster import Cluster, Topology
from kcluster.events import LogTruncated

ORDERS = {"orders": {"assignment": [[1, 2, 3]]}}


def test_scenario__what_only_the_leader_had_is_lost_though_it_was_acked() -> None:
    with Cluster(Topology.of(brokers=3, topics=ORDERS, profile="fast")) as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": 1})
        acked: list[bytes | None] = []

        def send(value: bytes) -> None:
            producer.produce("orders", value, on_delivery=lambda _, m: acked.append(m.value()))
            assert producer.flush(20) == 0

        send(b"replicated")
        cluster.wait_for(isr=("orders", 0, 3))
        cluster.cut(1, 2)
        cluster.cut(1, 3)
        send(b"on the leader alone")
        cluster.kill(1)
        cluster.heal()
        assert cluster.leader("orders", 0) == 2
        assert acked == [b"replicated", b"on the leader alone"]

        cluster.start(1)
        cluster.wait_for(isr=("orders", 0, 3))
        consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "audit"})
        consumer.assign([TopicPartition("orders", 0, 0)])
        (message,) = consumer.consume(1, timeout=20)
        _, end = consumer.get_watermark_offsets(TopicPartition("orders", 0), timeout=20)
        consumer.close()
        assert (message.value(), end) == (b"replicated", 1)
        events = [entry.event for entry in cluster.events()]
        truncated = [event for event in events if isinstance(event, LogTruncated)][-1]
        assert (truncated.broker, truncated.to_offset, truncated.from_offset) == (1, 1, 2)
