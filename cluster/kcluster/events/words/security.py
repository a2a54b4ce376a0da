"""Words for events of security.

Owns: these words.  Never: decides anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kcluster.events.security import (
    AclsApplied,
    AclsChanged,
    AuthenticationFailed,
    AuthorizationDenied,
    CredentialsApplied,
    SessionsEnded,
    TlsHandshakeFailed,
    TokensExpired,
)
from kcluster.events.words.base import counted, text_of
from kcluster.node_ids import CONTROLLER_ID
from kcluster.security.acls import Acl, AclResource, PatternType
from kcluster.security.certificates import handshake_text

_SHOWN_ACLS: Final = 5
_SHOWN_USERS: Final = 5


@text_of.register
def _(event: AclsChanged) -> str:
    changes = [f"created: {_listed(event.created)}"] if event.created else []
    changes += [f"deleted: {_listed(event.deleted)}"] if event.deleted else []
    return f"ACLs {'; '.join(changes)}"


@text_of.register
def _(event: AclsApplied) -> str:
    changes = [f"{event.created_count} created"] if event.created_count else []
    changes += [f"{event.deleted_count} deleted"] if event.deleted_count else []
    known = counted(event.acl_count, "ACL")
    return f"broker {event.broker} decides by {known} now: {', '.join(changes)}"


@text_of.register
def _(event: AuthorizationDenied) -> str:
    at = "the controller" if event.node == CONTROLLER_ID else f"broker {event.node}"
    client = _client(event.client_id, event.client_host, event.times, f"at {at}")
    return (
        f"{event.principal} denied {event.operation.upper()} on {_resource_of(event)}"
        f" ({client}): {_reason(event)}"
    )


@text_of.register
def _(event: AuthenticationFailed) -> str:
    whose = f" of {event.user}" if event.user else ""
    how = f" by {event.mechanism}" if event.mechanism else ""
    client = _client(event.client_id, event.client_host, event.times)
    return (
        f"broker {event.broker} refused the login{whose}{how} at {event.listener} ({client}):"
        f" {event.problem}"
    )


@text_of.register
def _(event: TlsHandshakeFailed) -> str:
    client = _client("", event.client_host, event.times)
    problem = handshake_text(event.problem, event.refusal)
    return f"broker {event.broker}: TLS handshake at {event.listener} failed ({client}): {problem}"


@text_of.register
def _(event: CredentialsApplied) -> str:
    users = ", ".join(event.users[:_SHOWN_USERS])
    rest = len(event.users) - _SHOWN_USERS
    more = f" and {rest:,} more" if rest > 0 else ""
    return f"broker {event.broker} knows the changed credentials of {users}{more} now"


def unknown_text(broker: int, acl_count: int, users: Sequence[str]) -> str:
    """Changes that a broker has not applied: `broker 1 decides by older metadata: it does not know
    2 changes of ACLs and the credentials of billing`."""
    parts = [f"{counted(acl_count, 'change')} of ACLs"] if acl_count else []
    parts += [f"the credentials of {', '.join(users[:_SHOWN_USERS])}"] if users else []
    return f"broker {broker} decides by older metadata: it does not know {' and '.join(parts)}"


def _client(client_id: str, host: str, times: int, *more: str) -> str:
    """A client in words: `shop from 10.0.0.5, 12 times`."""
    parts = [f"{client_id} from {host}" if client_id else f"from {host}", *more]
    return ", ".join([*parts, f"{times:,} times"] if times > 1 else parts)


@text_of.register
def _(event: SessionsEnded) -> str:
    whose = f" of {event.user}" if event.user is not None else ""
    by = f" by {event.mechanism}" if event.mechanism else ""
    sessions = counted(event.sessions, "session")
    return f"broker {event.broker} ends {sessions}{whose}{by}: clients must log in again"


@text_of.register
def _(event: TokensExpired) -> str:
    found = {"token": event.bearer_tokens, "delegation token": event.delegation_tokens}
    words = [counted(count, word) for word, count in found.items() if count]
    return f"{' and '.join(words)} of {event.user} expired"


def acl_text(acl: Acl) -> str:
    """An ACL in words: `allow User:alice READ on topic orders`."""
    name = acl.resource_name + ("*" if acl.pattern_type is PatternType.PREFIXED else "")
    host = "" if acl.host == "*" else f" from {acl.host}"
    resource = resource_text(acl.resource_type, name)
    return f"{acl.permission} {acl.principal} {acl.operation.upper()} on {resource}{host}"


def resource_text(resource_type: AclResource, name: str) -> str:
    """A resource in words: `topic orders`, `the cluster`."""
    if resource_type is AclResource.CLUSTER:
        return "the cluster"
    kind = resource_type.replace("_", " ")
    return f"any {kind}" if name == "*" else f"{kind} {name}"


def _resource_of(event: AuthorizationDenied) -> str:
    return resource_text(event.resource_type, event.resource)


def _reason(event: AuthorizationDenied) -> str:
    if event.acl is not None:
        return acl_text(event.acl)
    return "no ACL allows it" if event.has_acls else f"no ACL concerns {_resource_of(event)}"


def _listed(acls: tuple[Acl, ...]) -> str:
    shown = "; ".join(map(acl_text, acls[:_SHOWN_ACLS]))
    rest = len(acls) - _SHOWN_ACLS
    return f"{shown}; and {rest} more" if rest > 0 else shown
