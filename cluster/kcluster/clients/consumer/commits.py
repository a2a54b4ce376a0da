"""A consumer's committed offsets: auto commits, commitSync, and fetching them.

Owns: OffsetCommit, OffsetFetch, the timer of auto commits, the state of a commitSync.
Never: moves a position that has been initialized (fetcher.py, offset_lookups.py).
Kafka: ConsumerCoordinator's half about offsets; KIP-320 (epochs of commits), KIP-447 (stable).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kcluster.clients.connections import ClientRequest, NetworkClient, RetryBackoff
from kcluster.clients.consumer.coordinator import (
    COORDINATOR_GONE,
    NO_GENERATION,
    NO_MEMBER_ID,
    Coordinator,
    EpochState,
    MembershipState,
    MemberState,
)
from kcluster.clients.consumer.group_protocol import by_topic
from kcluster.clients.consumer.positions import FetchState, Position, Positions
from kcluster.clients.consumer.settings import AUTO, ConsumerSettings
from kcluster.clients.ledger import Partition
from kcluster.clients.metadata import Metadata
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode, error_of
from kcluster.timers import NEVER_MS

Offsets = dict[Partition, tuple[int, int]]
"""(offset, leader epoch) by partition."""
OnCommitted = Callable[[bool, bool, int], None]
"""Called with (whether the commit succeeded, whether to retry a failed one, now_ms)."""

_OFFSET_COMMIT: Final = int(ApiKey.OFFSET_COMMIT)
_OFFSET_FETCH: Final = int(ApiKey.OFFSET_FETCH)
_FIRST_FETCH_VERSION_WITH_GROUPS: Final = 8
_RETRIABLE: Final = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.STALE_MEMBER_EPOCH,
)
_OF_MEMBERS: Final = (ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)
_FATAL: Final = (ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
NO_OFFSET_FOR_PARTITION: Final = "NO_OFFSET_FOR_PARTITION"
"""The ledger's name for NoOffsetForPartitionException: there is neither a committed offset nor a
reset policy."""


class Commits:
    """The committed offsets of one consumer.  `fatal`: the error that poll() throws, "" for none.

    `commit_mode`: ConsumerPlan.commit, "" without a group.  `member`: None if the application
    assigns partitions itself.
    """

    def __init__(
        self,
        settings: ConsumerSettings,
        commit_mode: str,
        network: NetworkClient,
        metadata: Metadata,
        positions: Positions,
        coordinator: Coordinator,
        member: MembershipState | None,
    ) -> None:
        self.fatal = ""
        self.auto_commit_ms = NEVER_MS
        """The time of the next auto commit."""
        self.fetch_committed_ms = 0
        """The earliest time of the next OffsetFetch."""
        self.is_auto = commit_mode == AUTO
        self._settings = settings
        self._network = network
        self._metadata = metadata
        self._positions = positions
        self._coordinator = coordinator
        self._member = member
        self._is_fetching_committed = False
        self._fetch_backoff = RetryBackoff(network)
        self._sync_offsets: Offsets | None = None
        """The offsets of a commitSync that has not returned; None if there is none."""
        self._sync_deadline_ms = 0
        self._sync_retry_ms = 0
        self._sync_backoff = RetryBackoff(network)
        self._is_sync_in_flight = False
        self._awaits_coordinator = False
        """Whether the commitSync waits for the coordinator, so that a response, or
        Coordinator.retry_ms, continues it."""

    # ----------------------------------------------------------------------- auto commits

    def restart_timer(self, now_ms: int) -> None:
        """Schedule the next auto commit after a whole interval."""
        if self.is_auto:
            self.auto_commit_ms = now_ms + self._settings.auto_commit_interval_ms

    def commit_if_due(self, now_ms: int) -> None:
        """Do an auto commit if one is due.  Called in poll()."""
        if now_ms < self.auto_commit_ms:
            return
        self.restart_timer(now_ms)
        offsets = self._positions.consumed()
        if not offsets:
            return
        if self._coordinator.is_ready(now_ms):
            self.send(offsets, now_ms, self._on_auto_commit_result)
        else:
            self.auto_commit_ms = now_ms + self._settings.retry_backoff_ms

    def _on_auto_commit_result(self, is_done: bool, can_retry: bool, now_ms: int) -> None:
        if can_retry:
            self.auto_commit_ms = now_ms + self._settings.retry_backoff_ms

    # ------------------------------------------------------------------------- commitSync

    @property
    def is_sync_pending(self) -> bool:
        """Whether a commitSync has not returned."""
        return self._sync_offsets is not None

    @property
    def sync_due_ms(self) -> int:
        """The time at which `continue_sync` must be called; NEVER_MS for never."""
        if self._sync_offsets is None:
            return NEVER_MS
        if self._is_sync_in_flight or self._awaits_coordinator:
            return self._sync_deadline_ms
        return min(self._sync_retry_ms, self._sync_deadline_ms)

    def commit_sync(self, offsets: Offsets, timeout_ms: int, now_ms: int) -> None:
        """Begin a commitSync."""
        if offsets:
            self._sync_offsets = offsets
            self._sync_deadline_ms = now_ms + timeout_ms
            self._sync_retry_ms, self._sync_backoff.failures = now_ms, 0
            self.continue_sync(now_ms)

    def continue_sync(self, now_ms: int) -> None:
        """Send or retry the commit of a commitSync, until its timeout."""
        if self._sync_offsets is None or self._is_sync_in_flight:
            if self._sync_offsets is not None and now_ms >= self._sync_deadline_ms:
                self._sync_offsets = None
            return
        if now_ms >= self._sync_deadline_ms:
            self._network.record_error(now_ms, _OFFSET_COMMIT, ErrorCode.REQUEST_TIMED_OUT.name)
            self._sync_offsets = None
        elif now_ms >= self._sync_retry_ms:
            self._awaits_coordinator = not self._coordinator.is_ready(now_ms)
            if not self._awaits_coordinator:
                self._is_sync_in_flight = True
                self.send(self._sync_offsets, now_ms, self._on_sync_result)

    def _on_sync_result(self, is_done: bool, can_retry: bool, now_ms: int) -> None:
        self._is_sync_in_flight = False
        if can_retry:
            self._sync_retry_ms = self._sync_backoff.after_failure(now_ms)
        else:
            self._sync_offsets = None

    # ------------------------------------------------------------------------- committing

    def send(self, offsets: Offsets, now_ms: int, on_committed: OnCommitted) -> None:
        """Send an OffsetCommit to the coordinator, whose connection is ready."""
        member = self._member
        generation: tuple[int, str] = NO_GENERATION, NO_MEMBER_ID
        instance_id = None
        if member is not None:
            if member.state is not MemberState.STABLE:
                # Like the Java client, send no request that the coordinator would refuse.
                name = ErrorCode.UNKNOWN_MEMBER_ID.name
                if member.is_rebalancing:
                    name = ErrorCode.REBALANCE_IN_PROGRESS.name
                self._network.record_error(now_ms, _OFFSET_COMMIT, name)
                on_committed(False, False, now_ms)
                return
            generation = member.generation
            instance_id = self._settings.group_instance_id or None
        entry = m.OffsetCommitRequest.OffsetCommitRequestPartition
        topics = []
        for topic, numbers in by_topic(offsets).items():
            partitions = []
            for number in numbers:
                offset, epoch = offsets[topic, number]
                partitions.append(entry(number, offset, epoch, committed_metadata=""))
            topics.append(
                m.OffsetCommitRequest.OffsetCommitRequestTopic(
                    topic, self._metadata.topic_id(topic), partitions
                )
            )
        body = m.OffsetCommitRequest(
            self._settings.group_id, generation[0], generation[1], instance_id, topics=topics
        )
        self._coordinator.send(
            _OFFSET_COMMIT,
            body,
            now_ms,
            self._on_committed,
            context=(offsets, generation, on_committed),
        )

    def _on_committed(self, request: ClientRequest, now_ms: int) -> None:
        offsets, generation, on_committed = request.context
        if request.failure:
            on_committed(False, True, now_ms)
            return
        ledger = self._network.ledger
        refusal = ErrorCode.NONE
        for topic in request.response.topics:
            name = topic.name or self._metadata.topic_name(topic.topic_id) or ""
            for partition_response in topic.partitions:
                key = (name, partition_response.partition_index)
                if partition_response.error_code:
                    error = error_of(partition_response.error_code)
                    self._network.record_error(now_ms, _OFFSET_COMMIT, error.name, key)
                    refusal = refusal or error
                elif key in offsets:
                    ledger.add_commit(self._settings.group_id, key, offsets[key][0])
        can_retry = bool(refusal) and self.refused(refusal, generation, now_ms)
        on_committed(not refusal, can_retry, now_ms)

    def refused(self, error: ErrorCode, generation: tuple[int, str], now_ms: int) -> bool:
        """Handle an error.  Returns whether to retry.  Kafka: OffsetCommitResponseHandler."""
        member = self._member
        if error in _RETRIABLE:
            return True
        if error in COORDINATOR_GONE or error is ErrorCode.REQUEST_TIMED_OUT:
            self._coordinator.mark_unknown(now_ms)
            return True
        is_same = member is not None and member.generation == generation
        if error is ErrorCode.FENCED_INSTANCE_ID:
            if is_same:
                self.fatal = error.name
        elif error is ErrorCode.REBALANCE_IN_PROGRESS:
            if member is not None:
                member.request_rejoin("offset commit failed since group is already rebalancing")
        elif error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            if member is not None and (
                is_same or member.state is not MemberState.PREPARING_REBALANCE
            ):
                member.reset_on_error("OFFSET_COMMIT", error)
        elif error in _FATAL:
            self.fatal = error.name
        return False

    # --------------------------------------------------------------------------- fetching

    def fetch_committed(self, now_ms: int) -> None:
        """Send an OffsetFetch for the partitions without a position.  Its response initializes
        them."""
        if self._is_fetching_committed or now_ms < self.fetch_committed_ms:
            return
        wanted = [x for x in self._positions.values() if x.state is FetchState.INITIALIZING]
        if not wanted or not self._coordinator.is_ready(now_ms):
            return
        group_id = self._settings.group_id
        topics = by_topic(position.key for position in wanted)
        member = self._member
        is_known = isinstance(member, EpochState) and member.state is MemberState.STABLE
        group = m.OffsetFetchRequest.OffsetFetchRequestGroup(
            group_id,
            member_id=member.member_id if is_known and member is not None else None,
            member_epoch=member.generation_id if is_known and member is not None else -1,
            topics=[
                m.OffsetFetchRequest.OffsetFetchRequestTopics(
                    topic, self._metadata.topic_id(topic), numbers
                )
                for topic, numbers in topics.items()
            ],
        )
        # Both forms are filled, because the version decides which one is encoded.
        old_topic = m.OffsetFetchRequest.OffsetFetchRequestTopic
        body = m.OffsetFetchRequest(
            group_id,
            [old_topic(topic, numbers) for topic, numbers in topics.items()],
            [group],
            require_stable=True,
        )
        self._is_fetching_committed = True
        ledger = self._network.ledger
        asked = [(one, ledger.acked_offset(group_id, one.key)) for one in wanted]
        self._coordinator.send(_OFFSET_FETCH, body, now_ms, self._on_fetched, context=asked)

    def _on_fetched(self, request: ClientRequest, now_ms: int) -> None:
        self._is_fetching_committed = False
        wanted: list[tuple[Position, int]] = request.context
        if not request.failure and request.version >= _FIRST_FETCH_VERSION_WITH_GROUPS:
            request.response = request.response.groups[0]
        error = self._network.refusal(request, now_ms)
        if error:
            self._fetch_refused(error, now_ms)
            return
        committed: Offsets = {}
        for topic in request.response.topics:
            name = topic.name or self._metadata.topic_name(topic.topic_id) or ""
            for partition_response in topic.partitions:
                key = (name, partition_response.partition_index)
                if partition_response.error_code:
                    error = error_of(partition_response.error_code)
                    self._network.record_error(now_ms, _OFFSET_FETCH, error.name, key)
                    self._fetch_refused(error, now_ms)
                    return
                committed[key] = (
                    partition_response.committed_offset,
                    partition_response.committed_leader_epoch,
                )
        self._fetch_backoff.failures = 0
        for position, known in wanted:
            offset, epoch = committed.get(position.key, (-1, -1))
            self._initialize(position, offset, epoch, known, now_ms)

    def _fetch_refused(self, error: ErrorCode, now_ms: int) -> None:
        if error in COORDINATOR_GONE:
            self._coordinator.mark_unknown(now_ms)
        elif error in _OF_MEMBERS and isinstance(self._member, EpochState):
            pass
        elif not error.retriable or error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            self.fatal = error.name
        self.fetch_committed_ms = self._fetch_backoff.after_failure(now_ms)

    def _initialize(
        self, position: Position, offset: int, epoch: int, known: int, now_ms: int
    ) -> None:
        key = position.key
        if (
            self._positions.get(key) is not position
            or position.state is not FetchState.INITIALIZING
        ):
            return
        group_id = self._settings.group_id
        self._network.ledger.add_fetched(group_id, key, offset, known)
        if offset >= 0:
            known_epoch = self._metadata.leader_epoch(*key)
            if epoch > known_epoch:
                self._metadata.request_update()
            position.seek(offset, epoch, self._metadata.leader(*key), known_epoch)
        else:
            self.reset_position(position, now_ms)

    def reset_position(self, position: Position, now_ms: int) -> None:
        """Apply the reset policy, because there is no committed offset."""
        if self._settings.may_reset:
            position.reset()
        else:
            self._network.record_error(now_ms, _OFFSET_FETCH, NO_OFFSET_FOR_PARTITION, position.key)
            self.fatal = NO_OFFSET_FOR_PARTITION
