"""The persister that asks the share coordinators, as brokers do.

Owns: finding the coordinator of a share partition, the requests to it, their order and retries.
Never: stores anything (share_state_shard.py does, on whichever broker).
Kafka: DefaultStatePersister, PersisterStateManager.

Requests go over the fabric, also to a coordinator on the same broker, so a fault can hit them.
Writes of one share partition are sent one after the other.  Writes that arrive before the answer
are sent together, in one request, after it: they take effect in order, and ten acknowledgements do
not cost ten round trips.  A read waits for the writes before it, because its answer must include
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

from msgspec import Struct

from kcluster.broker.coordinator.interface import CoordinatorBroker
from kcluster.broker.coordinator.share_state.coordinator import ShareCoordinator
from kcluster.broker.coordinator.share_state.persister import (
    OnErrors,
    OnRead,
    OnSummaries,
    OnWritten,
    SharePersister,
)
from kcluster.broker.coordinator.share_state.share_state_log import batches_of
from kcluster.broker.coordinator.share_state.state import (
    NO_EPOCH,
    UNINITIALIZED,
    ReadState,
    SharePartition,
    ShareSummary,
    StateBatch,
)
from kcluster.broker.gather import OnPart, gather
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode, error_of
from kcluster.protocol.messages import Message

MAX_ATTEMPTS: Final = 5
"""Kafka: PersisterStateManager.MAX_FIND_COORD_ATTEMPTS."""
_BACKOFFS_PER_TIMEOUT: Final = 30
"""The number of backoffs in request.timeout.ms: Kafka's first backoff is 1 s, a 30th of it, and
profiles scale both."""
_MAX_BACKOFFS: Final = 30

_RETRIABLE: Final = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NETWORK_EXCEPTION,
)

Build = Callable[[str, dict[bytes, list[Message]]], Message]
"""Makes a request from the group id and the request's rows by topic id."""

Results = dict[SharePartition, Any]
"""The row of each share partition in a response, or an ErrorCode."""


