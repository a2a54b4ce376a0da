"""Replication throttles: limits on the rate at which replicas that are behind catch up.

Owns: the throttled replicas of this broker, their rate in bytes per second, and its comparison with
the limit.  Never: fetches or answers (replication/fetcher.py and handlers/data/fetch.py ask here
first), watches configs (publisher.py reports changes).  Kafka: ReplicationQuotaManager,
TopicConfigHandler; KIP-73.

    leader.replication.throttled.replicas     topic    `0:1,0:2`, partition:broker, or `*`
    follower.replication.throttled.replicas   topic
    leader.replication.throttled.rate         broker   bytes per second; unlimited without it
    follower.replication.throttled.rate       broker

While the rate is above the limit, a leader withholds records from throttled followers outside of
the ISR, and a follower does not ask for throttled partitions in which it is behind.  Traffic of
replicas in the ISR counts too, but is never withheld.

Where no topic names a replica of this broker there is no Throttle, and the cost is one comparison
with None per fetch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kcluster.broker.ports import BrokerView
from kcluster.broker.quotas.sampled_rate import SimpleRate
from kcluster.broker.serving.reading import PartitionRead
from kcluster.config.kafka.definitions import BrokerConfig
from kcluster.config.kafka.quotas import FOLLOWER_RATE, LEADER_RATE, UNLIMITED
from kcluster.metadata.records import BROKER_RESOURCE, CLUSTER_DEFAULT
from kcluster.partition.replica import Replica

LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"

ANSWER_BYTES: Final = 16
TOPIC_BYTES: Final = 18
PARTITION_BYTES: Final = 42
"""The size of a FetchResponse's fields around records, which Kafka also counts for throttled
partitions."""


class Throttle:
    """One side's throttle, of leaders or of followers.  `limit`: bytes per second."""

    __slots__ = ("_lagging", "_rate", "_topics", "limit")

    def __init__(self, config: BrokerConfig) -> None:
        self._topics: dict[str, frozenset[int] | None] = {}
        """Throttled partitions by topic; None: all partitions of the topic."""
        self._rate = SimpleRate(
            config.replication_quota_window_num, config.replication_quota_window_size_seconds * 1000
        )
        self._lagging: dict[Replica, bool] = {}
        """Whether each replica here was behind its leader at its last fetch."""
        self.limit = UNLIMITED

    def set_topic(self, topic: str, replicas: str, broker_id: int) -> bool:
        """Set a topic's throttled replicas (`0:1,0:2`, `*`, or empty).  Returns whether any topic
        has throttled replicas."""
        if replicas == "*":
            self._topics[topic] = None
        elif replicas:
            pairs = [item.split(":") for item in replicas.split(",")]
            self._topics[topic] = frozenset(
                int(partition) for partition, broker in pairs if int(broker) == broker_id
            )
        else:
            self._topics.pop(topic, None)
        return bool(self._topics)

    def start_idle(self, now_ms: int) -> None:
        """Begin with eleven seconds of next to no traffic.

        Kafka's leaders always count the bytes around records in answers to followers.  So a new
        throttle finds almost unused windows, and lets a burst through at once.
        """
        self._rate.start_idle(now_ms)

    def is_throttled(self, topic: str, partition: int) -> bool:
        """Whether this broker's replica is named in its topic's config."""
        if topic not in self._topics:
            return False
        partitions = self._topics[topic]
        return partitions is None or partition in partitions

    def is_exceeded(self, now_ms: int) -> bool:
        """Whether the current rate is above the limit."""
        return self._rate.measure(now_ms) > self.limit

    # ------------------------------------------------------------------------ a leader's side

    def withholds_from(self, replica: Replica, follower_id: int, now_ms: int) -> bool:
        """Whether to withhold records from a follower.  Kafka: shouldLeaderThrottle."""
        return (
            follower_id not in replica.registration.isr
            and self.is_throttled(replica.topic, replica.partition)
            and self.is_exceeded(now_ms)
        )

    def record_answer(self, reads: list[PartitionRead], now_ms: int) -> None:
        """Count the throttled part of an answer.  Kafka: sizeOfThrottledPartitions."""
        size_bytes = ANSWER_BYTES
        topics: dict[str, None] = {}
        for read in reads:
            wanted = read.wanted
            if self.is_throttled(wanted.topic, wanted.partition):
                topics[wanted.topic] = None
                size_bytes += PARTITION_BYTES + read.size_bytes
        self._rate.record(size_bytes + TOPIC_BYTES * len(topics), now_ms)

    # ---------------------------------------------------------------------- a follower's side

    def holds_back(self, replica: Replica, now_ms: int) -> bool:
        """Whether a replica here must not fetch now.  Kafka: shouldFollowerThrottle."""
        return (
            self.is_throttled(replica.topic, replica.partition)
            and self._lagging.get(replica, replica.broker_id not in replica.registration.isr)
            and self.is_exceeded(now_ms)
        )

    def record_fetched(
        self, replica: Replica, size_bytes: int, leader_high_watermark: int, now_ms: int
    ) -> None:
        """Count what a replica here fetched, and note whether it is still behind."""
        if self.is_throttled(replica.topic, replica.partition):
            self._lagging[replica] = leader_high_watermark > replica.log.log_end_offset
            self._rate.record(size_bytes, now_ms)

    def forget(self, replica: Replica) -> None:
        """Forget a replica that is no longer here."""
        self._lagging.pop(replica, None)


class Throttles:
    """The throttles of both sides of one broker; None for a side on which nothing is throttled."""

    def __init__(self, view: BrokerView) -> None:
        self._view = view
        self.leader: Throttle | None = None
        self.follower: Throttle | None = None

    def on_topic(self, topic: str, has_followers: bool, now_ms: int) -> None:
        """Update the throttle of a topic whose configs have changed, or that was deleted.
        `has_followers`: whether any broker has fetched from this one as a follower."""
        configs = self._view.image.topic_configs(topic)
        before = self.leader
        self.leader = self._changed(before, topic, configs.get(LEADER_REPLICAS, ""))
        if before is None and self.leader is not None and has_followers:
            self.leader.start_idle(now_ms)
        self.follower = self._changed(self.follower, topic, configs.get(FOLLOWER_REPLICAS, ""))
        self.on_rates()

    def forget(self, replica: Replica) -> None:
        """Forget a replica that is no longer here."""
        if self.follower is not None:
            self.follower.forget(replica)

    def _changed(self, throttle: Throttle | None, topic: str, replicas: str) -> Throttle | None:
        wanted = "".join(replicas.split())
        if throttle is None:
            if not wanted:
                return None
            throttle = Throttle(self._view.config)
        return throttle if throttle.set_topic(topic, wanted, self._view.node_id) else None

    def on_rates(self) -> None:
        """Update the limits, because configs of this broker, or of all brokers, have changed."""
        configs = self._view.image.configs
        own = configs.get((BROKER_RESOURCE, str(self._view.node_id)), {})
        default = configs.get((BROKER_RESOURCE, CLUSTER_DEFAULT), {})
        if self.leader is not None:
            self.leader.limit = _rate(LEADER_RATE, own, default)
        if self.follower is not None:
            self.follower.limit = _rate(FOLLOWER_RATE, own, default)


def _rate(name: str, own: Mapping[str, str], default: Mapping[str, str]) -> int:
    text = own.get(name, default.get(name))
    return UNLIMITED if text is None else int(text)
