"""ACLs: the rights that principals have, or are denied, on resources; filters; an index of ACLs.

Owns: these values with Kafka's codes, and the search for the ACLs of a resource.  Never: decides
whether a request is allowed (authorizer.py does).
Kafka: AclBinding, AclBindingFilter, ResourcePatternFilter, StandardAcl, AclCache; KIP-11, KIP-290.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum, auto
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import Struct

if TYPE_CHECKING:
    from kcluster.protocol import messages as m

WILDCARD: Final = "*"
"""Every resource (as a literal name), every host, or every user (in `User:*`)."""
WILDCARD_PRINCIPAL: Final = "User:*"
CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the one resource of type CLUSTER."""


class _Coded(StrEnum):
    """An enumeration with Kafka's codes: the code of a member is its position."""

    @property
    def code(self) -> int:
        """The code on the wire."""
        return _CODES[type(self)][self]


class AclResource(_Coded):
    """The type of a resource.  UNKNOWN and ANY occur only in requests."""

    UNKNOWN = auto()
    ANY = auto()
    TOPIC = auto()
    GROUP = auto()
    CLUSTER = auto()
    TRANSACTIONAL_ID = auto()
    DELEGATION_TOKEN = auto()
    USER = auto()


class PatternType(_Coded):
    """How a resource's name is compared with an ACL's.  ANY and MATCH stand only in filters: MATCH
    finds every ACL that concerns a resource of the given name."""

    UNKNOWN = auto()
    ANY = auto()
    MATCH = auto()
    LITERAL = auto()
    PREFIXED = auto()


class AclOperation(_Coded):
    """What a client does to a resource.  UNKNOWN and ANY stand only in requests."""

    UNKNOWN = auto()
    ANY = auto()
    ALL = auto()
    READ = auto()
    WRITE = auto()
    CREATE = auto()
    DELETE = auto()
    ALTER = auto()
    DESCRIBE = auto()
    CLUSTER_ACTION = auto()
    DESCRIBE_CONFIGS = auto()
    ALTER_CONFIGS = auto()
    IDEMPOTENT_WRITE = auto()
    CREATE_TOKENS = auto()
    DESCRIBE_TOKENS = auto()
    TWO_PHASE_COMMIT = auto()


class AclPermission(_Coded):
    """Whether an ACL allows or denies.  Kafka: AclPermissionType."""

    UNKNOWN = auto()
    ANY = auto()
    DENY = auto()
    ALLOW = auto()


Code = TypeVar("Code", AclResource, PatternType, AclOperation, AclPermission)


_CODES: Final[dict[type, dict[str, int]]] = {
    kind: {member: code for code, member in enumerate(kind)}
    for kind in (AclResource, PatternType, AclOperation, AclPermission)
}


def from_code(kind: type[Code], code: int) -> Code:
    """The member with a code of the wire; UNKNOWN for a code of a later version."""
    members = list(kind)
    return members[code if 0 <= code < len(members) else 0]


