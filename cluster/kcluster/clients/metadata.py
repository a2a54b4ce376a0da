"""A client's view of the cluster: brokers, topics, partitions, leaders and their epochs.

Owns: that view, the times of its refreshes, and the choice of the newer of two responses. Never:
sends (connections.py does), retries a client's operations. Kafka: org.apache.kafka.clients.Metadata
and MetadataSnapshot; KIP-320 (never back to an older leader epoch), KIP-516 (topic ids), KIP-899
and KIP-1102 (rebootstrap), KIP-951 (errors that name the leader).
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from kcluster.clients.ledger import Partition
from kcluster.contract import Rng
from kcluster.protocol import messages as m
from kcluster.protocol.codec.schema import ZERO_UUID
from kcluster.protocol.errors import ErrorCode, error_of
from kcluster.structs import Frozen
from kcluster.timers import NEVER_MS

NO_BROKER: Final = -1
"""The id that stands for no broker, or for no leader.  Kafka: Node.noNode()."""
NO_EPOCH: Final = -1

_JITTER: Final = 0.2
"""The random part of a backoff, as in CommonClientConfigs.RETRY_BACKOFF_JITTER and
RECONNECT_BACKOFF_JITTER."""
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
    """Whether the error means that the view is outdated.  Kafka: InvalidMetadataException."""
    return error in _STALE


def backoff_ms(attempts: int, first_ms: int, max_ms: int, rng: Rng) -> int:
    """The wait after a failure that follows `attempts` earlier ones: doubled for each up to
    `max_ms`, plus or minus 20 %, and at most `max_ms`.  At the limit waits still differ, so that a
    client's two backoffs do not end together: it starts again from bootstrap.servers when it may
    ask for metadata, and may not connect to any broker.  Kafka: ExponentialBackoff."""
    if first_ms >= max_ms:
        return max_ms
    factor = 1 - _JITTER + 2 * _JITTER * rng.random()
    plain_ms = min(float(max_ms), first_ms * 2.0 ** min(attempts, 30))
    return int(min(float(max_ms), plain_ms * factor))


def at_once_ms(sent_ms: int, now_ms: int) -> int:
    """The time at which to repeat without a backoff a request of `sent_ms` that was answered now:
    at once, or a millisecond later if the answer took no time.  Otherwise, over virtual links
    without latency, a client could repeat the request for ever."""
    return max(now_ms, sent_ms + 1)


class MetadataSettings(Frozen, frozen=True):
    """The settings of a client's Metadata, by Kafka's names and with its defaults:
    metadata.max.age.ms, retry.backoff.ms, retry.backoff.max.ms, allow.auto.create.topics."""

    max_age_ms: int = 300_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    allow_auto_create_topics: bool = True


class PartitionView(Struct):
    """A partition in the last response.  `leader`: NO_BROKER if there is no leader, or the response
    does not have its broker."""

    index: int
    leader: int = NO_BROKER
    leader_epoch: int = NO_EPOCH
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    offline: tuple[int, ...] = ()
    error: ErrorCode = ErrorCode.NONE


class TopicView(Struct):
    """A topic in the last response; `partitions` by index, without gaps."""

    name: str
    topic_id: bytes
    partitions: list[PartitionView]


class Metadata:
    """One client's view.

    `brokers`: ids of the brokers in the last response, sorted.  `due_ms`: the time of the next
    refresh, if no request is in flight (connections.py checks that).  `version`: incremented on
    each change.
    """

    def __init__(self, settings: MetadataSettings) -> None:
        self.settings = settings
        self.brokers: tuple[int, ...] = ()
        self.topics: dict[str, TopicView] = {}
        self.topic_errors: dict[str, ErrorCode] = {}
        """Errors of whole topics in the last response."""
        self.wanted_topics: dict[str, None] | None = {}
        """Topics to request; None for all topics (a consumer with a pattern)."""
        self.due_ms = 0
        self.version = 0
        self.controller = NO_BROKER
        self.cluster_id: str | None = None
        """The cluster's id; None before the first response, and after a rebootstrap."""
        self._names: dict[bytes, str] = {}
        self._epochs: dict[Partition, int] = {}
        """The newest known leader epoch of each partition.  Kafka:
        Metadata.lastSeenLeaderEpochs."""
        self._topic_ids: dict[str, bytes] = {}
        self._needs_update = True
        self._refreshed_ms = -settings.retry_backoff_max_ms
        self._succeeded_ms = 0
        self._failures = 0
        self._equivalent_responses = 0
        self._request_version = 0
        self._rng: Rng | None = None

    def start(self, bootstrap: tuple[int, ...], rng: Rng) -> None:
        """Begin with the bootstrap servers."""
        self.brokers = bootstrap
        self._rng = rng

    # ---------------------------------------------------------------------------- lookup

    def leader(self, topic: str, partition: int) -> int:
        """The known leader of a partition; NO_BROKER if there is none."""
        view = self.topics.get(topic)
        if view is None or partition >= len(view.partitions):
            return NO_BROKER
        return view.partitions[partition].leader

    def leader_epoch(self, topic: str, partition: int) -> int:
        """The newest leader epoch seen; NO_EPOCH if none was."""
        return self._epochs.get((topic, partition), NO_EPOCH)

    def partition_count(self, topic: str) -> int:
        """The number of partitions; 0 if the topic is unknown."""
        view = self.topics.get(topic)
        return 0 if view is None else len(view.partitions)

    def is_denied(self, topic: str) -> bool:
        """Whether the last response refused the client the topic."""
        return self.topic_errors.get(topic) is ErrorCode.TOPIC_AUTHORIZATION_FAILED

    def topic_id(self, topic: str) -> bytes:
        """The topic's id; sixteen zero bytes if it is unknown."""
        return self._topic_ids.get(topic, ZERO_UUID)

    def topic_name(self, topic_id: bytes) -> str | None:
        """The topic with this id, if it is known."""
        return self._names.get(topic_id)

    # -------------------------------------------------------------------------- requests

    def add_topic(self, topic: str) -> None:
        """Request this topic from now on, and at once if it is new."""
        if self.wanted_topics is not None and topic not in self.wanted_topics:
            self.wanted_topics[topic] = None
            self._request_version += 1
            self._refreshed_ms = -self.settings.retry_backoff_max_ms
            self._equivalent_responses = 0
            self._needs_update = True
            self._schedule()

    def request_update(self) -> None:
        """Refresh as soon as the backoff allows, because the view may be outdated."""
        if not self._needs_update:
            self._needs_update = True
            self._schedule()

    def build_request(self) -> m.MetadataRequest:
        """A request for the wanted topics, or for all."""
        topics = None
        if self.wanted_topics is not None:
            named = m.MetadataRequest.MetadataRequestTopic
            topics = [named(name=name) for name in self.wanted_topics]
        return m.MetadataRequest(
            topics=topics, allow_auto_topic_creation=self.settings.allow_auto_create_topics
        )

    @property
    def request_version(self) -> int:
        """The version of the set of wanted topics.  A request's version is passed to `update` with
        its response."""
        return self._request_version

    def update_failed(self, now_ms: int) -> None:
        """Handle a missing response, or one without brokers."""
        self._failures += 1
        self._refreshed_ms = now_ms
        self._schedule()

    def rebootstrap(self, bootstrap: tuple[int, ...]) -> None:
        """Start again from the bootstrap servers, without topics, because no known broker is
        reachable."""
        self.brokers = bootstrap
        self.cluster_id = None
        self.topics = {}
        self._needs_update = True
        self.version += 1
        self._schedule()

    # ------------------------------------------------------------------------- responses

    def update(
        self, body: Any, request_version: int, now_ms: int
    ) -> list[tuple[str, int, ErrorCode]]:
        """Apply a MetadataResponse.  Returns the errors in it: (topic, partition or -1, error)."""
        if not body.brokers:
            self.update_failed(now_ms)
            return []
        self._refreshed_ms = self._succeeded_ms = now_ms
        self._failures = 0
        self._equivalent_responses += 1
        self._needs_update = request_version < self._request_version
        self.version += 1
        self.brokers = tuple(sorted(broker.node_id for broker in body.brokers))
        self.controller = body.controller_id
        self.cluster_id = body.cluster_id
        errors: list[tuple[str, int, ErrorCode]] = []
        topics: dict[str, TopicView] = {}
        self.topic_errors = {}
        for topic in body.topics:
            if topic.error_code:
                error = error_of(topic.error_code)
                errors.append((topic.name, -1, error))
                self.topic_errors[topic.name] = error
                self._needs_update |= error in _STALE
            else:
                topics[topic.name] = self._topic_view(topic, errors)
        self.topics = topics
        self._schedule()
        return errors

    def _topic_view(self, topic: Any, errors: list[tuple[str, int, ErrorCode]]) -> TopicView:
        name: str = topic.name
        old_id = self._topic_ids.get(name)
        is_new = topic.topic_id not in (ZERO_UUID, old_id)
        if is_new:
            self._names.pop(old_id or ZERO_UUID, None)
            self._topic_ids[name] = topic.topic_id
            self._names[topic.topic_id] = name
        partitions = [PartitionView(index) for index in range(len(topic.partitions))]
        for partition in topic.partitions:
            if partition.error_code:
                error = error_of(partition.error_code)
                errors.append((name, partition.partition_index, error))
                self._needs_update |= error in _STALE
            if partition.partition_index < len(partitions):
                view = self._partition_view(name, partition, is_new)
                partitions[partition.partition_index] = view
        return TopicView(name, topic.topic_id, partitions)

    def _partition_view(self, topic: str, partition: Any, is_new_topic: bool) -> PartitionView:
        """The view of a partition in the response; or the known view, if that is newer
        (KIP-320)."""
        index: int = partition.partition_index
        key: Partition = (topic, index)
        known = self._epochs.get(key)
        if partition.leader_epoch < 0:
            # The response is from an old broker, or has an error and no leader.
            self._epochs.pop(key, None)
            self._equivalent_responses = 0
        elif known is None or is_new_topic or partition.leader_epoch >= known:
            if partition.leader_epoch != known:
                self._equivalent_responses = 0
            self._epochs[key] = partition.leader_epoch
        else:
            view = self.topics.get(topic)
            if view is not None and index < len(view.partitions):
                return view.partitions[index]
            return PartitionView(index)
        return PartitionView(
            index=index,
            leader=partition.leader_id if partition.leader_id in self.brokers else NO_BROKER,
            leader_epoch=partition.leader_epoch,
            replicas=tuple(partition.replica_nodes),
            isr=tuple(partition.isr_nodes),
            offline=tuple(partition.offline_replicas),
            error=error_of(partition.error_code),
        )

    def update_leader(self, topic: str, partition: int, leader: int, leader_epoch: int) -> bool:
        """Apply an error response that names the leader (KIP-951).  Returns whether the leader is
        newer than the known one.  Kafka: Metadata.updatePartitionLeadership."""
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

    # ------------------------------------------------------------------------------ time

    def _schedule(self) -> None:
        """Set `due_ms`, after a change of any value that it depends on."""
        rng = self._rng
        if rng is None:
            return
        settings = self.settings
        first_ms, max_ms = settings.retry_backoff_ms, settings.retry_backoff_max_ms
        allowed_ms = self._refreshed_ms + backoff_ms(
            max(0, self._failures - 1), first_ms, max_ms, rng
        )
        if self._equivalent_responses > 1:
            wait_ms = backoff_ms(self._equivalent_responses - 1, first_ms, max_ms, rng)
            allowed_ms = max(allowed_ms, self._refreshed_ms + wait_ms)
        due_ms = self._succeeded_ms + settings.max_age_ms
        self.due_ms = max(0 if self._needs_update else due_ms, allowed_ms)

    def stop(self) -> None:
        """Stop all requests."""
        self.due_ms = NEVER_MS
