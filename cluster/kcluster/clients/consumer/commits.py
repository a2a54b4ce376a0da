"""A consumer's committed offsets: committed, by itself or when it is told to, and looked up.

Owns: OffsetCommit, OffsetFetch, the timer of auto commits, the wait of a commitSync.
Never: moves a position by itself, but to a committed offset that it was asked for.
Kafka: ConsumerCoordinator's half about offsets; KIP-320 (epochs of commits), KIP-447 (stable).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kcluster.clients.connections import InFlightRequest, NetworkClient
from kcluster.clients.consumer.coordinator import (
    COORDINATOR_GONE,
    NO_GENERATION,
    NO_MEMBER_ID,
    Coordinator,
    Membership,
    MemberState,
)
from kcluster.clients.consumer.group_protocol import by_topic
from kcluster.clients.consumer.positions import Position, Positions, State
from kcluster.clients.consumer.settings import AUTO, ConsumerSettings
from kcluster.clients.ledger import Partition
from kcluster.clients.metadata import Metadata, backoff_ms
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode, error_of
from kcluster.timers import NEVER_MS

Offsets = dict[Partition, tuple[int, int]]
"""(offset, leader epoch) by partition."""
OnCommitted = Callable[[bool, bool, int], None]
"""(whether it is done, whether to try again if not, now_ms)."""

_COMMIT: Final = int(ApiKey.OFFSET_COMMIT)
_LOOK: Final = int(ApiKey.OFFSET_FETCH)
_FIRST_LOOK_VERSION_WITH_GROUPS: Final = 8
_TRY_AGAIN: Final = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)
_FATAL: Final = (ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
NO_OFFSET_FOR_PARTITION: Final = "NO_OFFSET_FOR_PARTITION"
"""What the Java client raises when there is neither a committed offset nor a reset policy."""


class Commits:
    """Of one consumer.  `fatal`: the error that its application gets, "" for none."""

    def __init__(
        self,
        settings: ConsumerSettings,
        style: str,
        network: NetworkClient,
        metadata: Metadata,
        positions: Positions,
        coordinator: Coordinator,
        member: Membership | None,
    ) -> None:
        self.fatal = ""
        self.auto_ms = NEVER_MS
        """When the next auto commit is due."""
        self.look_ms = 0
        """Committed offsets are not asked for before."""
        self.is_auto = style == AUTO
        self._settings = settings
        self._network = network
        self._metadata = metadata
        self._positions = positions
        self._coordinator = coordinator
        self._member = member
        """None: partitions were assigned by the application."""
        self._looks = False
        self._look_failures = 0
        self._waiting: Offsets | None = None
        """What a commitSync is to commit."""
        self._wait_ends_ms = 0
        self._try_ms = 0
        self._tries = 0
        self._is_trying = False
        self._is_held = False
        """The coordinator must be found first: an answer, or its `retry_ms`, brings us on."""

    # ----------------------------------------------------------------------- auto commits

    def restart_timer(self, now_ms: int) -> None:
        """The next auto commit is a whole interval away."""
        if self.is_auto:
            self.auto_ms = now_ms + self._settings.auto_commit_interval_ms

    def commit_if_due(self, now_ms: int) -> None:
        """An auto commit, if it is time; whoever asks is in poll()."""
        if now_ms < self.auto_ms:
            return
        self.restart_timer(now_ms)
        offsets = self._positions.consumed()
        if not offsets:
            return
        if self._coordinator.is_ready(now_ms):
            self.send(offsets, now_ms, self._auto_committed)
        else:
            self.auto_ms = now_ms + self._settings.retry_backoff_ms

    def _auto_committed(self, is_done: bool, again: bool, now_ms: int) -> None:
        if again:
            self.auto_ms = now_ms + self._settings.retry_backoff_ms

    # ------------------------------------------------------------------------- commitSync

    @property
    def is_waiting(self) -> bool:
        """Whether a commitSync has not returned."""
        return self._waiting is not None

    @property
    def try_ms(self) -> int:
        """When `go_on` has something to do."""
        if self._waiting is None:
            return NEVER_MS
        if self._is_trying or self._is_held:
            return self._wait_ends_ms
        return min(self._try_ms, self._wait_ends_ms)

    def wait_for(self, offsets: Offsets, timeout_ms: int, now_ms: int) -> None:
        """Begin a commitSync."""
        if offsets:
            self._waiting = offsets
            self._wait_ends_ms = now_ms + timeout_ms
            self._try_ms, self._tries = now_ms, 0
            self.go_on(now_ms)

    def go_on(self, now_ms: int) -> None:
        """Try what is waited for, until it is done, refused, or out of time."""
        if self._waiting is None or self._is_trying:
            if self._waiting is not None and now_ms >= self._wait_ends_ms:
                self._waiting = None
            return
        if now_ms >= self._wait_ends_ms:
            self._network.tell(now_ms, _COMMIT, ErrorCode.REQUEST_TIMED_OUT.name)
            self._waiting = None
        elif now_ms >= self._try_ms:
            self._is_held = not self._coordinator.is_ready(now_ms)
            if not self._is_held:
                self._is_trying = True
                self.send(self._waiting, now_ms, self._tried)

    def _tried(self, is_done: bool, again: bool, now_ms: int) -> None:
        self._is_trying = False
        if not again:
            self._waiting = None
            return
        settings = self._settings
        self._try_ms = now_ms + backoff_ms(
            self._tries, settings.retry_backoff_ms, settings.retry_backoff_max_ms, self._network.rng
        )
        self._tries += 1

    # ------------------------------------------------------------------------- committing

    def send(self, offsets: Offsets, now_ms: int, on_committed: OnCommitted) -> None:
        """Commit to the coordinator, which is ready."""
        member = self._member
        generation: tuple[int, str] = NO_GENERATION, NO_MEMBER_ID
        instance_id = None
        if member is not None:
            if member.state is not MemberState.STABLE:
                # No member, so the coordinator would refuse: the Java client does not even ask.
                name = ErrorCode.UNKNOWN_MEMBER_ID.name
                if member.is_rebalancing:
                    name = ErrorCode.REBALANCE_IN_PROGRESS.name
                self._network.tell(now_ms, _COMMIT, name)
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
        self._coordinator.ask(
            _COMMIT, body, now_ms, self._on_committed, context=(offsets, generation, on_committed)
        )

    def _on_committed(self, asked: InFlightRequest, body: Any, failure: str, now_ms: int) -> None:
        offsets, generation, on_committed = asked.context
        if failure:
            on_committed(False, True, now_ms)
            return
        commits = self._network.ledger.commits
        refusal = ErrorCode.NONE
        for topic in body.topics:
            name = topic.name or self._metadata.topic_name(topic.topic_id) or ""
            for told in topic.partitions:
                key = (name, told.partition_index)
                if told.error_code:
                    error = error_of(told.error_code)
                    self._network.tell(now_ms, _COMMIT, error.name, key)
                    refusal = refusal or error
                elif key in offsets:
                    commits.append((self._settings.group_id, key, offsets[key][0], True))
        again = bool(refusal) and self._refused(refusal, generation, now_ms)
        on_committed(not refusal, again, now_ms)

    def _refused(self, error: ErrorCode, generation: tuple[int, str], now_ms: int) -> bool:
        """What an error means; whether to try again.  Kafka: OffsetCommitResponseHandler."""
        member = self._member
        if error in _TRY_AGAIN:
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
                member.refused("OFFSET_COMMIT", error)
        elif error in _FATAL:
            self.fatal = error.name
        return False

    # ------------------------------------------------------------------------ looking them up

    def look_up(self, now_ms: int) -> None:
        """Ask where the group is in partitions that have no position; then give them one."""
        if self._looks or now_ms < self.look_ms:
            return
        wanted = [x for x in self._positions.values() if x.state is State.INITIALIZING]
        if not wanted or not self._coordinator.is_ready(now_ms):
            return
        group_id = self._settings.group_id
        topics = by_topic(position.key for position in wanted)
        group = m.OffsetFetchRequest.OffsetFetchRequestGroup(
            group_id,
            topics=[
                m.OffsetFetchRequest.OffsetFetchRequestTopics(
                    topic, self._metadata.topic_id(topic), numbers
                )
                for topic, numbers in topics.items()
            ],
        )
        # Both forms: which one is encoded is a question of the version.
        old_topic = m.OffsetFetchRequest.OffsetFetchRequestTopic
        body = m.OffsetFetchRequest(
            group_id,
            [old_topic(topic, numbers) for topic, numbers in topics.items()],
            [group],
            require_stable=True,
        )
        self._looks = True
        self._coordinator.ask(_LOOK, body, now_ms, self._on_looked_up, context=wanted)

    def _on_looked_up(self, asked: InFlightRequest, body: Any, failure: str, now_ms: int) -> None:
        self._looks = False
        wanted: list[Position] = asked.context
        if failure:
            self._look_again(now_ms)
            return
        answer = body.groups[0] if asked.version >= _FIRST_LOOK_VERSION_WITH_GROUPS else body
        error = error_of(answer.error_code)
        if error:
            self._network.tell(now_ms, _LOOK, error.name)
            self._look_refused(error, now_ms)
            return
        found: Offsets = {}
        for topic in answer.topics:
            name = topic.name or self._metadata.topic_name(topic.topic_id) or ""
            for told in topic.partitions:
                key = (name, told.partition_index)
                if told.error_code:
                    error = error_of(told.error_code)
                    self._network.tell(now_ms, _LOOK, error.name, key)
                    self._look_refused(error, now_ms)
                    return
                found[key] = told.committed_offset, told.committed_leader_epoch
        self._look_failures = 0
        for position in wanted:
            self._place(position, *found.get(position.key, (-1, -1)), now_ms)

    def _look_refused(self, error: ErrorCode, now_ms: int) -> None:
        if error in COORDINATOR_GONE:
            self._coordinator.mark_unknown(now_ms)
        elif not error.retriable or error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            self.fatal = error.name
        self._look_again(now_ms)

    def _look_again(self, now_ms: int) -> None:
        settings = self._settings
        self.look_ms = now_ms + backoff_ms(
            self._look_failures,
            settings.retry_backoff_ms,
            settings.retry_backoff_max_ms,
            self._network.rng,
        )
        self._look_failures += 1

    def _place(self, position: Position, offset: int, epoch: int, now_ms: int) -> None:
        key = position.key
        if self._positions.get(key) is not position or position.state is not State.INITIALIZING:
            return
        group_id = self._settings.group_id
        self._network.ledger.commits.append((group_id, key, offset, False))
        if offset >= 0:
            known_epoch = self._metadata.leader_epoch(*key)
            if epoch > known_epoch:
                self._metadata.request_update()
            position.seek(offset, epoch, self._metadata.leader(*key), known_epoch)
        else:
            self.begin(position, now_ms)

    def begin(self, position: Position, now_ms: int) -> None:
        """There is no committed offset: the reset policy says where to begin."""
        if self._settings.may_reset:
            position.reset()
        else:
            self._network.tell(now_ms, _LOOK, NO_OFFSET_FOR_PARTITION, position.key)
            self.fatal = NO_OFFSET_FOR_PARTITION
