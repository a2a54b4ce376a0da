"""One partition of an internal topic that this broker leads, as the log of a coordinator.

Owns: the life of such a shard, for coordinators of every kind: load on election, append records
atomically, apply them and answer when they are committed, unload on resignation.  Never: knows a
record's meaning (the subclass does), finds the shard of a key (shards.py).
Kafka: CoordinatorRuntime's context of one partition, CoordinatorLoader; TransactionStateManager.

    load      replay what the log holds; then `resume`.  Answers wait until all of it is committed
    append    one batch, whole or not at all; its records are applied when all in-sync replicas have
              it, and only then is the caller answered
    unload    callers that wait get NOT_COORDINATOR, and the state is forgotten: the next leader has
              the records that its log kept, and no others

Writes take effect in the order in which they were appended.  A write that timed out is still in
the log.  It keeps its place in the queue and takes effect when the high watermark passes it after
all, as it would for a broker that loads the log.

The time at which a record takes effect depends on the readers of its state.  Every write is
answered when it is committed.

    apply, when it is committed     offsets and transactions: others read them at any time, and must
                                    not see what a failover could take back
    put, as soon as it is written   (`at_once`) groups with epochs and share states: only the next
                                    decision reads them, and that is committed after this one

If an append is refused, nothing has changed.  If the log loses a write, this broker no longer
leads, and the next leader loads a log without it.  (Kafka applies all records before the append,
rolls back to a snapshot of its timeline collections if that fails, and reads offsets at the last
committed offset; the transaction coordinator, which has no such collections, applies when
committed.)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from typing import ClassVar, Final, Generic, TypeVar

from msgspec import Struct

from kcluster.broker.coordinator.interface import (
    A,
    CoordinatorBroker,
    CoordinatorResult,
    OnAnswer,
    RequestRefused,
    Settled,
    ignore_outcome,
)
from kcluster.broker.coordinator.records import CoordinatorRecord, encode_records
from kcluster.broker.serving.appends import CommitWait
from kcluster.partition.replica import Replica
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.records import Batch

_MAY_BE_IN_LOG: Final = (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)

_ANSWERS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""An append's error -> the error that the coordinator's client gets.  Kafka:
CoordinatorOperationExceptionHelper."""

R = TypeVar("R", bound=CoordinatorRecord)


class _Write(Struct):
    sequence: int
    apply: Callable[[int], None] | None
    """Puts the write into effect; None once it has been called."""
    on_settled: Settled | None
    """Called when the write is settled; None once it has been called."""
    waiters: list[Settled]
    """Callbacks for the time when this write and all before it are settled."""
    end_offset: int = -1
    """The log end offset after the write; -1 if it is not appended."""
    is_refused: bool = False
    """Whether the write was refused, and never came into the log."""


