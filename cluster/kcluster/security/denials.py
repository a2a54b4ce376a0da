"""The denials of one node as events, which are few even if a client is denied in a loop.

Owns: which denials are noted.  Never: denies.
Kafka: the audit log kafka.authorizer.logger, which has a line for each.
"""

from __future__ import annotations

from typing import Final

from kcluster.security.acls import AclOperation, AclResource
from kcluster.security.rights import Denial

MAX_KEPT: Final = 1_000
"""The maximum number of denials that are counted separately; further ones are counted together,
by principal, operation and type of resource."""

_Key = tuple[str, str, AclOperation, AclResource, str | None, str]


class DenialCounts:
    """How often each denial has occurred since the ACLs last changed."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[_Key, int] = {}

    def clear(self) -> None:
        """Begin again: the ACLs have changed."""
        self._counts.clear()

    def count(self, denial: Denial) -> int:
        """Count a denial; returns how often it has occurred if that is worth an event, else 0."""
        requester = denial.requester
        key: _Key = (
            str(requester.principal), requester.host, denial.operation, denial.resource_type,
            denial.name, requester.client_id,
        )  # fmt: skip
        if key not in self._counts and len(self._counts) >= MAX_KEPT:
            key = (*key[:4], None, "")
        times = self._counts[key] = self._counts.get(key, 0) + 1
        return times if _is_power_of_ten(times) else 0


def _is_power_of_ten(number: int) -> bool:
    while number % 10 == 0:
        number //= 10
    return number == 1