class _StateWrite(Struct):
    """A write of one share partition that is still to be sent."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: list[StateBatch]
    waiting: list[OnWritten]


class _Call(Struct):
    """A request about some share partitions of a group, and its results so far."""

    group_id: str
    rows: dict[SharePartition, Message]
    """The rows of the request that are still to be sent, by share partition."""
    build: Build
    on_done: Callable[[Results, int], None]
    results: Results
    attempts: int = 0
    failed: dict[SharePartition, ErrorCode] = {}
    """The retriable errors of this attempt."""


class RemotePersister(SharePersister):
    """A persister whose states are kept by share coordinators."""

    def __init__(self, broker: CoordinatorBroker, coordinators: ShareCoordinator) -> None:
        self._broker = broker
        self._coordinators = coordinators
        self._writing: dict[SharePartition, _StateWrite | None] = {}
        """The share partitions with a write in flight, each with the write that follows it."""
        self._reads_behind: dict[SharePartition, list[Callable[[int], None]]] = {}
        """The reads that wait for the writes of a share partition."""
        self._calls = 0

    # ------------------------------------------------------------------ share-partition leader

    def read(
        self, partition: SharePartition, leader_epoch: int, on_read: OnRead, now_ms: int
    ) -> None:
        if partition in self._writing:
            # DIFFERS: in Kafka a read can overtake an earlier write of a share partition that this
            # broker no longer leads, and the records that the write acknowledges are delivered
            # again.
            behind = self._reads_behind.setdefault(partition, [])
            behind.append(lambda at_ms: self.read(partition, leader_epoch, on_read, at_ms))
            return

        def done(results: Results, at_ms: int) -> None:
            row = results[partition]
            if isinstance(row, ErrorCode):
                on_read(row, at_ms)
            else:
                batches = batches_of(row.state_batches)
                on_read(ReadState(row.state_epoch, row.start_offset, batches), at_ms)

        kind = m.ReadShareGroupStateRequest
        row = kind.PartitionData(partition.partition, leader_epoch)
        build = partial(_request, kind, kind.ReadStateData)
        self._start({partition: row}, build, done, now_ms)

    def write(
        self,
        partition: SharePartition,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Iterable[StateBatch],
        on_written: OnWritten,
        now_ms: int,
    ) -> None:
        new = _StateWrite(
            state_epoch=state_epoch,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=delivery_complete_count,
            batches=list(batches),
            waiting=[on_written],
        )
        if partition not in self._writing:
            self._send_write(partition, new, now_ms)
            return
        before = self._writing[partition]
        if before is not None:
            new.batches = before.batches + new.batches
            new.waiting = before.waiting + new.waiting
            if new.start_offset == UNINITIALIZED:
                new.start_offset = before.start_offset
        self._writing[partition] = new

    def _send_write(self, partition: SharePartition, write: _StateWrite, now_ms: int) -> None:
        self._writing[partition] = None

        def done(results: Results, at_ms: int) -> None:
            row = results[partition]
            error = row if isinstance(row, ErrorCode) else ErrorCode.NONE
            following = self._writing.pop(partition)
            if following is not None:
                self._send_write(partition, following, at_ms)
            for on_written in write.waiting:
                on_written(error, at_ms)
            if partition not in self._writing:
                for read in self._reads_behind.pop(partition, ()):
                    read(at_ms)

        kind = m.WriteShareGroupStateRequest
        row = kind.PartitionData(
            partition=partition.partition,
            state_epoch=write.state_epoch,
            leader_epoch=write.leader_epoch,
            start_offset=write.start_offset,
            delivery_complete_count=write.delivery_complete_count,
            state_batches=[kind.StateBatch(*one) for one in write.batches],
        )
        build = partial(_request, kind, kind.WriteStateData)
        self._start({partition: row}, build, done, now_ms)

    # --------------------------------------------------------------------- group coordinator

    def initialize(
        self, partitions: Mapping[SharePartition, tuple[int, int]], on_done: OnErrors, now_ms: int
    ) -> None:
        kind = m.InitializeShareGroupStateRequest
        rows = {
            one: kind.PartitionData(one.partition, *wanted) for one, wanted in partitions.items()
        }
        build = partial(_request, kind, kind.InitializeStateData)
        self._start_errors(rows, build, on_done, now_ms)

    def delete(self, partitions: Iterable[SharePartition], on_done: OnErrors, now_ms: int) -> None:
        kind = m.DeleteShareGroupStateRequest
        rows = {one: kind.PartitionData(one.partition) for one in partitions}
        build = partial(_request, kind, kind.DeleteStateData)
        self._start_errors(rows, build, on_done, now_ms)

    def _start_errors(
        self, rows: Mapping[SharePartition, Message], build: Build, on_done: OnErrors, now_ms: int
    ) -> None:
        def done(results: Results, at_ms: int) -> None:
            errors = {
                partition: row if isinstance(row, ErrorCode) else ErrorCode.NONE
                for partition, row in results.items()
            }
            on_done(errors, at_ms)

        self._start(rows, build, done, now_ms)

    def summarize(
        self, partitions: Iterable[SharePartition], on_done: OnSummaries, now_ms: int
    ) -> None:
        def done(results: Results, at_ms: int) -> None:
            summaries = {
                partition: row if isinstance(row, ErrorCode) else _summary(row)
                for partition, row in results.items()
            }
            on_done(summaries, at_ms)

        kind = m.ReadShareGroupStateSummaryRequest
        rows = {one: kind.PartitionData(one.partition, NO_EPOCH) for one in partitions}
        build = partial(_request, kind, kind.ReadStateSummaryData)
        self._start(rows, build, done, now_ms)

    # ------------------------------------------------------------------------------- sending

    def _start(
        self,
        rows: Mapping[SharePartition, Message],
        build: Build,
        on_done: Callable[[Results, int], None],
        now_ms: int,
    ) -> None:
        """Start a request about share partitions of one group; without share partitions there is
        nothing to do."""
        group_id = next((partition.group_id for partition in rows), "")
        self._send(_Call(group_id, dict(rows), build, on_done, {}), now_ms)

    def _send(self, call: _Call, now_ms: int) -> None:
        """Send the remaining rows to the coordinators of their share partitions."""
        call.attempts += 1
        call.failed = {}
        by_broker: dict[int, list[SharePartition]] = {}
        for partition in call.rows:
            leader = self._coordinator_of(partition, now_ms)
            if leader is None:
                call.failed[partition] = ErrorCode.COORDINATOR_NOT_AVAILABLE
            else:
                by_broker.setdefault(leader, []).append(partition)

        def send(broker_id: int, on_answer: OnPart[object]) -> None:
            self._send_to(broker_id, call, by_broker[broker_id], on_answer, now_ms)

        def answered(bodies: dict[int, object], at_ms: int) -> None:
            for broker_id, body in bodies.items():
                rows = {} if body is None else _rows(call.group_id, body)
                for partition in by_broker[broker_id]:
                    self._take(call, partition, rows.get(partition))
            self._after_attempt(call, at_ms)

        gather(by_broker, send, answered, now_ms)

    def _coordinator_of(self, partition: SharePartition, now_ms: int) -> int | None:
        """The broker that coordinates a share partition; the topic is created if it does not
        exist."""
        coordinators, image = self._coordinators, self._broker.image
        if coordinators.topic not in image.topics:
            coordinators.create_topic(now_ms)
            return None
        index = coordinators.partition_for(partition.coordinator_key)
        registration = image.partition(coordinators.topic, index)
        leader = None if registration is None else image.brokers.get(registration.leader)
        return None if leader is None or leader.fenced else leader.broker_id

    def _send_to(
        self,
        broker_id: int,
        call: _Call,
        partitions: list[SharePartition],
        on_answer: OnPart[object],
        now_ms: int,
    ) -> None:
        by_topic: dict[bytes, list[Message]] = {}
        for partition in partitions:
            by_topic.setdefault(partition.topic_id, []).append(call.rows[partition])
        self._broker.ask_broker(
            broker_id,
            call.build(call.group_id, by_topic),
            on_answer,
            self._broker.config.request_timeout_ms,
            now_ms,
        )

    def _take(self, call: _Call, partition: SharePartition, row: Any) -> None:
        error = ErrorCode.NETWORK_EXCEPTION if row is None else error_of(row.error_code)
        if error in _RETRIABLE:
            call.failed[partition] = error
            return
        del call.rows[partition]
        call.results[partition] = row if error is ErrorCode.NONE else error

    def _after_attempt(self, call: _Call, now_ms: int) -> None:
        if call.rows and call.attempts < MAX_ATTEMPTS:
            self._calls += 1
            first_ms = max(1, self._broker.config.request_timeout_ms // _BACKOFFS_PER_TIMEOUT)
            backoff_ms = first_ms * min(_MAX_BACKOFFS, 1 << call.attempts - 1)
            timer = ("share-persister", self._calls)
            self._broker.timers.set(
                timer, now_ms + backoff_ms, lambda at_ms: self._send(call, at_ms)
            )
            return
        call.results.update(call.failed)
        call.on_done(call.results, now_ms)


# ---------------------------------------------------------------------------------------- messages


def _rows(group_id: str, body: Any) -> dict[SharePartition, object]:
    return {
        SharePartition(group_id, topic.topic_id, row.partition): row
        for topic in body.results
        for row in topic.partitions
    }


def _summary(row: m.ReadShareGroupStateSummaryResponse.PartitionResult) -> ShareSummary:
    return ShareSummary(
        row.state_epoch, row.leader_epoch, row.start_offset, row.delivery_complete_count
    )


def _request(
    kind: Callable[..., Message],
    topic_data: Callable[..., Message],
    group_id: str,
    by_topic: dict[bytes, list[Message]],
) -> Message:
    """Build a request of class `kind`; `topic_data` builds its entry for a topic."""
    return kind(group_id, [topic_data(*topic) for topic in by_topic.items()])
