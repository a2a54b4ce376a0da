"""What a client knows of the cluster: topics, partitions, leaders and their epochs, brokers.

Owns: that view, when it is to be asked for anew, and which of two answers is the newer one.
Never: sends (connections.py does), retries what a client wanted to do.
Kafka: org.apache.kafka.clients.Metadata and MetadataSnapshot; KIP-320 (never back to an older
leader epoch), KIP-516 (topic ids), KIP-899 and KIP-1102 (rebootstrap), KIP-951 (errors that name
the leader).
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from kcluster.clients.ledger import Partition
from kcluster.contract import Rng
from kcluster.protocol import messages as m
from kcluster.protocol.codec.schema import ZERO_UUID
from kcluster.protocol.errors import ErrorCode, error_of
from kcluster.timers import NEVER_MS

NOBODY: Final = -1
"""No broker, no leader."""
NO_EPOCH: Final = -1

_JITTER: Final = 0.2
"""CommonClientConfigs.RETRY_BACKOFF_JITTER, RECONNECT_BACKOFF_JITTER."""
_STALE: Final = (
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.LISTENER_NOT_FOUND,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.INCONSISTENT_TOPIC_ID,
    ErrorCode.NETWORK_EXCEPTION,
)


def is_stale_metadata(error: ErrorCode) -> bool:
    """Whether the error means that the client's view is old.  Kafka: InvalidMetadataException."""
    return error in _STALE


def backoff_ms(attempts: int, first_ms: int, max_ms: int, rng: Rng) -> int:
    """How long to wait after `attempts` failures before this one: doubled each time, give or take
    a fifth.  Kafka: ExponentialBackoff."""
    if first_ms >= max_ms:
        return max_ms
    factor = 1 - _JITTER + 2 * _JITTER * rng.random()
    return int(min(float(max_ms), first_ms * 2.0 ** min(attempts, 30) * factor))


class MetadataSettings(Struct, frozen=True):
    """Kafka's names and defaults: metadata.max.age.ms, retry.backoff.ms, retry.backoff.max.ms,
    allow.auto.create.topics."""

    max_age_ms: int = 300_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    allow_auto_create_topics: bool = True


class PartitionView(Struct):
    """A partition as last told.  `leader` NOBODY: none, or one whose broker is not known."""

    index: int
    leader: int = NOBODY
    leader_epoch: int = NO_EPOCH
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    offline: tuple[int, ...] = ()
    error: ErrorCode = ErrorCode.NONE


class TopicView(Struct):
    """A topic as last told; `partitions` by index, without holes."""

    name: str
    topic_id: bytes
    partitions: list[PartitionView]


