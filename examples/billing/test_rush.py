"""A worker that polls too rarely: in a rush the group takes its partition away meanwhile."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest
from billing import Bank, Worker
from kafka import KafkaConsumer, KafkaProducer


class TakesAll(Worker):
    settings = {"max_poll_interval_ms": 30_000}

    def bill(self, consumer: KafkaConsumer, records: list[Any]) -> None:
        for record in records:
            self.bank.charge(record)
        consumer.commit()


class TakesFew(TakesAll):
    settings = {**TakesAll.settings, "max_poll_records": 5}


@pytest.mark.kafka_cluster(clock="virtual", seeds=200, topics={"orders": {}})
@pytest.mark.parametrize("worker", [TakesAll, TakesFew])
def test_each_order_of_a_rush_is_billed_once(kafka_cluster: Any, worker: type[Worker]) -> None:
    billed = kafka_cluster.processed("orders")
    bank = Bank(billed, answers_after_s=lambda: random.expovariate(2))
    workers = [worker(kafka_cluster.bootstrap, bank, name) for name in ("left", "right")]
    for each in workers:
        each.start()
    time.sleep(10)
    servers = kafka_cluster.bootstrap.split(",")
    producer = KafkaProducer(bootstrap_servers=servers, client_id="shop")
    orders = random.randrange(10, 65)
    for number in range(orders):
        producer.send("orders", b"order %d" % number)
    producer.close()
    bank.wait_for(orders)
    for each in workers:
        each.stop()
    billed.check()
