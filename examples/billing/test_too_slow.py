"""Orders are charged twice after a busy minute: the worker polls too rarely."""

from __future__ import annotations

import random
import time

import pytest
from billing import Bank, Worker
from kafka import KafkaProducer


class TakesAll(Worker):
    settings = {"max_poll_interval_ms": 30_000}

    def work(self, consumer, records):
        for record in records:
            self.bank.charge(record)
        consumer.commit()


class TakesFew(TakesAll):
    settings = {**TakesAll.settings, "max_poll_records": 5}


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {}}, seeds=100)
@pytest.mark.parametrize("worker", [TakesAll, TakesFew])
def test_a_slow_bank_delays_orders_only(kafka_cluster, worker):
    billed = kafka_cluster.processed("orders")
    bank = Bank(billed, answers_after_s=lambda: random.expovariate(1))
    workers = [worker(kafka_cluster.bootstrap, bank, f"worker-{number}") for number in range(2)]
    for each in workers:
        each.start()
    producer = KafkaProducer(bootstrap_servers=kafka_cluster.bootstrap.split(","))
    for number in range(100):
        producer.send("orders", b"order %d" % number)
        time.sleep(random.expovariate(0.8))
    producer.close()
    time.sleep(60)
    for each in workers:
        each.stop()
    billed.check()
