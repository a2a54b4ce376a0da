"""The replicas on this broker: finding them by name or id, and completing requests when one has
moved.

Owns: the set of replicas; which of them moved in this step, and completing the requests that wait
for them; which of them changed, for each reader.  Never: creates or deletes a replica by itself
(publisher.py decides), changes a replica's state.  Kafka: ReplicaManager (getPartitionOrError,
tryCompleteActions).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from kcluster.broker.serving.sessions import ParkedFetch, SessionPartition, Watchers
from kcluster.metadata.image import MetadataImage
from kcluster.partition.replica import Replica
from kcluster.protocol.errors import ErrorCode


@final
class ChangedReplicas:
    """The replicas of one broker that changed since a reader last took them.  Each reader gets
    every change."""

    __slots__ = ("_replicas", "waiting")

    def __init__(self, replicas: Replicas, waiting: dict[Replica, None]) -> None:
        self._replicas = replicas
        self.waiting = waiting
        """The replicas that have been passed to this reader."""

    def take(self) -> dict[Replica, None]:
        """The replicas here that changed since the last call, in the order of their first change;
        all replicas at the first call."""
        self._replicas.hand_out_changed()
        taken, self.waiting = self.waiting, {}
        return taken


@final
class Replicas:
    """Replicas by (topic id, partition).

    `moved`: replicas to check when the step ends, because they changed in a way for which requests
    may wait.  `changed`: replicas that changed since they were last passed to the readers.
    """

    __slots__ = (
        "_by_key", "_by_topic", "_hosted", "_readers", "_watchers", "changed", "image",
        "last_fetches", "moved", "on_removed",
    )  # fmt: skip

    def __init__(self, image: MetadataImage, watchers: Watchers) -> None:
        self.image = image
        self._watchers = watchers
        self._by_key: dict[tuple[bytes, int], Replica] = {}
        self._by_topic: dict[str, dict[int, Replica]] = {}
        """The replicas, by topic name, then by partition."""
        self._hosted = 0
        """The number of replicas that this broker has hosted so far."""
        self.moved: dict[Replica, None] = {}
        self.changed: dict[Replica, None] = {}
        self._readers: list[ChangedReplicas] = []
        self.on_removed: Callable[[Replica], None] | None = None
        """Called with each replica that is no longer hosted."""
        self.last_fetches: dict[int, int] = {}
        """The time of each follower broker's last fetch from this broker."""

    # ---------------------------------------------------------------------------------- look-up

    def get(self, topic_id: bytes, partition: int) -> Replica | None:
        return self._by_key.get((topic_id, partition))

    def find(self, topic: str, partition: int) -> Replica | ErrorCode:
        """The replica hosted here, in any role, or the reason why there is none.

        Kafka: ReplicaManager.getPartitionOrError.
        """
        partitions = self._by_topic.get(topic)
        if partitions is not None:
            hosted = partitions.get(partition)
            if hosted is not None:
                return hosted
        image = self.image.topics.get(topic)
        if image is None or not 0 <= partition < len(image.partitions):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        replica = self._by_key.get((image.topic_id, partition))
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if replica is None else replica

    def find_by_id(self, topic_id: bytes, partition: int) -> Replica | ErrorCode:
        """The replica hosted here, by topic id, or the reason why there is none."""
        replica = self._by_key.get((topic_id, partition))
        if replica is not None:
            return replica
        image = self.image.topic_by_id(topic_id)
        if image is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        if not 0 <= partition < len(image.partitions):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.NOT_LEADER_OR_FOLLOWER

    def find_wanted(self, wanted: SessionPartition, by_id: bool) -> Replica | ErrorCode:
        """The replica that a fetcher wants, by the topic id (Fetch v13+) or name in its request."""
        if not by_id:
            return self.find(wanted.topic, wanted.partition)
        replica = self.find_by_id(wanted.topic_id, wanted.partition)
        if replica is ErrorCode.UNKNOWN_TOPIC_ID and wanted.topic:
            # The topic existed when its name was looked up, and has been deleted since.
            if wanted.topic in self.image.topics:
                return ErrorCode.INCONSISTENT_TOPIC_ID
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return replica

    def find_leader(self, topic: str, partition: int) -> Replica | ErrorCode:
        """The replica here that leads `topic`-`partition`, or the reason why there is none."""
        replica = self.find(topic, partition)
        if isinstance(replica, ErrorCode) or replica.is_leader:
            return replica
        return ErrorCode.NOT_LEADER_OR_FOLLOWER

    def all(self) -> list[Replica]:
        return list(self._by_key.values())

    # ---------------------------------------------------------------------------------- hosting

    def add(self, replica: Replica) -> None:
        """Host a replica from now on."""
        self._hosted += 1
        replica.number = self._hosted
        self._by_key[replica.key] = replica
        self._by_topic.setdefault(replica.topic, {})[replica.partition] = replica

    def remove(self, replica: Replica) -> None:
        """Stop hosting a replica."""
        del self._by_key[replica.key]
        partitions = self._by_topic[replica.topic]
        del partitions[replica.partition]
        if not partitions:
            del self._by_topic[replica.topic]
        self.changed.pop(replica, None)
        for reader in self._readers:
            reader.waiting.pop(replica, None)
        if self.on_removed is not None:
            self.on_removed(replica)

    # ---------------------------------------------------------------------------------- changes

    def read_changes(self) -> ChangedReplicas:
        """Let one more reader receive changes from now on."""
        self.hand_out_changed()
        reader = ChangedReplicas(self, dict.fromkeys(self._by_key.values()))
        self._readers.append(reader)
        return reader

    def hand_out_changed(self) -> None:
        """Pass the changed replicas to all readers."""
        changed = self.changed
        if changed:
            for reader in self._readers:
                reader.waiting.update(changed)
            changed.clear()

    # ----------------------------------------------------------------------------------- waking

    def touch(self, replica: Replica) -> None:
        """Check a replica when the step ends, because it changed in a way for which requests may
        wait."""
        self.moved[replica] = None

    def touch_if_waited_for(self, replica: Replica) -> None:
        """Check a replica when the step ends if a fetch waits for it; nothing else waits for a
        follower's records."""
        if replica in self._watchers or replica.fetches_waiting:
            self.moved[replica] = None

    def wake(self, now_ms: int) -> None:
        """Complete requests that wait for the replicas that moved in this step, until none
        moves."""
        while self.moved:
            moved, self.moved = self.moved, {}
            parked_fetches: list[ParkedFetch] = []
            for replica in moved:
                if replica.acks_waiting:
                    replica.answer_acks(now_ms)
                sessions = self._watchers.get(replica)
                if sessions is None:
                    continue
                for session, wanted in sessions.items():
                    session.moved[wanted] = None
                    parked = session.parked
                    if parked is not None and parked.is_news(replica, wanted):
                        parked_fetches.append(parked)
            for parked in parked_fetches:
                parked.try_complete(now_ms)
            for replica in moved:
                if replica.fetches_waiting:
                    for try_complete in tuple(replica.fetches_waiting.values()):
                        try_complete(now_ms)
