"""AlterClientQuotas as the controller decides it: entities, keys, values, duplicates."""

from __future__ import annotations

import pytest

from kcluster.metadata.records import QuotaEntity
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from tests.controller.harness import Controller

Names = dict[str, str | None]
Changes = list[tuple[str, float | None]]

ALICE: Names = {"user": "alice"}
NOBODY: Names = {}
RATE = "producer_byte_rate"
CONNECTIONS = "connection_creation_rate"
ALICE_KEY = (("user", "alice"),)


def alter(
    t: Controller, *entries: tuple[Names, Changes], validate_only: bool = False
) -> list[ErrorCode]:
    R = m.AlterClientQuotasRequest
    body = R(
        [
            R.EntryData(
                [R.EntityData(kind, name) for kind, name in names.items()],
                [R.OpData(key, value or 0.0, value is None) for key, value in changes],
            )
            for names, changes in entries
        ],
        validate_only,
    )
    return [ErrorCode(entry.error_code) for entry in t.ask(1, body).entries]


def quotas(t: Controller) -> dict[QuotaEntity, dict[str, float]]:
    return t.node.image.client_quotas


def test_alter__sets_changes_and_removes() -> None:
    t = Controller()
    assert alter(t, (ALICE, [(RATE, 5.0), ("request_percentage", 0.5)])) == [ErrorCode.NONE]
    assert quotas(t) == {ALICE_KEY: {RATE: 5.0, "request_percentage": 0.5}}
    alter(t, (ALICE, [(RATE, 6.0), ("request_percentage", None)]))
    assert quotas(t) == {ALICE_KEY: {RATE: 6.0}}
    end = t.node.end_offset
    assert alter(t, (ALICE, [(RATE, 6.0), ("nosuch", None)])) == [ErrorCode.NONE]
    assert t.node.end_offset == end, "nothing has changed"
    alter(t, (ALICE, [(RATE, None)]))
    assert quotas(t) == {}


def test_alter__a_dry_run_changes_nothing() -> None:
    t = Controller()
    assert alter(t, (ALICE, [(RATE, 5.0)]), validate_only=True) == [ErrorCode.NONE]
    assert quotas(t) == {}


@pytest.mark.parametrize(
    ("names", "key"),
    [
        ({"user": None}, RATE),
        ({"client-id": "c"}, "consumer_byte_rate"),
        ({"user": None, "client-id": None}, "controller_mutation_rate"),
        ({"ip": "10.0.0.1"}, CONNECTIONS),
        ({"ip": None}, CONNECTIONS),
        ({"ip": "::1"}, CONNECTIONS),
        ({"ip": "localhost"}, CONNECTIONS),
    ],
)
def test_alter__valid_entities(names: Names, key: str) -> None:
    t = Controller()
    assert alter(t, (names, [(key, 1.0)])) == [ErrorCode.NONE]
    assert len(quotas(t)) == 1


@pytest.mark.parametrize(
    ("names", "key"),
    [
        (NOBODY, RATE),
        ({"user": ""}, RATE),
        ({"group": "g"}, RATE),
        ({"ip": "10.0.0"}, CONNECTIONS),
        ({"ip": "10.0.0.1", "user": "a"}, CONNECTIONS),
        ({"ip": "10.0.0.1"}, RATE),
        (ALICE, CONNECTIONS),
        (ALICE, "nosuch"),
    ],
)
def test_alter__invalid_entities(names: Names, key: str) -> None:
    t = Controller()
    assert alter(t, (names, [(key, 1.0)])) == [ErrorCode.INVALID_REQUEST]
    assert quotas(t) == {}


@pytest.mark.parametrize(
    ("names", "key", "value", "is_fine"),
    [
        (ALICE, RATE, 0.0, False),
        (ALICE, RATE, -1.0, False),
        (ALICE, RATE, 1.5, False),
        (ALICE, RATE, 1e19, False),
        (ALICE, RATE, 9e18, True),
        (ALICE, "request_percentage", 0.25, True),
        (ALICE, "request_percentage", 1e300, True),
        ({"ip": None}, CONNECTIONS, 3e9, False),
        ({"ip": None}, CONNECTIONS, 2e9, True),
    ],
)
def test_alter__values(names: Names, key: str, value: float, is_fine: bool) -> None:
    wanted = ErrorCode.NONE if is_fine else ErrorCode.INVALID_REQUEST
    assert alter(Controller(), (names, [(key, value)])) == [wanted]


def test_alter__an_entity_fails_as_a_whole_and_no_other_does() -> None:
    t = Controller()
    bob: Names = {"user": "bob"}
    codes = alter(t, (ALICE, [(RATE, 1.0), ("nosuch", 1.0)]), (bob, [(RATE, 2.0)]))
    assert sorted(codes) == [ErrorCode.NONE, ErrorCode.INVALID_REQUEST]
    assert quotas(t) == {(("user", "bob"),): {RATE: 2.0}}


def test_alter__an_entity_named_twice_is_refused_yet_its_first_change_applied() -> None:
    t = Controller()
    changes: tuple[Changes, Changes] = [(RATE, 1.0)], [(RATE, 2.0)]
    assert alter(t, *((ALICE, c) for c in changes)) == [ErrorCode.INVALID_REQUEST]
    assert quotas(t) == {ALICE_KEY: {RATE: 1.0}}


def test_alter__a_key_named_twice_is_refused() -> None:
    t = Controller()
    assert alter(t, (ALICE, [(RATE, 1.0), (RATE, 2.0)])) == [ErrorCode.INVALID_REQUEST]
    assert quotas(t) == {}
