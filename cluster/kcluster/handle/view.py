"""What users see of a running cluster: `cluster.view.status()`, or `cluster.status()`.

Owns: the questions of users about a cluster, and their waits.  Never: changes a node's state, knows
which clock runs.  Kafka: no counterpart.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from kcluster.contract import Note
from kcluster.handle.port import ClusterPort
from kcluster.operations.errors import ClusterError, NotInTime
from kcluster.operations.logs import PartitionLogs, partition_logs
from kcluster.operations.names import partition_in
from kcluster.operations.python_values import MAX_INT, number_in, wrong
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

if TYPE_CHECKING:
    from kcluster.operations.conditions import Condition


class HandleView:
    """The state and the events of a cluster, and waiting for them."""

    def __init__(self, port: ClusterPort) -> None:
        self._port = port

    def status(self) -> ClusterStatus:
        """The cluster's state at this moment."""
        port = self._port
        return port.call(lambda: cluster_status(port.plan, port.dispatcher))

    def brokers(self) -> list[BrokerStatus]:
        """The brokers' part of `status`, which costs little however many partitions there are."""
        port = self._port
        return port.call(lambda: broker_statuses(port.plan, port.dispatcher))

    def topics(self) -> dict[str, int]:
        """The number of partitions of each topic, by name."""
        return self._port.call(lambda: partition_counts(self._port.dispatcher))

    def partition(self, topic: str, partition: int) -> PartitionStatus:
        """One partition's state at this moment; ClusterError if there is no such partition."""
        port = self._port
        name = partition_in(topic, partition)

        def read() -> PartitionStatus:
            found = port.verbs.partition(*name)
            return partition_status(topic, found, port.plan.disks, port.dispatcher)

        return port.call(read)

    def logs(self, topic: str, partition: int) -> PartitionLogs:
        """The log of each replica of a partition: where it ends, its epochs, how far the replica is
        behind the leader; ClusterError if there is no such partition."""
        port = self._port
        name = partition_in(topic, partition)

        def read() -> PartitionLogs:
            port.verbs.partition(*name)
            return partition_logs(port.plan, port.dispatcher, topic, partition)

        return port.call(read)

    def events(self, since: int = 0) -> list[NoteEntry]:
        """The events after the event with sequence `since`, oldest first."""
        number_in("since", since, -1, math.inf)
        port = self._port
        return port.call(lambda: [entry for entry in port.kept if entry.sequence > since])

    def sequence_at(self, ago_ms: int) -> int:
        """The sequence of the last event that is older than this."""
        port = self._port
        number_in("ago_ms", ago_ms, -MAX_INT, math.inf)

        def find() -> int:
            since_ms = port.driver.now_ms() - ago_ms
            older = (entry.sequence for entry in port.kept if entry.note.at_ms < since_ms)
            return max(older, default=0)

        return port.call(find)

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
        `within`: a time such as `10s`, or seconds.  Or wait until the ISR of (topic, partition) has
        n members, until broker b leads (topic, partition), or for an event of this kind.  Events
        count after the event with sequence `since`, by default from now on."""
        from kcluster.operations.conditions import condition_in, limit_ms_of

        port = self._port
        asked = (condition, isr, leader, event)
        if sum(x is not None for x in asked) != 1:
            raise ClusterError("wait_for takes one of a condition, isr, leader, event")
        limit_ms = limit_ms_of(within if timeout_s is None else timeout_s)
        if condition is not None:
            self._wait_for_condition(condition_in(condition), limit_ms, since)
        elif isr is not None:
            topic, partition, size = _of_partition("isr", isr)
            port.call(lambda: port.verbs.partition(topic, partition))
            port.require(
                lambda: len(port.verbs.partition(topic, partition).isr) == size,
                limit_ms / 1000,
                f"the ISR of {topic}-{partition} does not have {size} members",
            )
        elif leader is not None:
            topic, partition, broker_id = _of_partition("leader", leader)
            port.call(lambda: port.verbs.partition(topic, partition))
            port.require(
                lambda: port.verbs.settled.is_led_by(topic, partition, broker_id),
                limit_ms / 1000,
                f"broker {broker_id} does not lead {topic}-{partition}",
            )
        else:
            first = port.last_sequence if since is None else since
            port.require(
                lambda: any(x.kind == event and x.sequence > first for x in port.kept),
                limit_ms / 1000,
                f"no event {event}",
            )

    def _wait_for_condition(self, wanted: Condition, limit_ms: int, since: int | None) -> None:
        from kcluster.operations.conditions import ConditionFacts, no_workload, not_held

        port = self._port
        notes: list[Note] = []
        facts = ConditionFacts(port.dispatcher, port.verbs, notes, no_workload)

        def begin() -> Callable[[], None]:
            if since is not None:
                notes.extend(entry.note for entry in port.kept if entry.sequence > since)
            return port.subscribe(lambda entry: notes.append(entry.note))

        end = port.call(begin)
        try:
            held = port.wait_until(lambda: wanted.holds(facts), limit_ms / 1000, None)
            if not held and not port.call(lambda: wanted.holds(facts)):
                if port.driver.is_clock_paused:
                    limit_ms = 0
                raise NotInTime(port.call(lambda: not_held(wanted, facts, limit_ms)))
        finally:
            end()


def _of_partition(name: str, asked: tuple[str, int, int]) -> tuple[str, int, int]:
    """A partition, and the number that is wanted of it."""
    try:
        topic, partition, number = asked
    except (TypeError, ValueError):
        raise wrong(name, asked, "must be a topic, a partition and a number") from None
    return *partition_in(topic, partition), number_in(name, number, 0, MAX_INT, is_whole=True)
