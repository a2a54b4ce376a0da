"""Orders are charged twice after a failover: the worker charges whatever it reads."""

from __future__ import annotations

import random
import time

import pytest
from billing import Bank, Worker
from kafka import KafkaProducer


class ChargesAll(Worker):
    def work(self, consumer, records):
        for record in records:
            self.bank.charge(record)
        consumer.commit()


class ChargesOnce(Worker):
    def work(self, consumer, records):
        for record in records:
            if record.value not in self.bank.orders:
                self.bank.charge(record)
        consumer.commit()


@pytest.mark.kafka_cluster(clock="virtual", topics={"orders": {"partitions": 3}}, seeds=100)
@pytest.mark.parametrize("worker", [ChargesAll, ChargesOnce])
def test_a_failover_charges_no_order_twice(kafka_cluster, worker):
    bank = Bank(kafka_cluster.processed("orders"))
    workers = [worker(kafka_cluster.bootstrap, bank, f"worker-{number}") for number in range(2)]
    for each in workers:
        each.start()
    producer = KafkaProducer(bootstrap_servers=kafka_cluster.bootstrap.split(","))
    killed_at = random.randrange(40)
    for number in range(40):
        producer.send("orders", b"order %d" % number)
        time.sleep(random.expovariate(5))
        if number == killed_at:
            kafka_cluster.kill("leader(orders-0)", wait=False)
    producer.close()
    time.sleep(30)
    for each in workers:
        each.stop()
    assert len(bank.orders) == len(set(bank.orders)) == 40
