"""What an administrator did to a group: offsets that were reset, the group that was deleted.

Owns: the change of a group's offset that explains an anomaly, and its setting.  Never: guesses:
each change is a note.  Kafka: no counterpart; kafka-consumer-groups, kafka-share-groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kcluster.checks.settings import Setting
from kcluster.clients.ledger import Partition
from kcluster.contract import Note
from kcluster.events.clients import GroupDeleted, OffsetsReset
from kcluster.evidence.lookups import Facts


class OffsetChange(NamedTuple):
    """A change of a group's offset of one partition.  `offset`: the new one; None: the group was
    deleted, and has no offset."""

    note: Note
    group: str
    offset: int | None

    @property
    def setting(self) -> Setting:
        return Setting.GROUP_DELETED if self.offset is None else Setting.OFFSETS_RESET

    def begins_after(self, offset: int) -> bool:
        """Whether the group passes over the record at this offset, because its offset is beyond."""
        return self.offset is not None and self.offset > offset

    def comes_again(self, offset: int) -> bool:
        """Whether the group may get the record at this offset again."""
        return self.offset is None or self.offset <= offset


def offset_changes(
    facts: Facts, partition: Partition, group: str | None = None
) -> Iterator[OffsetChange]:
    """The changes of a group's offset of a partition, in order of time; `group` None: of all
    groups."""
    for note in facts.notes:
        event = note.event
        if isinstance(event, GroupDeleted) and group in (None, event.group):
            yield OffsetChange(note, event.group, None)
        elif isinstance(event, OffsetsReset) and group in (None, event.group):
            for one in event.offsets:
                if (event.topic, one.partition) == partition:
                    yield OffsetChange(note, event.group, one.offset)


def changes_within(
    facts: Facts, group: str, partition: Partition, from_ms: int, until_ms: int
) -> list[OffsetChange]:
    """The changes of a group's offset between two times, the last one first.  One may have been
    refused since, because a member had come."""
    changes = [*offset_changes(facts, partition, group)]
    return [one for one in reversed(changes) if from_ms <= one.note.at_ms <= until_ms]
