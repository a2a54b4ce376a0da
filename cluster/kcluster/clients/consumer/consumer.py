"""The project's own consumer, which behaves as Kafka's Java consumer does (any group protocol).

Owns: the parts of a consumer, their order within a turn, and the application: a loop of poll(),
processing and commit, which closes the consumer when poll() throws.  Never: does the parts' work
(the other modules here, clients/connections.py).
Kafka: ClassicKafkaConsumer and AsyncKafkaConsumer, 4.3.1.

Kafka has two threads; here every turn does the work of the heartbeat thread, and the work of poll()
while the application is in poll() and not processing records.
"""

from __future__ import annotations

from typing import Final, Self

from kcluster.clients.base import ClientBase
from kcluster.clients.consumer.commits import Commits
from kcluster.clients.consumer.consumer_member import ConsumerMembership
from kcluster.clients.consumer.coordinator import Coordinator, EpochState, MembershipState
from kcluster.clients.consumer.epoch_membership import EpochMembership
from kcluster.clients.consumer.fetcher import Fetcher
from kcluster.clients.consumer.group import GroupMembership
from kcluster.clients.consumer.membership import ClientMembership, MembershipParts
from kcluster.clients.consumer.offset_lookups import OffsetLookups
from kcluster.clients.consumer.positions import FetchState, Position, Positions
from kcluster.clients.consumer.settings import (
    AFTER_POLL,
    CLASSIC,
    EARLIEST,
    READ_COMMITTED,
    STREAMS,
    ConsumerPlan,
    ConsumerSettings,
)
from kcluster.clients.consumer.streams_member import StreamsMembership
from kcluster.clients.ledger import Ledger, Partition, ReachedPosition, ReadRecord
from kcluster.clients.record_names import record_name
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.messages import Message
from kcluster.protocol.records.records import Record
from kcluster.timers import NEVER_MS

CLOSE_TIMEOUT_MS: Final = 30_000
"""ConsumerUtils.DEFAULT_CLOSE_TIMEOUT_MS."""
_CLOSED: Final = -1


