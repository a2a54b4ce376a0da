"""Moving partitions, with kafka-python (confluent-kafka has no such calls)."""

from __future__ import annotations

import kafka
from kafka.errors import (
    InvalidReplicationAssignmentError,
    NoReassignmentInProgressError,
    UnknownTopicOrPartitionError,
)

from kcluster.handle.cluster import Cluster
from tests.foreign_clients.real_clients import (
    LIMIT_S,
    confluent_producer,
    python_admin,
    python_consumer,
    python_take,
)


def test_reassignments__clients_continue_while_their_partition_moves(own: Cluster) -> None:
    orders = kafka.TopicPartition("orders", 0)
    with (
        python_admin(own.bootstrap) as admin,
        python_consumer(own.bootstrap) as consumer,
        confluent_producer(own.bootstrap) as producer,
    ):
        producer.produce("orders", b"before")
        assert producer.flush(LIMIT_S) == 0
        consumer.assign([orders])
        assert [read.value for read in python_take(consumer, 1)] == [b"before"]
        assert admin.alter_partition_reassignments({orders: [3, 2]}) == {orders: None}
        own.wait_for(leader=("orders", 0, 3))
        assert admin.list_partition_reassignments() == {}
        producer.produce("orders", b"after")
        assert producer.flush(LIMIT_S) == 0
        assert [read.value for read in python_take(consumer, 1)] == [b"after"]
        (description,) = admin.describe_topics(["orders"])
        assert description["partitions"][0]["replica_nodes"] == [3, 2]


def test_reassignments__listed_and_cancelled_while_a_new_replica_is_down(own: Cluster) -> None:
    orders = kafka.TopicPartition("orders", 0)
    with python_admin(own.bootstrap) as admin:
        admin.alter_partition_reassignments({orders: [1, 2]})
        own.wait_for(isr=("orders", 0, 2))
        own.kill(3)
        admin.alter_partition_reassignments({orders: [1, 3]})
        assert admin.list_partition_reassignments([orders]) == {
            orders: {"replicas": [1, 3, 2], "adding_replicas": [3], "removing_replicas": [2]}
        }
        assert admin.alter_partition_reassignments({orders: None}) == {orders: None}
        assert admin.list_partition_reassignments() == {}


def test_reassignments__refusals(own: Cluster) -> None:
    orders, unknown = kafka.TopicPartition("orders", 0), kafka.TopicPartition("none", 0)
    with python_admin(own.bootstrap) as admin:
        assert admin.alter_partition_reassignments({orders: [9], unknown: [1]}) == {
            orders: InvalidReplicationAssignmentError,
            unknown: UnknownTopicOrPartitionError,
        }
        assert admin.alter_partition_reassignments({orders: None}) == {
            orders: NoReassignmentInProgressError
        }


def test_reassignments__a_group_keeps_its_offsets_when_its_coordinator_moves(own: Cluster) -> None:
    orders = kafka.TopicPartition("orders", 0)
    with (
        python_admin(own.bootstrap) as admin,
        python_consumer(own.bootstrap, "orders", group_id="movers") as consumer,
        confluent_producer(own.bootstrap) as producer,
    ):
        producer.produce("orders", b"first")
        assert producer.flush(LIMIT_S) == 0
        python_take(consumer, 1)
        consumer.commit()
        offsets = "__consumer_offsets"
        homes = [replicas_of(admin, offsets, partition) for partition in range(50)]
        moves = {
            kafka.TopicPartition(offsets, partition): replicas[1:]
            for partition, replicas in enumerate(homes)
        }
        assert set(admin.alter_partition_reassignments(moves).values()) == {None}
        for partition, replicas in enumerate(homes):
            own.wait_for(leader=(offsets, partition, replicas[1]))
        assert consumer.committed(orders) == 1
        producer.produce("orders", b"second")
        assert producer.flush(LIMIT_S) == 0
        assert [read.value for read in python_take(consumer, 1)] == [b"second"]
        consumer.commit()
        assert consumer.committed(orders) == 2


def replicas_of(admin: kafka.KafkaAdminClient, topic: str, partition: int) -> list[int]:
    (description,) = admin.describe_topics([topic])
    (found,) = [one for one in description["partitions"] if one["partition_index"] == partition]
    replicas: list[int] = found["replica_nodes"]
    return replicas
