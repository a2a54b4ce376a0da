"""A worker that commits before it charges: a deployment at the wrong moment loses orders."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest
from billing import Bank, Worker
from kafka import KafkaConsumer, KafkaProducer


class CommitsFirst(Worker):
    def bill(self, consumer: KafkaConsumer, records: list[Any]) -> None:
        consumer.commit()
        for record in records:
            if self.is_stopping.is_set():
                return
            self.bank.charge(record)


class CommitsLast(Worker):
    def bill(self, consumer: KafkaConsumer, records: list[Any]) -> None:
        for record in records:
            self.bank.charge(record)
        consumer.commit()


@pytest.mark.kafka_cluster(clock="virtual", seeds=200, topics={"orders": {}})
@pytest.mark.parametrize("worker", [CommitsFirst, CommitsLast])
def test_a_deployment_loses_no_order(kafka_cluster: Any, worker: type[Worker]) -> None:
    billed = kafka_cluster.processed("orders")
    bank = Bank(billed)
    old, new = (worker(kafka_cluster.bootstrap, bank, name) for name in ("old", "new"))
    old.start()
    servers = kafka_cluster.bootstrap.split(",")
    producer = KafkaProducer(bootstrap_servers=servers, client_id="shop")
    deployed_at = random.randrange(50)
    for number in range(50):
        producer.send("orders", b"order %d" % number)
        time.sleep(random.expovariate(10))
        if number == deployed_at:
            old.stop()
            new.start()
    producer.close()
    bank.wait_for(50, within_s=10)
    new.stop()
    billed.check()
