"""Waiting for a running cluster, and observing it: what live and virtual handles share.

Owns: how a verb gets to the driver and waits for it, the events kept for users.  Never: changes a
node's state (verbs.py asks for that), knows which clock runs.  Kafka: no counterpart.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from kcluster.contract import Note
from kcluster.handle.driver import HandleDriver
from kcluster.operations.errors import ClusterError, NotInTime
from kcluster.operations.logs import PartitionLogs, partition_logs
from kcluster.operations.status import (
    BrokerStatus,
    ClusterStatus,
    NoteEntry,
    PartitionStatus,
    broker_statuses,
    cluster_status,
    partition_counts,
    partition_status,
)
from kcluster.operations.verbs import Verbs
from kcluster.runtime.build import Plan

if TYPE_CHECKING:
    from kcluster.operations.conditions import Condition

T = TypeVar("T")

MAX_EVENTS_KEPT: Final = 100_000
CLOCK_POLL_S: Final = 0.05
"""How often a verb that waits checks a clock that was paused or slowed down meanwhile."""


class WaitingVerbs:
    """`wait_for`, `status`, `events` and `subscribe`; what the verbs that wait are made of."""

    driver: HandleDriver
    plan: Plan

    def _begin_observing(self) -> None:
        self._verbs = Verbs(self.plan, self.driver.dispatcher)
        self._settled = self._verbs.settled
        self._sequence = 0
        self.began_ms = self.driver.now_ms()
        """The time of the first event; lines of events count from it."""
        self._events: deque[NoteEntry] = deque(maxlen=MAX_EVENTS_KEPT)
        self._subscribers: tuple[Callable[[NoteEntry], None], ...] = ()
        self.driver.dispatcher.note_sinks = (self._keep,)

    @property
    def verbs(self) -> Verbs:
        """The operations without waiting, for use in the driver's thread."""
        return self._verbs

    # -------------------------------------------------------------------------- observing

    def status(self) -> ClusterStatus:
        """The cluster's state at this moment."""
        return self._do(lambda: cluster_status(self.plan, self.driver.dispatcher))

    def brokers(self) -> list[BrokerStatus]:
        """The brokers' state at this moment: of `status`, what costs little however many partitions
        there are."""
        return self._do(lambda: broker_statuses(self.plan, self.driver.dispatcher))

    def topics(self) -> dict[str, int]:
        """The number of partitions of each topic, by name."""
        return self._do(lambda: partition_counts(self.driver.dispatcher))

    def partition(self, topic: str, partition: int) -> PartitionStatus:
        """One partition's state at this moment; ClusterError if there is no such partition."""

        def read() -> PartitionStatus:
            found = self._verbs.partition(topic, partition)
            return partition_status(topic, found, self.plan.disks, self.driver.dispatcher)

        return self._do(read)

    def logs(self, topic: str, partition: int) -> PartitionLogs:
        """The log of each replica of a partition: where it ends, its epochs, how the replica stands
        beside the leader; ClusterError if there is no such partition."""

        def read() -> PartitionLogs:
            self._verbs.partition(topic, partition)
            return partition_logs(self.plan, self.driver.dispatcher, topic, partition)

        return self._do(read)

    def events(self, since: int = 0) -> list[NoteEntry]:
        """The events after the one with sequence `since`, oldest first."""
        return self._do(lambda: [entry for entry in self._events if entry.sequence > since])

    def sequence_at(self, ago_ms: int) -> int:
        """The sequence of the last event that is older than this."""

        def find() -> int:
            since_ms = self.driver.now_ms() - ago_ms
            older = (entry.sequence for entry in self._events if entry.note.at_ms < since_ms)
            return max(older, default=0)

        return self._do(find)

    def subscribe(self, callback: Callable[[NoteEntry], None]) -> Callable[[], None]:
        """Call `callback(entry)` for every event from now on, in the driver's thread: it must be
        quick and must not call the cluster.  Returns a function that ends the subscription."""
        self._subscribers = (*self._subscribers, callback)

        def end() -> None:
            self._subscribers = tuple(x for x in self._subscribers if x is not callback)

        return end

    def wait_for(
        self,
        condition: str | None = None,
        *,
        within: str | float = 10.0,
        isr: tuple[str, int, int] | None = None,
        leader: tuple[str, int, int] | None = None,
        event: str | None = None,
        since: int | None = None,
        timeout_s: float | None = None,
    ) -> None:
        """Wait until a condition of scenario files holds: `wait_for("isr(orders-0) = 3",
        within="10s")`, `"leader(orders-0) = 2"`, `"event leader_elected of orders-0"`, `"settled"`.
        `within`: such a time, or seconds.  Or wait until the ISR of (topic, partition) has n
        members, until broker b leads (topic, partition), or for an event of this kind.  Events
        count after the one with sequence `since`, by default from now on."""
        from kcluster.operations.conditions import condition_in, limit_ms_of

        asked = (condition, isr, leader, event)
        assert sum(x is not None for x in asked) == 1, (
            "wait_for takes one of a condition, isr, leader, event"
        )
        limit_ms = limit_ms_of(within if timeout_s is None else timeout_s)
        if condition is not None:
            self._wait_for_condition(condition_in(condition), limit_ms, since)
        elif isr is not None:
            topic, partition, size = isr
            self._do(lambda: self._verbs.partition(topic, partition))
            self._wait_until(
                lambda: len(self._verbs.partition(topic, partition).isr) == size,
                limit_ms / 1000,
                f"the ISR of {topic}-{partition} does not have {size} members",
            )
        elif leader is not None:
            topic, partition, broker_id = leader
            self._do(lambda: self._verbs.partition(topic, partition))
            self._wait_until(
                lambda: self._settled.is_led_by(topic, partition, broker_id),
                limit_ms / 1000,
                f"broker {broker_id} does not lead {topic}-{partition}",
            )
        else:
            first = self._sequence if since is None else since
            self._wait_until(
                lambda: any(x.kind == event and x.sequence > first for x in self._events),
                limit_ms / 1000,
                f"no event {event}",
            )

    def _wait_for_condition(self, wanted: Condition, limit_ms: int, since: int | None) -> None:
        from kcluster.operations.conditions import ConditionFacts, no_workload, not_held

        dispatcher = self.driver.dispatcher
        notes: list[Note] = []
        facts = ConditionFacts(dispatcher, self._verbs, notes, no_workload)

        def begin() -> Callable[[], None]:
            if since is not None:
                notes.extend(entry.note for entry in self._events if entry.sequence > since)
            return self.subscribe(lambda entry: notes.append(entry.note))

        end = self._do(begin)
        try:
            held = self._wait(lambda: wanted.holds(facts), limit_ms / 1000, None)
            if not held and not self._do(lambda: wanted.holds(facts)):
                if self.driver.is_clock_paused:
                    limit_ms = 0
                raise NotInTime(self._do(lambda: not_held(wanted, facts, limit_ms)))
        finally:
            end()

    def _keep(self, note: Note) -> None:
        if not self._sequence:
            self.began_ms = note.at_ms
        self._sequence += 1
        entry = NoteEntry(self._sequence, note)
        self._events.append(entry)
        for subscriber in self._subscribers:
            subscriber(entry)

    # ---------------------------------------------------------------- the driver's thread

    def call(self, function: Callable[[], T]) -> T:
        """Call a function in the driver's thread, between two dispatches."""
        return self._do(function)

    def _do(self, function: Callable[[], T]) -> T:
        return self._result(self.driver.call(function), None, "")

    def _wait(self, condition: Callable[[], bool], timeout_s: float, failure: str | None) -> bool:
        """Wait for a condition, by the cluster's clock; not if that is paused.  Returns whether it
        held: perhaps for a moment only, and no longer when this thread runs again.  With `failure`
        None a timeout is not an error."""
        if self.driver.is_clock_paused:
            return False
        driver = self.driver
        future = self._do(lambda: driver.when(condition))
        until_ms = driver.clock_ms() + timeout_s * 1000
        left_s = timeout_s
        try:
            while True:
                try:
                    self._result(future, left_s / driver.clock.speed, failure or "")
                    return True
                except ClusterError:
                    if future.done():
                        raise
                left_s = (until_ms - driver.clock_ms()) / 1000
                if left_s <= 0:
                    break
                left_s = max(left_s, CLOCK_POLL_S)
        finally:
            # Also if whoever waits is interrupted: a client has left, or Ctrl-C.
            if not future.done():
                with suppress(ClusterError):
                    driver.call(lambda: driver.forget_condition(future))
        if failure is not None:
            raise NotInTime(f"{failure} within {timeout_s:g} s")
        return False

    def _wait_until(self, condition: Callable[[], bool], timeout_s: float, failure: str) -> None:
        """The same, but if the clock is paused and the condition does not hold, it is an error."""
        if not self._wait(condition, timeout_s, failure) and not self._do(condition):
            raise ClusterError(f"{failure}, and the clock is paused")

    def _result(self, future: Future[T], timeout_s: float | None, failure: str) -> T:
        """The result of a future of the driver; NotInTime after `timeout_s`."""
        try:
            return future.result(timeout_s)
        except FutureTimeoutError:
            raise NotInTime(f"{failure} within {timeout_s:g} s") from None
