"""A share partition at its leader: its window, the timer of its locks, and its persisted state.

Owns: loading, and storing changes before they are answered.  Never: changes a record's state by
itself (window.py, acquisition.py), or decides who leads (the replica's role does).  Kafka:
SharePartition; KIP-932, KIP-1191.

first fetch            loading: a request for the state to the persister its answer
active, from the stored start offset, or from the reset's choice acknowledge, release   stored, then
answered; undone if it cannot be stored a lock ends            taken back at once, then stored
rejected, exhausted    with a dead letter queue: stored as archiving, sent there, then archived
leadership lost        fenced: nothing is acquired any more; members' acknowledgements fail
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from typing import Final, final

from kcluster.broker.coordinator.share_state.persister import SharePersister
from kcluster.broker.coordinator.share_state.state import (
    UNINITIALIZED,
    ReadState,
    SharePartition,
    StateBatch,
)
from kcluster.broker.ports import Outbox
from kcluster.broker.replication.replicas import Replicas
from kcluster.broker.serving.reading import READ_COMMITTED, PartitionRead, read_partition
from kcluster.broker.serving.sessions import Reader, SessionPartition
from kcluster.broker.share.acquisition import Acquired, Acquirer, acquire, without_aborted
from kcluster.broker.share.configs import (
    EARLIEST,
    LATEST,
    ShareConfigs,
    ShareSettings,
    reset_duration_ms,
)
from kcluster.broker.share.dead_letters import DeadLetters
from kcluster.broker.share.in_flight import (
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    DeadLetterBatch,
    RecordState,
    Transition,
)
from kcluster.broker.share.window import (
    Acknowledgement,
    AcknowledgeOutcome,
    InFlightWindow,
    ShareLimits,
    expired_for_good,
)
from kcluster.events.share_groups import ShareLocksExpired, SharePartitionLoaded
from kcluster.partition.producers import AbortedTransaction
from kcluster.partition.replica import Replica
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.batches import Batch, InvalidRecords
from kcluster.timers import NEVER_MS, Timers

_NONE: Final = AcknowledgeOutcome(ErrorCode.NONE, "")
_MEANING: Final = {
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
"""The errors of the persister, in the form that a member gets."""
FENCING: Final = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)
"""Errors after which this leader must not go on: the next fetch loads the state again."""

_ANY_BYTES: Final = 0x7FFFFFFF
_ANY_VERSION: Final = 18
_UNCOMMITTED: Final = Reader(m.FetchRequest(), _ANY_VERSION)
_COMMITTED: Final = Reader(m.FetchRequest(isolation_level=READ_COMMITTED), _ANY_VERSION)
for _reader in (_UNCOMMITTED, _COMMITTED):
    _reader.leader_only = True

OnDone = Callable[[AcknowledgeOutcome, int], None]
"""Called with (NONE, or the reason why nothing has changed; now_ms)."""


class ShareLeaderState(Enum):
    """The states of a share partition's leader.  Kafka: SharePartitionState."""

    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"
    FENCED = "fenced"