class Consumer(ClientBase):
    """A consumer and its application.

    `failed`: the error that poll() threw and that ended the consumer; "" for none.
    """

    def __init__(
        self, name: str, ledger: Ledger, plan: ConsumerPlan, settings: ConsumerSettings
    ) -> None:
        problems = settings.problems() + plan.problems(settings)
        assert not problems, problems
        super().__init__(name, ledger, settings)
        self.ledger = ledger
        self.plan = plan
        self.settings = settings
        self.positions = Positions()
        self.coordinator = Coordinator(settings, self.metadata, self.network)
        member: MembershipState | None = None
        if plan.topics:
            member = MembershipState() if settings.group_protocol == CLASSIC else EpochState()
        self.commits = Commits(
            settings=settings,
            commit_mode=plan.commit if settings.group_id else "",
            network=self.network,
            metadata=self.metadata,
            positions=self.positions,
            coordinator=self.coordinator,
            member=member,
        )
        self.group: ClientMembership | None = None
        self._epoch_member: EpochMembership | None = None
        parts = MembershipParts(
            settings=settings,
            topics=plan.topics,
            by_pattern=plan.by_pattern,
            metadata=self.metadata,
            network=self.network,
            positions=self.positions,
            coordinator=self.coordinator,
            commits=self.commits,
        )
        if isinstance(member, EpochState):
            kind = StreamsMembership if settings.group_protocol == STREAMS else ConsumerMembership
            self._epoch_member = self.group = kind(parts, member)
        elif member is not None:
            self.group = GroupMembership(parts, member)
        self.lookups = OffsetLookups(settings, self.metadata, self.network, self.positions)
        self.fetcher = Fetcher(settings, self.metadata, self.network, self.positions)
        self.failed = ""
        self._login_error = ""
        """The error of a refused login, which poll() throws; "" for none."""
        self.records_read = 0
        self._start_ms = 0
        self._stop_ms = NEVER_MS
        self._busy_until_us = 0
        """The end of the application's processing of records."""
        self._poll_returns_ms = 0
        """The end of poll()'s wait for the coordinator; 0 if poll() does not wait."""
        self._quiet_until_ms = 0
        """The time until which a turn only returns records and fetches more: the usual case, a fast
        path that skips the other parts."""
        self._is_closing = False
        self._close_deadline_ms = NEVER_MS

    # ------------------------------------------------------------------------- callbacks

    def _start_application(self, now_ms: int) -> None:
        plan = self.plan
        if self.settings.isolation_level == READ_COMMITTED:
            self.ledger.read_committed[self.name] = None
        if self.settings.auto_offset_reset != EARLIEST:
            self.ledger.late_starts[self.name] = None
        self._start_ms = now_ms + plan.start_ms
        if plan.stop_ms >= 0:
            self._stop_ms = now_ms + plan.stop_ms
        for topic in (*plan.topics, *(topic for topic, _ in plan.partitions)):
            self.metadata.add_topic(topic)
        self.positions.assign(list(plan.partitions))
        self.commits.restart_timer(now_ms)
        if self._epoch_member is not None:
            self._epoch_member.start(now_ms)

    def on_reply(self, broker_id: int, correlation_id: int, body: Message, now_ms: int) -> None:
        """Handle a response."""
        self.network.on_reply(broker_id, correlation_id, body, now_ms)
        is_quiet = now_ms < self._quiet_until_ms and not self.positions.needs_update
        if is_quiet and self.fetcher.buffer:
            self._continue_fetching(now_ms)
        else:
            self._turn(now_ms)

    # --------------------------------------------------------------------------- control

    def stop(self, now_ms: int) -> None:
        """Close the consumer: automatic commits include everything read, and a dynamic member
        leaves its group.  Kafka: close()."""
        self._begin_close(now_ms)
        self._turn(now_ms)

    def abort(self, now_ms: int) -> None:
        """Die with the process: send nothing more."""
        self._close()

    def again(self, age_ms: int, last: Self) -> Self:
        """The client of a process that starts again, `age_ms` after the first start.  `last`: the
        client that ran before."""
        return type(self)(self.name, self.ledger, self.plan.later(age_ms), self.settings)

    @property
    def is_idle(self) -> bool:
        """Whether the application has nothing left to do with the records that it has read."""
        return True

    @property
    def assignment(self) -> tuple[Partition, ...]:
        """The assigned partitions."""
        return tuple(sorted(self.positions))

    def position(self, topic: str, partition: int) -> int:
        """The offset of the next record; -1 if there is no position."""
        position = self.positions.get((topic, partition))
        return -1 if position is None else position.offset

    # ---------------------------------------------------------------------------- a turn

    def _turn(self, now_ms: int) -> None:
        if self.is_done or (now_ms < self._start_ms and not self._is_closing):
            self.deadline_ms = None if self.is_done else self._start_ms
            return
        self._quiet_until_ms = 0
        self.coordinator.retry_ms = NEVER_MS
        network, group = self.network, self.group
        if now_ms >= network.due_ms:
            network.poll(now_ms)
        if now_ms >= self._stop_ms and not self._is_closing:
            self._begin_close(now_ms)
        due_ms = NEVER_MS if self._is_closing else self._stop_ms
        if group is not None:
            group.run_heartbeats(now_ms)
        if self._is_closing:
            due_ms = self._continue_closing(now_ms)
            if due_ms == _CLOSED:
                return
        elif self._busy_until_us > now_ms * 1000:
            due_ms = min(due_ms, -(-self._busy_until_us // 1000))
        else:
            # The first thing that poll() does is to throw a heartbeat's failure (pollHeartbeat).
            error = "" if group is None else group.heartbeat_error
            if not error:
                due_ms = min(due_ms, self._poll(now_ms))
                error = self._raised_error()
            if error:
                self.failed = error
                self._begin_close(now_ms)
                self._turn(now_ms)
                return
            if self._busy_until_us > now_ms * 1000:
                due_ms = min(due_ms, -(-self._busy_until_us // 1000))
        if group is not None:
            beat_ms = group.heartbeat_ms
            if beat_ms < due_ms:
                due_ms = beat_ms
        network_ms = network.due_ms
        if network_ms < due_ms:
            due_ms = network_ms
        self.deadline_ms = due_ms if due_ms < NEVER_MS else None
        if self._is_quiet():
            self._quiet_until_ms = due_ms

    def _is_quiet(self) -> bool:
        """Whether no part but the fetcher has anything to do until `deadline_ms` or a response."""
        group = self.group
        return not (
            self._is_closing
            or self._busy_until_us
            or self._poll_returns_ms
            or self.positions.needs_update
            or self.commits.is_sync_pending
            or (group is not None and not group.is_settled)
        )

    def _continue_fetching(self, now_ms: int) -> None:
        """Return records and fetch more: the fast path of a turn."""
        fetched = self.fetcher.collect(self.settings.max_poll_records)
        self._deliver(fetched, now_ms)
        if self.fetcher.buffer or self._busy_until_us or self.commits.is_sync_pending:
            self._turn(now_ms)
            return
        self.fetcher.send(now_ms)
        if self.group is not None:
            self.group.reset_poll_timer(now_ms)
        due_ms = min(self.fetcher.retry_ms, self.network.due_ms)
        if self.deadline_ms is None or due_ms < self.deadline_ms:
            self.deadline_ms = due_ms

    def _raised_error(self) -> str:
        """The error that poll() throws; "" for none."""
        error = self.fetcher.fatal or self.lookups.fatal or self.commits.fatal
        error = error or self.coordinator.fatal or self._login_error
        if not error and any(map(self.metadata.is_denied, self.metadata.topic_errors)):
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED.name
        group = self.group
        return error or ("" if group is None else group.fatal or group.heartbeat_error)

    def _poll(self, now_ms: int) -> int:
        """Run poll() as far as possible now.  Returns the time by which to continue."""
        commits, group = self.commits, self.group
        if commits.is_sync_pending:
            commits.continue_sync(now_ms)
            if commits.is_sync_pending:
                return min(commits.sync_due_ms, self.coordinator.retry_ms)
        if group is None:
            commits.commit_if_due(now_ms)
            due_ms = min(commits.auto_commit_ms, self.coordinator.retry_ms)
        elif group.poll(now_ms):
            self._poll_returns_ms = 0
            commits.commit_if_due(now_ms)
            due_ms = min(commits.auto_commit_ms, group.retry_ms)
        else:
            # poll() waits for the coordinator until its timeout, and then returns buffered records.
            if not self._poll_returns_ms:
                self._poll_returns_ms = now_ms + self.plan.poll_timeout_ms
            if now_ms < self._poll_returns_ms:
                return min(self._poll_returns_ms, self.coordinator.retry_ms)
            self._poll_returns_ms = now_ms + self.plan.poll_timeout_ms
            due_ms = min(self._poll_returns_ms, self.coordinator.retry_ms)
        self.positions.follow(self.metadata)
        if self.positions.needs_update:
            due_ms = min(due_ms, self._find_positions(now_ms))
        fetcher = self.fetcher
        while fetcher.buffer:
            fetched = fetcher.collect(self.settings.max_poll_records)
            if fetched:
                self._deliver(fetched, now_ms)
                if self._busy_until_us > now_ms * 1000 or commits.is_sync_pending:
                    break
        fetcher.send(now_ms)
        return min(due_ms, fetcher.retry_ms, commits.sync_due_ms)

    def _find_positions(self, now_ms: int) -> int:
        """Get a position for every partition.  Returns the time to continue. Kafka:
        updateFetchPositions."""
        positions, commits = self.positions, self.commits
        due_ms = NEVER_MS
        waiting = [x for x in positions.values() if x.state is FetchState.INITIALIZING]
        if waiting and self.settings.group_id:
            commits.fetch_committed(now_ms)
            if commits.fetch_committed_ms > now_ms:
                due_ms = commits.fetch_committed_ms
            due_ms = min(due_ms, self.coordinator.retry_ms)
        elif waiting:
            for position in waiting:
                commits.reset_position(position, now_ms)
        self.lookups.run(now_ms)
        positions.needs_update = any(x.state is not FetchState.FETCHING for x in positions.values())
        return min(due_ms, self.lookups.retry_ms)

    def _deliver(self, fetched: list[tuple[Position, list[Record]]], now_ms: int) -> None:
        """Return records to the application, which processes them."""
        name, reads = self.name, self.ledger.reads
        count = 0
        for position, records in fetched:
            key, restarted = position.key, position.restarted
            position.restarted = False
            for record in records:
                value = record_name(record)
                reads.append(ReadRecord(name, key, record.offset, value, restarted, now_ms))
                restarted = False
            count += len(records)
        self.records_read += count
        plan = self.plan
        if plan.records_per_s:
            begins_us = max(self._busy_until_us, now_ms * 1000)
            self._busy_until_us = begins_us + int(count * 1_000_000 / plan.records_per_s)
        if plan.commit == AFTER_POLL:
            offsets = self.positions.consumed()
            self.commits.commit_sync(offsets, self.settings.default_api_timeout_ms, now_ms)

    def _login_failed(self, error: str, now_ms: int) -> None:
        # Whatever it was for, poll() throws it (Metadata.fatalError), and so does close().
        self._login_error = error
        if self._is_closing and not self.is_done:
            self._close()

    # --------------------------------------------------------------------------- closing

    def _begin_close(self, now_ms: int) -> None:
        if not self._is_closing and not self.is_done:
            self._is_closing = True
            self._close_deadline_ms = now_ms + CLOSE_TIMEOUT_MS
            consumed = self.positions.consumed()
            self.ledger.positions += (
                ReachedPosition(self.name, key, offset, now_ms)
                for key, (offset, _) in consumed.items()
            )
            offsets = consumed if self.commits.is_auto else {}
            self.commits.commit_sync(offsets, CLOSE_TIMEOUT_MS, now_ms)

    def _continue_closing(self, now_ms: int) -> int:
        commits, group = self.commits, self.group
        commits.continue_sync(now_ms)
        if commits.is_sync_pending and now_ms < self._close_deadline_ms:
            return min(commits.sync_due_ms, self.coordinator.retry_ms, self._close_deadline_ms)
        if group is not None and not group.is_leaving and group.member.member_id:
            group.leave("the consumer is being closed", now_ms)
        if group is None or not group.is_leaving or now_ms >= self._close_deadline_ms:
            self._close()
            return _CLOSED
        return self._close_deadline_ms

    def _close(self) -> None:
        super()._close()
        self.positions.assign([])
