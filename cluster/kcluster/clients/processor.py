"""The project's own processor: it reads a topic, writes another, and commits both in transactions.

Owns: the loop of the application (poll, one output for each input, sendOffsetsToTransaction,
commit), and the connections of two clients to each broker.  Never: does the work of its consumer
and producer.
Kafka: an application with KafkaConsumer and KafkaProducer as in KIP-447; Kafka Streams with
exactly_once_v2 does the same.

After an abort the application reads again from the committed offsets.  After a fatal error it ends.
DIFFERS: after an abort because of an error it waits for retry.backoff.ms first.  Each attempt of
Kafka's clients takes time anyway.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, Self

from kcluster.clients.consumer.consumer import Consumer
from kcluster.clients.consumer.positions import Position
from kcluster.clients.consumer.settings import ConsumerPlan, ConsumerSettings
from kcluster.clients.ledger import (
    ClientTransaction,
    Ledger,
    Partition,
    SentRecord,
    TransactionOffsets,
    TransactionOutcome,
)
from kcluster.clients.producer.producer import TransactionalProducer
from kcluster.clients.producer.sender import Sender
from kcluster.clients.producer.settings import ProducerPlan, ProducerSettings
from kcluster.clients.producer.transactional_workload import (
    TRANSACTION_ABORTED,
    TransactionalApplication,
)
from kcluster.clients.producer.transactions import Transactions
from kcluster.clients.wire import PRODUCER_CONNECTION, Wire
from kcluster.contract import Rng
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.messages import Message
from kcluster.protocol.records.records import Record
from kcluster.timers import NEVER_MS

BUSY_US: Final = NEVER_MS * 1_000
"""The busy time of an application in a transaction: endless, as it does not call poll() before the
transaction's end."""

_MEMBERSHIP_ERRORS: Final = (
    ErrorCode.UNKNOWN_MEMBER_ID.name,
    ErrorCode.ILLEGAL_GENERATION.name,
    ErrorCode.FENCED_INSTANCE_ID.name,
)
"""Errors with which a group refuses a member that is unknown to it, or that has an older
generation."""

Input = tuple[Partition, int, int]
"""(partition, offset, leader epoch) of a record to be processed."""


