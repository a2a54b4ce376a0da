"""A worker that charges whatever it reads: after a crash it charges some orders twice."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest
from billing import Bank, Worker
from kafka import KafkaConsumer, KafkaProducer


class ChargesAgain(Worker):
    def bill(self, consumer: KafkaConsumer, records: list[Any]) -> None:
        for record in records:
            self.bank.charge(record)
        consumer.commit()


class ChargesOnce(Worker):
    def bill(self, consumer: KafkaConsumer, records: list[Any]) -> None:
        for record in records:
            if record.value not in self.bank.orders:
                self.bank.charge(record)
        consumer.commit()


@pytest.mark.kafka_cluster(clock="virtual", seeds=200, topics={"orders": {"partitions": 3}})
@pytest.mark.parametrize("worker", [ChargesAgain, ChargesOnce])
def test_a_crash_charges_no_order_twice(kafka_cluster: Any, worker: type[Worker]) -> None:
    billed = kafka_cluster.processed("orders")
    bank = Bank(billed, fails=lambda: random.random() < 0.003)
    workers = [worker(kafka_cluster.bootstrap, bank, name) for name in ("left", "right")]
    for each in workers:
        each.start()
    servers = kafka_cluster.bootstrap.split(",")
    producer = KafkaProducer(bootstrap_servers=servers, client_id="shop")
    for number in range(40):
        producer.send("orders", b"order %d" % number)
        time.sleep(random.expovariate(10))
    producer.close()
    bank.wait_for(40)
    for each in workers:
        each.stop()
    billed.check()
