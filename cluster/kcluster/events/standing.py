"""A replica compared with the leader of its partition, and the words for the result.

Owns: the comparison (in the ISR or not, running or not, ahead or behind), and its label. Never:
finds these facts (a run's record, or a cluster's status, has them). Kafka: `kafka-topics
--describe` shows the ISR and the ELR; it does not show which replica is ahead.

`down, 50 ahead`: the process is down, and its log ends 50 offsets after the leader's.  The leader
lacks these records, and the replica drops them when it follows this leader.
"""

from __future__ import annotations

from collections.abc import Container
from enum import StrEnum
from typing import Final

from msgspec import Struct

from kcluster.deaths import ProcessState


class IsrMembership(StrEnum):
    """A replica's membership according to the controller."""

    LEADER = "leader"
    IN_SYNC = "isr"
    ELIGIBLE = "elr"
    """The replica is in the ELR (KIP-966): out of the ISR, but with every committed record."""
    OUT = "out"


class Standing(Struct, frozen=True):
    """One replica at one moment.  `ahead`: its log end offset minus the leader's; negative: it is
    behind; 0 if there is no leader, or if one of the two is unknown."""

    membership: IsrMembership
    process: ProcessState
    ahead: int = 0


BASE_LABELS: Final[dict[ProcessState, dict[IsrMembership, str]]] = {
    ProcessState.UP: {
        IsrMembership.LEADER: "leader",
        IsrMembership.IN_SYNC: "in sync",
        IsrMembership.ELIGIBLE: "in ELR",
        IsrMembership.OUT: "out of the ISR",
    },
    ProcessState.PAUSED: {
        IsrMembership.LEADER: "paused, leader",
        IsrMembership.IN_SYNC: "paused, in the ISR",
        IsrMembership.ELIGIBLE: "paused, in ELR",
        IsrMembership.OUT: "paused",
    },
    ProcessState.DOWN: {
        IsrMembership.LEADER: "down, leader",
        IsrMembership.IN_SYNC: "down, in the ISR",
        IsrMembership.ELIGIBLE: "down, in ELR",
        IsrMembership.OUT: "down",
    },
}
"""The labels without the difference of the logs."""
AHEAD: Final = "ahead"
BEHIND: Final = "behind"


def standing_of(
    broker: int,
    *,
    leader: int,
    isr: Container[int],
    elr: Container[int],
    process: ProcessState,
    log_end_offset: int | None,
    leader_end_offset: int | None,
) -> Standing:
    """The standing of the replica on `broker`.  `leader` (-1 for none), `isr`, `elr`: according to
    the controller.  A log end offset is None if it is unknown."""
    if broker == leader:
        return Standing(IsrMembership.LEADER, process)
    membership = (
        IsrMembership.IN_SYNC
        if broker in isr
        else IsrMembership.ELIGIBLE
        if broker in elr
        else IsrMembership.OUT
    )
    if leader < 0 or log_end_offset is None or leader_end_offset is None:
        return Standing(membership, process)
    return Standing(membership, process, log_end_offset - leader_end_offset)


def label_of(standing: Standing) -> str:
    """The label of a standing: `leader`, `in sync`, `out of the ISR, 20 ahead`, `down, 3
    behind`."""
    base = BASE_LABELS[standing.process][standing.membership]
    if not standing.ahead:
        return base
    return f"{base}, {abs(standing.ahead)} {AHEAD if standing.ahead > 0 else BEHIND}"
