"""The groups in the log of a group coordinator, and where its memory says something else.

Owns: the newest committed record of each group, member and target, and their comparison with what
a coordinator holds; the newest committed epochs and generations.  Never: uses the state of a
coordinator to build its own, replays offsets (replayed.py does).  Kafka:
GroupMetadataManager.replay; a group is the sum of its records.

A group with epochs holds what its records say at any time.  A classic group is in the log as it was
when its last generation became stable: it is compared while it is stable.  A static member that is
back has its new id before that is written, and its old one if the write has failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from msgspec.structs import astuple

from kcluster.broker.coordinator.classic_group import STABLE, ClassicGroup
from kcluster.broker.coordinator.classic_members import ClassicMember, Roster
from kcluster.broker.coordinator.consumer.group import ConsumerGroup
from kcluster.broker.coordinator.group import Group
from kcluster.broker.coordinator.group_log import ClassicGroupRecord, GroupRecord
from kcluster.broker.coordinator.modern.group import FIRST_EPOCH, AnyModernGroup, ModernGroup
from kcluster.broker.coordinator.modern.records import (
    ConsumerGroupRegularExpression,
    CurrentMember,
    GroupMetadata,
    MemberMetadata,
    MessageRecord,
    TargetMember,
    TargetMetadata,
)
from kcluster.invariants.facts import HeldDiffers

if TYPE_CHECKING:
    from kcluster.protocol.messages import GroupMetadataValue

    SavedMember = GroupMetadataValue.MemberMetadata

_Key = tuple[object, ...]
"""The class of a record, and what follows the group's id in its key."""
_NOT_SET: Final = -1
MAX_REMEMBERED: Final = 10_000
"""The number of members, or of groups, whose newest epochs are remembered."""
_COMMON: Final[Mapping[type[MessageRecord], str]] = {
    GroupMetadata: "epoch",
    MemberMetadata: "member",
    TargetMetadata: "target epoch",
    TargetMember: "target",
    CurrentMember: "assignment",
    ConsumerGroupRegularExpression: "regular expression",
}
"""The records that are compared, with their names."""


class ReplayedGroups:
    """The groups in one partition of __consumer_offsets, as far as it is committed."""

    def __init__(self) -> None:
        self._records: dict[str, dict[_Key, GroupRecord]] = {}
        """The newest record by group and key; none for a tombstone."""
        self._changed: dict[str, None] = {}
        """The groups with records since the last comparison."""
        self._compared: object = None
        """The coordinator that was compared last."""
        self._epochs: dict[tuple[str, str], int] = {}
        """The newest epoch of each member, also after its removal."""
        self._generations: dict[str, int] = {}
        """The newest generation of each classic group, the same way."""
        self._has_forgotten = False

    def put(self, record: GroupRecord) -> None:
        """Take note of a committed record."""
        group_id, *rest, value = astuple(record)
        self._changed[group_id] = None
        records = self._records.setdefault(group_id, {})
        key = (type(record), *rest)
        if value is None:
            records.pop(key, None)
        else:
            records[key] = record
        if not records:
            del self._records[group_id]
        if value is not None and isinstance(record, CurrentMember):
            member = (group_id, record.member_id)
            self._epochs[member] = max(self._epochs.get(member, 0), value.member_epoch)
        elif value is not None and isinstance(record, ClassicGroupRecord):
            known = self._generations.get(group_id, 0)
            self._generations[group_id] = max(known, value.generation)
        for newest in (self._epochs, self._generations):
            if len(newest) > MAX_REMEMBERED:
                self._has_forgotten = True
                newest.clear()

    def newest_epoch(self, group_id: str, member_id: str) -> int | None:
        """The newest committed epoch of a member, 0 if it has none; None: it is not known."""
        return self._epochs.get((group_id, member_id), None if self._has_forgotten else 0)

    def newest_generation(self, group_id: str, member_id: str) -> int | None:
        """The newest committed generation of a classic group, or epoch of a classic member of a
        consumer group; None: it is not known."""
        known = self._generations.get(group_id), self._epochs.get((group_id, member_id))
        unknown = None if self._has_forgotten else 0
        return max((one for one in known if one is not None), default=unknown)

    def differing(self, coordinator: object, held: Mapping[str, Group]) -> Iterator[HeldDiffers]:
        """The first difference of each group that a coordinator holds differently from its log.
        After a coordinator's first comparison, only groups with new records are compared."""
        changed, self._changed = self._changed, {}
        if self._compared is not coordinator:
            self._compared = coordinator
            changed = dict.fromkeys((*self._records, *held))
        for group_id in changed:
            found = _differing(held.get(group_id), self._records.get(group_id, {}))
            for field, mine, logged in found:
                yield HeldDiffers(f"group {group_id}", field, mine, logged)
                break


def _differing(
    group: Group | None, records: Mapping[_Key, GroupRecord]
) -> Iterator[tuple[str, str, str]]:
    """(field, what the coordinator holds, what its log has)."""
    if isinstance(group, ModernGroup):
        yield from _of_epochs(group, records)
    elif isinstance(group, ClassicGroup):
        record = records.get((ClassicGroupRecord,))
        if group.state is STABLE:
            saved = record.value if isinstance(record, ClassicGroupRecord) else None
            yield from _of_classic(group.roster, saved)
    elif records:
        yield "", "", "a group"


