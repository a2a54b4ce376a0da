from __future__ import annotations

import pytest

from kcluster.controller.membership.liveness import BrokerState, Session, Sessions

FENCED, UNFENCED = BrokerState.FENCED, BrokerState.UNFENCED
GOING, SHUTDOWN_NOW = BrokerState.CONTROLLED_SHUTDOWN, BrokerState.SHUTDOWN_NOW


def session(state: BrokerState, metadata_offset: int) -> Session:
    return Session(
        1,
        registration_offset=10,
        fenced=state is FENCED,
        metadata_offset=metadata_offset,
        controlled_shutdown_offset=20 if state is GOING else None,
    )


# state, applied offset, want_fence, want_shut_down, leads, slowest other broker's offset -> next
@pytest.mark.parametrize(
    ("state", "offset", "fence", "shut_down", "leads", "other", "expected"),
    [
        (FENCED, 9, False, False, False, 30, FENCED),
        (FENCED, 10, False, False, False, 30, UNFENCED),
        (FENCED, 10, True, False, False, 30, FENCED),
        (FENCED, 9, False, True, False, 30, SHUTDOWN_NOW),
        (UNFENCED, 10, False, False, True, 30, UNFENCED),
        (UNFENCED, 10, True, False, True, 30, FENCED),
        (UNFENCED, 10, True, True, True, 30, SHUTDOWN_NOW),
        (UNFENCED, 10, False, True, True, 30, GOING),
        (UNFENCED, 10, False, True, False, 30, SHUTDOWN_NOW),
        (GOING, 30, False, True, False, 19, GOING),
        (GOING, 10, False, True, False, 20, SHUTDOWN_NOW),
        (GOING, 10, False, True, True, 20, GOING),
        (GOING, 10, False, True, False, None, SHUTDOWN_NOW),
    ],
)
def test_liveness__next_state(
    state: BrokerState,
    offset: int,
    fence: bool,
    shut_down: bool,
    leads: bool,
    other: int | None,
    expected: BrokerState,
) -> None:
    sessions = Sessions(9_000)
    if other is not None:
        another = sessions.register(2, 1)
        another.fenced, another.metadata_offset = False, other
    mine = session(state, offset)
    assert mine.state is state
    assert sessions.next_state(mine, fence, shut_down, leads) is expected


def test_liveness__sessions_expire_the_longest_silent_first() -> None:
    sessions = Sessions(9_000)
    for broker, contact_ms in ((1, 500), (2, 100), (3, 5_000)):
        sessions.register(broker, 0).last_contact_ms = contact_ms
    assert sessions.next_expiry_ms() == 9_100
    assert sessions.expired(9_099) is None
    order = []
    while (expired := sessions.expired(9_500)) is not None:
        order.append(expired.broker_id)
    assert order == [2, 1]
    assert sessions.next_expiry_ms() == 14_000
    assert [sessions.is_valid(broker, 9_500) for broker in (1, 2, 3, 4)] == [
        False,
        False,
        True,
        False,
    ]


def test_liveness__without_a_heartbeat_there_is_no_valid_session() -> None:
    sessions = Sessions(9_000)
    sessions.register(1, 0)
    assert not sessions.is_valid(1, 0)
    assert sessions.next_expiry_ms() is None