class Metadata:
    """One client's view.

    `brokers`: ids of the brokers last told of, sorted.  `due_ms`: when to ask again, never while
    an answer is awaited (connections.py).  `version`: grows with each change of the view.
    """

    def __init__(self, settings: MetadataSettings) -> None:
        self.settings = settings
        self.brokers: tuple[int, ...] = ()
        self.topics: dict[str, TopicView] = {}
        self.topic_errors: dict[str, ErrorCode] = {}
        """What the last answer said of topics that are not there."""
        self.wanted: dict[str, None] | None = {}
        """Topics to ask for; None for all there are (a consumer with a pattern)."""
        self.due_ms = 0
        self.version = 0
        self.controller = NOBODY
        self._names: dict[bytes, str] = {}
        self._epochs: dict[Partition, int] = {}
        """The newest leader epoch seen; it outlives an answer that does not tell any."""
        self._topic_ids: dict[str, bytes] = {}
        self._is_wanted_now = True
        self._refreshed_ms = -settings.retry_backoff_max_ms
        self._succeeded_ms = 0
        self._failures = 0
        self._answers_alike = 0
        self._wanted_version = 0
        self._rng: Rng | None = None

    def start(self, bootstrap: tuple[int, ...], rng: Rng) -> None:
        """Known at first: the bootstrap servers."""
        self.brokers = bootstrap
        self._rng = rng

    # --------------------------------------------------------------------------- looking

    def leader(self, topic: str, partition: int) -> int:
        """The broker that leads, as far as is known; NOBODY if none is."""
        view = self.topics.get(topic)
        if view is None or partition >= len(view.partitions):
            return NOBODY
        return view.partitions[partition].leader

    def leader_epoch(self, topic: str, partition: int) -> int:
        """The newest leader epoch that was told; NO_EPOCH if none was."""
        return self._epochs.get((topic, partition), NO_EPOCH)

    def partition_count(self, topic: str) -> int:
        """How many partitions; 0 where the topic is not known."""
        view = self.topics.get(topic)
        return 0 if view is None else len(view.partitions)

    def topic_id(self, topic: str) -> bytes:
        """Sixteen zero bytes where it is not known."""
        return self._topic_ids.get(topic, ZERO_UUID)

    def topic_name(self, topic_id: bytes) -> str | None:
        """The topic of this id, if it was told."""
        return self._names.get(topic_id)

    # --------------------------------------------------------------------------- asking

    def want(self, topic: str) -> None:
        """Ask for this topic from now on: at once if it is new."""
        if self.wanted is not None and topic not in self.wanted:
            self.wanted[topic] = None
            self._wanted_version += 1
            self._refreshed_ms = -self.settings.retry_backoff_max_ms
            self._answers_alike = 0
            self._is_wanted_now = True
            self._reckon()

    def request_update(self) -> None:
        """Something says that the view is old: ask as soon as the backoff allows."""
        if not self._is_wanted_now:
            self._is_wanted_now = True
            self._reckon()

    def request(self) -> m.MetadataRequest:
        """The question; for names, or for all topics."""
        topics = None
        if self.wanted is not None:
            named = m.MetadataRequest.MetadataRequestTopic
            topics = [named(name=name) for name in self.wanted]
        return m.MetadataRequest(
            topics=topics, allow_auto_topic_creation=self.settings.allow_auto_create_topics
        )

    @property
    def wanted_version(self) -> int:
        """Of what a question asks; given back with the answer to it."""
        return self._wanted_version

    def failed(self, now_ms: int) -> None:
        """No answer, or one without brokers."""
        self._failures += 1
        self._refreshed_ms = now_ms
        self._reckon()

    def rebootstrap(self, bootstrap: tuple[int, ...]) -> None:
        """Nobody known answers: begin again with the bootstrap servers, knowing no topic."""
        self.brokers = bootstrap
        self.topics = {}
        self._is_wanted_now = True
        self.version += 1
        self._reckon()

    # -------------------------------------------------------------------------- answers

    def take(self, body: Any, wanted_version: int, now_ms: int) -> list[tuple[str, int, ErrorCode]]:
        """An answer.  Returns the errors in it: (topic, partition or -1, error)."""
        if not body.brokers:
            self.failed(now_ms)
            return []
        self._refreshed_ms = self._succeeded_ms = now_ms
        self._failures = 0
        self._answers_alike += 1
        self._is_wanted_now = wanted_version < self._wanted_version
        self.version += 1
        self.brokers = tuple(sorted(broker.node_id for broker in body.brokers))
        self.controller = body.controller_id
        errors: list[tuple[str, int, ErrorCode]] = []
        topics: dict[str, TopicView] = {}
        self.topic_errors = {}
        for told in body.topics:
            if told.error_code:
                error = error_of(told.error_code)
                errors.append((told.name, -1, error))
                self.topic_errors[told.name] = error
                self._is_wanted_now |= error in _STALE
            else:
                topics[told.name] = self._taken(told, errors)
        self.topics = topics
        self._reckon()
        return errors

    def _taken(self, told: Any, errors: list[tuple[str, int, ErrorCode]]) -> TopicView:
        name: str = told.name
        old_id = self._topic_ids.get(name)
        is_new = told.topic_id not in (ZERO_UUID, old_id)
        if is_new:
            self._names.pop(old_id or ZERO_UUID, None)
            self._topic_ids[name] = told.topic_id
            self._names[told.topic_id] = name
        partitions = [PartitionView(index) for index in range(len(told.partitions))]
        for entry in told.partitions:
            if entry.error_code:
                error = error_of(entry.error_code)
                errors.append((name, entry.partition_index, error))
                self._is_wanted_now |= error in _STALE
            if entry.partition_index < len(partitions):
                partitions[entry.partition_index] = self._newer(name, entry, is_new)
        return TopicView(name, told.topic_id, partitions)

    def _newer(self, topic: str, told: Any, is_new_topic: bool) -> PartitionView:
        """What the answer says of a partition, or what was known if that is newer."""
        key: Partition = (topic, told.partition_index)
        index: int = told.partition_index
        known = self._epochs.get(key)
        if told.leader_epoch < 0:
            # An old broker, or an error without a leader.
            self._epochs.pop(key, None)
            self._answers_alike = 0
        elif known is None or is_new_topic or told.leader_epoch >= known:
            if told.leader_epoch != known:
                self._answers_alike = 0
            self._epochs[key] = told.leader_epoch
        else:
            view = self.topics.get(topic)
            if view is not None and index < len(view.partitions):
                return view.partitions[index]
            return PartitionView(told.partition_index)
        leader = told.leader_id if told.leader_id in self.brokers else NOBODY
        return PartitionView(
            told.partition_index,
            leader,
            told.leader_epoch,
            tuple(told.replica_nodes),
            tuple(told.isr_nodes),
            tuple(told.offline_replicas),
            error_of(told.error_code),
        )

    def told_leader(self, topic: str, partition: int, leader: int, leader_epoch: int) -> bool:
        """An error's answer named the leader (KIP-951); whether that was news."""
        view = self.topics.get(topic)
        known = self._epochs.get((topic, partition), NO_EPOCH)
        if view is None or partition >= len(view.partitions) or leader_epoch <= known or leader < 0:
            return False
        if leader not in self.brokers:
            self.brokers = tuple(sorted((*self.brokers, leader)))
        self._epochs[topic, partition] = leader_epoch
        changed = view.partitions[partition]
        changed.leader, changed.leader_epoch = leader, leader_epoch
        self.version += 1
        return True

    # ---------------------------------------------------------------------------- time

    def _reckon(self) -> None:
        """When to ask next, after any change of what that depends on."""
        rng = self._rng
        if rng is None:
            return
        settings = self.settings
        first_ms, max_ms = settings.retry_backoff_ms, settings.retry_backoff_max_ms
        allowed_ms = self._refreshed_ms + backoff_ms(
            max(0, self._failures - 1), first_ms, max_ms, rng
        )
        if self._answers_alike > 1:
            wait_ms = backoff_ms(self._answers_alike - 1, first_ms, max_ms, rng)
            allowed_ms = max(allowed_ms, self._refreshed_ms + wait_ms)
        due_ms = self._succeeded_ms + settings.max_age_ms
        self.due_ms = max(0 if self._is_wanted_now else due_ms, allowed_ms)

    def stop(self) -> None:
        """Never ask again."""
        self.due_ms = NEVER_MS
