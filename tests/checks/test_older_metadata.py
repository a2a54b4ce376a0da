"""Which broker refused a client before a change had reached it."""

from __future__ import annotations

from kcluster.checks.older_metadata import late_brokers
from kcluster.contract import Event, Note, NoteId
from kcluster.events import (
    AclsApplied,
    AclsChanged,
    AuthenticationFailed,
    AuthorizationDenied,
    ConfigChanged,
    CredentialsApplied,
)
from kcluster.events.topics import ResourceType
from kcluster.security.acls import AclOperation, AclResource
from kcluster.security.sasl.exchange import LoginProblem

FIRST, SECOND = (3000, 1), (3000, 2)


def late(*events: tuple[Event, NoteId | None]) -> object:
    """What follows from events at the controller, and at broker 1, with their causes."""
    notes = [
        Note((3000 if isinstance(event, CHANGES) else 1, number), 0, event, cause)
        for number, (event, cause) in enumerate(events, 1)
    ]
    return late_brokers(notes, {100_000: "shop"})


CHANGES = (AclsChanged, ConfigChanged)
PASSWORD = ConfigChanged(ResourceType.USER, "alice", {"SCRAM-SHA-256": "[iterations=4096]"})
KNOWN = CredentialsApplied(1, ("alice",))
WRONG = LoginProblem.WRONG_PASSWORD
REFUSED = AuthenticationFailed(1, "CLIENT", "PLAIN", "::1", "client-100000", WRONG, "alice")
DENIED = AuthorizationDenied(
    node=1,
    principal="User:alice",
    client_host="::1",
    client_id="java",
    operation=AclOperation.READ,
    resource_type=AclResource.TOPIC,
    resource="orders",
    acl=None,
    has_acls=False,
    metadata_offset=7,
    times=1,
)


def test_late__a_refusal_before_the_change_arrives() -> None:
    assert late((PASSWORD, None), (REFUSED, None)) == {("shop", True): (1,)}
    assert late((PASSWORD, None), (KNOWN, FIRST), (REFUSED, None)) == {}
    assert late((REFUSED, None), (PASSWORD, None)) == {}


def test_late__a_later_change_covers_those_before_it() -> None:
    assert late((PASSWORD, None), (PASSWORD, None), (KNOWN, SECOND), (REFUSED, None)) == {}
    after_one = late((PASSWORD, None), (PASSWORD, None), (KNOWN, FIRST), (REFUSED, None))
    assert after_one == {("shop", True): (1,)}


def test_late__rights_and_passwords_are_apart() -> None:
    changed, applied = AclsChanged((), ()), AclsApplied(1, 1, 0, 1)
    assert late((PASSWORD, None), (DENIED, None)) == {}
    assert late((changed, None), (DENIED, None)) == {("java", False): (1,)}
    assert late((changed, None), (applied, FIRST), (DENIED, None)) == {}
