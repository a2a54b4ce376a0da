"""The invariants of replication: what must hold after every step, whatever faults there are.

Owns: the names of violations, and the state that is needed to detect them.  Never: changes a node;
accepts a loss of committed records for any reason but an unclean election that a note reports.
Kafka: the specs of KIP-101, KIP-279, KIP-497, KIP-966; RaftEventSimulationTest's invariants.

After each step of a broker, `Invariants.observe` compares the replicas concerned with their last
observed state.  Unchanged replicas are skipped.  Most changes are an append or an advance of the
high watermark: these take a few comparisons; all others are compared in full.

A record is committed once a leader's high watermark has passed it.  From then on it must be in the
log of every later leader, at its offset, until an unclean election removes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from kcluster.contract import Note, Request
from kcluster.events.brokers import BrokerPaused, BrokerResumed
from kcluster.events.partitions import LeaderChange
from kcluster.events.topics import TopicDeleted
from kcluster.invariants.ground import Append, Ground, Move, PartitionKey, Seen
from kcluster.invariants.replies import Patience, Replies
from kcluster.invariants.rules import (
    acked_too_soon,
    differing,
    extend,
    first_lacking,
    is_behind_unclean,
    members_behind,
    membership_violations,
    read_too_soon,
    registration_violations,
    replica_violations,
    step_violations,
    truncated_committed,
)
from kcluster.metadata.records import BrokerRegistration, PartitionRegistration
from kcluster.partition.replica import Replica, Role

VIOLATIONS: Final = {
    "two-leaders": "two brokers lead one partition in one leader epoch",
    "epoch-back": "a replica's leader epoch or partition epoch went back",
    "metadata-back": "the metadata offset of a broker or the controller went back within one life",
    "watermark-above-end": "a high watermark lies above its log end",
    "watermark-above-isr": "a leader's high watermark lies above the log end of an ISR member",
    "watermark-below-start": "a high watermark lies below its log start",
    "watermark-back": "a leader's high watermark went back within its epoch",
    "start-back": "a leader's log start went back within its epoch",
    "committed-differs": "two replicas hold different records at an offset both call committed",
    "committed-lost": "a leader lacks records that were committed, after clean elections only",
    "truncated-committed": "a member of the ISR dropped records that its own leader has committed",
    "isr-not-replicas": "the ISR names a broker that is no replica",
    "leader-not-in-isr": "the leader is not in the ISR",
    "fenced-in-isr": "a fenced broker is in the ISR",
    "elr-overlaps-isr": "a broker is in the ISR and in the ELR at once",
    "unclean-unasked": "a leader was taken from outside ISR and ELR and it was not called unclean",
    "leader-truncated": "a leader's log became shorter within its epoch",
    "two-replies": "a request was answered twice",
    "no-reply": "a request was not answered in its time, though its broker ran and its connection"
    " was open",
    "ack-before-commit": "acks=all was answered, but the records are not committed",
    "read-uncommitted": "a consumer received records that are not committed",
}
"""Every invariant by the name of its violation."""

_LEADER: Final = Role.LEADER


class Violation(Struct, frozen=True):
    """A broken invariant.  `name` of VIOLATIONS; `subject`: `orders-0`, `broker 2`, ..."""

    name: str
    at_ms: int
    subject: str
    text: str

    def __str__(self) -> str:
        return f"{self.name} at {self.at_ms} ms: {self.subject}: {self.text}"


class Invariants:
    """The observed state of one run.  `violations`: all so far, oldest first; `grounds`: what is
    known of each partition.

    It must be given every note (`on_note`), each broker after a step (`observe`), the controller's
    partitions (`observe_metadata`), and all requests and replies of clients.
    """

    def __init__(self) -> None:
        self.violations: list[Violation] = []
        self.grounds: dict[PartitionKey, Ground] = {}
        self._seen: dict[Replica, Seen] = {}
        self._metadata_offsets: dict[int, tuple[int, int]] = {}
        """By node: (its life, the newest offset)."""
        self._unclean: dict[tuple[str, int], int] = {}
        """The epochs of unclean elections in partitions that have not been observed yet."""
        self.replies = Replies()

    def _report(self, now_ms: int, subject: str, problems: Iterable[tuple[str, str]]) -> None:
        for name, text in problems:
            assert name in VIOLATIONS, name
            self.violations.append(Violation(name, now_ms, subject, text))

    def ground(self, topic: str, key: PartitionKey) -> Ground:
        """What is known of a partition."""
        ground = self.grounds.get(key)
        if ground is None:
            ground = self.grounds[key] = Ground(topic, key)
            ground.unclean = self._unclean.pop((topic, key[1]), -1)
        return ground

    # ------------------------------------------------------------------------- inputs

    def on_note(self, note: Note) -> None:
        """Take from a note what the rules need: unclean elections, pauses, deleted topics."""
        event = note.event
        if isinstance(event, LeaderChange):
            # A cancelled reassignment, too, can end in an unclean election.
            if not event.clean:
                self._on_unclean(event.topic, event.partition, event.leader_epoch)
        elif isinstance(event, BrokerPaused):
            self.replies.on_pause(event.broker, note.at_ms)
        elif isinstance(event, BrokerResumed):
            self.replies.on_resume(event.broker, note.at_ms)
        elif isinstance(event, TopicDeleted):
            for ground in self.grounds.values():
                if ground.topic == event.topic and ground.deleted_ms < 0:
                    ground.deleted_ms = note.at_ms

    def _on_unclean(self, topic: str, partition: int, epoch: int) -> None:
        for ground in self.grounds.values():
            if ground.topic == topic and ground.partition == partition and ground.deleted_ms < 0:
                ground.unclean = epoch
                return
        self._unclean[topic, partition] = epoch

    def on_request(self, broker: int, request: Request, now_ms: int) -> None:
        """A request arrived at a broker."""
        self.replies.on_request(broker, request, now_ms)

    def on_reply(self, broker: int, request: Request, now_ms: int) -> None:
        """A broker has answered it."""
        if not self.replies.on_reply(request):
            text = f"request {request.correlation_id} of connection {request.connection_id}"
            self._report(now_ms, f"broker {broker}", [("two-replies", text)])

    def on_death(self, broker: int, loses_records: bool, now_ms: int) -> None:
        """A broker's process has ended: it owes no more replies."""
        self.replies.on_end(now_ms, broker=broker)
        if loses_records:
            for ground in self.grounds.values():
                ground.lost[broker] = None

    def on_connection_closed(self, connection_id: int, now_ms: int) -> None:
        """A connection has closed: a reply to its client is possible but no longer required."""
        self.replies.on_end(now_ms, connection=connection_id)

    def check_unanswered(self, now_ms: int, patience: Patience) -> None:
        """At the end of the run: report each request that has waited too long, once."""
        for overdue in self.replies.overdue(now_ms, patience):
            self._report(now_ms, f"broker {overdue.broker}", [("no-reply", str(overdue))])

    # ----------------------------------------------------------------------- observations

    def observe_metadata(
        self,
        now_ms: int,
        topic: str,
        registration: PartitionRegistration,
        brokers: Mapping[int, BrokerRegistration],
    ) -> None:
        """Check a partition's registration at the controller against the registered brokers."""
        ground = self.ground(topic, (registration.topic_id, registration.partition))
        old = ground.registration
        if old is not registration:
            ground.registration = registration
            ground.registrations.append((now_ms, registration))
            self._report(now_ms, ground.name, registration_violations(registration, old))
            for broker in tuple(ground.lost):
                if broker not in registration.isr:
                    del ground.lost[broker]
        self._report(now_ms, ground.name, membership_violations(registration, brokers))

    def observe_offset(self, now_ms: int, node: int, life: int, offset: int) -> None:
        """Check the offset up to which a node has applied the metadata log."""
        known = self._metadata_offsets.get(node)
        if known is not None and known[0] == life and offset < known[1]:
            text = f"metadata offset {known[1]} -> {offset}"
            self._report(now_ms, f"broker {node}", [("metadata-back", text)])
        self._metadata_offsets[node] = (life, offset)

    def observe(
        self,
        now_ms: int,
        broker: int,
        life: int,
        replicas: Iterable[Replica],
        request: Request | None = None,
    ) -> None:
        """Check a broker's replicas after a step; `request`: the Produce request it handled."""
        all_seen = self._seen
        for replica in replicas:
            seen = all_seen.get(replica)
            if seen is None or seen.life != life:
                self._observe_first(now_ms, broker, life, replica, request)
                continue
            log, watermark = replica.log, replica.high_watermark
            end = log.log_end_offset
            moved = end != seen.log_end_offset or watermark != seen.high_watermark
            if (
                replica.registration is not seen.registration
                or replica.role is not seen.role
                or replica.leader_epoch != seen.leader_epoch
                or log.log_start_offset != seen.log_start_offset
                or end < seen.log_end_offset
                or not seen.high_watermark <= watermark <= end
            ):
                self._compare(now_ms, seen, replica, request)
            elif moved:
                self._observe_progress(now_ms, seen, replica, end, watermark, request)

    def _observe_progress(
        self,
        now_ms: int,
        seen: Seen,
        replica: Replica,
        end: int,
        watermark: int,
        request: Request | None,
    ) -> None:
        """The common case: an append, or a high watermark that advanced."""
        ground = seen.ground
        if ground.unclean >= 0 and is_behind_unclean(ground, replica):
            self._compare(now_ms, seen, replica, request)
            return
        before = seen.high_watermark
        if replica.is_leader:
            if end > seen.log_end_offset:
                _record_appends(now_ms, ground, replica, seen.log_end_offset, request)
            if watermark > before:
                committed = ground.committed
                if before < committed.end:
                    self._report(now_ms, seen_as(seen), differing(replica, committed, before))
                extend(committed, replica)
                self._report(now_ms, seen_as(seen), members_behind(ground, replica))
        elif watermark > before:
            batches = replica.log.segments[-1].batches if replica.log.segments else ()
            last = -1 if watermark == end else -2
            if len(batches) < 2 or not (
                (batch := batches[last]).base_offset <= before
                and ground.committed.batches.get(batch.base_offset) is batch
            ):
                problems = differing(replica, ground.committed, before)
                self._report(now_ms, seen_as(seen), problems)
        seen.log_end_offset = end
        seen.high_watermark = watermark
        ground.moves.append(Move(now_ms, seen.broker, end, watermark))

    def _observe_first(
        self, now_ms: int, broker: int, life: int, replica: Replica, request: Request | None
    ) -> None:
        """The first observation of a replica in this life of its broker."""
        ground = self.ground(replica.topic, replica.key)
        seen = self._seen[replica] = ground.seen[broker] = Seen(ground, broker, life)
        seen.role = Role.NONE
        seen.registration = replica.registration
        seen.leader_epoch = replica.leader_epoch
        seen.partition_epoch = replica.registration.partition_epoch
        seen.log = log = replica.log
        seen.log_end_offset = log.log_end_offset
        seen.log_start_offset = log.log_start_offset
        # What was on disk when the process started has not been compared yet.
        seen.high_watermark = min(log.log_start_offset, replica.high_watermark)
        self._compare(now_ms, seen, replica, request)

    def _compare(self, now_ms: int, seen: Seen, replica: Replica, request: Request | None) -> None:
        """Compare a replica with its last observed state, and remember the new one."""
        log, ground, broker = replica.log, seen.ground, seen.broker
        subject = seen_as(seen)
        self._report(now_ms, subject, replica_violations(replica))
        self._report(now_ms, subject, step_violations(seen, replica))
        committed = ground.committed
        checked = 0
        if log.log_end_offset >= seen.log_end_offset:
            checked = min(seen.high_watermark, committed.end)
        else:
            self._report(now_ms, subject, truncated_committed(ground, broker, replica))
        if replica.is_leader and (
            seen.role is not _LEADER or seen.leader_epoch != replica.leader_epoch
        ):
            self._report(now_ms, subject, _began_to_lead(ground, seen, replica))
        elif replica.is_leader:
            _record_appends(now_ms, ground, replica, seen.log_end_offset, request)
        if not is_behind_unclean(ground, replica):
            self._report(now_ms, subject, differing(replica, committed, checked))
            if replica.is_leader:
                if replica.high_watermark > seen.high_watermark:
                    self._report(now_ms, subject, members_behind(ground, replica))
                extend(committed, replica)
        seen.role = replica.role
        seen.registration = replica.registration
        seen.leader_epoch = replica.leader_epoch
        seen.partition_epoch = replica.registration.partition_epoch
        seen.high_watermark = replica.high_watermark
        seen.log_end_offset = log.log_end_offset
        seen.log_start_offset = log.log_start_offset
        ground.min_isr = replica.min_isr
        ground.moves.append(Move(now_ms, broker, log.log_end_offset, replica.high_watermark))

    # ------------------------------------------------------------------------------- answers

    def check_ack(self, now_ms: int, broker: int, replica: Replica, answer: Any) -> None:
        """Check a successful Produce response with acks=all for a partition."""
        seen = self._seen.get(replica)
        if seen is not None and answer.base_offset >= seen.ground.committed.end:
            problems = acked_too_soon(seen.ground, replica, answer)
            self._report(now_ms, f"broker {broker}", problems)

    def check_read(self, now_ms: int, broker: int, replica: Replica, answer: Any) -> None:
        """Check a Fetch response with records of a partition."""
        seen = self._seen.get(replica)
        if seen is not None and answer.records[-1].last_offset >= seen.ground.committed.end:
            problems = read_too_soon(seen.ground, replica, answer)
            self._report(now_ms, f"broker {broker}", problems)


