"""Why a run did not come to rest: what last happened to the partition or the broker for which it
waited.

Owns: the choice of these events.  Never: decides that a run is not at rest (scenario/play does).
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kcluster.checks.chain.links import Link, in_order, with_causes
from kcluster.clients.ledger import Partition
from kcluster.contract import Note
from kcluster.events.brokers import BrokerEvent
from kcluster.events.partitions import IsrChange, LeaderChange, PartitionEvent, ReassignmentEvent
from kcluster.evidence.lookups import Facts

MAX_CHANGES: Final = 3
_OF_PARTITION: Final = (LeaderChange, IsrChange, ReassignmentEvent)


def rest_story(facts: Facts, partition: Partition | None, broker: int) -> list[Link]:
    """The last changes of the partition, or else of the broker, with their causes.  `broker`: -1
    for none."""
    changes = [*_changes(facts, partition, broker)][-MAX_CHANGES:]
    return in_order(link for note in changes for link in with_causes(facts, note))


def _changes(facts: Facts, partition: Partition | None, broker: int) -> Iterator[Note]:
    if partition is not None:
        for note, event in facts.of_partition(partition, PartitionEvent):
            if isinstance(event, _OF_PARTITION):
                yield note
    elif broker >= 0:
        for note, _ in facts.of_broker(broker, BrokerEvent):
            yield note
