"""ACLs: filters, and the index by which the ACLs of a resource are found."""

from __future__ import annotations

from random import Random

import pytest

from kcluster.security.acls import (
    OPERATIONS,
    Acl,
    AclFilter,
    AclIndex,
    AclOperation,
    AclPermission,
    AclResource,
    PatternType,
    from_code,
    operation_bits,
)
from tests.rig.secured import acl

ORDERS = acl("alice", "read", topic="orders")
ORDERS_PREFIX = acl("alice", "read", topic="ord*")
ANY_TOPIC = acl("alice", "read", topic="*")
GROUP = acl("alice", "read", group="orders")
MATCH = PatternType.MATCH
TOPIC = AclResource.TOPIC


@pytest.mark.parametrize(
    ("kind", "last"), [(AclResource, 7), (PatternType, 4), (AclOperation, 15), (AclPermission, 3)]
)
def test_codes__are_kafkas_and_others_are_unknown(kind: type[AclResource], last: int) -> None:
    assert [member.code for member in kind] == list(range(last + 1))
    assert all(from_code(kind, member.code) is member for member in kind)
    assert from_code(kind, last + 1) is from_code(kind, -1) is kind.UNKNOWN


def test_operation_bits__are_kafkas() -> None:
    bits = [operation_bits(OPERATIONS[kind]) for kind in OPERATIONS]
    assert bits == [3576, 3400, 8096, 33040, 256, 24576]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (AclFilter(), [ORDERS, ORDERS_PREFIX, ANY_TOPIC, GROUP]),
        (AclFilter(TOPIC), [ORDERS, ORDERS_PREFIX, ANY_TOPIC]),
        (AclFilter(TOPIC, "orders"), [ORDERS]),
        (AclFilter(TOPIC, "ord"), [ORDERS_PREFIX]),
        (AclFilter(TOPIC, "ord", PatternType.LITERAL), []),
        (AclFilter(TOPIC, "*"), [ANY_TOPIC]),
        (AclFilter(TOPIC, "orders", MATCH), [ORDERS, ORDERS_PREFIX, ANY_TOPIC]),
        (AclFilter(TOPIC, "ordinary", MATCH), [ORDERS_PREFIX, ANY_TOPIC]),
        (AclFilter(TOPIC, "or", MATCH), [ANY_TOPIC]),
        (AclFilter(resource_name="orders"), [ORDERS, GROUP]),
        (AclFilter(principal="User:bob"), []),
        (AclFilter(host="*", operation=AclOperation.READ, permission=AclPermission.DENY), []),
        (AclFilter(AclResource.UNKNOWN), []),
        (AclFilter(pattern_type=PatternType.UNKNOWN), []),
    ],
)
def test_filter__finds_what_kafkas_finds(wanted: AclFilter, found: list[Acl]) -> None:
    assert [each for each in (ORDERS, ORDERS_PREFIX, ANY_TOPIC, GROUP) if wanted.matches(each)] == (
        found
    )


def test_index__forgets_what_is_removed() -> None:
    index = AclIndex()
    for number, each in enumerate((ORDERS, ORDERS_PREFIX, ANY_TOPIC, GROUP)):
        index.add(bytes([number]), each)
    assert list(index.concerning(TOPIC, "orders")) == [ORDERS, ORDERS_PREFIX, ANY_TOPIC]
    assert list(index.concerning(TOPIC, "*")) == [ANY_TOPIC]
    index.remove(b"\1")
    assert list(index.concerning(TOPIC, "ordinary")) == [ANY_TOPIC]
    for number in (0, 2, 3):
        index.remove(bytes([number]))
    assert not len(index)
    assert not list(index.concerning(TOPIC, "orders"))


def test_index__lists_in_kafkas_order() -> None:
    """By type, then by name backwards: Kafka finds prefixes by walking on from a name."""
    index = AclIndex()
    named = [acl("a", "read", topic=name) for name in ("f", "foo*", "foobar", "gar", "foob", "*")]
    for number, each in enumerate([GROUP, *named]):
        index.add(bytes([number]), each)
    names = [each.resource_name for each in index.found_by(AclFilter())]
    assert names == ["gar", "foobar", "foob", "foo", "f", "*", "orders"]


def test_index__finds_what_a_look_at_every_acl_finds() -> None:
    rng = Random(7)
    index = AclIndex()
    acls = set()
    for number in range(300):
        name = "".join(rng.choice("ab") for _ in range(rng.randrange(1, 6)))
        each = acl(rng.choice("xyz"), "read", topic=rng.choice((name, f"{name}*", "*")))
        if each not in acls:
            acls.add(each)
            index.add(number.to_bytes(2, "big"), each)
    for name in ("a", "ab", "abab", "bbbbbb", "c"):
        wanted = AclFilter(TOPIC, name, MATCH)
        assert set(index.concerning(TOPIC, name)) == {each for each in acls if wanted.matches(each)}
