"""A rig in virtual time under a recorder, with a client that keeps a ledger: what a verdict needs.

Owns: Stage, Hand.  Never: asserts what a test is about.
"""

from __future__ import annotations

from typing import Any

from kcluster.checks.verdict import Verdict, judge
from kcluster.clients.ledger import ClientError, Ledger, Outcome, ReadRecord, SentRecord
from kcluster.clients.wire import Wire
from kcluster.config.topology.model import Topology
from kcluster.evidence.recorder import Recorder
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode, error_of
from kcluster.protocol.records.records import read_records
from tests.rig.cluster import VirtualRig
from tests.rig.requests import (
    batch,
    commit_request,
    fetch_partition,
    fetch_request,
    offset_fetch_request,
    produce_request,
)

P = ("orders", 0)


class Hand:
    """A client that sends given records to given brokers, and records the answers."""

    deadline_ms: int | None = None

    def __init__(self, ledger: Ledger, name: str) -> None:
        self.ledger = ledger
        self.name = name
        self.answers: list[Any] = []
        self._asked: dict[int, list[SentRecord]] = {}

    def start(self, wire: Wire, now_ms: int) -> None:
        self.wire = wire
        self.now_ms = now_ms

    def produce(
        self, broker: int, values: list[bytes], acks: int = -1, again: bool = False
    ) -> list[SentRecord]:
        """Send a batch to orders-0; `again`: these have been sent before."""
        if again:
            sends = [send for send in self.ledger.sends if send.value in values]
        else:
            sends = [
                SentRecord(self.name, P, value, acks, False, sent_ms=self.now_ms)
                for value in values
            ]
            self.ledger.sends += sends
        for send in sends:
            send.attempts += 1
        records = batch(*values, timestamp_ms=7)
        body = produce_request("orders", 0, records, acks=acks, timeout_ms=30_000)
        number = self.wire.send(broker, ApiKey.PRODUCE, 11, body, answered=acks != 0)
        if acks == 0:
            for send in sends:
                send.outcome, send.ended_ms = Outcome.ACKED, self.now_ms
        else:
            self._asked[number] = sends
        return sends

    def read(self, broker: int, offset: int) -> None:
        wanted = fetch_partition(0, offset)
        body = fetch_request("orders", wanted, min_bytes=0, max_bytes=1 << 20)
        self.wire.send(broker, ApiKey.FETCH, 10, body)

    def commit(self, broker: int, group: str, offset: int) -> None:
        self.wire.send(broker, ApiKey.OFFSET_COMMIT, 8, commit_request(group, offset))

    def fetch_offset(self, broker: int, group: str) -> None:
        self.wire.send(broker, ApiKey.OFFSET_FETCH, 8, offset_fetch_request(group))

    def on_reply(self, broker_id: int, correlation_id: int, body: Any, now_ms: int) -> None:
        self.now_ms = now_ms
        self.answers.append(body)
        sends = self._asked.pop(correlation_id, [])
        answer: Any = getattr(body, "responses", None)
        if sends:
            self._on_produced(sends, answer[0].partition_responses[0], now_ms)
        elif answer and hasattr(answer[0], "partitions"):
            for one in answer[0].partitions[0].records or ():
                self.ledger.reads += [
                    ReadRecord(self.name, P, record.offset, record.value, False, now_ms)
                    for record in read_records(one)
                ]

    def _on_produced(self, sends: list[SentRecord], answer: Any, now_ms: int) -> None:
        error = error_of(answer.error_code)
        for index, send in enumerate(sends):
            if error is ErrorCode.NONE:
                send.outcome, send.ended_ms = Outcome.ACKED, now_ms
                send.offset = answer.base_offset + index
            else:
                send.error = error.name
        if error is not ErrorCode.NONE:
            self.ledger.errors.append(ClientError(now_ms, self.name, "Produce", error.name, P))

    def on_disconnected(self, broker_id: int, now_ms: int) -> None:
        self.now_ms = now_ms
        self.ledger.errors.append(ClientError(now_ms, self.name, "Produce", "DISCONNECTED", P))

    def on_tick(self, now_ms: int) -> None:
        raise AssertionError("it has no deadline")


class Stage(VirtualRig):
    """Brokers 1 to 3, orders-0 on all of them, led by broker 1."""

    def __init__(self, latency_ms: int = 0, **config: Any) -> None:
        topology = Topology.of(
            brokers=[{"id": broker, "port": 9_091 + broker} for broker in (1, 2, 3)],
            topics={
                "orders": {"replication_factor": 3, "config": config, "assignment": [[1, 2, 3]]}
            },
            config={
                "broker.session.timeout.ms": 3_000,
                "broker.heartbeat.interval.ms": 700,
                "replica.lag.time.max.ms": 4_000,
                "auto.leader.rebalance.enable": False,
            },
            network={"default_latency_ms": latency_ms},
        )
        super().__init__(topology)
        self.recorder = Recorder(self.dispatcher, self.plan)
        self.ledger = Ledger()
        self.client_ids: dict[str, int] = {}
        self.open()
        self.run_for(3_000)
        self.began_ms = self.now_ms

    def hand(self, name: str = "p0") -> Hand:
        hand = Hand(self.ledger, name)
        self.client_ids[name] = self.add_client(hand).client_id
        return hand

    def run_for(self, duration_ms: int) -> None:
        super().run_for(duration_ms)
        for client in self.clients.values():
            if isinstance(client, Hand):
                client.now_ms = self.now_ms

    def verdict(self, **options: Any) -> Verdict:
        return judge(self.recorder, self.ledger, clients=self.client_ids, **options)
