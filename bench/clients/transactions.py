"""Transactions of one record, one after the other: python -m bench.clients.transactions BOOTSTRAP.

Owns: this load.  Never: distinguishes systems.  Prints the figures by their keys.

The raw producers send each protocol's requests and ask again at once while the markers of the last
transaction are on their way; what they time is the cluster.  librdkafka (V1) adds its own pauses.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import Producer

from bench.clients.topics import QUIET, make_topic
from bench.wire import ACKS_ALL, Wire, address_of
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode, error_of
from kcluster.protocol.records.records import Record, build_batch

WARM_UP: Final = 50
AGAIN_S: Final = 0.0005
WAIT_S: Final = 30.0
TRANSIENT: Final = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
)


class RawProducer:
    """A transactional producer of partition 0, as its requests are."""

    def __init__(self, bootstrap: str, topic: str, leader: tuple[str, int]) -> None:
        self._topic = topic
        self._id = f"bench-{time.time_ns()}"
        self._leader = Wire(leader)
        self._coordinator = self._find(bootstrap)
        self._sequence = 0
        body = m.InitProducerIdRequest(transactional_id=self._id, transaction_timeout_ms=60_000)
        answer = self._repeat(ApiKey.INIT_PRODUCER_ID, 4, body, lambda found: found.error_code)
        self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch

    def _find(self, bootstrap: str) -> Wire:
        body = m.FindCoordinatorRequest(key_type=1, coordinator_keys=[self._id])
        until_s = time.monotonic() + WAIT_S
        with Wire(address_of(bootstrap)) as wire:
            while True:
                (found,) = wire.ask(ApiKey.FIND_COORDINATOR, 4, body).coordinators
                if not found.error_code:
                    return Wire((found.host, found.port))
                if time.monotonic() > until_s:
                    raise SystemExit(f"no coordinator: {error_of(found.error_code).name}")
                time.sleep(0.05)

    def _repeat(
        self, api_key: ApiKey, version: int, body: Any, error_of: Callable[[Any], int]
    ) -> Any:
        """Ask until the answer has no passing error."""
        wire = self._leader if api_key is ApiKey.PRODUCE else self._coordinator
        until_s = time.monotonic() + WAIT_S
        while True:
            answer = wire.ask(api_key, version, body)
            error = error_of(answer)
            if not error:
                return answer
            if error not in TRANSIENT or time.monotonic() > until_s:
                raise SystemExit(f"{api_key.name}: {ErrorCode(error).name}")
            time.sleep(AGAIN_S)

    def v1(self) -> None:
        """One transaction: AddPartitionsToTxn, Produce, EndTxn."""
        body = m.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._id,
            v3_and_below_producer_id=self._producer_id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=[
                m.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(self._topic, [0])
            ],
        )
        self._repeat(ApiKey.ADD_PARTITIONS_TO_TXN, 3, body, _added)
        self._write(11)
        self._end(3)

    def v2(self) -> None:
        """One transaction: Produce, EndTxn."""
        self._write(12)
        answer = self._end(5)
        self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch
        self._sequence = 0

    def _write(self, version: int) -> None:
        records = build_batch(
            [Record(0, int(time.time() * 1000), None, b"x" * 100)],
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=self._sequence,
            transactional=True,
        )
        data = m.ProduceRequest.PartitionProduceData(0, memoryview(records))
        body = m.ProduceRequest(
            transactional_id=self._id,
            acks=ACKS_ALL,
            timeout_ms=30_000,
            topic_data=[m.ProduceRequest.TopicProduceData(self._topic, partition_data=[data])],
        )
        self._repeat(ApiKey.PRODUCE, version, body, _produced)
        self._sequence += 1

    def _end(self, version: int) -> Any:
        body = m.EndTxnRequest(self._id, self._producer_id, self._epoch, True)
        return self._repeat(ApiKey.END_TXN, version, body, lambda found: found.error_code)

    def close(self) -> None:
        self._leader.close()
        self._coordinator.close()


def _added(answer: Any) -> int:
    topic = answer.results_by_topic_v3_and_below[0]
    return int(topic.results_by_partition[0].partition_error_code)


def _produced(answer: Any) -> int:
    return int(answer.responses[0].partition_responses[0].error_code)


class LibrdkafkaProducer:
    """A librdkafka producer, which speaks V1."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._topic = topic
        name = f"bench-{time.time_ns()}"
        config = {"bootstrap.servers": bootstrap, "transactional.id": name, "linger.ms": 0}
        self._producer = Producer({**config, **QUIET})
        self._producer.init_transactions(WAIT_S)

    def transaction(self) -> None:
        self._producer.begin_transaction()
        self._producer.produce(self._topic, b"x" * 100, partition=0)
        self._producer.commit_transaction(WAIT_S)


def ms_of_each(transaction: Callable[[], None], count: int) -> float:
    """The mean time of a transaction, which ends when the next one could begin."""
    for _ in range(WARM_UP):
        transaction()
    began_s = time.perf_counter()
    for _ in range(count):
        transaction()
    return (time.perf_counter() - began_s) / count * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description="transactions of one record")
    parser.add_argument("bootstrap")
    parser.add_argument("--partitions", type=int, default=6)
    parser.add_argument("--count", type=int, default=500)
    options = parser.parse_args()
    topic, leaders = make_topic(options.bootstrap, options.partitions)
    _, host, port = leaders[0]
    found: dict[str, float] = {}
    for key, name in (("txn_v1_ms", "v1"), ("txn_v2_ms", "v2")):
        producer = RawProducer(options.bootstrap, topic, (host, port))
        found[key] = ms_of_each(getattr(producer, name), options.count)
        producer.close()
    client = LibrdkafkaProducer(options.bootstrap, topic)
    found["txn_librdkafka_ms"] = ms_of_each(client.transaction, options.count)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
