"""The decisions of StandardAuthorizer, with their reasons."""

from __future__ import annotations

import pytest

from kcluster.principals import ANONYMOUS, USER_TYPE, Principal
from kcluster.security.acls import Acl, AclIndex, AclOperation, AclResource
from kcluster.security.authorizer import (
    Grounds,
    Requester,
    StandardAuthorizer,
    authorizer_of,
    super_users_of,
)
from tests.rig.secured import acl, deny

ALICE = Requester(Principal(USER_TYPE, "alice"), "10.0.0.5")
STANDARD = StandardAuthorizer(frozenset({"User:admin"}))
OPEN = StandardAuthorizer(allows_without_acl=True)
ORDERS = (AclResource.TOPIC, "orders")


def index_of(*acls: Acl) -> AclIndex:
    index = AclIndex()
    for number, each in enumerate(acls):
        index.add(bytes([number]), each)
    return index


def may(operation: str, *acls: Acl, name: str = "orders") -> bool:
    index = index_of(*acls)
    operation_ = AclOperation(operation)
    return STANDARD.authorize(index, ALICE, operation_, AclResource.TOPIC, name).is_allowed


@pytest.mark.parametrize(
    ("acls", "allowed"),
    [
        ([], False),
        ([acl("alice", "read", topic="orders")], True),
        ([acl("alice", "read", topic="ord*")], True),
        ([acl("alice", "read", topic="*")], True),
        ([acl("*", "read", topic="orders")], True),
        ([acl("alice", "all", topic="orders")], True),
        ([acl("alice", "read", topic="orders", host="10.0.0.5")], True),
        ([acl("alice", "read", topic="orders", host="10.0.0.6")], False),
        ([acl("alice", "write", topic="orders")], False),
        ([acl("bob", "read", topic="orders")], False),
        ([acl("Group:alice", "read", topic="orders")], False),
        ([acl("Group:*", "read", topic="orders")], False),
        ([acl("alice", "read", group="orders")], False),
        ([acl("alice", "read", topic="order")], False),
        ([acl("alice", "read", topic="orders2*")], False),
        ([acl("alice", "all", topic="*"), deny("*", "read", topic="ord*")], False),
        ([acl("alice", "read", topic="orders"), deny("alice", "all", topic="*")], False),
        ([acl("alice", "read", topic="orders"), deny("alice", "write", topic="orders")], True),
        ([acl("alice", "read", topic="*"), deny("alice", "read", topic="*", host="1.1.1.1")], True),
    ],
)
def test_authorize__deny_is_stronger_than_allow_and_nothing_is_denied(
    acls: list[Acl], allowed: bool
) -> None:
    assert may("read", *acls) is allowed
    assert may("read", *reversed(acls)) is allowed


@pytest.mark.parametrize("implying", ["describe", "read", "write", "delete", "alter", "all"])
def test_authorize__other_permissions_include_describe_and_denials_do_not(implying: str) -> None:
    assert may("describe", acl("alice", implying, topic="orders"))
    allowed = acl("alice", "describe", topic="orders")
    denied = deny("alice", implying, topic="orders")
    assert may("describe", allowed, denied) is (implying not in ("describe", "all"))


@pytest.mark.parametrize("operation", ["create", "describe_configs", "alter_configs"])
def test_authorize__these_do_not_include_describe(operation: str) -> None:
    assert not may("describe", acl("alice", operation, topic="orders"))


def test_authorize__alter_configs_includes_describe_configs() -> None:
    assert may("describe_configs", acl("alice", "alter_configs", topic="orders"))
    assert not may("describe_configs", acl("alice", "alter", topic="orders"))


def test_authorize__the_reason_names_the_acl() -> None:
    index = index_of(acl("alice", "read", topic="*"), deny("alice", "read", topic="ord*"))
    decision = STANDARD.authorize(index, ALICE, AclOperation.READ, *ORDERS)
    assert (decision.grounds, decision.acl) == (Grounds.ACL, deny("alice", "read", topic="ord*"))
    decision = STANDARD.authorize(index, ALICE, AclOperation.WRITE, *ORDERS)
    assert (decision.grounds, decision.acl) == (Grounds.NO_PERMISSION, None)
    decision = STANDARD.authorize(index, ALICE, AclOperation.READ, AclResource.GROUP, "orders")
    assert (decision.grounds, decision.acl) == (Grounds.NO_ACL, None)


def test_authorize__super_users_are_not_denied() -> None:
    admin = Requester(Principal(USER_TYPE, "admin"), "10.0.0.5")
    index = index_of(deny("*", "all", topic="*"))
    decision = STANDARD.authorize(index, admin, AclOperation.READ, *ORDERS)
    assert (decision.is_allowed, decision.grounds) == (True, Grounds.SUPER_USER)
    assert STANDARD.authorize_any(index, admin, AclOperation.WRITE, AclResource.TOPIC)


def test_authorize__everyone_is_allowed_only_what_no_acl_concerns() -> None:
    index = index_of(acl("bob", "read", topic="ord*"))
    assert OPEN.authorize(index, ALICE, AclOperation.READ, AclResource.TOPIC, "log").is_allowed
    assert not OPEN.authorize(index, ALICE, AclOperation.READ, *ORDERS).is_allowed


@pytest.mark.parametrize(
    ("acls", "allowed"),
    [
        ([], False),
        ([acl("alice", "write", topic="log")], True),
        ([acl("alice", "write", topic="l*")], True),
        ([acl("alice", "all", topic="*")], True),
        ([acl("alice", "write", topic="log", host="10.0.0.6")], False),
        ([acl("alice", "read", topic="log")], False),
        ([acl("alice", "write", topic="log"), deny("alice", "write", topic="log")], False),
        ([acl("alice", "write", topic="log"), deny("alice", "write", topic="l*")], False),
        ([acl("alice", "write", topic="lo*"), deny("alice", "all", topic="l*")], False),
        ([acl("alice", "write", topic="l*"), deny("alice", "write", topic="log")], True),
        ([acl("alice", "write", topic="l*"), deny("alice", "write", topic="*")], False),
        ([acl("alice", "write", topic="*"), deny("alice", "write", topic="l*")], True),
    ],
)
def test_authorize_any__a_right_that_denials_leave(acls: list[Acl], allowed: bool) -> None:
    index = index_of(*acls)
    any_topic = STANDARD.authorize_any(index, ALICE, AclOperation.WRITE, AclResource.TOPIC)
    assert any_topic is allowed


def test_authorized_operations__are_bits() -> None:
    index = index_of(acl("alice", "read", topic="orders"), acl("*", "alter_configs", topic="*"))
    bits = STANDARD.authorized_operations(index, ALICE, *ORDERS)
    wanted = ("read", "describe", "describe_configs", "alter_configs")
    assert bits == sum(1 << AclOperation(each).code for each in wanted)


def test_configs__name_the_authorizer_and_its_super_users() -> None:
    assert authorizer_of("", "User:admin", True) is None
    assert super_users_of(" User:a ; User:CN=b,O=c;; ") == {"User:a", "User:CN=b,O=c"}
    assert str(ANONYMOUS) == "User:ANONYMOUS"
