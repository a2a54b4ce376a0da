"""Producers and consumers in virtual time: small, but as persistent as real ones.

Every send and read goes to a Ledger.  A value is `producer:number`, sent by the application once.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from kcluster.clients.ledger import ClientError, Ledger, Outcome, ReadRecord, SentRecord
from kcluster.clients.wire import Wire
from kcluster.drivers.wires.virtual import ClientWire
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode, error_of
from kcluster.protocol.records.records import read_records
from tests.rig.requests import batch, fetch_partition, fetch_request, produce_request

IN_FLIGHT = 3
REQUEST_TIMEOUT_MS = 4_000
EARLIEST = -2
REFUSALS_BORNE = 20
_FATAL = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.INVALID_PRODUCER_EPOCH,
          ErrorCode.UNKNOWN_PRODUCER_ID)  # fmt: skip


class Outgoing(Struct):
    """One batch, from its creation to its outcome."""

    sends: list[SentRecord]
    sequence: int
    attempts: int = 0
    correlation_id: int | None = None
    """Of the request under way."""
    is_open: bool = False
    """Some attempt may have been appended without our knowing."""
    refusals: int = 0


class Producer:
    """Sends to one partition.  Idempotent: retries for ever, IN_FLIGHT at a time, in order; else
    one at a time, never again."""

    def __init__(
        self,
        ledger: Ledger,
        name: str,
        topic: str,
        partition: int,
        acks: int,
        producer_id: int,
        every_ms: int,
        brokers: int,
    ) -> None:
        self.ledger = ledger
        self.name = name
        self.topic = topic
        self.partition = partition
        self.acks = acks
        self.producer_id = producer_id
        self.epoch = 0
        self.every_ms = every_ms
        self.leader = 1 + partition % brokers
        self.pending: list[Outgoing] = []
        self.sequence = 0
        self.made = 0
        self.is_closing = False
        self.deadline_ms: int | None = None
        self.epoch_bumps: list[tuple[int, str]] = []
        self._next_ms = 0
        self._timeouts: dict[int, int] = {}
        self._retry_at_ms = 0
        self._is_known = False
        """The log has a batch of this epoch.  Before, a second one in flight might overtake the
        first: a log takes a producer that it does not know at any sequence (KIP-360)."""

    @property
    def is_idempotent(self) -> bool:
        return self.producer_id >= 0

    def start(self, wire: Wire, now_ms: int) -> None:
        assert isinstance(wire, ClientWire)
        self.wire = wire
        self._next_ms = now_ms + wire.rng.randrange(self.every_ms)
        self._work(now_ms)

    def close(self) -> None:
        """Create no more batches; pending ones are still sent."""
        self.is_closing = True

    # ---------------------------------------------------------------------------- working

    def on_tick(self, now_ms: int) -> None:
        late = [number for number, at_ms in self._timeouts.items() if at_ms <= now_ms]
        if late:
            self._give_up_connection(now_ms, keep_open=self.wire.rng.random() < 0.5)
        if now_ms >= self._next_ms and not self.is_closing:
            self._next_ms = now_ms + 1 + self.wire.rng.randrange(2 * self.every_ms)
            if len(self.pending) < 10:
                self._make(now_ms)
        self._work(now_ms)

    def _make(self, now_ms: int) -> None:
        sends = []
        for _ in range(1 + self.wire.rng.randrange(3)):
            value = f"{self.name}:{self.made}".encode()
            self.made += 1
            partition = (self.topic, self.partition)
            sends.append(
                SentRecord(
                    self.name, partition, value, self.acks, self.is_idempotent, sent_ms=now_ms
                )
            )
        self.ledger.sends += sends
        self.pending.append(Outgoing(sends, self.sequence))
        self.sequence += len(sends)

    def _work(self, now_ms: int) -> None:
        if now_ms >= self._retry_at_ms:
            under_way = sum(out.correlation_id is not None for out in self.pending)
            limit = IN_FLIGHT if self._is_known else 1
            for out in list(self.pending):
                if out.correlation_id is None:
                    if under_way >= limit or (out.attempts and under_way):
                        break
                    self._send(out, now_ms)
                    under_way += 1
                if out.attempts > 1:
                    break  # a retry is sent alone
        deadlines = list(self._timeouts.values())
        if not self.is_closing:
            deadlines.append(self._next_ms)
        if self.pending and now_ms < self._retry_at_ms:
            deadlines.append(self._retry_at_ms)
        elif self.pending and not self._timeouts:
            deadlines.append(now_ms + 50)
        self.deadline_ms = min(deadlines, default=None)

    def _send(self, out: Outgoing, now_ms: int) -> None:
        extra: dict[str, Any] = {}
        if self.is_idempotent:
            extra = {
                "producer_id": self.producer_id,
                "producer_epoch": self.epoch,
                "base_sequence": out.sequence,
            }
        values = [send.value for send in out.sends]
        body = produce_request(
            self.topic,
            self.partition,
            batch(*values, timestamp_ms=now_ms, **extra),
            acks=self.acks,
            timeout_ms=2_000,
        )
        number = self.wire.send(self.leader, ApiKey.PRODUCE, 11, body, answered=self.acks != 0)
        out.attempts += 1
        for send in out.sends:
            send.attempts += 1
        if self.acks == 0:
            self._end(out, Outcome.ACKED, now_ms)
            return
        out.correlation_id = number
        self._timeouts[number] = now_ms + REQUEST_TIMEOUT_MS

    # --------------------------------------------------------------------------- answers

    def on_reply(self, broker_id: int, correlation_id: int, body: Any, now_ms: int) -> None:
        self._timeouts.pop(correlation_id, None)
        out = next((out for out in self.pending if out.correlation_id == correlation_id), None)
        if out is None:
            return
        if any(number < correlation_id for number in self._timeouts):
            # An earlier answer was lost in a cut: over TCP the connection would have broken.
            self._give_up_connection(now_ms, keep_open=False)
            self._work(now_ms)
            return
        out.correlation_id = None
        answer = body.responses[0].partition_responses[0]
        error = ErrorCode(answer.error_code)
        if error is ErrorCode.NONE:
            self._end(out, Outcome.ACKED, now_ms, answer.base_offset)
            self._is_known = self.is_idempotent
        else:
            self._on_error(out, error, answer, now_ms)
        self._work(now_ms)

    def _on_error(self, out: Outgoing, error: ErrorCode, answer: Any, now_ms: int) -> None:
        out.is_open |= not error.definite
        self._record_error(now_ms, error.name, out)
        self._retry_at_ms = now_ms + 50
        if error is ErrorCode.NOT_LEADER_OR_FOLLOWER and answer.current_leader.leader_id > 0:
            self.leader = answer.current_leader.leader_id
        elif error.retriable and self.wire.rng.random() < 0.5:
            self._try_another()
        if not self.is_idempotent:
            self._end(out, Outcome.UNKNOWN if out.is_open else Outcome.FAILED, now_ms)
        elif error in _FATAL and out is self.pending[0]:
            # A deposed leader that does not know it yet may say so; if all say so, then the log
            # lacks what was acked before: records were lost, or it is a bug.
            out.refusals += 1
            self._try_another()
            if out.refusals < REFUSALS_BORNE:
                return
            self.epoch_bumps.append((now_ms, f"{error.name} for {out.sends[0].value!r}"))
            self._begin_epoch()

    def _begin_epoch(self) -> None:
        """Give up what is pending; begin again with sequence 0 (KIP-360)."""
        self.wire.disconnect(self.leader)
        self.pending = []
        self._timeouts = {}
        self.epoch += 1
        self.sequence = 0
        self._is_known = False

    def on_disconnected(self, broker_id: int, now_ms: int) -> None:
        if broker_id == self.leader:
            self._give_up_connection(now_ms, keep_open=False)
        self._work(now_ms)

    def _give_up_connection(self, now_ms: int, keep_open: bool) -> None:
        """Answers will not come, or are no longer waited for."""
        if keep_open:
            self.wire._connections.pop(self.leader, None)  # its requests still arrive
        else:
            self.wire.disconnect(self.leader)
        self._timeouts = {}
        error = "REQUEST_TIMED_OUT" if keep_open else "DISCONNECTED"
        for out in list(self.pending):
            if out.correlation_id is not None:
                self._record_error(now_ms, error, out)
                out.correlation_id, out.is_open = None, True
                if not self.is_idempotent:
                    self._end(out, Outcome.UNKNOWN, now_ms)
        self._try_another()
        self._retry_at_ms = now_ms + 50

    def _record_error(self, now_ms: int, error: str, out: Outgoing) -> None:
        partition = (self.topic, self.partition)
        self.ledger.errors.append(ClientError(now_ms, self.name, "Produce", error, partition))
        for send in out.sends:
            send.error = error

    def _try_another(self) -> None:
        self.leader = self.wire.broker_ids[self.wire.rng.randrange(len(self.wire.broker_ids))]

    def _end(self, out: Outgoing, outcome: Outcome, now_ms: int, base_offset: int = -1) -> None:
        self.pending.remove(out)
        for index, send in enumerate(out.sends):
            send.outcome = outcome
            send.ended_ms = now_ms
            if base_offset >= 0:
                send.offset = base_offset + index


class Consumer:
    """Reads one partition from the beginning, from its leader or, `anywhere`, from any replica."""

    def __init__(
        self, ledger: Ledger, name: str, topic: str, partition: int, anywhere: bool
    ) -> None:
        self.ledger = ledger
        self.name = name
        self.topic = topic
        self.partition = partition
        self.anywhere = anywhere
        self.position = 0
        self.is_closing = False
        self.deadline_ms: int | None = None
        self.broker = 1
        self._restarted = True
        self._under_way: int | None = None

    def start(self, wire: Wire, now_ms: int) -> None:
        assert isinstance(wire, ClientWire)
        self.wire = wire
        self.deadline_ms = now_ms

    def close(self) -> None:
        self.is_closing = True

    def on_tick(self, now_ms: int) -> None:
        if self.is_closing:
            self.deadline_ms = None
            return
        if self._under_way is not None:
            self._under_way = None
            self._record_error(now_ms, "REQUEST_TIMED_OUT")
            self.wire.disconnect(self.broker)
            self._try_another()
        self._fetch(now_ms)

    def _fetch(self, now_ms: int) -> None:
        limit = self.wire.rng.choice((1, 300, 1 << 20))
        partition = fetch_partition(self.partition, self.position, partition_max_bytes=limit)
        body = fetch_request(self.topic, partition, max_wait_ms=1_000, max_bytes=1 << 20)
        self._under_way = self.wire.send(
            self.broker, ApiKey.FETCH, 12 if self.anywhere else 10, body
        )
        self.deadline_ms = now_ms + REQUEST_TIMEOUT_MS

    def _ask_earliest(self, now_ms: int) -> None:
        partition = m.ListOffsetsRequest.ListOffsetsPartition(
            partition_index=self.partition, current_leader_epoch=-1, timestamp=EARLIEST
        )
        topic = m.ListOffsetsRequest.ListOffsetsTopic(name=self.topic, partitions=[partition])
        body = m.ListOffsetsRequest(replica_id=-1, topics=[topic])
        self._under_way = self.wire.send(self.broker, ApiKey.LIST_OFFSETS, 5, body)
        self.deadline_ms = now_ms + REQUEST_TIMEOUT_MS

    def on_reply(self, broker_id: int, correlation_id: int, body: Any, now_ms: int) -> None:
        if correlation_id != self._under_way:
            return
        self._under_way = None
        self.deadline_ms = now_ms + 20
        if hasattr(body, "topics"):
            answer = body.topics[0].partitions[0]
            if not answer.error_code:
                self.position = answer.offset
                self._restarted = True
            return
        answer = body.responses[0].partitions[0]
        if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and not self.anywhere:
            self._ask_earliest(now_ms)
        elif answer.error_code:
            self._record_error(now_ms, error_of(answer.error_code).name)
            self._try_another()
        elif answer.records:
            self._take(answer.records, now_ms)

    def _take(self, batches: Any, now_ms: int) -> None:
        for one in batches:
            for record in read_records(one):
                if record.offset >= self.position:
                    self.ledger.reads.append(
                        ReadRecord(
                            self.name,
                            (self.topic, self.partition),
                            record.offset,
                            record.value,
                            self._restarted,
                            now_ms,
                        )
                    )
                    self.position = record.offset + 1
                    self._restarted = False

    def on_disconnected(self, broker_id: int, now_ms: int) -> None:
        if broker_id == self.broker:
            self._record_error(now_ms, "DISCONNECTED")
            self._under_way = None
            self._try_another()
            self.deadline_ms = now_ms + 50

    def _record_error(self, now_ms: int, error: str) -> None:
        partition = (self.topic, self.partition)
        self.ledger.errors.append(ClientError(now_ms, self.name, "Fetch", error, partition))

    def _try_another(self) -> None:
        self.broker = self.wire.broker_ids[self.wire.rng.randrange(len(self.wire.broker_ids))]


class Asker:
    """Sends single requests and ignores the answers, like an operator's tools."""

    deadline_ms: int | None = None

    def __init__(self) -> None:
        self.answers: list[Any] = []

    def start(self, wire: Wire, now_ms: int) -> None:
        assert isinstance(wire, ClientWire)
        self.wire = wire

    def ask(self, broker_id: int, api_key: ApiKey, version: int, body: Any) -> None:
        self.wire.send(broker_id, api_key, version, body)

    def on_reply(self, broker_id: int, correlation_id: int, body: Any, now_ms: int) -> None:
        self.answers.append(body)

    def on_disconnected(self, broker_id: int, now_ms: int) -> None:
        pass

    def on_tick(self, now_ms: int) -> None:
        raise AssertionError("it has no deadline")
