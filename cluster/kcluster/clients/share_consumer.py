"""The project's own share consumer, which behaves as Kafka's Java share consumer does.

Owns: a member of a share group (ShareGroupHeartbeat), its share sessions with the leaders
(ShareFetch, ShareAcknowledge), and its application: a loop of poll() that accepts or releases the
records.  Never: decides which member gets a record (the leaders do). Kafka: KafkaShareConsumer,
ShareConsumeRequestManager; KIP-932.

The records of a poll are acknowledged with the next fetch from their broker; with
share.acknowledgement.mode explicit one after the other, as by acknowledge() and commitSync(). Then
the application may also take longer than a lock lasts: it renews the lock half-way (KIP-1222).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, Self
from uuid import UUID

from kcluster.clients.base import ClientBase
from kcluster.clients.connections import ClientRequest, RetryBackoff
from kcluster.clients.consumer.coordinator import Coordinator
from kcluster.clients.consumer.settings import ConsumerPlan, ConsumerSettings
from kcluster.clients.ledger import Ledger, Partition, SharedRecord
from kcluster.clients.metadata import NO_BROKER, at_once_ms, is_stale_metadata
from kcluster.clients.record_names import record_name
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode, error_of
from kcluster.protocol.records.batches import Batch, InvalidRecords, parse_batches
from kcluster.protocol.records.records import read_records
from kcluster.timers import NEVER_MS

ACCEPT: Final = 1
RELEASE: Final = 2
RENEW: Final = 4
FIRST_VERSION_WITH_RENEWAL: Final = 2
LEAVE_EPOCH: Final = -1
FINAL_EPOCH: Final = -1
CLOSE_LIMIT_MS: Final = 1_000
"""The time limit of the last acknowledgements.  DIFFERS: Kafka waits up to 30 s in close()."""
_HEARTBEAT: Final = int(ApiKey.SHARE_GROUP_HEARTBEAT)
_FETCH: Final = int(ApiKey.SHARE_FETCH)
_ACKNOWLEDGE: Final = int(ApiKey.SHARE_ACKNOWLEDGE)
_FENCED: Final = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)
_NO_SESSION: Final = (
    ErrorCode.SHARE_SESSION_NOT_FOUND,
    ErrorCode.INVALID_SHARE_SESSION_EPOCH,
    ErrorCode.SHARE_SESSION_LIMIT_REACHED,
)


class SessionOfMember:
    """A share session with one broker.  `epoch` 0: the next fetch opens it."""

    def __init__(self) -> None:
        self.epoch = 0
        self.partitions: dict[Partition, bytes] = {}
        """The partitions that the broker knows, each with the id of its topic."""
        self.acks: dict[Partition, list[SharedRecord]] = {}
        """The acknowledgements for the next fetch."""
        self.is_in_flight = False
        self.fetch_at_ms = 0
        self.answered_ms = -1
        """The time at which the last fetch with an answer was sent; -1 after an error, even of one
        partition."""

    def reset(self) -> None:
        """End the session: records without an acknowledgement will be delivered again."""
        self.epoch = 0
        self.partitions = {}
        self.acks = {}


class _AskContext(NamedTuple):
    """A request of a session: its acknowledgements, and its time, also as a step of the ledger.
    `renews`: it asks for more time for the records instead."""

    session: SessionOfMember
    acks: dict[Partition, list[SharedRecord]]
    broker: int
    at_ms: int
    step: int
    renews: bool = False


class ShareConsumer(ClientBase):
    """A member of a share group and its application.  `release_share`: the share of records that
    the application releases, so that they are delivered again; `renew_share`: the share for which
    it takes longer than a lock lasts.  `failed`: the error that ended the consumer."""

    def __init__(
        self,
        name: str,
        ledger: Ledger,
        plan: ConsumerPlan,
        settings: ConsumerSettings,
        release_share: float = 0.0,
        renew_share: float = 0.0,
    ) -> None:
        assert settings.group_id, name
        super().__init__(name, ledger, settings)
        self.ledger = ledger
        self.plan = plan
        self.settings = settings
        self.failed = ""
        self.active_ms = 0
        """The time at which the consumer last received or acknowledged a record, or was assigned
        partitions."""
        self._release_share = release_share
        self._renew_share = renew_share
        self._delivered = 0
        self._coordinator = Coordinator(settings, self.metadata, self.network)
        self._member_id = ""
        self._epoch = 0
        self._interval_ms = settings.heartbeat_interval_ms
        self._heartbeat_at_ms = 0
        self._is_heartbeat_in_flight = False
        self._backoff = RetryBackoff(self.network)
        self._sends_all = True
        """Whether the next heartbeat has every field: the member joins, or the last heartbeat had
        no good answer."""
        self._assigned: list[tuple[bytes, list[int]]] = []
        self._sessions: dict[int, SessionOfMember] = {}
        self._start_ms = 0
        self._stop_ms = NEVER_MS
        self._close_at_ms = NEVER_MS
        self._has_left = False

    @property
    def assignment(self) -> tuple[Partition, ...]:
        """The assigned partitions whose topics are known."""
        return tuple(
            sorted(
                (name, number)
                for topic_id, numbers in self._assigned
                if (name := self.metadata.topic_name(topic_id)) is not None
                for number in numbers
            )
        )

    @property
    def is_idle(self) -> bool:
        """Whether the consumer has acknowledged every record that it received."""
        return not any(session.acks or session.is_in_flight for session in self._sessions.values())

    def has_asked_since(self, since_ms: int) -> bool:
        """Whether each leader of an assigned partition has answered a fetch that was sent at this
        time or later.  So none was replaced since then, as far as the consumer knows."""
        leaders = {self.metadata.leader(*one): None for one in self.assignment}
        sessions = [self._sessions.get(leader) for leader in leaders]
        return all(one is not None and one.answered_ms >= since_ms for one in sessions)

    def position(self, topic: str, partition: int) -> int:
        """Always -1: a share group's positions are kept by the leaders."""
        return -1

    def stop(self, now_ms: int) -> None:
        """Acknowledge the remaining records, and leave the group.  Kafka: close()."""
        if self._close_at_ms == NEVER_MS:
            self._close_at_ms = now_ms + CLOSE_LIMIT_MS
        self._turn(now_ms)

    def abort(self, now_ms: int) -> None:
        """Die with the process: send nothing more."""
        self._close()

    def again(self, age_ms: int, last: Self) -> Self:
        """The client of a process that starts again, `age_ms` after the first start.  `last`: the
        client that ran before."""
        plan, shares = self.plan.later(age_ms), (self._release_share, self._renew_share)
        return type(self)(self.name, self.ledger, plan, self.settings, *shares)

    def _login_failed(self, error: str, now_ms: int) -> None:
        self.failed = self.failed or error

    # ---------------------------------------------------------------------------- a turn

    def _start_application(self, now_ms: int) -> None:
        self._start_ms = now_ms + self.plan.start_ms
        if self.plan.stop_ms >= 0:
            self._stop_ms = now_ms + self.plan.stop_ms
        for topic in self.plan.topics:
            self.metadata.add_topic(topic)
        self._member_id = str(UUID(int=self.network.rng.randrange(1 << 128), version=4))

    def _turn(self, now_ms: int) -> None:
        if self.is_done or now_ms < self._start_ms:
            self.deadline_ms = None if self.is_done else self._start_ms
            return
        network = self.network
        self._coordinator.retry_ms = NEVER_MS
        if now_ms >= network.due_ms:
            network.poll(now_ms)
        if now_ms >= self._stop_ms:
            self._stop_ms = NEVER_MS
            self._close_at_ms = now_ms + CLOSE_LIMIT_MS
        is_closing = self._close_at_ms < NEVER_MS or bool(self.failed)
        if is_closing and self._continue_closing(now_ms):
            return
        self._heartbeat(now_ms)
        due_ms = NEVER_MS
        if not is_closing:
            due_ms = self._fetch_all(now_ms)
        if not self._is_heartbeat_in_flight:
            due_ms = min(due_ms, max(self._heartbeat_at_ms, now_ms + 1))
        due_ms = min(due_ms, network.due_ms, self._coordinator.retry_ms, self._close_at_ms)
        self.deadline_ms = due_ms if due_ms < NEVER_MS else None

    def _continue_closing(self, now_ms: int) -> bool:
        """Send the last acknowledgements, then leave; True when the client is closed."""
        for broker_id, session in self._sessions.items():
            may_send = session.epoch and not session.is_in_flight
            if may_send and self.network.is_ready(broker_id, now_ms):
                acks, session.acks, session.epoch = session.acks, {}, 0
                self._acknowledge(broker_id, session, acks, FINAL_EPOCH, now_ms)
        is_over = now_ms >= self._close_at_ms or bool(self.failed)
        if not is_over and any(session.epoch for session in self._sessions.values()):
            return False
        if not self._has_left and not is_over:
            self._heartbeat(now_ms, leaves=True)
            return False
        if is_over or not self._is_heartbeat_in_flight:
            self._close()
            return True
        return False

    def _close(self) -> None:
        super()._close()
        self._assigned = []

    # ------------------------------------------------------------------------ membership

    def _heartbeat(self, now_ms: int, *, leaves: bool = False) -> None:
        if self._is_heartbeat_in_flight or self._has_left:
            return
        is_due = leaves or now_ms >= self._heartbeat_at_ms
        if not is_due or not self._coordinator.is_ready(now_ms):
            return
        if leaves and not self._epoch:
            self._has_left = True
            return
        sends_all, self._sends_all = self._sends_all or not self._epoch, False
        body = m.ShareGroupHeartbeatRequest(
            self.settings.group_id,
            self._member_id,
            LEAVE_EPOCH if leaves else self._epoch,
            self.settings.client_rack or None if sends_all else None,
            list(self.plan.topics) if sends_all else None,
        )
        self._is_heartbeat_in_flight = True
        self._has_left = leaves
        self._heartbeat_at_ms = now_ms + self._interval_ms
        self._coordinator.send(_HEARTBEAT, body, now_ms, self._on_heartbeat)

    def _on_heartbeat(self, request: ClientRequest, now_ms: int) -> None:
        self._is_heartbeat_in_flight = False
        if self._has_left:
            return
        error = self._coordinator.refusal(request, now_ms)
        if not error:
            response: m.ShareGroupHeartbeatResponse = request.response
            self._backoff.failures = 0
            self._epoch = response.member_epoch
            self._interval_ms = response.heartbeat_interval_ms
            if response.assignment is not None:
                self.active_ms = now_ms
                self._assigned = [
                    (topic.topic_id, list(topic.partitions))
                    for topic in response.assignment.topic_partitions
                ]
            return
        # The answer to a full request repeats an assignment whose first answer was lost. Kafka:
        # AbstractHeartbeatRequestManager.resetHeartbeatState.
        self._sends_all = True
        if error in _FENCED:
            self._epoch = 0
            self._assigned = []
            self._heartbeat_at_ms = at_once_ms(request.sent_ms, now_ms)
        elif error.retriable:
            self._heartbeat_at_ms = self._backoff.after_failure(now_ms)
        else:
            self.failed = error.name

    # -------------------------------------------------------------------------- sessions

    def _fetch_all(self, now_ms: int) -> int:
        """Fetch from each leader that has no request under way.  Returns the time of the next
        attempt."""
        by_leader: dict[int, dict[Partition, None]] = {}
        for topic, number in self.assignment:
            leader = self.metadata.leader(topic, number)
            if leader == NO_BROKER:
                self.metadata.request_update()
            else:
                by_leader.setdefault(leader, {})[topic, number] = None
        if len(self.assignment) < sum(len(numbers) for _, numbers in self._assigned):
            self.metadata.request_update()
        due_ms = NEVER_MS
        for leader in (*by_leader, *(x for x in self._sessions if x not in by_leader)):
            wanted = by_leader.get(leader, {})
            session = self._sessions.setdefault(leader, SessionOfMember())
            if session.is_in_flight or not (wanted or session.partitions or session.acks):
                continue  # an empty session costs nothing; the broker ends it with the connection
            if session.fetch_at_ms > now_ms:
                due_ms = min(due_ms, session.fetch_at_ms)
            elif self.network.is_ready(leader, now_ms):
                if session.acks and session.epoch and self.settings.acknowledges_each:
                    due_ms = min(due_ms, self._acknowledge_first(leader, session, now_ms))
                else:
                    self._fetch(leader, session, wanted, now_ms)
            elif self.network.connection_failed(leader):
                session.reset()
        return due_ms

    def _fetch(
        self, leader: int, session: SessionOfMember, wanted: dict[Partition, None], now_ms: int
    ) -> None:
        acks, session.acks = session.acks, {}
        step = self.ledger.next_step()
        kind = m.ShareFetchRequest
        ids = {one: self.metadata.topic_id(one[0]) for one in wanted}
        added = [one for one in wanted if session.partitions.get(one) != ids[one]]
        topics = {
            one: kind.FetchPartition(
                partition_index=one[1],
                acknowledgement_batches=_batches(
                    kind.AcknowledgementBatch, acks.get(one, []), step
                ),
            )
            for one in (*added, *(x for x in acks if x not in added))
        }
        removed = [(one, old) for one, old in session.partitions.items() if ids.get(one) != old]
        settings = self.settings
        body = kind(
            group_id=settings.group_id,
            member_id=self._member_id,
            share_session_epoch=session.epoch,
            max_wait_ms=settings.fetch_max_wait_ms,
            min_bytes=settings.fetch_min_bytes,
            max_bytes=settings.fetch_max_bytes,
            max_records=settings.max_poll_records,
            batch_size=settings.max_poll_records,
            topics=self._by_topic(topics, kind.FetchTopic),
            forgotten_topics_data=[
                kind.ForgottenTopic(topic_id, [number]) for (_, number), topic_id in removed
            ],
        )
        session.partitions = ids
        session.is_in_flight = True
        context = _AskContext(session, acks, leader, now_ms, step)
        self.network.send(leader, _FETCH, body, now_ms, self._on_fetched, context=context)

    def _acknowledge_first(self, broker_id: int, session: SessionOfMember, now_ms: int) -> int:
        """Acknowledge the first record, or renew its lock, unless the application is still busy
        with it.  Returns the time of the next attempt."""
        (key, (first, *rest)), *others = session.acks.items()
        if first.busy_until_ms > now_ms:
            return first.busy_until_ms
        version = self.network.version(broker_id, _ACKNOWLEDGE)
        if first.needs_renewal and version < FIRST_VERSION_WITH_RENEWAL:
            self.failed = ErrorCode.UNSUPPORTED_VERSION.name
            return now_ms
        session.acks = {**({key: rest} if rest else {}), **dict(others)}
        self._acknowledge(broker_id, session, {key: [first]}, session.epoch, now_ms)
        return NEVER_MS

    def _acknowledge(
        self,
        broker_id: int,
        session: SessionOfMember,
        acks: dict[Partition, list[SharedRecord]],
        epoch: int,
        now_ms: int,
    ) -> None:
        renews = epoch != FINAL_EPOCH and any(one.needs_renewal for one, *_ in acks.values())
        step = self.ledger.next_step()
        kind = m.ShareAcknowledgeRequest
        row = kind.AcknowledgementBatch
        topics = {
            one: kind.AcknowledgePartition(
                one[1], _renewals(row, some) if renews else _batches(row, some, step)
            )
            for one, some in acks.items()
        }
        body = kind(
            group_id=self.settings.group_id,
            member_id=self._member_id,
            share_session_epoch=epoch,
            is_renew_ack=renews,
            topics=self._by_topic(topics, kind.AcknowledgeTopic),
        )
        session.is_in_flight = True
        context = _AskContext(session, acks, broker_id, now_ms, step, renews)
        self.network.send(broker_id, _ACKNOWLEDGE, body, now_ms, self._on_fetched, context=context)

    def _by_topic(self, partitions: dict[Partition, Any], kind: Any) -> list[Any]:
        topics: dict[str, list[object]] = {}
        for (topic, _), entry in partitions.items():
            topics.setdefault(topic, []).append(entry)
        return [kind(self.metadata.topic_id(topic), entries) for topic, entries in topics.items()]

    def _on_fetched(self, request: ClientRequest, now_ms: int) -> None:
        asked: _AskContext = request.context
        session, acks = asked.session, asked.acks
        session.is_in_flight = False
        error = self.network.refusal(request, now_ms)
        if error:
            session.reset()
            session.answered_ms = -1
            session.fetch_at_ms = now_ms + self.settings.retry_backoff_ms
            if error not in _NO_SESSION:
                self.metadata.request_update()
            return
        is_fetch = request.api_key == _FETCH
        if is_fetch or session.epoch:
            session.epoch += 1
        if is_fetch:
            session.answered_ms = asked.at_ms
        has_any = False
        for topic in request.response.responses:
            name = self.metadata.topic_name(topic.topic_id) or ""
            for data in topic.partitions:
                key = (name, data.partition_index)
                error = error_of(data.acknowledge_error_code if is_fetch else data.error_code)
                if asked.renews and not error:
                    _renew(session, key, acks.pop(key, []), now_ms)
                self._settle(acks.pop(key, []), error, request.api_key, key, now_ms)
                if is_fetch:
                    lock_ms = request.response.acquisition_lock_timeout_ms
                    has_any = self._take(asked, key, data, lock_ms, now_ms) or has_any
        for key, deliveries in acks.items():
            self._settle(deliveries, ErrorCode.NONE, request.api_key, key, now_ms)
        if not has_any:
            session.fetch_at_ms = max(session.fetch_at_ms, at_once_ms(request.sent_ms, now_ms))

    def _settle(
        self,
        deliveries: list[SharedRecord],
        error: ErrorCode,
        api_key: int,
        key: Partition,
        now_ms: int,
    ) -> None:
        """Handle the answer to acknowledgements."""
        if error and deliveries:
            self.network.record_error(now_ms, api_key, error.name, key)
        for delivery in deliveries:
            delivery.is_acknowledged = not error and delivery.is_accepted
            delivery.ended_ms, delivery.ended = now_ms, self.ledger.next_step()
            delivery.error = error.name if error else ""
            self.active_ms = now_ms

    def _take(
        self, asked: _AskContext, key: Partition, data: Any, lock_ms: int, now_ms: int
    ) -> bool:
        """Deliver acquired records to the application.  Returns whether there were any."""
        session = asked.session
        error = error_of(data.error_code)
        if error:
            self.network.record_error(now_ms, _FETCH, error.name, key)
            session.fetch_at_ms = now_ms + self.settings.retry_backoff_ms
            if key in session.partitions:  # an earlier request, served late, may have added others
                session.answered_ms = -1
            if is_stale_metadata(error):
                self.metadata.request_update()
            return False
        counts: dict[int, int] = {}
        for some in data.acquired_records:
            for offset in range(some.first_offset, some.last_offset + 1):
                counts[offset] = some.delivery_count
        if not counts:
            return False
        batches: list[Batch] = (
            data.records if isinstance(data.records, list) else parse_batches(data.records or b"")
        )
        self.active_ms = now_ms
        seen: dict[int, None] = {}
        for batch in batches:
            try:
                opened = [] if batch.is_control else read_records(batch)
            except InvalidRecords as problem:
                self.network.record_error(now_ms, _FETCH, problem.error.name, key)
                continue
            for record in opened:
                if record.offset in counts and record.offset not in seen:
                    seen[record.offset] = None
                    value = record_name(record)
                    self._deliver(asked, key, record.offset, value, counts, lock_ms, now_ms)
        # DIFFERS: offsets without a readable record are accepted; Kafka's client sends gaps for
        # offsets without a record, and rejects records that it cannot read.
        for offset in counts:
            if offset not in seen:
                gap = SharedRecord(self.settings.group_id, self.name, key, offset, None, 0, True)
                session.acks.setdefault(key, []).append(gap)
        return True

    def _deliver(
        self,
        asked: _AskContext,
        key: Partition,
        offset: int,
        value: bytes | None,
        counts: dict[int, int],
        lock_ms: int,
        now_ms: int,
    ) -> None:
        self._delivered += 1
        delivery = SharedRecord(
            group=self.settings.group_id,
            consumer=self.name,
            partition=key,
            offset=offset,
            value=value,
            count=counts[offset],
            is_accepted=not _is_of_share(self._release_share, self._delivered),
            needs_renewal=_is_of_share(self._renew_share, self._delivered),
            at_ms=now_ms,
            broker=asked.broker,
            asked_ms=asked.at_ms,
            asked=asked.step,
            lock_ms=lock_ms,
        )
        self.ledger.deliveries.append(delivery)
        asked.session.acks.setdefault(key, []).append(delivery)