def seen_as(seen: Seen) -> str:
    """A replica as the subject of a violation."""
    return f"{seen.ground.name} on broker {seen.broker}"


def _record_appends(
    now_ms: int, ground: Ground, replica: Replica, from_offset: int, request: Request | None
) -> None:
    """Record the batches that a leader has appended since `from_offset`."""
    log = replica.log
    if log.log_end_offset <= from_offset:
        return
    last = log.segments[-1].batches[-1]
    batches = [last] if last.base_offset == from_offset else log.batches_from(from_offset)
    for batch in batches:
        ground.appends.append(
            Append(
                now_ms,
                replica.broker_id,
                replica.leader_epoch,
                batch.base_offset,
                batch.last_offset,
                batch,
                request,
                replica.isr,
            )
        )


def _began_to_lead(ground: Ground, seen: Seen, replica: Replica) -> Iterator[tuple[str, str]]:
    epoch = replica.leader_epoch
    other = ground.leaders.setdefault(epoch, (seen.broker, seen.life))
    if other != (seen.broker, seen.life):
        yield "two-leaders", f"epoch {epoch} was led by broker {other[0]}, life {other[1]}"
    if epoch < ground.newest_epoch:
        return  # it learnt of its election late: others have led since
    ground.newest_epoch = epoch
    committed = ground.committed
    lacking = first_lacking(replica.log, committed)
    if ground.forgiven < ground.unclean <= epoch:
        # After an unclean election only what the new leader has remains committed.
        ground.forgiven = ground.unclean
    elif lacking is not None:
        yield "committed-lost", f"epoch {epoch} begins without what is committed from {lacking} on"
    if lacking is not None:
        committed.cut(lacking)