class ProducerWire:
    """The wire of a processor's producer: the processor's own, with separate connections."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    @property
    def client_id(self) -> int:
        return self._wire.client_id

    @property
    def broker_ids(self) -> tuple[int, ...]:
        return self._wire.broker_ids

    @property
    def rng(self) -> Rng:
        return self._wire.rng

    def send(
        self,
        broker_id: int,
        api_key: int,
        api_version: int,
        body: Message,
        *,
        answered: bool = True,
    ) -> int:
        name = broker_id + PRODUCER_CONNECTION
        return self._wire.send(name, api_key, api_version, body, answered=answered)

    def disconnect(self, broker_id: int) -> None:
        self._wire.disconnect(broker_id + PRODUCER_CONNECTION)


class ProcessorConsumer(Consumer):
    """A consumer whose application is in a transaction from each poll() with records to its end."""

    def __init__(
        self, name: str, ledger: Ledger, plan: ConsumerPlan, settings: ConsumerSettings
    ) -> None:
        super().__init__(name, ledger, plan, settings)
        self.inputs: deque[Input] = deque()

    def _deliver(self, fetched: list[tuple[Position, list[Record]]], now_ms: int) -> None:
        super()._deliver(fetched, now_ms)
        for position, records in fetched:
            epoch = position.offset_epoch
            self.inputs += [(position.key, record.offset, epoch) for record in records]
            self._busy_until_us = BUSY_US

    def continue_polling(self, ended: ClientTransaction, now_ms: int) -> None:
        """Continue after a transaction.  If it was not committed, read again from the committed
        offsets."""
        self._busy_until_us = 0
        if ended.outcome is not TransactionOutcome.COMMITTED:
            assigned = list(self.positions)
            self.positions.assign([])
            self.positions.assign(assigned)
            self.commits.fetch_committed_ms = 0
            if ended.error != TRANSACTION_ABORTED:
                self._on_failed(ended, now_ms)
        self._turn(now_ms)

    def _on_failed(self, ended: ClientTransaction, now_ms: int) -> None:
        """Continue after a transaction that an error aborted.  If the group refused the offsets,
        the member joins again, as after a refused OffsetCommit.  Kafka Streams:
        TaskMigratedException, after which the thread subscribes again."""
        self._busy_until_us = (now_ms + self.settings.retry_backoff_ms) * 1_000
        offsets, error = ended.offsets, ended.error
        if offsets is not None and error in _MEMBERSHIP_ERRORS:
            generation = (offsets.generation, offsets.member)
            self.commits.refused(ErrorCode[error], generation, now_ms)

    def offsets_of(self, inputs: list[Input]) -> TransactionOffsets:
        """The offsets after these records, for the commit of a member of the group."""
        offsets: dict[Partition, tuple[int, int]] = {}
        for partition, offset, epoch in inputs:
            offsets[partition] = (offset + 1, epoch)
        assert self.group is not None
        generation, member = self.group.member.generation
        settings = self.settings
        return TransactionOffsets(
            settings.group_id, offsets, generation, member, settings.group_instance_id
        )


class ProcessorApplication(TransactionalApplication):
    """Makes one record of each input.  `on_ended(transaction)`: called at the end of each
    transaction."""

    def __init__(
        self,
        name: str,
        ledger: Ledger,
        plan: ProducerPlan,
        sender: Sender,
        transactions: Transactions,
    ) -> None:
        super().__init__(name, ledger, plan, sender, transactions)
        self.inputs: deque[Input] = deque()
        self.on_ended: Callable[[ClientTransaction], None] | None = None
        self._offsets: TransactionOffsets | None = None
        self._source: Input | None = None
        self._has_sent_offsets = False

    def process(self, inputs: deque[Input], offsets: TransactionOffsets, now_ms: int) -> None:
        """Process these records in the next transaction."""
        self.inputs, self._offsets = inputs, offsets
        self.due_ms = now_ms

    def _next_ms(self) -> int:
        return 0 if self.inputs else NEVER_MS

    def _is_exhausted(self) -> bool:
        return False

    def _start_transaction(self, now_ms: int) -> None:
        super()._start_transaction(now_ms)
        self._has_sent_offsets = False

    def _fill(self, now_ms: int) -> bool:
        assert self.transaction is not None
        if self._record is None and not self.inputs:
            if not self._has_sent_offsets and self._offsets is not None:
                self._has_sent_offsets = True
                self.transaction.offsets = self._offsets
                self.transactions.send_offsets(self._offsets)
            if self.transactions.has_open_offsets:
                self.due_ms = self._give_up_ms
                if now_ms < self._give_up_ms:
                    return False
                self._abort("REQUEST_TIMED_OUT", now_ms)
                return True
            return self._finish(now_ms)
        if self._record is None:
            self._source = self.inputs.popleft()
            self._create_record(now_ms)
        return self._append(now_ms)

    def _new_send(self, now_ms: int, topic: str, index: int, value: bytes) -> SentRecord:
        send = super()._new_send(now_ms, topic, index, value)
        if self._source is not None:
            send.source = (self._source[0], self._source[1])
        return send

    def _close_transaction(self, outcome: TransactionOutcome, error: str, now_ms: int) -> None:
        ended = self.transaction
        super()._close_transaction(outcome, error, now_ms)
        if ended is not None and self.on_ended is not None:
            self.inputs = deque()
            self.on_ended(ended)


class ProcessorProducer(TransactionalProducer):
    """The producer of a processor."""

    def _new_application(
        self, name: str, ledger: Ledger, plan: ProducerPlan, transactions: Transactions
    ) -> TransactionalApplication:
        return ProcessorApplication(name, ledger, plan, self.sender, transactions)


class Processor:
    """A processor (wire.py's ClientStateMachine), with the interface of a consumer of its input
    topic.

    `failed`: the error that ended the processor; "" for none.
    """

    def __init__(
        self,
        name: str,
        ledger: Ledger,
        reads: tuple[ConsumerPlan, ConsumerSettings],
        writes: tuple[ProducerPlan, ProducerSettings],
    ) -> None:
        self.name = name
        self.consumer = ProcessorConsumer(name, ledger, *reads)
        self.producer = ProcessorProducer(name, ledger, *writes)
        application = self.producer.transactional
        assert isinstance(application, ProcessorApplication)
        self.application = application
        application.on_ended = self._on_ended
        self.plan, self.settings = reads
        self._ended: ClientTransaction | None = None
        """The last transaction, until the consumer has been notified of its end."""

    # ------------------------------------------------------------------------- callbacks

    @property
    def deadline_ms(self) -> int | None:
        deadlines = [self.consumer.deadline_ms, self.producer.deadline_ms]
        return min((x for x in deadlines if x is not None), default=None)

    @property
    def is_done(self) -> bool:
        """Whether both clients are closed."""
        return self.consumer.is_done and self.producer.is_done

    @property
    def is_idle(self) -> bool:
        """Whether no transaction is open."""
        return self.application.transaction is None and not self.consumer.inputs

    @property
    def failed(self) -> str:
        transactions = self.producer.transactions
        return self.consumer.failed or (transactions.error if transactions.is_fatal else "")

    def start(self, wire: Wire, now_ms: int) -> None:
        """Start the application, which starts both clients."""
        self.producer.start(ProducerWire(wire), now_ms)
        self.consumer.start(wire, now_ms)
        self._hand_over(now_ms)

    def on_reply(self, broker_id: int, correlation_id: int, body: Message, now_ms: int) -> None:
        """Handle a response."""
        if broker_id & PRODUCER_CONNECTION:
            name = broker_id - PRODUCER_CONNECTION
            self.producer.on_reply(name, correlation_id, body, now_ms)
        else:
            self.consumer.on_reply(broker_id, correlation_id, body, now_ms)
        self._hand_over(now_ms)

    def on_disconnected(self, broker_id: int, now_ms: int) -> None:
        """Handle the end of a connection."""
        if broker_id & PRODUCER_CONNECTION:
            self.producer.on_disconnected(broker_id - PRODUCER_CONNECTION, now_ms)
        else:
            self.consumer.on_disconnected(broker_id, now_ms)
        self._hand_over(now_ms)

    def on_login_failed(self, broker_id: int, error: str, now_ms: int) -> None:
        """Handle the refusal of a login."""
        if broker_id & PRODUCER_CONNECTION:
            self.producer.on_login_failed(broker_id - PRODUCER_CONNECTION, error, now_ms)
        else:
            self.consumer.on_login_failed(broker_id, error, now_ms)
        self._hand_over(now_ms)

    def on_tick(self, now_ms: int) -> None:
        """Take a turn, because `deadline_ms` has come."""
        for client in (self.producer, self.consumer):
            if client.deadline_ms is not None and client.deadline_ms <= now_ms:
                client.on_tick(now_ms)
        self._hand_over(now_ms)

    # --------------------------------------------------------------------------- control

    def stop(self, now_ms: int) -> None:
        """End after the current transaction; the consumer leaves its group."""
        self.producer.stop(now_ms)
        self._hand_over(now_ms)

    def abort(self, now_ms: int) -> None:
        """Die with the process: send nothing more."""
        self.producer.abort(now_ms)
        self.consumer.abort(now_ms)

    def again(self, age_ms: int, last: Self) -> Self:
        """The processor of a process that starts again, `age_ms` after the first start.  `last`:
        the processor that ran before.  The numbers of its records go on."""
        producer = self.producer
        made = type(self)(
            self.name,
            self.consumer.ledger,
            (self.plan.later(age_ms), self.settings),
            (producer.plan.later(age_ms), producer.settings),
        )
        made.application.follow(last.application)
        return made

    @property
    def assignment(self) -> tuple[Partition, ...]:
        """The assigned partitions."""
        return self.consumer.assignment

    def position(self, topic: str, partition: int) -> int:
        """The offset of the next record; -1 if there is no position."""
        return self.consumer.position(topic, partition)

    def leader_epoch(self, topic: str, partition: int) -> int:
        """The newest leader epoch that the processor has seen; NO_EPOCH if it has seen none."""
        return self.consumer.leader_epoch(topic, partition)

    # ----------------------------------------------------------------------- application

    def _on_ended(self, ended: ClientTransaction) -> None:
        self._ended = ended

    def _hand_over(self, now_ms: int) -> None:
        """Pass records from the consumer to the producer, and ends of transactions back."""
        consumer, producer, application = self.consumer, self.producer, self.application
        while True:
            if self._ended is not None and not producer.transactions.is_busy:
                ended, self._ended = self._ended, None
                if not consumer.is_done:
                    consumer.continue_polling(ended, now_ms)
            elif consumer.inputs and application.transaction is None and not producer.is_done:
                inputs, consumer.inputs = consumer.inputs, deque()
                application.process(inputs, consumer.offsets_of(list(inputs)), now_ms)
                producer.on_tick(now_ms)
            else:
                break
        if producer.is_done and not consumer.is_done:
            consumer.stop(now_ms)
