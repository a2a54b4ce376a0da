"""Actions on groups, at the coordinator: members that are removed, rebalances, offsets that are
reset, groups that are deleted.

Owns: these actions.  Never: sends a request (operations/verbs.py does).
Kafka: Admin.removeMembersFromConsumerGroup; kafka-consumer-groups and kafka-share-groups.
"""

from __future__ import annotations

from typing import Annotated, Final

from kcluster.actions.base import Action, action
from kcluster.actions.recording import Recording
from kcluster.actions.requests import refused
from kcluster.actions.stage import Stage
from kcluster.config.files.fields import Whole, Words, text
from kcluster.config.files.numbers import whole_number
from kcluster.config.files.problems import unknown
from kcluster.events.clients import (
    GroupDeleted,
    MembersEvicted,
    OffsetSpec,
    OffsetsReset,
    RebalanceRequested,
)

MAX_OFFSET: Final = (1 << 63) - 1


def _offset_word(text: str) -> str:
    """The word for an offset, as it is kept."""
    word = text.strip()
    number = whole_number(word)
    if number is not None and number <= MAX_OFFSET:
        return str(number)
    if word not in tuple(OffsetSpec):
        raise ValueError(unknown("offset", word, (*OffsetSpec, "numbers")))
    return word


_TO: Final = Words("earliest, latest, or an offset", _offset_word)


@action("evict", example="evict: {group: billing, member: all}")
class Evict(Action, frozen=True):
    """Make members leave their group, as an administrator may.  A client whose member is gone gets
    UNKNOWN_MEMBER_ID and joins again, as a new member."""

    IS_FAULT = False
    group: Annotated[str, text(), "The group, of any protocol."]
    member: Annotated[
        str,
        text(),
        "A member's id, its static id, its client id, the name of a client of the workload, or"
        " all.",
    ]

    def do(self, stage: Stage) -> None:
        number = stage.client_ids().get(self.member)
        name = self.member if number is None else f"client-{number}"
        stage.verbs.evict(self.group, name, refused(stage, f"evict from {self.group}"))

    RECORDED_FROM = (MembersEvicted,)

    @classmethod
    def record(cls, event: MembersEvicted, recording: Recording) -> None:
        recording.add(cls(event.group, event.member), event)


@action("rebalance", short="group", example="rebalance: billing")
class Rebalance(Action, frozen=True):
    """Make a group rebalance, by a member that joins and leaves at once.  In a classic group every
    member stops and joins again.  In groups of the newer protocols the coordinator computes the
    assignment anew, and only members whose partitions change stop reading them."""

    IS_FAULT = False
    group: Annotated[str, text(), "The group, of any protocol."]

    def do(self, stage: Stage) -> None:
        stage.verbs.rebalance(self.group, refused(stage, f"rebalance of {self.group}"))

    RECORDED_FROM = (RebalanceRequested,)

    @classmethod
    def record(cls, event: RebalanceRequested, recording: Recording) -> None:
        recording.add(cls(event.group), event)


@action("delete_group", short="group", example="delete_group: billing")
class DeleteGroup(Action, frozen=True):
    """Delete a group with its offsets, as kafka-consumer-groups --delete does.  Kafka refuses it
    while the group has members (NON_EMPTY_GROUP)."""

    IS_FAULT = False
    group: Annotated[str, text(), "The group, of any protocol."]

    def do(self, stage: Stage) -> None:
        stage.verbs.delete_group(self.group, refused(stage, f"delete_group {self.group}"))

    RECORDED_FROM = (GroupDeleted,)

    @classmethod
    def record(cls, event: GroupDeleted, recording: Recording) -> None:
        recording.add(cls(event.group), event)


@action("reset_offsets", example="reset_offsets: {group: billing, topic: orders, to: earliest}")
class ResetOffsets(Action, frozen=True):
    """Give a group other offsets, as kafka-consumer-groups --reset-offsets does, and
    kafka-share-groups for a share group.  The group must have no members then."""

    IS_FAULT = False
    group: Annotated[str, text(), "The group, of any protocol."]
    topic: Annotated[str, text(), "The topic whose offsets change."]
    to: Annotated[str, _TO, "earliest, latest, or an offset; it stays within the log."]
    partition: Annotated[int | None, Whole(0), "The partition; without it, all of the topic."] = (
        None
    )

    def do(self, stage: Stage) -> None:
        on_end = refused(stage, f"reset_offsets of {self.group}")
        stage.verbs.reset_offsets(self.group, self.topic, self.partition, self.spec, on_end)

    @property
    def spec(self) -> OffsetSpec | int:
        """The end of the log, or the offset."""
        return int(self.to) if self.to.isdecimal() else OffsetSpec(self.to)

    RECORDED_FROM = (OffsetsReset,)

    @classmethod
    def record(cls, event: OffsetsReset, recording: Recording) -> None:
        to = str(event.asked if event.end is None else event.end)
        recording.add(cls(event.group, event.topic, to, event.partition), event)