class LogShard(ABC, Generic[R]):
    """One partition's coordinator.  A subclass has the state, and applies and replays records."""

    topic: ClassVar[str]

    def __init__(self, broker: CoordinatorBroker, partition: int) -> None:
        self.broker = broker
        self.partition = partition
        self.active = True
        """Whether this broker leads the partition; False from its resignation on."""
        self._writes: deque[_Write] = deque()
        self._writes_made = 0
        self._loaded_end_offset = 0

    # ------------------------------------------------------------ what a kind of shard adds

    @property
    def write_timeout_ms(self) -> int:
        """The time after which a write that is not committed is answered with
        COORDINATOR_NOT_AVAILABLE."""
        return self.broker.config.offsets_commit_timeout_ms

    @property
    def load_bytes(self) -> int:
        """The most bytes of the log that are read at a time."""
        return self.broker.config.offsets_load_buffer_size

    @property
    def compression(self) -> int:
        """The codec of appended batches; 0 for none."""
        return 0

    def put(self, record: R, offset: int) -> None:
        """Put a record into effect that is in the log, at `offset`."""
        raise AssertionError(f"{self.topic}: {record} takes effect when it is committed")

    def apply(self, record: R, now_ms: int) -> None:
        """Put a record into effect that is committed."""
        raise AssertionError(f"{self.topic}: {record} takes effect when it is written")

    @abstractmethod
    def replay(self, batch: Batch) -> None:
        """Replay a batch read from the log, in the order of the log."""

    @abstractmethod
    def resume(self, now_ms: int) -> None:
        """Set timers, because the whole log has been replayed."""

    @abstractmethod
    def forget(self, now_ms: int) -> None:
        """Cancel timers and answer parked requests, because this broker no longer leads the
        partition."""

    # ----------------------------------------------------------------------- writing

    def write(
        self, decided: CoordinatorResult[A] | RequestRefused, on_answer: OnAnswer[A], now_ms: int
    ) -> None:
        """Carry out a decision: write the records, then the effects, then answer. Kafka:
        CoordinatorRuntime.scheduleWriteOperation."""
        if isinstance(decided, RequestRefused):
            on_answer(decided, now_ms)
            return
        decision = decided

        def settled(error: ErrorCode, at_ms: int) -> None:
            if error is ErrorCode.NONE:
                decision.on_committed(at_ms)
                on_answer(decision.response, at_ms)
            else:
                on_answer(RequestRefused(error), at_ms)

        if not decision.records:
            self.after_writes(settled, now_ms)
        elif not self.append(decision.records, settled, now_ms, decision.at_once):
            return
        decision.on_written(now_ms)

    def append(
        self, records: Iterable[R], on_settled: Settled, now_ms: int, at_once: bool = False
    ) -> bool:
        """Append `records` in one batch; `on_settled` is called when they are committed, or cannot
        be. False: they are not in the log, and nothing has changed.

        `at_once`: they take effect as soon as they are in the log.
        """
        written = list(records)
        batch = encode_records(written, now_ms, compression=self.compression)
        replica = self.replica
        base_offset = -1 if replica is None else replica.log.log_end_offset

        def put(_at_ms: int) -> None:
            for index, record in enumerate(written):
                self.put(record, base_offset + index)

        def apply(at_ms: int) -> None:
            for record in written:
                self.apply(record, at_ms)

        effect = put if at_once else apply
        return self.append_batch(batch, effect, on_settled, now_ms, at_once)

    def append_batch(
        self,
        batch: bytearray,
        apply: Callable[[int], None],
        on_settled: Settled,
        now_ms: int,
        at_once: bool = False,
    ) -> bool:
        """Append one batch; `apply`, then `on_settled`, when it is committed.  False: it was
        refused, and is not in the log.

        `at_once`: `apply` as soon as it is in the log.
        """
        self._writes_made += 1
        write = _Write(self._writes_made, apply, on_settled, [])
        self._writes.append(write)
        self.broker.append_internal(
            self.topic,
            self.partition,
            batch,
            lambda error, at_ms: self._on_append(write, error, at_ms),
            self.write_timeout_ms,
            now_ms,
        )
        replica = self.replica
        if replica is not None:
            write.end_offset = replica.log.log_end_offset
        if at_once and not write.is_refused:
            _put_into_effect(write, now_ms)
        return not write.is_refused

    def after_writes(self, on_settled: Settled, now_ms: int) -> None:
        """Call back when everything written so far is committed; at once if it is."""
        self.catch_up(now_ms)
        if not self._writes:
            on_settled(ErrorCode.NONE, now_ms)
        elif self._writes[-1].on_settled is None:
            # It timed out, so no callback will report its commit.
            on_settled(ErrorCode.COORDINATOR_NOT_AVAILABLE, now_ms)
        else:
            self._writes[-1].waiters.append(on_settled)

    def catch_up(self, now_ms: int) -> None:
        """Apply writes that timed out but have been committed since."""
        replica = self.replica
        if replica is None:
            return
        while self._writes:
            first = self._writes[0]
            if first.on_settled is not None or first.end_offset > replica.high_watermark:
                return
            self._take_effect(self._writes.popleft(), now_ms)

    @property
    def has_applied_all(self) -> bool:
        """Whether everything is in effect that is known to be committed."""
        replica = self.replica
        if replica is None or self.check_loaded() is not ErrorCode.NONE:
            return False
        return not self._writes or self._writes[0].end_offset > replica.high_watermark

    def _on_append(self, write: _Write, error: ErrorCode, now_ms: int) -> None:
        if not self.active:
            return
        if error == ErrorCode.NONE:
            while self._writes and self._writes[0].sequence <= write.sequence:
                self._take_effect(self._writes.popleft(), now_ms)
            return
        if error not in _MAY_BE_IN_LOG:
            write.is_refused = True
            self._writes = deque(other for other in self._writes if other is not write)
        self._settle(write, _ANSWERS.get(error, error), now_ms)

    def _take_effect(self, write: _Write, now_ms: int) -> None:
        _put_into_effect(write, now_ms)
        self._settle(write, ErrorCode.NONE, now_ms)

    def _settle(self, write: _Write, error: ErrorCode, now_ms: int) -> None:
        on_settled, write.on_settled = write.on_settled, None
        waiters, write.waiters = write.waiters, []
        if on_settled is not None:
            on_settled(error, now_ms)
        for waiter in waiters:
            waiter(error, now_ms)

    # --------------------------------------------------------------------- lifecycle

    @property
    def replica(self) -> Replica | None:
        """The partition's replica here; None if this broker does not lead it."""
        replica = self.broker.leader_replica(self.topic, self.partition)
        return None if isinstance(replica, ErrorCode) else replica

    def load(self, now_ms: int) -> None:
        """Rebuild the state from the partition's log; then `resume`."""
        replica = self.replica
        assert replica is not None, (self.topic, self.partition)
        log = replica.log
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            batches = log.read(offset, self.load_bytes, log.log_end_offset, True)
            if not batches:
                break
            for batch in batches:
                self.replay(batch)
            offset = batches[-1].last_offset + 1
        self._loaded_end_offset = log.log_end_offset
        if replica.high_watermark < self._loaded_end_offset:
            self._await_loaded(replica, now_ms)
        self.resume(now_ms)

    def _await_loaded(self, replica: Replica, now_ms: int) -> None:
        """Put what was loaded at the head of the queue of writes, until it is committed: the last
        coordinator need not have committed it, and no answer may be based on it before."""
        loaded = _Write(0, None, ignore_outcome, [], self._loaded_end_offset)
        self._writes.append(loaded)

        def settled(error: ErrorCode, at_ms: int) -> None:
            self._on_append(loaded, error, at_ms)

        timeout_ms = self.write_timeout_ms
        self.broker.await_committed(replica, self._loaded_end_offset, settled, timeout_ms, now_ms)

    def check_loaded(self) -> ErrorCode:
        """COORDINATOR_LOAD_IN_PROGRESS until everything loaded is known to be committed.

        A new leader's high watermark lags for a moment.  DIFFERS: Kafka reads at the watermark
        then, and may return an offset older than one that it has acknowledged.
        """
        replica = self.replica
        if replica is None:
            return ErrorCode.NOT_COORDINATOR
        if replica.high_watermark < self._loaded_end_offset:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ErrorCode.NONE

    def when_loaded(self, callback: Callable[[int], None], now_ms: int) -> None:
        """Call `callback(now_ms)` when everything loaded is known to be committed; at once if it
        is.  Never, if this broker resigns first."""
        replica = self.replica
        if replica is None:
            return
        if replica.high_watermark >= self._loaded_end_offset:
            callback(now_ms)
        else:

            def answered(error: ErrorCode, at_ms: int) -> None:
                # Every error but the loss of leadership comes with a watermark past the offset.
                if self.active and error is not ErrorCode.NOT_LEADER_OR_FOLLOWER:
                    callback(at_ms)

            replica.wait_for_ack(CommitWait(self._loaded_end_offset, answered))

    def unload(self, now_ms: int) -> None:
        """Stop being the coordinator: ignore the outcome of writes, and answer NOT_COORDINATOR to
        waiting requests."""
        writes = list(self._writes)
        self._writes.clear()
        self.active = False
        for write in writes:
            self._settle(write, ErrorCode.NOT_COORDINATOR, now_ms)
        self.forget(now_ms)


def _put_into_effect(write: _Write, now_ms: int) -> None:
    apply, write.apply = write.apply, None
    if apply is not None:
        apply(now_ms)