# ------------------------------------------------------------------------------ groups with epochs


def _of_epochs(
    group: AnyModernGroup, records: Mapping[_Key, GroupRecord]
) -> Iterator[tuple[str, str, str]]:
    held = {(type(one), *astuple(one)[1:-1]): one for one in _records_of(group)}
    for key in dict.fromkeys((*held, *records)):
        kind, *names = key
        name = next((text for of, text in _COMMON.items() if _is(kind, of)), "")
        mine, logged = held.get(key), records.get(key)
        # Neither an administrator's start offsets of a share group, nor members that subscribe by
        # expressions alone, which are not resolved yet, begin an epoch with a record.
        has_none = _is(kind, GroupMetadata) and group.epoch == FIRST_EPOCH
        is_unset = logged is None and (_is(kind, TargetMetadata) or has_none)
        if name and not is_unset and _value(mine) != _value(logged):
            field = " of ".join((name, *map(str, names)))
            yield field, *_shown_records(mine, logged)


def _is(kind: object, base: type[MessageRecord]) -> bool:
    return isinstance(kind, type) and issubclass(kind, base)


def _records_of(group: AnyModernGroup) -> Iterator[MessageRecord]:
    """The records from which a group with epochs would be the same again."""
    yield group.epoch_record(group.epoch, group.metadata_hash)
    for member in group.members.values():
        yield group.member_record(member)
        yield group.current_record(member)
    for member_id, target in group.targets.items():
        yield group.target_record(member_id, target)
    target_type = group.record_types.target
    yield target_type(
        group.group_id,
        target_type.value_type()(
            assignment_epoch=group.target_epoch, assignment_timestamp=group.target_timestamp_ms
        ),
    )
    if isinstance(group, ConsumerGroup):
        make = ConsumerGroupRegularExpression
        for regex, resolved in group.regexes.items():
            value = make.value_type()(
                topics=sorted(resolved.topics),
                version=resolved.version,
                timestamp=resolved.timestamp_ms,
            )
            yield make(group.group_id, regex, value)


def _value(record: GroupRecord | None) -> object:
    return None if record is None else astuple(record)[-1]


def _shown_records(mine: GroupRecord | None, logged: GroupRecord | None) -> tuple[str, str]:
    """The two values, or the first field in which they differ."""
    first, second = _value(mine), _value(logged)
    if first is None or second is None:
        return ("", "a record") if first is None else ("a record", "")
    for name in getattr(first, "__struct_fields__", ()):
        own, its = getattr(first, name), getattr(second, name)
        if own != its:
            return f"{name} {own}", f"{name} {its}"
    return str(first), str(second)


# ---------------------------------------------------------------------------------- classic groups


def _of_classic(roster: Roster, saved: GroupMetadataValue | None) -> Iterator[tuple[str, str, str]]:
    if saved is None:
        yield "", "a stable group", ""
        return
    yield from _unequal(
        "",
        ("generation", roster.generation, saved.generation),
        ("protocol", roster.protocol_name, saved.protocol),
        ("protocol type", roster.protocol_type, saved.protocol_type),
    )
    logged = {one.member_id: one for one in saved.members}
    is_leader_static = any(
        one.group_instance_id is not None for one in saved.members if one.member_id == saved.leader
    )
    if not is_leader_static:
        yield from _unequal("", ("leader", roster.leader, saved.leader))
    # A static member may be in the roster or in the record under its previous id.
    renamed = {one.instance_id for one in roster.members.values()} & {
        one.group_instance_id for one in saved.members
    }
    for member_id in dict.fromkeys((*roster.members, *logged)):
        mine, its = roster.members.get(member_id), logged.get(member_id)
        if mine is not None and its is not None:
            yield from _of_member(mine, its, roster.protocol_name or "")
            continue
        instance_id = its.group_instance_id if its is not None else None
        instance_id = mine.instance_id if mine is not None else instance_id
        if instance_id is None or instance_id not in renamed:
            is_held = mine is not None
            yield f"member {member_id}", *(("a member", "") if is_held else ("", "a member"))


def _of_member(
    mine: ClassicMember, its: SavedMember, protocol: str
) -> Iterator[tuple[str, str, str]]:
    timeout_ms = its.rebalance_timeout
    if timeout_ms == _NOT_SET:
        timeout_ms = its.session_timeout
    yield from _unequal(
        f" of member {mine.member_id}",
        ("instance id", mine.instance_id, its.group_instance_id),
        ("rebalance timeout", mine.rebalance_timeout_ms, timeout_ms),
        ("session timeout", mine.session_timeout_ms, its.session_timeout),
        ("client id", mine.client_id, its.client_id),
        ("host", mine.client_host, its.client_host),
        ("subscription", mine.protocols.get(protocol, b""), bytes(its.subscription)),
        ("assignment", mine.assignment, bytes(its.assignment)),
    )


def _unequal(of: str, *compared: tuple[str, object, object]) -> Iterator[tuple[str, str, str]]:
    fields: Iterable[tuple[str, object, object]] = compared
    for name, mine, its in fields:
        if mine != its:
            yield f"{name}{of}", _shown(mine), _shown(its)


def _shown(value: object) -> str:
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    return "" if value is None else str(value)
