"""The security of a cluster at one moment as values: who is logged in, what expires, which changes
a broker does not know yet.

Owns: the types of `ClusterStatus.security`, and their values.  Never: shows a password, a key or a
token; changes anything.
Kafka: no single broker has this view; kafka-delegation-tokens --describe shows the tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum

from msgspec import Struct

from kcluster.contract import NoteId
from kcluster.events.words.security import unknown_text
from kcluster.metadata.image import MetadataImage
from kcluster.metadata.records import (
    AccessControlEntryRecord,
    MetadataRecord,
    RemoveAccessControlEntryRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from kcluster.runtime.build import Plan
from kcluster.runtime.dispatch import Dispatcher
from kcluster.security.certificates import FIRST, CertificateState, made_until_ms


class LoginStatus(Struct, frozen=True):
    """The connections of a client to a broker's listener as one principal.

    `client_id`: the client.id that the client sent; `mechanism`: empty without SASL; `connections`:
    their number; `ends_ms`: the time by which the client must have logged in again on the first of
    them, null: never.
    """

    client_id: str
    broker: int
    listener: str
    protocol: str
    mechanism: str
    principal: str
    connections: int
    ends_ms: int | None


class CredentialKind(StrEnum):
    """A kind of credential that expires."""

    CERTIFICATE = "certificate"
    DELEGATION_TOKEN = "delegation token"


class CredentialStatus(Struct, frozen=True):
    """A certificate that a broker or a client shows, or a delegation token.

    `owner`: `broker 2`, or the principal; `name`: the listener, or the token's id; `state`: what is
    wrong with a certificate on purpose; `until_ms`: its end, in ms since 1970, null: unknown.
    """

    kind: CredentialKind
    owner: str
    name: str
    state: CertificateState
    until_ms: int | None


class UnknownChanges(Struct, frozen=True):
    """Changes of ACLs and of users' SCRAM credentials that a broker has not applied yet, so that it
    decides by older ones.  `causes`: the notes of the changes; `text`: the changes in words."""

    broker: int
    acl_count: int
    users: tuple[str, ...]
    causes: tuple[NoteId, ...]
    text: str


class SecurityStatus(Struct, frozen=True):
    """The security of a cluster."""

    logins: tuple[LoginStatus, ...]
    credentials: tuple[CredentialStatus, ...]
    unknown: tuple[UnknownChanges, ...]


def has_security(plan: Plan) -> bool:
    """Whether a cluster has TLS, SASL or an authorizer."""
    if plan.topology.security.authorization.is_enabled:
        return True
    return any(one.protocol for endpoints in plan.endpoints.values() for one in endpoints)


def logins_of(dispatcher: Dispatcher, broker: int) -> Iterator[LoginStatus]:
    """The sessions of a broker's clients, in the order of their first connections."""
    found: dict[tuple[str, str, str, str, str], list[int | None]] = {}
    node = dispatcher.broker(broker)
    for session in () if node is None or node.logins is None else node.logins.sessions():
        identity = session.identity
        key = (
            session.client_id,
            identity.listener,
            identity.protocol.name,
            session.mechanism,
            str(identity.principal),
        )
        found.setdefault(key, []).append(session.ends_ms)
    for (client_id, listener, protocol, mechanism, principal), ends in found.items():
        limited = [end_ms for end_ms in ends if end_ms is not None]
        yield LoginStatus(
            client_id,
            broker,
            listener,
            protocol,
            mechanism,
            principal,
            len(ends),
            min(limited, default=None),
        )


def credentials_of(
    plan: Plan, dispatcher: Dispatcher, image: MetadataImage
) -> Iterator[CredentialStatus]:
    """The certificates of brokers and of connected clients, and the delegation tokens.  `image`:
    the controller's."""
    for broker, endpoints in sorted(plan.endpoints.items()):
        state = plan.certificates.get(broker, FIRST).state
        for one in endpoints:
            if one.protocol.has_tls:
                until_ms = plan.shown_until_ms.get((broker, one.listener))
                if until_ms is None and plan.topology.makes_certificates(broker):
                    until_ms = made_until_ms(state)
                yield CredentialStatus(
                    CredentialKind.CERTIFICATE, f"broker {broker}", one.listener, state, until_ms
                )
    yield from _certificates_of_clients(dispatcher)
    for token in image.delegation_tokens.values():
        yield CredentialStatus(
            CredentialKind.DELEGATION_TOKEN,
            str(token.owner),
            token.token_id,
            CertificateState.VALID,
            min(token.expires_ms, token.max_ms),
        )


def _certificates_of_clients(dispatcher: Dispatcher) -> Iterator[CredentialStatus]:
    """The certificate of the newest connection of each principal at each listener."""
    found: dict[tuple[str, str], int] = {}
    for node in dispatcher.brokers():
        for session in () if node.logins is None else node.logins.sessions():
            until_ms = session.identity.certificate_until_ms
            if until_ms is not None:
                found[str(session.identity.principal), session.identity.listener] = until_ms
    for (principal, listener), until_ms in found.items():
        yield CredentialStatus(
            CredentialKind.CERTIFICATE, principal, listener, CertificateState.VALID, until_ms
        )


def unknown_to(
    broker: int, offset: int, records: Sequence[MetadataRecord]
) -> UnknownChanges | None:
    """The changes of security that a broker has not applied; None if there are none.  `offset`: of
    the last record that it has applied; `records`: the metadata log."""
    acl_count, users, causes = 0, dict[str, None](), dict[NoteId, None]()
    for record in records[offset + 1 :]:
        if isinstance(record, AccessControlEntryRecord | RemoveAccessControlEntryRecord):
            acl_count += 1
        elif isinstance(record, UserScramCredentialRecord | RemoveUserScramCredentialRecord):
            users[record.name] = None
        else:
            continue
        if record.cause is not None:
            causes[record.cause] = None
    if not causes:
        return None
    text = unknown_text(broker, acl_count, tuple(users))
    return UnknownChanges(broker, acl_count, tuple(users), tuple(causes), text)


def security_status(
    plan: Plan, dispatcher: Dispatcher, image: MetadataImage, records: Sequence[MetadataRecord]
) -> SecurityStatus | None:
    """The security of a cluster; None for one without.  `image`, `records`: the controller's."""
    if not has_security(plan):
        return None
    nodes = dispatcher.brokers()
    unknown = (unknown_to(node.node_id, node.image.offset, records) for node in nodes)
    return SecurityStatus(
        tuple(session for node in nodes for session in logins_of(dispatcher, node.node_id)),
        tuple(credentials_of(plan, dispatcher, image)),
        tuple(one for one in unknown if one is not None),
    )
