"""Partitions whose preferred leader could lead, and does not.

Owns: since when nothing is in the way of each preferred leader.  Never: elects one.
Kafka: ReplicationControlManager.maybeBalancePartitionLeaders.

    preferred-overdue    the first replica of a partition did not get the leadership back, though it
                         was in sync and active for longer than the interval of the check

A change of the partition, the broker or the controller restarts this time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from kcluster.invariants.facts import NotPreferred
from kcluster.metadata.image import MetadataImage
from kcluster.metadata.records import NO_LEADER, BrokerRegistration, PartitionRegistration

SLACK_MS: Final = 1_000


class _Waiting(NamedTuple):
    """A partition whose preferred leader waits."""

    partition: PartitionRegistration
    broker: BrokerRegistration
    life: int
    """The life of the controller."""
    since_ms: int


class PreferredLeaders:
    """The preferred leaders of one run."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[bytes, int], _Waiting] = {}

    def look(
        self, image: MetadataImage, life: int, interval_ms: int, now_ms: int
    ) -> Iterator[tuple[str, PartitionRegistration, NotPreferred]]:
        """Each preferred leader that has waited too long, with its topic."""
        before, self._waiting = self._waiting, {}
        for name, topic in image.topics.items():
            for one in topic.partitions:
                preferred = one.replicas[0]
                if one.leader in (NO_LEADER, preferred) or preferred not in one.isr:
                    continue
                broker = image.brokers.get(preferred)
                if broker is None or not broker.is_active:
                    continue
                key = (one.topic_id, one.partition)
                known = before.get(key)
                if known is None or known[:3] != (one, broker, life):
                    known = _Waiting(one, broker, life, now_ms)
                elif now_ms - known.since_ms > interval_ms + SLACK_MS:
                    yield name, one, NotPreferred(preferred, one.leader, known.since_ms, now_ms)
                    continue
                self._waiting[key] = known
