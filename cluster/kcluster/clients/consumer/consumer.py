"""The project's own consumer, which behaves as Kafka's Java consumer does (classic protocol).

Owns: the parts of a consumer, the order of its turn, and the application: a loop of poll(), work
and commit, which closes its consumer when an error reaches it.  Never: does what the parts do.
Kafka: ClassicKafkaConsumer, 4.3.1.

Two threads there, one turn here: the heartbeat thread's part is done in every turn, that of poll()
only while the application is in it and not at work on what it was given.
"""

from __future__ import annotations

from typing import Any, Final

from kcluster.clients.connections import NetworkClient
from kcluster.clients.consumer.commits import Commits
from kcluster.clients.consumer.coordinator import Coordinator, Membership
from kcluster.clients.consumer.fetcher import Fetcher
from kcluster.clients.consumer.group import Group
from kcluster.clients.consumer.offset_lookups import OffsetLookups
from kcluster.clients.consumer.positions import Position, Positions, State
from kcluster.clients.consumer.settings import AFTER_POLL, ConsumerSettings, Reading
from kcluster.clients.ledger import Ledger, Partition, Read
from kcluster.clients.metadata import Metadata
from kcluster.clients.wire import Wire
from kcluster.protocol.records.records import Record
from kcluster.timers import NEVER_MS

CLOSE_TIMEOUT_MS: Final = 30_000
"""ConsumerUtils.DEFAULT_CLOSE_TIMEOUT_MS."""
_CLOSED: Final = -1