def _is_of_share(share: float, number: int) -> bool:
    """Whether a number belongs to a share of all numbers, which is evenly spread."""
    return int(number * share) > int((number - 1) * share)


def _renew(
    session: SessionOfMember, key: Partition, renewed: list[SharedRecord], now_ms: int
) -> None:
    """Go on with records whose locks were renewed, before all others."""
    for delivery in renewed:
        delivery.needs_renewal, delivery.renewed_ms = False, now_ms
    later = session.acks.pop(key, [])
    session.acks = {key: [*renewed, *later], **session.acks}


def _renewals(kind: Any, deliveries: list[SharedRecord]) -> list[Any]:
    return [kind(one.offset, one.offset, [RENEW]) for one in deliveries]


def _batches(kind: Any, deliveries: list[SharedRecord], step: int) -> list[Any]:
    """The acknowledgement batches to send: one for each run of offsets, with a type for each
    offset."""
    batches: list[Any] = []
    for delivery in sorted(deliveries, key=lambda one: one.offset):
        delivery.is_sent, delivery.sent = True, step
        ack = ACCEPT if delivery.is_accepted else RELEASE
        if batches and batches[-1].last_offset == delivery.offset - 1:
            batches[-1].last_offset = delivery.offset
            batches[-1].acknowledge_types.append(ack)
        else:
            batches.append(kind(delivery.offset, delivery.offset, [ack]))
    return batches