@final
class ShareLeader:
    """A share partition at its leader.  `error`: the error of a failed load, or NONE.

    `on_useless`: called after the leader has failed, or was fenced by the persister.
    """

    def __init__(
        self,
        key: SharePartition,
        replica: Replica,
        configs: ShareConfigs,
        timers: Timers,
        replicas: Replicas,
        persister: SharePersister,
        dead_letters: DeadLetters,
        outbox: Outbox,
        on_useless: Callable[[SharePartition], None],
    ) -> None:
        self.key = key
        self.replica = replica
        self.leader_epoch = replica.leader_epoch
        self.state = ShareLeaderState.LOADING
        self.error = ErrorCode.NONE
        self.window = InFlightWindow(0, 0)
        self._configs = configs
        self._timers = timers
        self._replicas = replicas
        self._persister = persister
        self._dead_letters = dead_letters
        self._outbox = outbox
        self._on_useless = on_useless
        self._timer = ("share locks", *key)
        self._timer_ms = NEVER_MS
        partition = m.FetchRequest.FetchPartition(
            partition=key.partition, partition_max_bytes=_ANY_BYTES
        )
        self._wanted = SessionPartition(key[1:], replica.topic, key.topic_id, partition)

    def __repr__(self) -> str:
        return f"<ShareLeader {self.key.group_id} {self.replica.name} {self.window}>"

    @property
    def is_active(self) -> bool:
        return self.state is ShareLeaderState.ACTIVE

    @property
    def settings(self) -> ShareSettings:
        """The current settings of the group, each from its own configs or else the broker's."""
        return self._configs.of(self.key.group_id)

    @property
    def limits(self) -> ShareLimits:
        return self.settings.limits

    # --------------------------------------------------------------------------------- loading

    def load(self, now_ms: int) -> None:
        """Request the state from the persister."""
        self._persister.read(self.key, self.leader_epoch, self._on_read, now_ms)

    def _on_read(self, read: ReadState | ErrorCode, now_ms: int) -> None:
        if self.state is not ShareLeaderState.LOADING:
            return  # this leader was fenced in between
        if isinstance(read, ErrorCode):
            self._fail(_MEANING.get(read, ErrorCode.UNKNOWN_SERVER_ERROR))
            return
        start_offset: int | ErrorCode = read.start_offset
        if read.start_offset == UNINITIALIZED:
            start_offset = self._choose_start_offset(now_ms)
        if isinstance(start_offset, ErrorCode):
            self._fail(start_offset)
            return
        window = InFlightWindow.load(read, start_offset)
        if window is None:
            self._fail(ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        self.window = window
        self.state = ShareLeaderState.ACTIVE
        self._outbox.note(
            SharePartitionLoaded(
                group=self.key.group_id,
                topic=self.replica.topic,
                partition=self.replica.partition,
                broker=self.replica.broker_id,
                leader_epoch=self.leader_epoch,
                start_offset=window.start_offset,
                in_flight_records=window.in_flight_records,
            ),
            self.replica.cause,
        )
        self._replicas.touch(self.replica)
        self._send_dead_letters(window.archiving(self.limits), now_ms)

    def _fail(self, error: ErrorCode) -> None:
        self.state = ShareLeaderState.FAILED
        self.error = error
        self._replicas.touch(self.replica)
        self._on_useless(self.key)

    def _choose_start_offset(self, now_ms: int) -> int | ErrorCode:
        """Choose the start offset by share.auto.offset.reset."""
        replica, log = self.replica, self.replica.log
        error = replica.check_leader(self.leader_epoch)
        if error:
            return error
        reset = self.settings.reset
        if reset == EARLIEST:
            return log.log_start_offset
        if replica.high_watermark < replica.leader_epoch_start_offset:
            # A new leader does not know yet which records were committed before it.
            return ErrorCode.OFFSET_NOT_AVAILABLE
        if reset == LATEST:
            return replica.high_watermark
        try:
            record_max = self.replica.config.max_decompressed_message_bytes
            found = log.offset_for_timestamp(now_ms - reset_duration_ms(reset), record_max)
        except InvalidRecords as problem:
            return problem.error
        if found is None or found[1] >= replica.high_watermark:
            return ErrorCode.OFFSET_NOT_AVAILABLE
        return found[1]

    def fence(self) -> None:
        """Stop, because this broker no longer leads the partition, or the state belongs to another
        leader."""
        if self.state is not ShareLeaderState.FAILED:
            self.state = ShareLeaderState.FENCED
        self._timers.cancel(self._timer)
        self._replicas.touch(self.replica)

    # ------------------------------------------------------------------- reading and acquiring

    def read(self, max_bytes: int, max_records: int, at_least_one: bool) -> PartitionRead:
        """Read at the next fetch offset, `max_bytes` at most; `at_least_one`: one batch even if it
        is larger.  Records beyond the window and `max_records` after it cannot be acquired, and are
        not read."""
        window, wanted = self.window, self._wanted
        wanted.fetch_offset = window.next_fetch_offset()
        wanted.current_leader_epoch = self.replica.leader_epoch
        reader = _COMMITTED if self.settings.is_read_committed else _UNCOMMITTED
        last_offset = max(wanted.fetch_offset, window.end_offset + 1) + max(max_records, 1) - 1
        return read_partition(
            self.replica, wanted, reader, max_bytes, at_least_one, last_offset=last_offset
        )

    def can_acquire(self) -> bool:
        return self.is_active and self.window.can_acquire(self.limits)

    def acquire(
        self,
        acquirer: Acquirer,
        fetch_offset: int,
        fetched: Sequence[Batch],
        aborted: Sequence[AbortedTransaction],
        now_ms: int,
    ) -> list[Acquired]:
        """Acquire records from a read at `fetch_offset`.  `aborted`: for a read_committed group."""
        if not self.is_active:
            return []
        window = self.window
        acquired = acquire(window, acquirer, self.limits, fetch_offset, fetched, now_ms)
        if acquired:
            if aborted:
                acquired = without_aborted(window, acquired, fetched, aborted)
            self._await_locks(now_ms + self.limits.lock_duration_ms)
        return acquired

    def move_log_start(self) -> None:
        """Move the start, because the log starts after the offset that was to be fetched."""
        self.window.move_log_start(self.replica.log.log_start_offset)

    # --------------------------------------------------------------------------- acknowledging

    def acknowledge(
        self,
        member_id: str,
        acknowledgements: Sequence[Acknowledgement],
        on_done: OnDone,
        now_ms: int,
    ) -> None:
        """Apply a member's report; `on_done` is called once, maybe before this returns."""
        begun = self.window.acknowledge(member_id, acknowledgements, self.limits, now_ms)
        if isinstance(begun, AcknowledgeOutcome):
            on_done(begun, now_ms)
        else:
            self._store(begun, on_done, now_ms)

    def release(self, member_id: str, now_ms: int) -> None:
        """Release the records that a member has acquired, after its session has ended."""
        self._store(self.window.release(member_id, self.limits), _ignore, now_ms)

    def _store(self, transition: Transition, on_done: OnDone, now_ms: int) -> None:
        if not transition.state_batches:
            on_done(_NONE, now_ms)
            return

        def written(error: ErrorCode, at_ms: int) -> None:
            self.window.complete(transition, not error, self.limits, at_ms)
            self._replicas.touch(self.replica)
            if error:
                self._await_locks(self.window.next_deadline_ms)  # members hold the records again
                meaning = _MEANING.get(error, ErrorCode.UNKNOWN_SERVER_ERROR)
                if meaning in FENCING:
                    self._on_useless(self.key)
                on_done(AcknowledgeOutcome(meaning, "The change could not be stored."), at_ms)
            else:
                on_done(_NONE, at_ms)
                self._send_dead_letters(transition.dead_letters, at_ms)

        self._write(transition.state_batches, written, now_ms)

    def _write(
        self, batches: list[StateBatch], on_written: Callable[[ErrorCode, int], None], now_ms: int
    ) -> None:
        window = self.window
        self._persister.write(
            self.key,
            window.state_epoch,
            self.leader_epoch,
            window.start_offset,
            window.delivery_complete_count,
            batches,
            on_written,
            now_ms,
        )

    # ---------------------------------------------------------------------------- dead letters

    def _send_dead_letters(self, batches: Sequence[DeadLetterBatch], now_ms: int) -> None:
        for batch in batches:
            self._dead_letters.send(
                self.key, self.replica, batch, partial(self._on_dead_letters, batch), now_ms
            )

    def _on_dead_letters(self, batch: DeadLetterBatch, now_ms: int) -> None:
        """Archive the records, which are in the queue or cannot get there."""
        self.window.archive(batch.first_offset, batch.last_offset, ARCHIVING)
        archived = StateBatch(batch.first_offset, batch.last_offset, ARCHIVED, batch.delivery_count)
        self._write([archived], self._on_archived, now_ms)

    def _on_archived(self, _error: ErrorCode, _now_ms: int) -> None:
        """Finish the transition; if it was not stored, the next leader sends the records again."""
        if self.window.advance_start():
            self._replicas.touch(self.replica)

    # ----------------------------------------------------------------------------------- locks

    def _await_locks(self, deadline_ms: int) -> None:
        """Set the timer for all locks, to the end of the first lock at the latest."""
        if deadline_ms < self._timer_ms and self.is_active:
            self._timer_ms = deadline_ms
            self._timers.set(self._timer, deadline_ms, self._on_timer)

    def _on_timer(self, now_ms: int) -> None:
        self._timer_ms = NEVER_MS
        expired = self.window.expire_locks(self.limits, now_ms)
        self._await_locks(self.window.next_deadline_ms)
        if expired:
            self._replicas.touch(self.replica)
            self._note_expired(expired)
            self._write(expired, partial(self._on_expiry_written, expired), now_ms)

    def _note_expired(self, expired: list[StateBatch]) -> None:
        counts = {AVAILABLE: 0, ARCHIVING: 0, ARCHIVED: 0}
        for batch in expired:
            counts[RecordState(batch.delivery_state)] += batch.last_offset - batch.first_offset + 1
        self._outbox.note(
            ShareLocksExpired(
                group=self.key.group_id,
                topic=self.replica.topic,
                partition=self.replica.partition,
                broker=self.replica.broker_id,
                records=sum(counts.values()),
                archived_records=counts[ARCHIVED] + counts[ARCHIVING],
            )
        )

    def _on_expiry_written(
        self, expired: Sequence[StateBatch], _error: ErrorCode, now_ms: int
    ) -> None:
        """Finish the transition; the locks have ended, stored or not, and the next write stores
        that again."""
        if self.window.advance_start():
            self._replicas.touch(self.replica)
        self._send_dead_letters(expired_for_good(expired), now_ms)


def _ignore(_outcome: AcknowledgeOutcome, _now_ms: int) -> None:
    """Ignore the outcome: if the change cannot be stored, the locks end by themselves."""