class Consumer:
    """A consumer and its application (clients/wire.py's Client).

    `name`: its name in the ledger.  `failed`: the error that ended it, "" for none: what Kafka
    throws out of poll().  `is_done`: it is closed.
    """

    def __init__(
        self, name: str, ledger: Ledger, reading: Reading, settings: ConsumerSettings
    ) -> None:
        problems = settings.problems() + reading.problems(settings)
        assert not problems, problems
        self.name = name
        self.ledger = ledger
        self.reading = reading
        self.settings = settings
        self.metadata = Metadata(settings.metadata)
        self.network = NetworkClient(name, settings.network, self.metadata, ledger)
        self.positions = Positions()
        self.coordinator = Coordinator(settings, self.metadata, self.network)
        member = Membership() if reading.topics else None
        self.commits = Commits(
            settings,
            reading.commit if settings.group_id else "",
            self.network,
            self.metadata,
            self.positions,
            self.coordinator,
            member,
        )
        self.group: Group | None = None
        if member is not None:
            self.group = Group(
                settings,
                reading.topics,
                self.metadata,
                self.network,
                self.positions,
                self.coordinator,
                self.commits,
                member,
            )
        self.lookups = OffsetLookups(settings, self.metadata, self.network, self.positions)
        self.fetcher = Fetcher(settings, self.metadata, self.network, self.positions)
        self.deadline_ms: int | None = None
        self.failed = ""
        self.is_done = False
        self.records_read = 0
        self._begins_ms = 0
        self._ends_ms = NEVER_MS
        self._free_at_us = 0
        """The application is at work until then."""
        self._returns_ms = 0
        """poll() waits for the coordinator, until this; 0: it does not."""
        self._quiet_until_ms = 0
        """Until then a turn has nothing to do but to give out what came, and fetch on: the usual
        case, for which the rest is not looked at."""
        self._is_closing = False
        self._closes_ms = NEVER_MS

    # ----------------------------------------------------------------------- as a Client

    def start(self, wire: Wire, now_ms: int) -> None:
        """The consumer is made; its application begins."""
        reading = self.reading
        self._begins_ms = now_ms + reading.start_ms
        if reading.stop_ms >= 0:
            self._ends_ms = now_ms + reading.stop_ms
        self.network.start(wire, now_ms)
        for topic in (*reading.topics, *(topic for topic, _ in reading.partitions)):
            self.metadata.want(topic)
        self.positions.assign(list(reading.partitions))
        self.commits.restart_timer(now_ms)
        self._turn(now_ms)

    def on_reply(self, broker_id: int, correlation_id: int, body: Any, now_ms: int) -> None:
        """An answer has come."""
        self.network.on_reply(broker_id, correlation_id, body, now_ms)
        is_quiet = now_ms < self._quiet_until_ms and not self.positions.need_care
        if is_quiet and self.fetcher.buffer:
            self._read_on(now_ms)
        else:
            self._turn(now_ms)

    def on_disconnected(self, broker_id: int, now_ms: int) -> None:
        """A connection is gone."""
        self.network.on_disconnected(broker_id, now_ms)
        self._turn(now_ms)

    def on_tick(self, now_ms: int) -> None:
        """`deadline_ms` has come."""
        self._turn(now_ms)

    # ------------------------------------------------------------------------ its owner's

    def stop(self, now_ms: int) -> None:
        """The end of its application: what it has read is committed if that is automatic, and a
        member that is not static leaves.  Kafka: close()."""
        self._begin_to_close(now_ms)
        self._turn(now_ms)

    def abort(self, now_ms: int) -> None:
        """The end of its process, at once: nobody is told."""
        self._close()

    @property
    def assignment(self) -> tuple[Partition, ...]:
        """What it reads now."""
        return tuple(sorted(self.positions))

    def position(self, topic: str, partition: int) -> int:
        """The offset that it reads next; -1 where it has none."""
        position = self.positions.get((topic, partition))
        return -1 if position is None else position.offset

    # ---------------------------------------------------------------------------- a turn

    def _turn(self, now_ms: int) -> None:
        if self.is_done or (now_ms < self._begins_ms and not self._is_closing):
            self.deadline_ms = None if self.is_done else self._begins_ms
            return
        self._quiet_until_ms = 0
        self.coordinator.retry_ms = NEVER_MS
        network, group = self.network, self.group
        if now_ms >= network.due_ms:
            network.poll(now_ms)
        if now_ms >= self._ends_ms and not self._is_closing:
            self._begin_to_close(now_ms)
        due_ms = NEVER_MS if self._is_closing else self._ends_ms
        if group is not None:
            group.heartbeats.beat(now_ms)
        if self._is_closing:
            due_ms = self._go_on_closing(now_ms)
            if due_ms == _CLOSED:
                return
        elif self._free_at_us > now_ms * 1000:
            due_ms = min(due_ms, -(-self._free_at_us // 1000))
        else:
            # A heartbeat's failure is raised before poll() does anything (pollHeartbeat).
            error = "" if group is None else group.heartbeats.fatal
            if not error:
                due_ms = min(due_ms, self._poll(now_ms))
                error = self._error()
            if error:
                self.failed = error
                self._begin_to_close(now_ms)
                self._turn(now_ms)
                return
            if self._free_at_us > now_ms * 1000:
                due_ms = min(due_ms, -(-self._free_at_us // 1000))
        if group is not None:
            beat_ms = group.heartbeats.due_ms
            if beat_ms < due_ms:
                due_ms = beat_ms
        network_ms = network.due_ms
        if network_ms < due_ms:
            due_ms = network_ms
        self.deadline_ms = due_ms if due_ms < NEVER_MS else None
        if self._is_quiet():
            self._quiet_until_ms = due_ms

    def _is_quiet(self) -> bool:
        """Whether only time, or an answer, gives anybody but the fetcher something to do."""
        group = self.group
        return not (
            self._is_closing
            or self._free_at_us
            or self._returns_ms
            or self.positions.need_care
            or self.commits.is_waiting
            or (group is not None and not group.is_settled)
        )

    def _read_on(self, now_ms: int) -> None:
        """A turn of which nothing but records is to be expected."""
        given = self.fetcher.collect(self.settings.max_poll_records)
        self._give(given, now_ms)
        if self.fetcher.buffer or self._free_at_us or self.commits.is_waiting:
            self._turn(now_ms)
            return
        self.fetcher.send(now_ms)
        if self.group is not None:
            self.group.heartbeats.polled(now_ms)
        due_ms = min(self.fetcher.retry_ms, self.network.due_ms)
        if self.deadline_ms is None or due_ms < self.deadline_ms:
            self.deadline_ms = due_ms

    def _error(self) -> str:
        """What reaches the application, if anything does."""
        error = self.fetcher.fatal or self.lookups.fatal or self.commits.fatal
        error = error or self.coordinator.fatal
        group = self.group
        return error or ("" if group is None else group.fatal or group.heartbeats.fatal)

    def _poll(self, now_ms: int) -> int:
        """poll(), as far as it goes; when to go on if nothing comes before."""
        commits, group = self.commits, self.group
        if commits.is_waiting:
            commits.go_on(now_ms)
            if commits.is_waiting:
                return min(commits.try_ms, self.coordinator.retry_ms)
        if group is None:
            commits.commit_if_due(now_ms)
            due_ms = min(commits.auto_ms, self.coordinator.retry_ms)
        elif group.poll(now_ms):
            self._returns_ms = 0
            commits.commit_if_due(now_ms)
            due_ms = min(commits.auto_ms, group.retry_ms)
        else:
            # poll() looks for the coordinator until its time is up; then it gives out what came.
            if not self._returns_ms:
                self._returns_ms = now_ms + self.reading.poll_timeout_ms
            if now_ms < self._returns_ms:
                return min(self._returns_ms, self.coordinator.retry_ms)
            self._returns_ms = now_ms + self.reading.poll_timeout_ms
            due_ms = min(self._returns_ms, self.coordinator.retry_ms)
        self.positions.follow(self.metadata)
        if self.positions.need_care:
            due_ms = min(due_ms, self._find_positions(now_ms))
        fetcher = self.fetcher
        while fetcher.buffer:
            given = fetcher.collect(self.settings.max_poll_records)
            if given:
                self._give(given, now_ms)
                if self._free_at_us > now_ms * 1000 or commits.is_waiting:
                    break
        fetcher.send(now_ms)
        return min(due_ms, fetcher.retry_ms, commits.try_ms)

    def _find_positions(self, now_ms: int) -> int:
        """Every partition is to have a position; when to go on.  Kafka: updateFetchPositions."""
        positions, commits = self.positions, self.commits
        due_ms = NEVER_MS
        waiting = [x for x in positions.values() if x.state is State.INITIALIZING]
        if waiting and self.settings.group_id:
            commits.look_up(now_ms)
            if commits.look_ms > now_ms:
                due_ms = commits.look_ms
            due_ms = min(due_ms, self.coordinator.retry_ms)
        elif waiting:
            for position in waiting:
                commits.begin(position, now_ms)
        self.lookups.work(now_ms)
        positions.need_care = any(x.state is not State.FETCHING for x in positions.values())
        return min(due_ms, self.lookups.retry_ms)

    def _give(self, given: list[tuple[Position, list[Record]]], now_ms: int) -> None:
        """The application is given records, and works on them."""
        name, reads = self.name, self.ledger.reads
        count = 0
        for position, records in given:
            key, restarted = position.key, position.restarted
            position.restarted = False
            for record in records:
                reads.append(Read(name, key, record.offset, record.value, restarted, now_ms))
                restarted = False
            count += len(records)
        self.records_read += count
        reading = self.reading
        if reading.records_per_s:
            begins_us = max(self._free_at_us, now_ms * 1000)
            self._free_at_us = begins_us + int(count * 1_000_000 / reading.records_per_s)
        if reading.commit == AFTER_POLL:
            offsets = self.positions.consumed()
            self.commits.wait_for(offsets, self.settings.default_api_timeout_ms, now_ms)

    # --------------------------------------------------------------------------- the end

    def _begin_to_close(self, now_ms: int) -> None:
        if not self._is_closing and not self.is_done:
            self._is_closing = True
            self._closes_ms = now_ms + CLOSE_TIMEOUT_MS
            offsets = self.positions.consumed() if self.commits.is_auto else {}
            self.commits.wait_for(offsets, CLOSE_TIMEOUT_MS, now_ms)

    def _go_on_closing(self, now_ms: int) -> int:
        commits, group = self.commits, self.group
        commits.go_on(now_ms)
        if commits.is_waiting and now_ms < self._closes_ms:
            return min(commits.try_ms, self.coordinator.retry_ms, self._closes_ms)
        if group is not None and not group.is_leaving and group.member.member_id:
            group.leave("the consumer is being closed", now_ms)
        if group is None or not group.is_leaving or now_ms >= self._closes_ms:
            self._close()
            return _CLOSED
        return self._closes_ms

    def _close(self) -> None:
        self.network.close()
        self.positions.assign([])
        self.is_done = True
        self.deadline_ms = None
