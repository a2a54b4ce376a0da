"""An idempotent producer's id and epoch: got, kept, bumped when sequences no longer fit.

Owns: InitProducerId, which batch gets which sequence, what may be sent now, and what an
OUT_OF_ORDER_SEQUENCE_NUMBER or UNKNOWN_PRODUCER_ID means.  Never: fails a batch.
Kafka: TransactionManager of a producer without transactional.id; KIP-98, KIP-360.
"""

from __future__ import annotations

from typing import Any, Final

from kcluster.clients.connections import InFlightRequest, NetworkClient
from kcluster.clients.metadata import NOBODY, backoff_ms
from kcluster.clients.producer.batches import NO_PRODUCER_ID, NO_SEQUENCE, Batch, PartitionQueue
from kcluster.clients.producer.settings import MAX_INT, ProducerSettings
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode, error_of
from kcluster.protocol.records.batches import SEQUENCE_MODULUS

MAX_EPOCH: Final = 32_767
_FATAL: Final = (
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.UNSUPPORTED_VERSION,
)


class Identity:
    """One idempotent producer's.  `fatal`: Kafka's name of an error after which nothing is sent."""

    def __init__(self, settings: ProducerSettings, network: NetworkClient) -> None:
        self.settings = settings
        self.network = network
        self.producer_id = NO_PRODUCER_ID
        self.producer_epoch = -1
        self.fatal = ""
        self.epoch_bumps: list[tuple[int, str]] = []
        """(at_ms, partition) of every partition whose sequences began again."""
        self._asks = False
        self._ask_at_ms = 0
        self._failures = 0
        self._bump_wanted = False
        self._to_restart: dict[PartitionQueue, None] = {}
        self._unresolved: dict[PartitionQueue, None] = {}

    # ------------------------------------------------------------------------ each turn

    @property
    def is_settled(self) -> bool:
        """Nothing for `settle` to do: the usual case, asked first."""
        return not (
            self._unresolved or self._bump_wanted or self.producer_id < 0 or self._to_restart
        )

    def settle(self, now_ms: int) -> None:
        """Resolve what can be, bump the epoch if it must be, ask for an id if there is none."""
        for queue in tuple(self._unresolved):
            if not queue.tracked:
                if not queue.is_next(queue.next_sequence):
                    # All that was under way was given up, so nobody knows what the log has.
                    self.want_bump(queue)
                self._resolved(queue)
        if self._bump_wanted:
            self._bump(now_ms)
        if self.producer_id < 0 and not self._asks and not self.fatal:
            self._ask(now_ms)

    def want_bump(self, queue: PartitionQueue) -> None:
        """Sequences of this partition have a gap: begin again in another epoch."""
        self._bump_wanted = True
        self._to_restart[queue] = None

    def mark_unresolved(self, batch: Batch) -> None:
        """A batch was given up after it had been sent: send no new ones until the sequence of the
        log is known again."""
        queue = batch.queue
        queue.unresolved_sequence = max(queue.unresolved_sequence, batch.next_sequence)
        self._unresolved[queue] = None

    def _resolved(self, queue: PartitionQueue) -> None:
        queue.unresolved_sequence = NO_SEQUENCE
        self._unresolved.pop(queue, None)

    def _bump(self, now_ms: int) -> None:
        self._bump_wanted = False
        if self.producer_epoch == MAX_EPOCH:
            self.producer_id, self.producer_epoch = NO_PRODUCER_ID, -1
        if self.producer_id < 0:
            return  # sequences begin again with the id to come
        self.producer_epoch += 1
        self._restart(now_ms)

    def _restart(self, now_ms: int) -> None:
        for queue in self._to_restart:
            queue.restart_sequences(self.producer_id, self.producer_epoch)
            self._resolved(queue)
            self.epoch_bumps.append((now_ms, f"{queue.topic}-{queue.index}"))
        self._to_restart = {}

    # ---------------------------------------------------------------------------- the id

    def _ask(self, now_ms: int) -> None:
        if now_ms < self._ask_at_ms:
            self.network.wake_at(self._ask_at_ms)
            return
        broker_id = self.network.least_loaded(now_ms)
        if broker_id == NOBODY or not self.network.is_ready(broker_id, now_ms):
            if broker_id == NOBODY:
                self.network.wake_at(now_ms + self.settings.reconnect_backoff_ms)
            return
        self._asks = True
        body = m.InitProducerIdRequest(
            transactional_id=None, transaction_timeout_ms=MAX_INT, producer_id=-1, producer_epoch=-1
        )
        self.network.send(broker_id, ApiKey.INIT_PRODUCER_ID, body, now_ms, self._on_id)

    def _on_id(self, asked: InFlightRequest, body: Any, failure: str, now_ms: int) -> None:
        self._asks = False
        error = ErrorCode.NETWORK_EXCEPTION if failure else error_of(body.error_code)
        if not error:
            self.producer_id, self.producer_epoch = body.producer_id, body.producer_epoch
            self._failures = 0
            self._restart(now_ms)
            return
        self.network.tell(now_ms, ApiKey.INIT_PRODUCER_ID, failure or error.name)
        if not error.retriable:
            self.fatal = error.name
            return
        settings = self.settings
        self._ask_at_ms = now_ms + backoff_ms(
            self._failures,
            settings.retry_backoff_ms,
            settings.retry_backoff_max_ms,
            self.network.rng,
        )
        self._failures += 1

    # --------------------------------------------------------------------------- batches

    def may_send(self, queue: PartitionQueue, batch: Batch) -> bool:
        """Whether the first waiting batch may be sent as far as its sequence goes."""
        if self.producer_id < 0 or self.fatal:
            return False
        if batch.base_sequence == NO_SEQUENCE:
            is_stale = (queue.producer_id, queue.producer_epoch) != (
                self.producer_id,
                self.producer_epoch,
            )
            # With another epoch it might be appended before those that are under way.
            return not (queue.tracked and is_stale) and queue.unresolved_sequence == NO_SEQUENCE
        # What is sent again goes in order, and one at a time.
        return not queue.tracked or queue.tracked[0] is batch

    def identify(self, queue: PartitionQueue, batch: Batch) -> None:
        """Give a batch its sequence, if it has none from an attempt before: a new one would make
        a duplicate of it."""
        if batch.base_sequence != NO_SEQUENCE:
            return
        is_same = queue.producer_id == self.producer_id
        if not (is_same and queue.producer_epoch == self.producer_epoch) and not queue.tracked:
            queue.restart_sequences(self.producer_id, self.producer_epoch)
        batch.identify(self.producer_id, self.producer_epoch, queue.next_sequence)
        queue.next_sequence = (queue.next_sequence + batch.records.count) % SEQUENCE_MODULUS
        queue.tracked.append(batch)

    def on_acked(self, batch: Batch) -> None:
        """The broker has it."""
        queue = batch.queue
        if batch in queue.tracked:
            queue.tracked.remove(batch)
        last = batch.next_sequence - 1
        if last > queue.last_acked_sequence and batch.producer_epoch == queue.producer_epoch:
            queue.last_acked_sequence = last

    def on_failed(self, batch: Batch, error: ErrorCode, *, sequence_is_free: bool) -> None:
        """It was given up.  `sequence_is_free`: the broker refused it, so what comes behind it
        would not fit."""
        queue = batch.queue
        if batch in queue.tracked:
            queue.tracked.remove(batch)
        if error in _FATAL:
            self.fatal = error.name
        elif sequence_is_free and batch.base_sequence != NO_SEQUENCE:
            self.want_bump(queue)

    def may_retry(self, batch: Batch, error: ErrorCode, log_start_offset: int) -> bool:
        """Whether sending it again may help; asks for another epoch where only that helps."""
        queue = batch.queue
        is_resolved = queue.unresolved_sequence == NO_SEQUENCE
        if error is ErrorCode.UNKNOWN_PRODUCER_ID:
            if log_start_offset != -1 and not batch.was_reset:
                self.want_bump(queue)
            return True
        if error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            if is_resolved and (batch.was_reset or not queue.is_next(batch.base_sequence)):
                return True  # the one before it is still under way
            if is_resolved or batch.base_sequence == queue.unresolved_sequence:
                self.want_bump(queue)
            return True
        return error.retriable
