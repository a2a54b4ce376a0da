"""Events of security: clients that are refused, rights and passwords that change, ended sessions.

Owns: their facts.  Never: words for them (words/).
Kafka: the audit log kafka.authorizer.logger; the logs of AclControlManager and Selector.
"""

from __future__ import annotations

from kcluster.events.base import TaggedEvent
from kcluster.security.acls import Acl, AclOperation, AclResource
from kcluster.security.authorizer import Grounds
from kcluster.security.certificates import HandshakeProblem
from kcluster.security.rights import Denial
from kcluster.security.sasl.exchange import LoginProblem


class _AtBroker(TaggedEvent, frozen=True):
    """The base of events that a broker notes about itself and its clients."""

    broker: int

    @property
    def subject(self) -> str:
        return f"broker {self.broker}"


class AuthenticationFailed(_AtBroker, frozen=True):
    """A client could not log in at a broker, or its session ended.  Equal failures within a second
    are one event, `times`.  `client_id`: the client.id that the client sent; `user`: the user that
    it named, empty if it named none."""

    listener: str
    mechanism: str
    client_host: str
    client_id: str
    problem: LoginProblem
    user: str
    times: int = 1


class TlsHandshakeFailed(_AtBroker, frozen=True):
    """A client refused a broker's certificate, or was refused for its own, or did not speak TLS.
    Equal failures within a second are one event, `times`.  `refusal`: what TLS answered, if
    the problem has no name here."""

    listener: str
    client_host: str
    problem: HandshakeProblem
    refusal: str
    times: int = 1


class CredentialsApplied(_AtBroker, frozen=True):
    """A broker decides by the changed SCRAM credentials of these users from now on.  Its cause is
    the change."""

    users: tuple[str, ...]


class AclsChanged(TaggedEvent, frozen=True):
    """ACLs were created or deleted.  Each broker obeys them when it has this metadata
    (AclsApplied)."""

    created: tuple[Acl, ...]
    deleted: tuple[Acl, ...]

    @property
    def subject(self) -> str:
        return "ACLs"


class AclsApplied(_AtBroker, frozen=True):
    """A broker decides by changed ACLs from now on.  `acl_count`: the ACLs that it knows now."""

    created_count: int
    deleted_count: int
    acl_count: int


class AuthorizationDenied(TaggedEvent, frozen=True):
    """A client may not do what it asked for.

    `node`: the broker, or the controller, that decided, by the metadata up to `metadata_offset`.
    `client_id`: the client.id that the client sent.
    `acl`: the ACL that denies it; null if none allows it.  `has_acls`: whether any ACL concerns the
    resource.  `times`: the number of such denials since the ACLs last changed there; only the 1st,
    the 10th, the 100th, … are noted.
    """

    node: int
    principal: str
    client_host: str
    client_id: str
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


class SessionsEnded(_AtBroker, frozen=True):
    """An operation ended the sessions of a broker's clients.  `user`: null for all users;
    `mechanism`: empty for all; `sessions`: the number of sessions that ended."""

    user: str | None
    mechanism: str
    sessions: int


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
        client_id=denial.requester.client_id,
        operation=denial.operation,
        resource_type=denial.resource_type,
        resource=denial.name,
        acl=decision.acl,
        has_acls=decision.grounds is not Grounds.NO_ACL,
        metadata_offset=metadata_offset,
        times=times,
    )
