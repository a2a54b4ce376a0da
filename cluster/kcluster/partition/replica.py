"""One replica of one partition on one broker: its role, high watermark, followers and ISR.

Owns: every transition of these: becoming leader or follower, a follower's progress, the high
watermark, the ISR proposed and committed.  Never: stores records (log.py does), sends anything (the
broker sends what `propose_*` return), decides who leads (the controller does). Kafka:
kafka.cluster.Partition, Replica, PendingPartitionChange; KIP-101, KIP-497, KIP-841, KIP-903,
KIP-966.

    metadata names this broker      -> lead(): epoch starts at the log end, followers unknown
    metadata names another one      -> follow(): the ISR proposal is void, waiting acks fail
    a follower fetches at offset x  -> record_fetch(): it has all records before x; the watermark
                                       may move
    follower caught up              -> propose_expansion(): counts for the watermark at once
    follower behind for too long    -> propose_shrink(): counts for the watermark until committed
    controller agreed / refused     -> commit_isr() / drop_proposal()
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final, final

from kcluster.config.kafka.definitions import TopicConfig
from kcluster.contract import NoteId
from kcluster.metadata.records import BrokerRegistration, PartitionRegistration
from kcluster.partition.log.log import Appended, Log
from kcluster.partition.log.retention import limit_size, size_limit
from kcluster.partition.producers import NO_STATE, check_marker
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.batches import Batch
from kcluster.protocol.records.compression import Allowance
from kcluster.protocol.records.markers import Marker, build_marker
from kcluster.structs import Frozen

NO_ERROR: Final = ErrorCode.NONE
UNKNOWN_OFFSET: Final = -1
BEFORE_START_MS: Final = -(10**12)
"""The time of an event that has not happened yet: before the start of any run.  Virtual clocks
start at 0."""


class Role(Enum):
    """A replica's role; NONE before metadata has assigned one, and after it was removed."""

    NONE = "none"
    LEADER = "leader"
    FOLLOWER = "follower"


NO_ROLE: Final = Role.NONE


@final
class FollowerProgress:
    """A leader's knowledge of one follower.  Kafka: ReplicaState."""

    __slots__ = (
        "broker_epoch", "broker_id", "last_caught_up_ms", "last_fetch_ms",
        "leader_end_at_last_fetch", "log_end_offset", "log_start_offset",
    )  # fmt: skip

    def __init__(self, broker_id: int, last_caught_up_ms: int) -> None:
        self.broker_id = broker_id
        self.last_caught_up_ms = last_caught_up_ms
        """The last time at which the follower had everything that the leader had at the follower's
        previous fetch."""
        self.log_end_offset = UNKNOWN_OFFSET
        """The offset from which the follower last fetched; it has all earlier records."""
        self.log_start_offset = UNKNOWN_OFFSET
        """The follower's log start, according to its last fetch."""
        self.last_fetch_ms = BEFORE_START_MS
        """The time of the follower's last fetch; BEFORE_START_MS if it has not fetched from this
        leader in this epoch."""
        self.leader_end_at_last_fetch = 0
        """The leader's log end at that fetch."""
        self.broker_epoch = -1
        """The broker epoch of the process that fetched last; -1 before the first fetch."""


class IsrProposal(Frozen, frozen=True):
    """An ISR that this leader has requested from the controller.  Kafka: PendingPartitionChange."""

    isr: tuple[int, ...]
    maximal_isr: tuple[int, ...]
    """The members of the committed or the proposed ISR: until the controller's decision, all of
    them hold the watermark back."""
    leader_epoch: int
    partition_epoch: int


class AckWait:
    """A request that waits until everything before `required_offset` is committed; the broker has
    subclasses.

    It is in `Replica.acks_waiting`, from `wait_for_ack` until it is answered.
    """

    __slots__ = ("required_offset",)

    def __init__(self, required_offset: int) -> None:
        self.required_offset = required_offset

    def answered(self, error: ErrorCode, now_ms: int) -> None:
        """Called once: the records are committed (NONE), or never will be for the reason given."""
        raise AssertionError("a subclass answers")