OPERATIONS: Final = {
    AclResource.TOPIC: (
        AclOperation.READ, AclOperation.WRITE, AclOperation.CREATE, AclOperation.DESCRIBE,
        AclOperation.DELETE, AclOperation.ALTER, AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    AclResource.GROUP: (
        AclOperation.READ, AclOperation.DESCRIBE, AclOperation.DELETE,
        AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS,
    ),
    AclResource.CLUSTER: (
        AclOperation.CREATE, AclOperation.CLUSTER_ACTION, AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS, AclOperation.IDEMPOTENT_WRITE, AclOperation.ALTER,
        AclOperation.DESCRIBE,
    ),
    AclResource.TRANSACTIONAL_ID: (
        AclOperation.DESCRIBE, AclOperation.WRITE, AclOperation.TWO_PHASE_COMMIT,
    ),
    AclResource.DELEGATION_TOKEN: (AclOperation.DESCRIBE,),
    AclResource.USER: (AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS),
}  # fmt: skip
"""The operations that each type of resource knows.  Kafka: AclEntry.supportedOperations."""


def operation_bits(operations: tuple[AclOperation, ...]) -> int:
    """A set of operations as the bit field `authorized_operations` of responses."""
    return sum(1 << operation.code for operation in operations)


class Acl(Struct, frozen=True):
    """A right of `principal` (`User:alice`) from `host`, or its denial.  Kafka: StandardAcl."""

    resource_type: AclResource
    resource_name: str
    pattern_type: PatternType
    principal: str
    host: str
    operation: AclOperation
    permission: AclPermission

    @property
    def sort_key(self) -> tuple[int, tuple[int, ...], int, int, str, str, int]:
        """Kafka's order of ACLs: by type, then by name backwards."""
        name = tuple(-unit for unit in self.resource_name.encode("utf-16-be", "surrogatepass"))
        return (
            self.resource_type.code, (*name, 1), self.pattern_type.code, self.operation.code,
            self.principal, self.host, self.permission.code,
        )  # fmt: skip


class AclFilter(Struct, frozen=True):
    """The ACLs that a request names; None and ANY match everything.  Kafka: AclBindingFilter."""

    resource_type: AclResource = AclResource.ANY
    resource_name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: AclPermission = AclPermission.ANY

    def matches(self, acl: Acl) -> bool:
        """Whether the filter finds an ACL."""
        return (
            self.resource_type in (AclResource.ANY, acl.resource_type)
            and self._matches_name(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (AclOperation.ANY, acl.operation)
            and self.permission in (AclPermission.ANY, acl.permission)
        )

    def _matches_name(self, acl: Acl) -> bool:
        pattern, name = self.pattern_type, self.resource_name
        if pattern not in (PatternType.ANY, PatternType.MATCH, acl.pattern_type):
            return False
        if name is None:
            return True
        if pattern is not PatternType.MATCH:
            return name == acl.resource_name
        if acl.pattern_type is PatternType.PREFIXED:
            return name.startswith(acl.resource_name)
        return acl.resource_name in (name, WILDCARD)


def filter_of(wanted: m.DescribeAclsRequest | m.DeleteAclsRequest.DeleteAclsFilter) -> AclFilter:
    """The filter in a request."""
    return AclFilter(
        from_code(AclResource, wanted.resource_type_filter),
        wanted.resource_name_filter,
        from_code(PatternType, wanted.pattern_type_filter),
        wanted.principal_filter,
        wanted.host_filter,
        from_code(AclOperation, wanted.operation),
        from_code(AclPermission, wanted.permission_type),
    )


_Patterns = dict[str, dict[Acl, None]]


class AclIndex:
    """The ACLs of an image, found by the resource that a client asks for.

    A lookup tries one prefix for each distinct length of prefixes, however many ACLs there are."""

    __slots__ = ("_literal", "_prefix_lengths", "_prefixed", "by_id")

    def __init__(self) -> None:
        self.by_id: dict[bytes, Acl] = {}
        self._literal: dict[AclResource, _Patterns] = {}
        self._prefixed: dict[AclResource, _Patterns] = {}
        self._prefix_lengths: dict[AclResource, dict[int, int]] = {}
        """How many different prefixes have each length, by type."""

    def __len__(self) -> int:
        return len(self.by_id)

    def add(self, acl_id: bytes, acl: Acl) -> None:
        """Add an ACL that the index does not hold yet."""
        assert acl_id not in self.by_id, acl
        self.by_id[acl_id] = acl
        patterns = self._patterns(acl)
        found = patterns.get(acl.resource_name)
        if found is None:
            found = patterns[acl.resource_name] = {}
            self._count_prefix(acl, 1)
        found[acl] = None

    def remove(self, acl_id: bytes) -> None:
        """Remove an ACL."""
        acl = self.by_id.pop(acl_id)
        patterns = self._patterns(acl)
        del patterns[acl.resource_name][acl]
        if not patterns[acl.resource_name]:
            del patterns[acl.resource_name]
            self._count_prefix(acl, -1)

    def concerning(self, resource_type: AclResource, name: str) -> Iterator[Acl]:
        """The ACLs that apply to a resource, of any principal: literal, prefixed and wildcard
        ones."""
        literal = self._literal.get(resource_type)
        if literal:
            yield from literal.get(name, ())
        for length in self._prefix_lengths.get(resource_type, ()):
            if length <= len(name):
                yield from self._prefixed[resource_type].get(name[:length], ())
        if literal and name != WILDCARD:
            yield from literal.get(WILDCARD, ())

    def of_type(self, resource_type: AclResource) -> Iterator[Acl]:
        """The ACLs about resources of a type."""
        for patterns in (self._literal, self._prefixed):
            for acls in patterns.get(resource_type, {}).values():
                yield from acls

    def found_by(self, wanted: AclFilter) -> list[Acl]:
        """The ACLs that a filter finds, in Kafka's order."""
        found = [acl for acl in self.by_id.values() if wanted.matches(acl)]
        return sorted(found, key=lambda acl: acl.sort_key)

    def _patterns(self, acl: Acl) -> _Patterns:
        is_prefix = acl.pattern_type is PatternType.PREFIXED
        by_type = self._prefixed if is_prefix else self._literal
        return by_type.setdefault(acl.resource_type, {})

    def _count_prefix(self, acl: Acl, change: int) -> None:
        if acl.pattern_type is PatternType.PREFIXED:
            lengths = self._prefix_lengths.setdefault(acl.resource_type, {})
            length = len(acl.resource_name)
            lengths[length] = lengths.get(length, 0) + change
            if not lengths[length]:
                del lengths[length]
