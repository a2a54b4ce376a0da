"""Words for events of partitions: leaders, ISRs, logs.

Owns: these words.  Never: decides anything.
"""

from __future__ import annotations

from typing import Final

from kcluster.events.partitions import (
    BecameFollower,
    BecameLeader,
    IsrChange,
    LeaderElected,
    LogTruncated,
    PartitionOffline,
    ReassignmentCancelled,
    ReassignmentCompleted,
    ReassignmentStarted,
    RecordsDeleted,
)
from kcluster.events.reasons import ElectionKind
from kcluster.events.words.base import text_of
from kcluster.events.words.reasons import BY_OPERATOR, reason_text

_ELECTIONS: Final = {
    ElectionKind.PREFERRED: "the preferred leader",
    ElectionKind.IN_SYNC: "first active replica in the ISR",
    ElectionKind.ELIGIBLE: "ISR empty, first active replica in the ELR",
    ElectionKind.LAST_KNOWN_LEADER: "ISR and ELR empty, last known leader",
    ElectionKind.UNCLEAN: "first active replica, out of sync (unclean)",
}


@text_of.register
def _(event: LeaderElected) -> str:
    unclean = "" if event.clean else ", UNCLEAN"
    return (
        f"leader {_leader(event.old_leader)} -> {event.new_leader}, epoch {event.leader_epoch}"
        f"{unclean}: {election_text(event)}"
    )


def election_text(event: LeaderElected) -> str:
    """The reason for an election and for its choice of leader, in words."""
    choice = _ELECTIONS.get(event.election)
    return reason_text(event.reason) + (f"; {choice}" if choice else "")


@text_of.register
def _(event: PartitionOffline) -> str:
    if event.isr:
        nobody = f"no replica in the ISR {list(event.isr)} is active"
    elif event.elr:
        nobody = f"the ISR is empty and no replica in the ELR {list(event.elr)} is active"
    else:
        nobody = "ISR and ELR are empty"
    return f"leader {_leader(event.old_leader)} -> none: {reason_text(event.reason)}; {nobody}"


@text_of.register
def _(event: IsrChange) -> str:
    elr = f", ELR {list(event.elr)}" if event.elr else ""
    change = f"ISR {list(event.old_isr)} -> {list(event.isr)}{elr}"
    return f"{change}: {reason_text(event.reason)}"


@text_of.register
def _(event: RecordsDeleted) -> str:
    return f"records before offset {event.low_watermark} deleted by an administrator"


@text_of.register
def _(event: ReassignmentStarted) -> str:
    instead = ", replacing the reassignment in progress" if event.replaced else ""
    moved = f"replicas {list(event.old_replicas)} -> {list(event.replicas)}"
    return f"{moved}: {BY_OPERATOR}{instead}"


@text_of.register
def _(event: ReassignmentCompleted) -> str:
    moved = f"replicas {list(event.old_replicas)} -> {list(event.replicas)}"
    return f"{moved}: {reason_text(event.reason)}"


@text_of.register
def _(event: ReassignmentCancelled) -> str:
    moved = f"replicas {list(event.old_replicas)} -> {list(event.replicas)}"
    return f"{moved}: {BY_OPERATOR}"


@text_of.register
def _(event: BecameLeader) -> str:
    return (
        f"broker {event.broker} leads {event.subject} in epoch {event.leader_epoch}"
        f" from offset {event.start_offset}"
    )


@text_of.register
def _(event: BecameFollower) -> str:
    return (
        f"broker {event.broker} no longer leads {event.subject}:"
        f" broker {event.leader} leads in epoch {event.leader_epoch}"
    )


@text_of.register
def _(event: LogTruncated) -> str:
    below = ", below its high watermark" if event.is_below_high_watermark else ""
    if event.is_unasked:
        return (
            f"broker {event.broker} drops offsets {event.to_offset} to {event.from_offset - 1} of"
            f" {event.subject}: above its own high watermark, as before KIP-101"
        )
    end = (
        f"the log of leader {event.leader} ends at offset {event.leader_end_offset}"
        if event.diverging_epoch is None
        else f"epoch {event.diverging_epoch} ends at offset {event.leader_end_offset}"
        f" on leader {event.leader}"
    )
    return (
        f"broker {event.broker} drops offsets {event.to_offset} to {event.from_offset - 1} of"
        f" {event.subject}{below}: {end}"
    )


def _leader(broker: int) -> str:
    return "none" if broker < 0 else str(broker)