class Replica:
    """One replica of one partition.  Its records, log start and log end are in `log`.

    Invariants: `log.log_start_offset <= high_watermark <= log.log_end_offset`, in every role;
    `is_leader` is `role is Role.LEADER`; only a leader has followers, one for each other replica
    of `registration`; `proposal`, if any, is of the registration's leader and partition epoch.

    `brokers`, `last_fetches`, `changed`: one dict each, shared by all replicas of the broker.
    `changed`: the replicas of which this object or the log has changed; the broker passes them to
    its periodic tasks and to the recorder.  `number`: the running number of this replica on its
    broker.
    """

    __slots__ = (
        "acks_waiting", "broker_id", "brokers", "cause",
        "changed", "config", "fetches_waiting", "followers", "high_watermark", "is_leader", "isr",
        "key", "lag_time_max_ms", "last_fetches", "leader_epoch", "leader_epoch_start_offset",
        "log", "min_isr", "number", "partition", "proposal", "registration", "role", "size_limit",
        "topic", "topic_id",
    )  # fmt: skip

    def __init__(
        self,
        topic: str,
        registration: PartitionRegistration,
        broker_id: int,
        log: Log,
        config: TopicConfig,
        brokers: Mapping[int, BrokerRegistration],
        last_fetches: dict[int, int],
        lag_time_max_ms: int,
        changed: dict[Replica, None],
    ) -> None:
        self.topic = topic
        self.topic_id = registration.topic_id
        self.partition = registration.partition
        self.key = (registration.topic_id, registration.partition)
        self.broker_id = broker_id
        self.log = log
        """The log, which outlives this object and the process."""
        self.changed = changed
        self.number = 0
        self.config = config
        """The topic's configs in force."""
        self.brokers = brokers
        """All registered brokers in this broker's image, with their epochs and fences."""

        # Decisions of the controller.
        self.registration = registration
        """The ISR of the registration, the committed one; copied, like the next fields, for
        speed."""
        self.leader_epoch = registration.leader_epoch
        self.isr = registration.isr
        """Copies of the registration's fields, for speed; this ISR is the committed one."""
        self.min_isr = 1
        """min.insync.replicas, but not above the number of replicas."""
        self.role = NO_ROLE
        self.is_leader = False
        self.cause: NoteId | None = None
        """The note of the controller's decision that gave the replica its role."""

        # The committed part of the log.
        self.high_watermark = max(
            log.log_start_offset, min(log.high_watermark_checkpoint, log.log_end_offset)
        )
        """The offset below which every in-sync replica has all records; a follower learns it one
        fetch later."""

        # Fields of a leader.
        self.leader_epoch_start_offset = 0
        """The log end when this epoch began; a follower must reach it to join the ISR."""
        self.followers: dict[int, FollowerProgress] = {}
        """Every other replica of the registration, by broker id."""
        self.proposal: IsrProposal | None = None
        """The ISR that was requested from the controller, until its answer."""
        self.last_fetches = last_fetches
        """The time of each follower's last fetch from this broker, by broker id."""
        self.lag_time_max_ms = lag_time_max_ms

        # Requests that wait for this replica to move; the broker completes them.
        self.acks_waiting: list[AckWait] = []
        """The requests that wait for an offset to be committed, ascending by required offset."""
        self.fetches_waiting: dict[object, Callable[[int], None]] = {}
        """Callbacks (now_ms) by their owner: fetches without a session, and others."""
        self.configure(config)

    def __repr__(self) -> str:
        log = self.log
        return (
            f"<{self.topic}-{self.partition} on {self.broker_id}: {self.role.value} "
            f"epoch={self.leader_epoch} log=[{log.log_start_offset}, {log.log_end_offset}) "
            f"hw={self.high_watermark} isr={self.registration.isr}>"
        )

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        proposal = self.proposal
        return self.isr if proposal is None else proposal.maximal_isr

    def configure(self, config: TopicConfig) -> None:
        """Put a changed topic config into force."""
        self.changed[self] = None
        self.config = config
        self.size_limit = size_limit(config)
        # Capped as in Kafka: a topic with one replica and min.insync.replicas=2 still takes
        # acks=all.
        self.min_isr = min(config.min_insync_replicas, len(self.registration.replicas))

    # ----------------------------------------------------------------------------------- role

    def lead(self, registration: PartitionRegistration, now_ms: int) -> bool:
        """Become, or stay, the leader of `registration`.  True if a new epoch begins.

        Kafka: Partition.makeLeader.  The epoch starts at the log end: records before it have older
        epochs, and followers must agree on them first.
        """
        new_epoch = not self.is_leader or registration.leader_epoch > self.leader_epoch
        self._take(registration)
        self.role = Role.LEADER
        self.is_leader = True
        if not new_epoch:
            self._keep_followers(now_ms)
            # A follower that the controller has removed from the ISR no longer holds the watermark
            # back.
            self.advance_high_watermark(now_ms)
            return False
        log = self.log
        self.leader_epoch_start_offset = log.log_end_offset
        log.epochs.assign(registration.leader_epoch, log.log_end_offset)
        # Even a replica that led before starts with an unknown epoch: others may have led since.
        self.followers = {}
        self._keep_followers(now_ms)
        self.advance_high_watermark(now_ms)
        return True

    def follow(self, registration: PartitionRegistration) -> bool:
        """Become, or stay, a follower.  True if the leader or its epoch changed.

        Kafka: Partition.makeFollower.
        """
        changed = (
            self.role is not Role.FOLLOWER
            or registration.leader_epoch != self.leader_epoch
            or registration.leader != self.registration.leader
        )
        self._take(registration)
        self.role = Role.FOLLOWER
        self.is_leader = False
        self.followers = {}
        return changed

    def _take(self, registration: PartitionRegistration) -> None:
        self.changed[self] = None
        if registration.partition_epoch > self.registration.partition_epoch:
            self.proposal = None
        self.registration = registration
        self.leader_epoch = registration.leader_epoch
        self.isr = registration.isr
        self.min_isr = min(self.config.min_insync_replicas, len(registration.replicas))

    def _keep_followers(self, now_ms: int) -> None:
        """Keep one FollowerProgress per other replica; members of the ISR start as caught up
        now."""
        known, isr = self.followers, self.registration.isr
        self.followers = {
            broker_id: known.get(broker_id)
            or FollowerProgress(broker_id, now_ms if broker_id in isr else BEFORE_START_MS)
            for broker_id in self.registration.replicas
            if broker_id != self.broker_id
        }

    # -------------------------------------------------------------------- followers' progress

    def record_fetch(
        self,
        follower_id: int,
        broker_epoch: int,
        fetch_offset: int,
        log_start_offset: int,
        now_ms: int,
    ) -> bool:
        """Record a follower's fetch at `fetch_offset`: the follower has everything before it.  True
        if the high or the low watermark may have moved.

        Kafka: Partition.updateFollowerFetchState.
        """
        follower = self.followers[follower_id]
        log_end_offset = self.log.log_end_offset
        if fetch_offset >= log_end_offset:
            follower.last_caught_up_ms = max(follower.last_caught_up_ms, now_ms)
        elif fetch_offset >= follower.leader_end_at_last_fetch:
            # The follower has reached the log end that the leader had at the follower's previous
            # fetch, so it was caught up at that fetch.
            follower.last_caught_up_ms = max(follower.last_caught_up_ms, follower.last_fetch_ms)
        start_moved = follower.log_start_offset != log_start_offset
        end_moved = follower.log_end_offset != fetch_offset
        follower.log_end_offset = fetch_offset
        follower.log_start_offset = log_start_offset
        follower.last_fetch_ms = now_ms
        follower.leader_end_at_last_fetch = log_end_offset
        follower.broker_epoch = broker_epoch
        if end_moved:
            self.changed[self] = None
            return self.advance_high_watermark(now_ms) or start_moved
        return start_moved

    def caught_up_ms(self, follower: FollowerProgress) -> int:
        """The last time at which a follower had everything.  If it has everything now, this is its
        last fetch, even one that did not name this partition (KIP-227)."""
        if follower.log_end_offset != self.log.log_end_offset:
            return follower.last_caught_up_ms
        last_fetch_ms = self.last_fetches.get(follower.broker_id, BEFORE_START_MS)
        return max(follower.last_caught_up_ms, last_fetch_ms)

    def advance_high_watermark(self, now_ms: int) -> bool:
        """Move the watermark to the least log end among the replicas that hold it back.  True if
        moved.

        Kafka: Partition.maybeIncrementLeaderHW.  The watermark is held back while the ISR is below
        min.insync.replicas (KIP-966), and until a caught-up follower that is about to join has the
        records.
        """
        if len(self.isr) < self.min_isr:
            return False
        maximal_isr = self.maximal_isr
        new = end = self.log.log_end_offset
        for follower in self.followers.values():
            if follower.log_end_offset < new and (
                follower.broker_id in maximal_isr or self._about_to_join(follower, end, now_ms)
            ):
                new = follower.log_end_offset
        if new <= self.high_watermark:
            return False
        self.high_watermark = new
        return True

    def _about_to_join(self, follower: FollowerProgress, end: int, now_ms: int) -> bool:
        return self._is_eligible(follower) and not self._is_lagging(follower, end, now_ms)

    def _is_eligible(self, follower: FollowerProgress) -> bool:
        """Whether a follower may join the ISR: neither fenced nor shutting down (KIP-841), nor of
        an earlier process (KIP-903)."""
        broker = self.brokers.get(follower.broker_id)
        return (
            broker is not None and broker.is_active and follower.broker_epoch in (-1, broker.epoch)
        )

    def _is_lagging(self, follower: FollowerProgress, end: int, now_ms: int) -> bool:
        return (
            follower.log_end_offset != end
            and now_ms - follower.last_caught_up_ms > self.lag_time_max_ms
        )

    def follow_high_watermark(self, leader_high_watermark: int) -> bool:
        """Take over the leader's watermark as far as this log reaches.  True if it moved."""
        new = min(leader_high_watermark, self.log.log_end_offset)
        if new <= self.high_watermark:
            return False
        self.changed[self] = None
        self.high_watermark = new
        return True

    def low_watermark(self) -> int:
        """The least log start of the live replicas; DeleteRecords is complete when all of them have
        moved."""
        low = self.log.log_start_offset
        for follower in self.followers.values():
            broker = self.brokers.get(follower.broker_id)
            if broker is not None and not broker.fenced:
                low = min(low, follower.log_start_offset)
        return low

    # -------------------------------------------------------------------------------- the ISR

    def propose_expansion(self, follower_id: int) -> IsrProposal | None:
        """The ISR with `follower_id` added, if the follower qualifies; it holds the watermark back
        at once.

        Kafka: Partition.maybeExpandIsr.  A follower qualifies if it has all committed records, and
        all records from before this epoch.
        """
        isr = self.registration.isr
        if self.proposal is not None or follower_id in isr:
            return None
        follower = self.followers[follower_id]
        if follower.log_end_offset < max(self.high_watermark, self.leader_epoch_start_offset):
            return None
        if not self._is_eligible(follower):
            return None
        wanted = (*isr, follower_id)
        return self._propose(wanted, wanted)

    def has_trailing_member(self) -> bool:
        """Whether a follower in the ISR is behind the log end, so that it may become too slow."""
        end, isr = self.log.log_end_offset, self.isr
        for follower in self.followers.values():
            if follower.log_end_offset != end and follower.broker_id in isr:
                return True
        return False

    def propose_shrink(self, now_ms: int) -> IsrProposal | None:
        """The ISR without the followers that have been behind for replica.lag.time.max.ms.

        Kafka: Partition.maybeShrinkIsr.
        """
        isr = self.registration.isr
        if self.proposal is not None or not self.is_leader or len(isr) == 1:
            return None
        end = self.log.log_end_offset
        behind = {
            follower.broker_id
            for follower in self.followers.values()
            if follower.broker_id in isr and self._is_lagging(follower, end, now_ms)
        }
        if not behind:
            return None
        return self._propose(tuple(member for member in isr if member not in behind), isr)

    def _propose(self, isr: tuple[int, ...], maximal_isr: tuple[int, ...]) -> IsrProposal:
        registration = self.registration
        self.proposal = IsrProposal(
            isr, maximal_isr, registration.leader_epoch, registration.partition_epoch
        )
        return self.proposal

    def drop_proposal(self, proposal: IsrProposal) -> None:
        """Return to the committed ISR after the controller's refusal."""
        if self.proposal is proposal:
            self.proposal = None

    def commit_isr(self, registration: PartitionRegistration, now_ms: int) -> bool:
        """Take over `registration`, the partition as the controller has committed it.  True if the
        watermark moved."""
        if registration.partition_epoch <= self.registration.partition_epoch:
            return False
        self._take(registration)
        return self.advance_high_watermark(now_ms)

    # -------------------------------------------------------------------- records, both roles

    def append_as_leader(
        self,
        records: Any,
        acks: int,
        now_ms: int,
        from_client: bool = True,
        transaction_verified: bool = False,
        allowance: Allowance | None = None,
    ) -> Appended:
        """Append a producer's batch.  The watermark moves at once if no other replica holds it
        back. `from_client`, `transaction_verified`, `allowance`: see Log.append_as_leader. Kafka:
        Partition.appendRecordsToLeader."""
        if acks == -1 and len(self.isr) < self.min_isr:
            return Appended(ErrorCode.NOT_ENOUGH_REPLICAS)
        self.changed[self] = None
        end = self.log.log_end_offset
        # Positional: CPython calls functions faster without keywords.
        appended = self.log.append_as_leader(
            records,
            self.leader_epoch,
            now_ms,
            self.config,
            from_client,
            transaction_verified,
            allowance,
        )
        for follower in self.followers.values():
            if follower.log_end_offset == end:
                # The follower had everything at its last fetch, even if an incremental fetch did
                # not name this partition (KIP-227).
                last_fetch_ms = self.last_fetches.get(follower.broker_id, BEFORE_START_MS)
                if last_fetch_ms > follower.last_caught_up_ms:
                    follower.last_caught_up_ms = last_fetch_ms
        if len(self.isr) == 1:
            self.advance_high_watermark(now_ms)
        if self.log.size_bytes >= self.size_limit:
            limit_size(self.log, now_ms, self.config, self.high_watermark)
        return appended

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        marker: Marker,
        transaction_version: int,
        now_ms: int,
    ) -> Appended:
        """Append the marker that ends a producer's transaction here, acks=all."""
        error = self.check_marker(
            producer_id, producer_epoch, marker.coordinator_epoch, transaction_version
        )
        if error:
            return Appended(error)
        records = build_marker(producer_id, producer_epoch, marker, now_ms)
        return self.append_as_leader(memoryview(records), -1, now_ms, from_client=False)

    def check_marker(
        self, producer_id: int, producer_epoch: int, coordinator_epoch: int, version: int
    ) -> ErrorCode:
        """The error because of which a marker may not be appended; NONE if it may."""
        state = self.log.producers.states.get(producer_id, NO_STATE)
        refusal = check_marker(state, producer_epoch, coordinator_epoch, version)
        return NO_ERROR if refusal is None else refusal.error

    @property
    def last_stable_offset(self) -> int:
        """The offset below which every transaction is decided; read_committed consumers read up to
        it."""
        producers, high_watermark = self.log.producer_table, self.high_watermark
        if producers is None or not producers.has_unstable:
            return high_watermark
        return max(self.log.log_start_offset, producers.last_stable_offset(high_watermark))

    def retire(self) -> None:
        """End this replica's role: this broker no longer hosts the partition."""
        self.role = NO_ROLE
        self.is_leader = False
        self.followers = {}
        self.proposal = None

    def check_leader(self, current_leader_epoch: int) -> ErrorCode:
        """The error for a client that names this leader epoch (-1: none), if this replica may not
        answer the client; else NONE.

        Kafka: Partition.checkCurrentLeaderEpoch, KIP-320.
        """
        error = self.check_epoch(current_leader_epoch)
        if error or self.is_leader:
            return error
        return ErrorCode.NOT_LEADER_OR_FOLLOWER

    def check_epoch(self, current_leader_epoch: int) -> ErrorCode:
        """The error of a leader epoch that is not the current one (-1: the client names none); NONE
        if it is. KIP-320."""
        if current_leader_epoch == self.leader_epoch or current_leader_epoch == -1:
            return NO_ERROR
        if current_leader_epoch < self.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.UNKNOWN_LEADER_EPOCH

    def acks_reached(self, required_offset: int) -> ErrorCode | None:
        """NONE if everything before `required_offset` is committed, None if not yet; an error if
        they never will be, or if too few replicas have them.

        Kafka: Partition.checkEnoughReplicasReachOffset.
        """
        if not self.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self.high_watermark < required_offset:
            return None
        if len(self.maximal_isr) < self.min_isr:
            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return NO_ERROR

    def wait_for_ack(self, wait: AckWait) -> None:
        """Answer `wait` once everything before its offset is committed, or never will be."""
        waiting, required_offset = self.acks_waiting, wait.required_offset
        if waiting and waiting[-1].required_offset > required_offset:
            # Only the answer to a duplicate waits for an offset before the newest.
            after = (
                i for i, entry in enumerate(waiting) if entry.required_offset > required_offset
            )
            waiting.insert(next(after), wait)
        else:
            waiting.append(wait)

    def answer_acks(self, now_ms: int) -> None:
        """Answer the requests whose offset is committed, or never will be."""
        waiting = self.acks_waiting
        answered: list[tuple[AckWait, ErrorCode]] = []
        for wait in waiting:
            error = self.acks_reached(wait.required_offset)
            if error is None:
                break
            answered.append((wait, error))
        if answered:
            del waiting[: len(answered)]
            for wait, error in answered:
                wait.answered(error, now_ms)

    def append_as_follower(self, batches: list[Batch], now_ms: int) -> None:
        """Append batches from the leader, and with them its epochs."""
        self.changed[self] = None
        self.log.append_as_follower(batches, self.leader_epoch, now_ms, self.config)
        if self.log.size_bytes >= self.size_limit:
            limit_size(self.log, now_ms, self.config, self.high_watermark)

    def truncate_to(self, offset: int) -> None:
        """Drop all records from `offset` on; the watermark stays at or below the log end.

        Kafka: Partition.truncateTo, on the follower's way to agree with its leader.
        """
        self.changed[self] = None
        self.log.truncate_to(offset)
        self.high_watermark = min(self.high_watermark, self.log.log_end_offset)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything and start at `offset`: the leader no longer has the earlier records."""
        self.changed[self] = None
        self.log.truncate_fully_and_start_at(offset)
        self.high_watermark = offset

    def advance_log_start(self, offset: int) -> bool:
        """Delete all records below `offset`, as the leader or DeleteRecords did.  True if the log
        start moved."""
        log = self.log
        if offset <= log.log_start_offset:
            return False
        self.changed[self] = None
        log.advance_log_start_offset(offset)
        self.high_watermark = max(self.high_watermark, offset)
        return True
