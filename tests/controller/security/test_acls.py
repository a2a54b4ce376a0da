"""CreateAcls and DeleteAcls as the controller decides them; the answers are Kafka 4.4.0's."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.events.security import AclsChanged
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from kcluster.security.authorizer import STANDARD_AUTHORIZER
from tests.controller.harness import Controller
from tests.rig.secured import acl

GOOD: dict[str, Any] = {
    "resource_type": 2, "resource_name": "t", "resource_pattern_type": 3,
    "principal": "User:alice", "host": "*", "operation": 3, "permission_type": 3,
}  # fmt: skip
ANYTHING: dict[str, Any] = {
    "resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 1,
    "principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1,
}  # fmt: skip


@pytest.fixture
def controller() -> Controller:
    return Controller(authorizer_class_name=STANDARD_AUTHORIZER)


def create(t: Controller, *changes: dict[str, Any]) -> list[tuple[int, str | None]]:
    creation = m.CreateAclsRequest.AclCreation
    request = m.CreateAclsRequest([creation(**GOOD | change) for change in changes])
    return [(row.error_code, row.error_message) for row in t.ask(1, request).results]


def delete(t: Controller, *changes: dict[str, Any]) -> Any:
    wanted = m.DeleteAclsRequest.DeleteAclsFilter
    request = m.DeleteAclsRequest([wanted(**ANYTHING | change) for change in changes])
    return t.ask(1, request).filter_results


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"resource_type": 4, "resource_name": "x"},
            "The only valid name for the CLUSTER resource is kafka-cluster",
        ),
        ({"resource_name": ""}, "Invalid empty resource name"),
        ({"resource_name": "", "host": ""}, "Invalid empty resource name"),
        ({"resource_type": 99}, "Invalid resourceType UNKNOWN"),
        ({"resource_pattern_type": 77}, "Invalid patternType UNKNOWN"),
        ({"operation": 77}, "Invalid operation UNKNOWN"),
        ({"permission_type": 88}, "Invalid permissionType UNKNOWN"),
        (
            {"principal": "alice"},
            "Could not parse principal from `alice` (no colon is present separating the principal"
            " type from the principal name)",
        ),
        ({"host": ""}, "Host pattern cannot be null or empty"),
    ],
)
def test_create__refuses_one_acl_and_creates_the_others(
    controller: Controller, change: dict[str, Any], text: str
) -> None:
    answer = create(controller, change, {"resource_name": "other"})
    assert answer == [(ErrorCode.INVALID_REQUEST, text), (ErrorCode.NONE, "")]
    assert len(controller.node.image.acls) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"resource_type": 1},
        {"resource_pattern_type": 1},
        {"resource_pattern_type": 2},
        {"operation": 1},
        {"permission_type": 1},
    ],
)
def test_create__a_code_of_filters_fails_the_whole_request(
    controller: Controller, change: dict[str, Any]
) -> None:
    failed = (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert create(controller, {}, change) == [failed, failed]
    assert not len(controller.node.image.acls)


@pytest.mark.parametrize(
    "change",
    [
        {"operation": 15},
        {"principal": ":"},
        {"principal": "Group:x"},
        {"host": "nonsense"},
        {"resource_name": "*", "resource_pattern_type": 4},
        {"operation": 2},
    ],
)
def test_create__accepts_what_makes_little_sense(
    controller: Controller, change: dict[str, Any]
) -> None:
    assert create(controller, change) == [(ErrorCode.NONE, "")]


def test_create__the_same_twice_is_one_acl_and_one_event(controller: Controller) -> None:
    assert create(controller, {}, {}) == [(ErrorCode.NONE, "")] * 2
    assert create(controller, {}) == [(ErrorCode.NONE, "")]
    events = [note.event for note in controller.notes if isinstance(note.event, AclsChanged)]
    assert events == [AclsChanged((acl("alice", "read", topic="t"),), ())]
    assert list(controller.node.image.acls.by_id.values()) == [acl("alice", "read", topic="t")]


def test_delete__every_filter_is_answered_with_what_it_finds(controller: Controller) -> None:
    create(controller, {}, {"principal": "User:bob"}, {"resource_name": "log"})
    found = delete(controller, {"resource_name_filter": "t"}, {"principal_filter": "User:bob"})
    names = [[row.principal for row in result.matching_acls] for result in found]
    assert names == [["User:alice", "User:bob"], ["User:bob"]]
    assert [result.error_message for result in found] == [None, None]
    (rest,) = delete(controller, {})
    assert [row.resource_name for row in rest.matching_acls] == ["log"]
    assert not len(controller.node.image.acls)
    events = [note.event for note in controller.notes if isinstance(note.event, AclsChanged)]
    assert [len(event.deleted) for event in events] == [0, 2, 1]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"resource_type_filter": 99}, "Unknown patternFilter."),
        ({"pattern_type_filter": 99}, "Unknown patternFilter."),
        ({"operation": 99}, "Unknown entryFilter."),
        ({"permission_type": 99}, "Unknown entryFilter."),
    ],
)
def test_delete__refuses_codes_of_later_versions(
    controller: Controller, change: dict[str, Any], text: str
) -> None:
    create(controller, {})
    refused, done = delete(controller, change, {"resource_name_filter": "no"})
    assert (refused.error_code, refused.error_message) == (ErrorCode.INVALID_REQUEST, text)
    assert (done.error_code, done.matching_acls) == (ErrorCode.NONE, [])


def test_delete__too_much_deletes_nothing(
    controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kcluster.controller.security.acls.MAX_RECORDS", 2)
    create(controller, *({"resource_name": name} for name in "abc"))
    (refused,) = delete(controller, {})
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert refused.error_message.startswith("Cannot remove more than 2 acls")
    assert len(controller.node.image.acls) == 3


def test_without_an_authorizer__the_controller_knows_no_acls() -> None:
    request = m.CreateAclsRequest([m.CreateAclsRequest.AclCreation(**GOOD)])
    assert Controller().ask(1, request) is None
