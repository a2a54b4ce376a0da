"""The rights of the client of one request, and the result for the parts that are denied.

Owns: the questions that a guard asks, and its result.  Never: knows an API (the guards in
broker/authorization/ and controller/authorization/ do) or holds ACLs.
Kafka: AuthHelper; Action (logIfDenied).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from kcluster.protocol.messages import Message
from kcluster.security.acls import CLUSTER_NAME, AclIndex, AclOperation, AclResource
from kcluster.security.authorizer import AclDecision, Requester, StandardAuthorizer


class Denial(Struct, frozen=True):
    """An operation that a client asked for and may not do."""

    requester: Requester
    operation: AclOperation
    resource_type: AclResource
    name: str
    decision: AclDecision


class Rights:
    """The rights of one client, by the ACLs of one node.

    `on_denied` is called with each denial; `silently`: parts that are only left out of an answer
    are not reported as denials."""

    __slots__ = ("_acls", "_authorizer", "_on_denied", "_requester")

    def __init__(
        self,
        authorizer: StandardAuthorizer,
        acls: AclIndex,
        requester: Requester,
        on_denied: Callable[[Denial], None],
    ) -> None:
        self._authorizer = authorizer
        self._acls = acls
        self._requester = requester
        self._on_denied = on_denied

    def may(
        self,
        operation: AclOperation,
        resource_type: AclResource,
        name: str,
        *,
        silently: bool = False,
    ) -> bool:
        """Whether the client may do something to one resource."""
        requester = self._requester
        decision = self._authorizer.authorize(self._acls, requester, operation, resource_type, name)
        if not decision.is_allowed and not silently:
            self._on_denied(Denial(requester, operation, resource_type, name, decision))
        return decision.is_allowed

    def may_on_cluster(self, operation: AclOperation, *, silently: bool = False) -> bool:
        """Whether the client may do something to the cluster as a whole."""
        return self.may(operation, AclResource.CLUSTER, CLUSTER_NAME, silently=silently)

    def may_on_any(self, operation: AclOperation, resource_type: AclResource) -> bool:
        """Whether there is a resource of this type to which the client may do something."""
        return self._authorizer.authorize_any(self._acls, self._requester, operation, resource_type)

    def denied(
        self,
        operation: AclOperation,
        resource_type: AclResource,
        names: Iterable[str],
        *,
        silently: bool = False,
    ) -> frozenset[str]:
        """Those of the names to which the client may not do something."""
        return frozenset(
            name
            for name in dict.fromkeys(names)
            if not self.may(operation, resource_type, name, silently=silently)
        )

    def operations(self, resource_type: AclResource, name: str) -> int:
        """The operations that the client may do to a resource, as the bits of
        `authorized_operations`."""
        return self._authorizer.authorized_operations(
            self._acls, self._requester, resource_type, name
        )


class Admitted(Struct):
    """The part of a request that is allowed.

    `body`: what the handler gets.  `complete`: makes the client's answer from the handler's, which
    is None if the handler answers nothing.
    """

    body: Message
    complete: Callable[..., object]


GuardResult = Message | Admitted | None
"""The answer to a refused request, or the admitted part of a request; None: all of it is
admitted."""
