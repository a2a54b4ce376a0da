"""The invariants of replication, which must hold after every step under any fault.

Owns: the state needed to detect violations, and finding them.  Never: changes a node; accepts
a loss of committed records for any reason but an unclean election that a setting in force, or the
operator, allows.  Kafka: the specs of KIP-101, KIP-279, KIP-497, KIP-966; RaftEventSimulationTest's
invariants.

After each step of a broker, `Invariants.observe` compares the affected replicas with their last
observed state.  Unchanged replicas are skipped.  Most changes are an append or an advance of the
high watermark: these take a few comparisons; all others are compared in full.

A record is committed once a leader's high watermark has passed it.  From then on it must be in the
log of every later leader, at its offset, until an unclean election removes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from kcluster.contract import Note, NoteId, PeerResponse, Reply, Request
from kcluster.events.brokers import BrokerPaused, BrokerResumed
from kcluster.events.clients import GroupEvent, GroupMemberExpired, GroupMemberLeft
from kcluster.events.partitions import BecameFollower, LeaderChange, LeaderElected, RecordsDeleted
from kcluster.events.share_groups import ShareLocksExpired, SharePartitionLoaded
from kcluster.events.topics import ConfigChanged, TopicDeleted
from kcluster.events.transactions import TransactionEvent
from kcluster.invariants import compacted, decisions
from kcluster.invariants.coordinators import Coordinators, Shard, knows_all, unstable_offsets
from kcluster.invariants.deletions import confirm, deleted_early
from kcluster.invariants.facts import (
    AnsweredTwice,
    LeaderReplaced,
    LogLeft,
    Measure,
    Observed,
    Stall,
    TimeStoodStill,
    WentBack,
)
from kcluster.invariants.group_facts import OffsetGiven, UnstableRead
from kcluster.invariants.heartbeats import BrokerHeartbeats
from kcluster.invariants.markers import MARKER_ANSWER, EarlyAnswer, MarkerAnswers
from kcluster.invariants.memberships import Memberships
from kcluster.invariants.observed import NO_EPOCH, ObservedPartition, ObservedReplica, PartitionKey
from kcluster.invariants.offset_answers import OffsetAnswers
from kcluster.invariants.producer_facts import OverdueTransaction
from kcluster.invariants.producers import ProducerRules
from kcluster.invariants.promises import BrokenPromise, LeaderEpoch, Promises
from kcluster.invariants.replayed import ReplayedOffsets, ReplayedTransactions
from kcluster.invariants.replayed_shares import ReplayedShares
from kcluster.invariants.replies import Patience, Replies
from kcluster.invariants.rules import (
    Problem,
    aborted_reads,
    acked_too_soon,
    began_to_lead,
    began_uncommitted,
    differing,
    epoch_violations,
    extend,
    is_behind_unclean,
    joins_lacking,
    leader_violations,
    listed_too_low,
    members_behind,
    membership_violations,
    producer_violations,
    read_too_soon,
    registration_violations,
    replica_violations,
    step_violations,
    time_violations,
    truncated_committed,
    watermark_alone,
)
from kcluster.invariants.shares import STATE_ANSWERS, LedBy, SharePromises
from kcluster.invariants.violations import Subject, Violation, violation
from kcluster.metadata.records import BrokerRegistration, PartitionRegistration
from kcluster.partition.replica import Replica, Role
from kcluster.protocol import messages as m
from kcluster.protocol.names import (
    GROUP_METADATA_TOPIC,
    INTERNAL_TOPICS,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)
from kcluster.protocol.records.batches import Batch
from kcluster.timers import NEVER_MS

UNKNOWN_MIN_ISR: Final = 2**31 - 1
_LEADER: Final = Role.LEADER


class Invariants:
    """The observed state of one run.  `violations`: all so far, oldest first; `partitions`: the
    observed partitions.

    The caller passes it every note (`on_note`), each broker after a step (`observe`), the
    controller's partitions (`observe_metadata`), and all requests and replies of clients.
    """

    def __init__(self) -> None:
        self.violations: list[Violation] = []
        self.partitions: dict[PartitionKey, ObservedPartition] = {}
        self._replicas: dict[Replica, ObservedReplica] = {}
        self._metadata_offsets: dict[int, tuple[int, int]] = {}
        """The newest metadata offset of each node, with the node's life."""
        self._unfenced: dict[int, int] = {}
        """The newest broker epoch in which each broker was unfenced."""
        self._unclean: dict[tuple[str, int], int] = {}
        """The epochs of unclean elections in partitions that are not observed yet."""
        self.forbidden_elections: dict[NoteId, None] = {}
        """The notes of unclean elections that no setting and no request allowed."""
        self.replies = Replies()
        self.memberships = Memberships()
        self.offset_answers = OffsetAnswers(self.memberships.tenures.topic)
        self.coordinators = Coordinators(self.partitions, self.offset_answers.deleted_groups)
        self.appended = ProducerRules(self.coordinators.decisions)
        self._of_producers: list[tuple[ObservedReplica, Batch]] = []
        """The batches of producers that were appended in this step."""
        self.markers = MarkerAnswers()
        self.promises = Promises(self.memberships.tenures.owner_of, self.memberships.epoch_of)
        self.shares = SharePromises()
        self.heartbeats = BrokerHeartbeats()
        self.producer_expiration_ms = NEVER_MS
        """producer.id.expiration.ms of the observed broker."""
        self.is_by_clock = False
        """Whether the step under observation was begun by a timer."""
        self.deleted_by_hand: dict[str, None] = {}
        """The topics of which DeleteRecords has deleted records."""

    def _report(
        self, now_ms: int, subject: Subject, problems: Iterable[Problem], broker: int = -1
    ) -> None:
        for name, fact in problems:
            self.violations.append(violation(name, now_ms, subject, fact, broker))

    def report_promise(self, now_ms: int, broken: BrokenPromise, broker: int) -> None:
        """Report a promise that a broker has broken, by an answer or by what it keeps in memory."""
        name, subject, fact = broken
        self.violations.append(Violation(name, now_ms, subject, fact, broker=broker))

    def partition(self, topic: str, key: PartitionKey) -> ObservedPartition:
        """A partition in its last observed state."""
        observed = self.partitions.get(key)
        if observed is None:
            observed = self.partitions[key] = ObservedPartition(topic, key)
            observed.unclean_epoch = self._unclean.pop((topic, key[1]), -1)
            if topic == TRANSACTION_STATE_TOPIC:
                observed.replayed = ReplayedTransactions(self.coordinators.decisions)
            elif topic == GROUP_METADATA_TOPIC:
                observed.replayed = ReplayedOffsets()
            elif topic == SHARE_GROUP_STATE_TOPIC:
                observed.replayed = ReplayedShares()
        return observed

    # ------------------------------------------------------------------------- inputs

    def on_note(self, note: Note, unclean_enabled: Callable[[str], bool]) -> None:
        """Record the facts in a note that the rules need: unclean elections, pauses, deleted
        topics. `unclean_enabled(topic)`: the value of unclean.leader.election.enable in force."""
        event = note.event
        if isinstance(event, LeaderChange):
            if event.topic == TRANSACTION_STATE_TOPIC:
                self.promises.on_new_coordinator()
            # A cancelled reassignment, too, can end in an unclean election.
            if not event.clean:
                self._on_unclean(note, event, unclean_enabled)
                if event.topic in (GROUP_METADATA_TOPIC, SHARE_GROUP_STATE_TOPIC):
                    self._forget_groups()
        elif isinstance(event, GroupEvent):
            if isinstance(event, GroupMemberLeft | GroupMemberExpired):
                broker = note.note_id[0]
                broken = self.memberships.removals.on_removed(event, broker, note.at_ms)
                if broken is not None:
                    self.report_promise(note.at_ms, broken, broker)
            self.memberships.on_note(note)
        elif isinstance(event, SharePartitionLoaded):
            loaded = (event.broker, event.group, event.topic, event.partition)
            self.shares.on_loaded(*loaded)
        elif isinstance(event, ShareLocksExpired):
            if event.archived_records:
                archived = (event.group, event.topic, event.partition)
                self.coordinators.archived[archived] = None
        elif isinstance(event, ConfigChanged):
            self.shares.on_configured(event.resource)
            self.memberships.removals.on_configured(event)
        elif isinstance(event, BecameFollower):
            self.shares.on_resigned(event.broker, event.topic, event.partition)
        elif isinstance(event, TransactionEvent):
            self.promises.on_transaction(event, note.at_ms)
        elif isinstance(event, BrokerPaused):
            self.replies.on_pause(event.broker, note.at_ms)
            self.memberships.on_pause()
        elif isinstance(event, BrokerResumed):
            self.replies.on_resume(event.broker, note.at_ms)
        elif isinstance(event, RecordsDeleted):
            self.on_deleted(note.at_ms, event.topic, event.partition, event.low_watermark)
        elif isinstance(event, TopicDeleted):
            self.promises.on_topic_deleted(event.topic)
            for observed in self.partitions.values():
                if observed.topic == event.topic and observed.deleted_ms < 0:
                    observed.deleted_ms = note.at_ms
                    self.coordinators.left_offsets.on_deleted(observed.key[0])

    def on_deleted(self, now_ms: int, topic: str, partition: int, before: int) -> None:
        """Record that the deletion of the records before an offset was confirmed."""
        for replica, found in confirm(self.partitions.values(), topic, partition, before):
            self._report(now_ms, replica, [found])

    def _on_unclean(
        self, note: Note, change: LeaderChange, unclean_enabled: Callable[[str], bool]
    ) -> None:
        """Record an unclean election.  If it is forbidden, the records that it loses still count as
        committed."""
        topic, partition, epoch = change.topic, change.partition, change.leader_epoch
        if change.is_allowed_by_setting and not unclean_enabled(topic):
            self.forbidden_elections[note.note_id] = None
            replaced = LeaderReplaced(change.old_leader, change.new_leader, epoch)
            about = (note.at_ms, change.subject, replaced, topic, partition)
            self.violations.append(Violation("unclean-forbidden", *about))
            return
        for observed in self.partitions.values():
            if (
                observed.topic == topic
                and observed.partition == partition
                and observed.deleted_ms < 0
            ):
                observed.unclean_epoch = epoch
                if isinstance(change, LeaderElected) and observed.registration is not None:
                    needless = decisions.needless_last_known(change, observed.registration)
                    self._report(note.at_ms, observed, needless)
                return
        self._unclean[topic, partition] = epoch

    def on_reply(self, broker: int, request: Request, now_ms: int) -> None:
        """Record a broker's answer."""
        if not self.replies.on_reply(request):
            twice = AnsweredTwice(request.correlation_id, request.connection_id)
            self._report(now_ms, None, [("two-replies", twice)], broker)

    def check_promises(
        self, broker: int, reply: Reply, leader_epoch: LeaderEpoch, now_ms: int
    ) -> None:
        """Check a coordinator's answer against its earlier ones."""
        for broken in self.promises.on_reply(broker, reply, leader_epoch, now_ms):
            self.report_promise(now_ms, broken, broker)

    def check_memberships(self, reply: Reply, now_ms: int) -> None:
        """Check an answer of a coordinator once it is decided, whether its client gets it or
        not."""
        for broker, broken in self.memberships.on_decided(reply, now_ms):
            self.report_promise(now_ms, broken, broker)

    def check_shares(self, reply: Reply, led_by: LedBy, now_ms: int) -> None:
        """Check a leader's answer to a member of a share group once it is decided."""
        for broker, broken in self.shares.on_decided(reply, led_by, now_ms):
            self.report_promise(now_ms, broken, broker)

    def check_shared_read(
        self, now_ms: int, replica: Replica, answer: m.ShareFetchResponse.PartitionData
    ) -> None:
        """Check the records that a member of a share group with read_committed gets."""
        old = self._replicas.get(replica)
        if old is not None:
            self._report(now_ms, old, aborted_reads(replica.log, answer))

    def check_peer_response(
        self, node: int, number: int, response: PeerResponse, now_ms: int
    ) -> None:
        """Check an answer about share states or about markers when it arrives at a node.  `number`:
        the id that was recorded when the request arrived."""
        if isinstance(response.body, STATE_ANSWERS):
            for broken in self.shares.on_peer_response(node, number, response):
                self.report_promise(now_ms, broken, response.source)
        elif isinstance(response.body, MARKER_ANSWER):
            early = self.markers.on_peer_response(node, number, response)
            self._report_early_markers(now_ms, response.source, early)

    def check_markers(self, broker: int, reply: Reply, now_ms: int) -> None:
        """Check a broker's answer to an administrator's WriteTxnMarkers request."""
        self._report_early_markers(now_ms, broker, self.markers.on_reply(reply))

    def _report_early_markers(self, now_ms: int, broker: int, early: Iterable[EarlyAnswer]) -> None:
        for partition, fact in early:
            self._report(now_ms, partition, [("marker-before-commit", fact)], broker)

    def _forget_groups(self) -> None:
        """Discard what groups were told: their coordinators' logs may have lost records."""
        self.promises.forget_groups()
        self.memberships.forget()
        self.offset_answers.forget()
        self.shares.forget()

    def on_death(self, broker: int, now_ms: int) -> None:
        """Record the death of a broker's process.  From now on the process owes no replies."""
        self.replies.on_end(now_ms, broker=broker)
        self.promises.on_new_coordinator()

    def on_loss(self, broker: int, epoch: int) -> None:
        """Record that a broker's disk is about to lose records.  `epoch`: the broker epoch of the
        last process that has written to it."""
        self._forget_groups()
        for observed in self.partitions.values():
            observed.clean_offset()  # before the disk changes
            observed.lost[broker] = max(epoch, observed.lost.get(broker, NO_EPOCH))

    def check_unanswered(self, now_ms: int, patience: Patience) -> None:
        """Report each request that has waited too long, once; called at the end of the run."""
        for broker, unanswered in self.replies.overdue(now_ms, patience):
            self._report(now_ms, None, [("no-reply", unanswered)], broker)

    def report_stalls(self, now_ms: int, stalls: Iterable[tuple[PartitionKey, Stall]]) -> None:
        """Report high watermarks that stood still for too long."""
        for key, stall in stalls:
            observed = self.partition(stall.topic, key)
            self._report(now_ms, observed, [("watermark-stalled", stall)], stall.leader)

    def check_fenced(self) -> None:
        """Report producers that were fenced without a reason; called at the end of the run."""
        for at_ms, broker, transactional_id, fact in self.promises.fenced_alone():
            broken = ("fenced-alone", f"transaction {transactional_id}", fact)
            self.report_promise(at_ms, broken, broker)

    def check_compacted(self, now_ms: int) -> None:
        """Report what compaction has done wrong in the logs of in-sync replicas: newest records of
        keys or last batches of producers that it has removed, older records that it has kept, and
        batches that it has altered; called at the end of the run."""
        forgotten_ms = now_ms - self.producer_expiration_ms
        for observed in self.partitions.values():
            registration = observed.registration
            if registration is None or observed.deleted_ms >= 0 or not observed.clean_offset():
                continue
            last = compacted.last_of_producers(observed.appends, observed.committed)
            for broker in registration.isr:
                replica = observed.replicas.get(broker)
                if replica is not None:
                    problems = compacted.problems(observed, replica.log, last, now_ms, forgotten_ms)
                    self._report(now_ms, replica, problems)

    def check_epochs(self, now_ms: int) -> None:
        """Compare the epoch caches and segments of in-sync replicas with their batches; called at
        the end of the run."""
        for observed in self.partitions.values():
            registration = observed.registration
            if registration is None or observed.deleted_ms >= 0:
                continue
            for broker in registration.isr:
                replica = observed.replicas.get(broker)
                if replica is not None:
                    self._report(now_ms, replica, epoch_violations(replica.log))
                    self._report(now_ms, replica, compacted.differing_segments(replica.log))

    def report_broker(self, now_ms: int, broker: int, name: str, fact: Observed) -> None:
        """Report a violation by a broker, or by the controller about a broker."""
        self._report(now_ms, None, [(name, fact)], broker)

    def report_replica(self, now_ms: int, replica: Replica, name: str, fact: Observed) -> None:
        """Report a violation that a look at a replica has found."""
        old = self._replicas.get(replica)
        if old is not None:
            self._report(now_ms, old, [(name, fact)])

    def report_logs_left(self, now_ms: int, broker: int, logs: Iterable[PartitionKey]) -> None:
        """Report logs of partitions that a broker does not host."""
        for key in logs:
            self._report(now_ms, None, [("log-left", LogLeft(*key))], broker)

    def report_overdue(self, found: Iterable[tuple[PartitionKey, OverdueTransaction]]) -> None:
        """Report transactions that were not ended for too long."""
        for key, overdue in found:
            home = self.partition(TRANSACTION_STATE_TOPIC, key)
            problem = ("transaction-overdue", overdue)
            self._report(overdue.since_ms, home, [problem], overdue.coordinator)

    def report_livelock(self, now_ms: int, steps: str) -> None:
        """Report that time stood still, which ended the run."""
        self.violations.append(Violation("livelock", now_ms, "the run", TimeStoodStill(steps)))

    # ----------------------------------------------------------------------- observations

    def observe_metadata(
        self,
        now_ms: int,
        topic: str,
        registration: PartitionRegistration,
        brokers: Mapping[int, BrokerRegistration],
        proposal: m.AlterPartitionRequest.PartitionData | None = None,
        min_isr: int = UNKNOWN_MIN_ISR,
    ) -> None:
        """Check a partition's registration at the controller against the registered brokers, its
        topic's `min_isr`, and the `proposal` of an ISR that the controller has just answered."""
        observed = self.partition(topic, (registration.topic_id, registration.partition))
        old = observed.registration
        if old is not registration:
            observed.registration = registration
            observed.registrations.append((now_ms, registration))
            self._report(now_ms, observed, registration_violations(registration, old))
            if old is not None:
                self._report(now_ms, observed, decisions.ended_early(registration, old))
                self._report(now_ms, observed, decisions.eligible_newcomers(registration, old))
            if old is not None and proposal is not None:
                problems = decisions.outdated_proposal(proposal, old, registration, brokers)
                self._report(now_ms, observed, problems)
            if old is not None and registration.isr != old.isr:
                problems = joins_lacking(observed, registration, old, brokers)
                self._report(now_ms, observed, problems)
        self._report(now_ms, observed, membership_violations(registration, brokers))
        self._report(now_ms, observed, decisions.needless_elr(registration, min_isr))
        self._report(now_ms, observed, decisions.outdated_last_known(registration))

    def observe_broker(
        self, now_ms: int, registration: BrokerRegistration, applied_offset: int | None
    ) -> None:
        """Check a broker's registration at the controller.  `applied_offset`: the metadata offset
        of the process that was registered; None if another one runs, or none ever did."""
        broker, epoch = registration.broker_id, registration.epoch
        if registration.fenced or self._unfenced.get(broker) == epoch:
            return
        self._unfenced[broker] = epoch
        if applied_offset is not None:
            self._report(
                now_ms, None, decisions.unfenced_behind(registration, applied_offset), broker
            )

    def observe_offset(self, now_ms: int, node: int, life: int, offset: int) -> None:
        """Check the offset up to which a node has applied the metadata log."""
        known = self._metadata_offsets.get(node)
        if known is not None and known[0] == life and offset < known[1]:
            back = WentBack(Measure.METADATA_OFFSET, known[1], offset)
            self._report(now_ms, None, [("metadata-back", back)], node)
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
        known = self._replicas
        for replica in replicas:
            old = known.get(replica)
            if old is None or old.life != life:
                self._observe_first(now_ms, broker, life, replica, request)
                continue
            log, watermark = replica.log, replica.high_watermark
            end = log.log_end_offset
            if log.first_dirty_offset != old.first_dirty_offset:
                self._report(now_ms, old, compacted.observe_cleaning(old, replica, now_ms))
            moved = end != old.log_end_offset or watermark != old.high_watermark
            if (
                replica.registration is not old.registration
                or replica.role is not old.role
                or replica.leader_epoch != old.leader_epoch
                or log.log_start_offset != old.log_start_offset
                or end < old.log_end_offset
                or not old.high_watermark <= watermark <= end
            ):
                self._compare(now_ms, old, replica, request)
            elif moved:
                self._observe_progress(now_ms, old, replica, end, watermark, request)
        if self._of_producers:
            self._check_appended(now_ms)

    def _observe_progress(
        self,
        now_ms: int,
        old: ObservedReplica,
        replica: Replica,
        end: int,
        watermark: int,
        request: Request | None,
    ) -> None:
        """Observe the common case: an append, or an advance of the high watermark."""
        observed = old.partition
        if observed.unclean_epoch >= 0 and is_behind_unclean(observed, replica):
            self._compare(now_ms, old, replica, request)
            return
        before = old.high_watermark
        if replica.is_leader:
            if end > old.log_end_offset:
                self._record_appends(now_ms, old, replica, request)
            if watermark > before:
                self._report(now_ms, old, watermark_alone(replica))
                committed = observed.committed
                if before < committed.end:
                    checked = max(before, observed.clean_offset())
                    self._report(now_ms, old, differing(replica, committed, checked))
                _extend(observed, replica)
                self._report(now_ms, old, members_behind(observed, replica))
        elif watermark > before:
            batches = replica.log.segments[-1].batches if replica.log.segments else ()
            last = -1 if watermark == end else -2
            if len(batches) < 2 or not (
                (batch := batches[last]).base_offset <= before
                and observed.committed.batches.get(batch.base_offset) is batch
            ):
                checked = max(before, observed.clean_offset())
                self._report(now_ms, old, differing(replica, observed.committed, checked))
        old.log_end_offset = end
        old.high_watermark = watermark
        old.record_move(now_ms, replica)

    def _observe_first(
        self, now_ms: int, broker: int, life: int, replica: Replica, request: Request | None
    ) -> None:
        """Observe a replica for the first time in this life of its broker."""
        observed = self.partition(replica.topic, replica.key)
        observed.clean_offset()  # before the log of an earlier life is forgotten
        old = self._replicas[replica] = observed.replicas[broker] = ObservedReplica(
            observed, broker, life
        )
        old.role = Role.NONE
        old.registration = replica.registration
        old.leader_epoch = replica.leader_epoch
        old.partition_epoch = replica.registration.partition_epoch
        old.log = log = replica.log
        old.log_end_offset = log.log_end_offset
        old.log_start_offset = log.log_start_offset
        old.record_cleaning(replica)
        # The records on the disk at the start of the process are not compared yet.
        old.high_watermark = min(log.log_start_offset, replica.high_watermark)
        self._compare(now_ms, old, replica, request)

    def _compare(
        self, now_ms: int, old: ObservedReplica, replica: Replica, request: Request | None
    ) -> None:
        """Compare a replica with its last observed state, and remember the new one."""
        log, observed, broker = replica.log, old.partition, old.broker
        self._report(now_ms, old, replica_violations(replica))
        self._report(now_ms, old, step_violations(old, replica))
        committed = observed.committed
        checked = 0
        is_new_leader = replica.is_leader and (
            old.role is not _LEADER or old.leader_epoch != replica.leader_epoch
        )
        if (
            replica.is_leader
            and not is_new_leader
            and self.is_by_clock
            and log.log_start_offset > old.log_start_offset
            and observed.topic not in self.deleted_by_hand
            and observed.topic not in INTERNAL_TOPICS
        ):
            early = deleted_early(observed, replica, old.log_start_offset, now_ms)
            self._report(now_ms, old, early)
        if is_new_leader or log.log_end_offset < old.log_end_offset:
            problems = producer_violations(log, now_ms, self.producer_expiration_ms)
            self._report(now_ms, old, problems)
            self._report(now_ms, old, epoch_violations(log))
            self._report(now_ms, old, time_violations(log))
        if log.log_end_offset >= old.log_end_offset:
            checked = min(old.high_watermark, committed.end)
        else:
            self._report(now_ms, old, truncated_committed(observed, broker, replica))
        if is_new_leader:
            # A watch that begins late, as in a live cluster, sees followers that have fetched.
            has_seen_begin = old.role is not Role.NONE
            self._report(now_ms, old, leader_violations(replica, has_seen_begin))
            self._report(now_ms, old, began_to_lead(observed, old, replica))
        elif replica.is_leader:
            self._record_appends(now_ms, old, replica, request)
        if not is_behind_unclean(observed, replica):
            checked = max(checked, observed.clean_offset())
            self._report(now_ms, old, differing(replica, committed, checked))
            if replica.is_leader:
                if replica.high_watermark > old.high_watermark:
                    self._report(now_ms, old, members_behind(observed, replica))
                    if not is_new_leader:
                        self._report(now_ms, old, watermark_alone(replica))
                _extend(observed, replica)
        old.role = replica.role
        old.registration = replica.registration
        old.leader_epoch = replica.leader_epoch
        old.partition_epoch = replica.registration.partition_epoch
        old.high_watermark = replica.high_watermark
        old.log_end_offset = log.log_end_offset
        old.log_start_offset = log.log_start_offset
        observed.min_isr = replica.min_isr
        observed.delete_retention_ms = replica.config.delete_retention_ms
        old.record_move(now_ms, replica)

    def _record_appends(
        self, now_ms: int, old: ObservedReplica, replica: Replica, request: Request | None
    ) -> None:
        """Record the batches that a leader has appended since it was observed."""
        for batch in old.partition.observe_appends(now_ms, replica, old.log_end_offset, request):
            if batch.producer_id >= 0:
                self._of_producers.append((old, batch))

    def _check_appended(self, now_ms: int) -> None:
        """Check the producers' batches that were appended in this step, once everything that was
        committed in it is known."""
        appended, self._of_producers = self._of_producers, []
        self.appended.expiration_ms = self.producer_expiration_ms
        for replica, batch in appended:
            topic, partition = replica.partition.topic, replica.partition.partition
            is_current = replica.leader_epoch >= replica.partition.newest_epoch
            place = (topic, partition, batch.producer_id)
            problems = self.appended.check(place, replica.log, batch, now_ms, is_current)
            self._report(now_ms, replica, problems)

    # -------------------------------------------------------------------------- coordinators

    def check_coordinator(self, now_ms: int, replica: Replica, held: Shard, is_asked: bool) -> None:
        """Compare what a coordinator holds with its log.  `is_asked`: whether this step handled a
        client's request; if not, the two are compared only after a commit."""
        old = self._replicas.get(replica)
        if old is not None and self.coordinators.has_news(old.partition, held, is_asked):
            found = self.coordinators.differing(old.partition, replica, held, is_asked)
            self._report(now_ms, old, found)

    def unstable_offsets(self, replica: Replica, body: m.OffsetFetchResponse) -> list[UnstableRead]:
        """The offsets in a coordinator's answer that an open transaction may change, by what is
        committed now."""
        old = self._replicas.get(replica)
        return [] if old is None else list(unstable_offsets(old.partition, body))

    def check_unstable(
        self, now_ms: int, replica: Replica, body: m.OffsetFetchResponse, were: list[UnstableRead]
    ) -> None:
        """Report the offsets that were unstable both before and after a step, if the coordinator
        that returned them knows everything that is committed."""
        old = self._replicas.get(replica)
        if old is not None and knows_all(old.partition, replica):
            still = [fact for fact in unstable_offsets(old.partition, body) if fact in were]
            self._report(now_ms, old, (("unstable-offset", fact) for fact in still))

    def check_offsets(self, now_ms: int, replica: Replica, found: Iterable[OffsetGiven]) -> None:
        """Report wrong offsets that groups got, if the coordinator that returned them knows
        everything that is committed."""
        old = self._replicas.get(replica)
        if old is not None and knows_all(old.partition, replica):
            self._report(now_ms, old, (("offset-unknown", fact) for fact in found))

    def check_told(self, now_ms: int, replica: Replica, broker: int, reply: Reply) -> None:
        """Check an answer to a producer or a member, if its coordinator knows everything that is
        committed: after a pause it may answer about an earlier transaction."""
        old = self._replicas.get(replica)
        if old is None or not knows_all(old.partition, replica):
            return
        broken = self.coordinators.broken_by(reply, old.partition, replica)
        if broken is not None:
            self.report_promise(now_ms, broken, broker)

    # ------------------------------------------------------------------------------- answers

    def check_ack(
        self, now_ms: int, replica: Replica, answer: m.ProduceResponse.PartitionProduceResponse
    ) -> None:
        """Check a successful Produce response with acks=all for a partition."""
        old = self._replicas.get(replica)
        if old is not None and answer.base_offset >= old.partition.committed.end:
            self._report(now_ms, old, acked_too_soon(old.partition, replica, answer))

    def check_read(
        self, now_ms: int, replica: Replica, answer: m.FetchResponse.PartitionData
    ) -> None:
        """Check a Fetch response with records of a partition."""
        old = self._replicas.get(replica)
        if old is not None and answer.records[-1].last_offset >= old.partition.committed.end:
            self._report(now_ms, old, read_too_soon(old.partition, replica, answer))

    def check_share_start(self, now_ms: int, replica: Replica, start_offset: int) -> None:
        """Check the start offset of a share partition that was loaded in this step."""
        old = self._replicas.get(replica)
        if old is not None:
            self._report(now_ms, old, began_uncommitted(old.partition, start_offset))

    def check_listed(self, now_ms: int, replica: Replica, end_offset: int) -> None:
        """Check the latest offset that ListOffsets has returned to a consumer in this step."""
        old = self._replicas.get(replica)
        if old is not None:
            self._report(now_ms, old, listed_too_low(old.partition, replica, end_offset))


def _extend(observed: ObservedPartition, leader: Replica) -> None:
    """Count all below a leader's high watermark as committed; replay it for a coordinator's log."""
    extend(observed.committed, leader)
    if observed.replayed is not None:
        observed.replayed.follow(leader.log, observed.committed.end)
