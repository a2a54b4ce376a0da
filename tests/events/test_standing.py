"""Where a replica stands beside its leader, and the label made of it."""

from __future__ import annotations

import pytest

from kcluster.deaths import ProcessState
from kcluster.events.standing import BASE_LABELS, IsrMembership, Standing, label_of, standing_of

UP, PAUSED, DOWN = ProcessState.UP, ProcessState.PAUSED, ProcessState.DOWN


def label(
    broker: int, end: int | None, process: ProcessState = UP, leader: int = 1, at: int | None = 100
) -> str:
    """Brokers 1 and 2 are in the ISR, 3 in the ELR, 4 in neither; the leader's log ends at `at`."""
    return label_of(
        standing_of(
            broker,
            leader=leader,
            isr=(1, 2),
            elr=(3,),
            process=process,
            log_end_offset=end,
            leader_end_offset=at,
        )
    )


@pytest.mark.parametrize(
    ("expected", "shown"),
    [
        ("leader", label(1, 100)),
        ("down, leader", label(1, 100, DOWN)),
        ("in sync", label(2, 100)),
        ("in sync, 3 behind", label(2, 97)),
        ("in sync, 1 ahead", label(2, 101)),
        ("down, in the ISR", label(2, 100, DOWN)),
        ("in ELR", label(3, 100)),
        ("down, in ELR, 10 behind", label(3, 90, DOWN)),
        ("out of the ISR, 40 behind", label(4, 60)),
        ("out of the ISR, 20 ahead", label(4, 120)),
        ("out of the ISR", label(4, 100)),
        ("down, 50 ahead", label(4, 150, DOWN)),
        ("paused, 20 ahead", label(4, 120, PAUSED)),
    ],
)
def test_standing__a_label_says_ahead_of_what_is_ahead(expected: str, shown: str) -> None:
    assert shown == expected


def test_standing__without_a_leader_or_a_log_end_nothing_is_ahead_or_behind() -> None:
    assert label(4, 150, leader=-1) == "out of the ISR"
    assert label(4, None) == "out of the ISR"
    assert label(4, 150, at=None) == "out of the ISR"


def test_standing__every_state_has_its_label() -> None:
    labels = [
        label_of(Standing(member, process)) for process in ProcessState for member in IsrMembership
    ]
    assert len(set(labels)) == len(labels)
    assert sum(map(len, BASE_LABELS.values())) == len(labels)
