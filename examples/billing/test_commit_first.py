"""Orders are missed after a deployment: the worker commits what it has not charged yet."""

from __future__ import annotations

import random
import time

import pytest
from billing import Bank, Worker
from kafka import KafkaProducer


class CommitsFirst(Worker):
    def work(self, consumer, records):
        consumer.commit()
        for record in records:
            if self.is_stopped.is_set():
                return
            self.bank.charge(record)


class CommitsLast(Worker):
    def work(self, consumer, records):
        for record in records:
            self.bank.charge(record)
        consumer.commit()


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {}}, seeds=200)
@pytest.mark.parametrize("worker", [CommitsFirst, CommitsLast])
def test_a_deployment_misses_no_order(kafka_cluster, worker):
    billed = kafka_cluster.processed("orders")
    bank = Bank(billed)
    old = worker(kafka_cluster.bootstrap, bank, "old")
    old.start()
    producer = KafkaProducer(bootstrap_servers=kafka_cluster.bootstrap.split(","))
    deployed_at = random.randrange(100)
    for number in range(100):
        producer.send("orders", b"order %d" % number)
        time.sleep(random.expovariate(20))
        if number == deployed_at:
            old.stop()
            new = worker(kafka_cluster.bootstrap, bank, "new")
            new.start()
    producer.close()
    time.sleep(5)
    new.stop()
    billed.check()
