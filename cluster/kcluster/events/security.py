"""Events of security: ACLs that change, requests that they deny, sessions and tokens that end.

Owns: their facts.  Never: words for them (words/).
Kafka: the audit log kafka.authorizer.logger; the log of AclControlManager.
"""

from __future__ import annotations

from kcluster.events.base import TaggedEvent
from kcluster.security.acls import Acl, AclOperation, AclResource
from kcluster.security.authorizer import Grounds
from kcluster.security.rights import Denial


class AclsChanged(TaggedEvent, frozen=True):
    """ACLs were created or deleted.  Each broker obeys them when it has this metadata
    (AclsApplied)."""

    created: tuple[Acl, ...]
    deleted: tuple[Acl, ...]

    @property
    def subject(self) -> str:
        return "ACLs"


class AclsApplied(TaggedEvent, frozen=True):
    """A broker decides by changed ACLs from now on.  `acl_count`: the ACLs that it knows now."""

    broker: int
    created_count: int
    deleted_count: int
    acl_count: int

    @property
    def subject(self) -> str:
        return f"broker {self.broker}"


class AuthorizationDenied(TaggedEvent, frozen=True):
    """A client may not do what it asked for.

    `node`: the broker, or the controller, that decided, by the metadata up to `metadata_offset`.
    `acl`: the ACL that denies it; null if none allows it.  `has_acls`: whether any ACL concerns the
    resource.  `times`: the number of such denials since the ACLs last changed there; only the 1st,
    the 10th, the 100th, … are noted.
    """

    node: int
    principal: str
    client_host: str
    operation: AclOperation
    resource_type: AclResource
    resource: str
    acl: Acl | None
    has_acls: bool
    metadata_offset: int
    times: int

    @property
    def subject(self) -> str:
        return self.principal


class SessionsEnded(TaggedEvent, frozen=True):
    """An operation ended the sessions of a broker's clients.  `user`: null for all users;
    `mechanism`: empty for all; `sessions`: the number of sessions that ended."""

    broker: int
    user: str | None
    mechanism: str
    sessions: int

    @property
    def subject(self) -> str:
        return f"broker {self.broker}"


class TokensExpired(TaggedEvent, frozen=True):
    """An operation expired a user's tokens.  `bearer_tokens`: tokens of OAUTHBEARER that brokers
    had accepted, and refuse now; `delegation_tokens`: tokens that the controller removes."""

    user: str
    bearer_tokens: int
    delegation_tokens: int

    @property
    def subject(self) -> str:
        return f"user {self.user}"


def denied_event(
    denial: Denial, node: int, metadata_offset: int, times: int
) -> AuthorizationDenied:
    """The event of a denial."""
    decision = denial.decision
    return AuthorizationDenied(
        node=node,
        principal=str(denial.requester.principal),
        client_host=denial.requester.host,
        operation=denial.operation,
        resource_type=denial.resource_type,
        resource=denial.name,
        acl=decision.acl,
        has_acls=decision.grounds is not Grounds.NO_ACL,
        metadata_offset=metadata_offset,
        times=times,
    )
