"""Transactions of a real client, judged by what the brokers saw."""

from __future__ import annotations

import time
from typing import Any

import pytest

pytest.importorskip("kafka")

from kafka import KafkaProducer

from kcluster import rule
from tests.world.rig import in_virtual_time

pytestmark = pytest.mark.pure_python


def test_records_of_transactions_were_sent_by_their_producer() -> None:
    """Its first batch waits until the coordinator has added the partition."""
    with in_virtual_time({"orders": {"replication_factor": 3}}) as cluster:
        producer = transactional(cluster)
        for value in (b"first", b"second"):
            producer.begin_transaction()
            producer.send("orders", value)
            producer.commit_transaction()
        producer.close()
        verdict = cluster.verdict()
    assert verdict, str(verdict)
    assert (verdict.sent, verdict.acked) == (2, 2)


def test_a_record_of_a_transaction_whose_answer_is_lost_was_sent_by_its_producer() -> None:
    with in_virtual_time({"orders": {"replication_factor": 3}}) as cluster:
        producer = transactional(cluster)
        cluster.add_rule(rule(api="Produce", drop="reply", times=1))
        producer.begin_transaction()
        producer.send("orders", b"first")
        time.sleep(1)
        before = cluster.verdict()
        producer.commit_transaction()  # it sends the record again after 30 s
        producer.close()
        after = cluster.verdict()
    assert (before.sent, before.acked, before.counts()) == (1, 0, {})
    assert (after.sent, after.acked, after.counts()) == (1, 1, {})


def transactional(cluster: Any) -> KafkaProducer:
    producer = KafkaProducer(
        bootstrap_servers=cluster.bootstrap.split(","), transactional_id="billing"
    )
    producer.init_transactions()
    return producer
