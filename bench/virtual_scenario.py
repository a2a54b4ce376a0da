"""A minute of virtual time: one producer, 50 records per second, acks=all, two leaders are killed.

Owns: the scenario and its producer, a state machine.  Never: reads a clock.  The cluster has three
brokers and the time constants of profile kafka; the topic has six partitions, replication factor 3.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from bench.wire import ACKS_ALL, batch_of
from kcluster.clients.wire import Wire
from kcluster.config.topology.model import Topology
from kcluster.handle.virtual import VirtualDriver
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey

TOPIC: Final = "orders"
PARTITIONS: Final = 6
DURATION_MS: Final = 60_000
BETWEEN_MS: Final = 20
RETRY_MS: Final = 100
SETTLE_MS: Final = 1_000
KILL_AT_MS: Final = (15_000, 40_000)
DOWN_MS: Final = 10_000
PRODUCE_VERSION: Final = 9
METADATA_VERSION: Final = 9


class Outcome(Struct):
    """`lost`: records that were acked but are not in the leader's log at the end."""

    sent: int
    acked: int
    lost: int
    notes: int


class Producer:
    """Sends one record every 20 ms, each in a separate request, and retries until it is acked."""

    def __init__(self, count: int) -> None:
        self.deadline_ms: int | None = None
        self.acked: dict[tuple[int, int], int] = {}
        """(partition, offset) -> record."""
        self.sent = 0
        self._count = count
        self._batch = batch_of(1, 100)
        self._leaders: dict[int, int] = {}
        self._in_flight: dict[int, tuple[int, int]] = {}
        """Correlation id -> (record, broker)."""
        self._again: list[int] = []
        """Records to be retried."""
        self._asked: int | None = None
        self._next_ms = 0
        self._retry_ms: int | None = None
        self._wire: Wire | None = None

    def start(self, wire: Wire, now_ms: int) -> None:
        self._wire = wire
        self._next_ms = now_ms
        self._ask(now_ms)
        self._set_deadline()

    def on_tick(self, now_ms: int) -> None:
        if self._retry_ms is not None and self._retry_ms <= now_ms:
            self._retry_ms = None
            self._ask(now_ms)
        while self.sent < self._count and self._next_ms <= now_ms:
            self._next_ms += BETWEEN_MS
            self.sent += 1
            self._send(self.sent - 1, now_ms)
        self._set_deadline()

    def on_reply(self, broker_id: int, correlation_id: int, body: Any, now_ms: int) -> None:
        if correlation_id == self._asked:
            self._asked = None
            self._learn(body, now_ms)
        else:
            record, _ = self._in_flight.pop(correlation_id)
            answer = body.responses[0].partition_responses[0]
            if answer.error_code:
                self._retry(record, now_ms)
            else:
                self.acked[record % PARTITIONS, answer.base_offset] = record
        self._set_deadline()

    def on_disconnected(self, broker_id: int, now_ms: int) -> None:
        for number, (record, broker) in tuple(self._in_flight.items()):
            if broker == broker_id:
                del self._in_flight[number]
                self._retry(record, now_ms)
        self._asked = None
        self._retry_ms = now_ms + RETRY_MS
        self._set_deadline()

    def _retry(self, record: int, now_ms: int) -> None:
        self._leaders.pop(record % PARTITIONS, None)
        self._again.append(record)
        if self._retry_ms is None and self._asked is None:
            self._retry_ms = now_ms + RETRY_MS

    def _ask(self, now_ms: int) -> None:
        assert self._wire is not None
        brokers = self._wire.broker_ids
        topic = m.MetadataRequest.MetadataRequestTopic(name=TOPIC)
        body = m.MetadataRequest(topics=[topic], allow_auto_topic_creation=False)
        at = now_ms // RETRY_MS % len(brokers)
        self._asked = self._wire.send(brokers[at], ApiKey.METADATA, METADATA_VERSION, body)

    def _learn(self, body: Any, now_ms: int) -> None:
        partitions = body.topics[0].partitions
        self._leaders = {x.partition_index: x.leader_id for x in partitions if x.leader_id >= 0}
        again, self._again = self._again, []
        for record in again:
            self._send(record, now_ms)

    def _send(self, record: int, now_ms: int) -> None:
        assert self._wire is not None
        partition = record % PARTITIONS
        leader = self._leaders.get(partition)
        if leader is None:
            self._retry(record, now_ms)
            return
        data = m.ProduceRequest.PartitionProduceData(
            index=partition, records=memoryview(bytearray(self._batch))
        )
        topic = m.ProduceRequest.TopicProduceData(name=TOPIC, partition_data=[data])
        body = m.ProduceRequest(acks=ACKS_ALL, timeout_ms=5_000, topic_data=[topic])
        number = self._wire.send(leader, ApiKey.PRODUCE, PRODUCE_VERSION, body)
        self._in_flight[number] = record, leader

    def _set_deadline(self) -> None:
        next_ms = self._next_ms if self.sent < self._count else None
        known = [at for at in (next_ms, self._retry_ms) if at is not None]
        self.deadline_ms = min(known, default=None)

    @property
    def is_done(self) -> bool:
        return self.sent == self._count and not self._in_flight and not self._again


def run_scenario(seed: int = 1) -> Outcome:
    """Run the scenario; the outcome is the same each time."""
    topology = Topology.of(
        brokers=3, topics={TOPIC: {"partitions": PARTITIONS, "replication_factor": 3}}
    )
    driver = VirtualDriver(topology, seed)
    driver.open()
    driver.run_for(SETTLE_MS)
    producer = Producer((DURATION_MS - SETTLE_MS) // BETWEEN_MS)

    def kill_a_leader(down_ms: int) -> None:
        leader = driver.verbs.leader(TOPIC, 0)
        driver.kill(leader)
        driver.at(driver.now_ms + down_ms, lambda: driver.start(leader))

    for at_ms in KILL_AT_MS:
        driver.at(at_ms, lambda: kill_a_leader(DOWN_MS))
    driver.add_client(producer)
    driver.run_until(DURATION_MS)
    # Wait for the acks of the last records.
    driver.run_until_condition(lambda: producer.is_done, 5_000)
    return Outcome(producer.sent, len(producer.acked), _lost(driver, producer), len(driver.notes))


def _lost(driver: VirtualDriver, producer: Producer) -> int:
    ends = {}
    for partition in range(PARTITIONS):
        leader = driver.verbs.leader(TOPIC, partition)
        (ends[partition],) = (
            log.log_end_offset
            for (_, number), log in driver.plan.disks[leader].logs.items()
            if number == partition
        )
    return sum(offset >= ends[partition] for partition, offset in producer.acked)
