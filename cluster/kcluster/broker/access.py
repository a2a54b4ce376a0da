"""The authorizer of one broker: the rights of each request's client, by this broker's image.

Owns: the settings, which denials are noted, and the answers that are completed after a handler.
Never: knows an API (authorization/ has a guard for each).
Kafka: StandardAuthorizer as a broker runs it, AclPublisher, AuthHelper.

A broker without an authorizer has no Access, and checks nothing.  Requests from other brokers are
not checked.  A broker decides by the metadata that it has: one that lags obeys an old ACL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from kcluster.broker.ports import BrokerView, Outbox
from kcluster.contract import NoteId, Request
from kcluster.events.security import AclsApplied, denied_event
from kcluster.metadata.delta import MetadataDelta
from kcluster.metadata.records import AccessControlEntryRecord
from kcluster.principals import MAX_SHOWN_CHARS
from kcluster.security.acls import AclOperation, AclResource
from kcluster.security.authorizer import Requester, StandardAuthorizer, authorizer_of
from kcluster.security.denials import DenialCounts
from kcluster.security.rights import Denial, Rights

NONE_DENIED: Final[frozenset[str]] = frozenset()


class Access:
    """The authorizer of a broker, and the requests that it has admitted in part."""

    def __init__(self, authorizer: StandardAuthorizer, view: BrokerView, outbox: Outbox) -> None:
        self._authorizer = authorizer
        self._view = view
        self._outbox = outbox
        self._denials = DenialCounts()
        self._incomplete: dict[int, tuple[Request, Callable[..., object]]] = {}
        """By connection: a request as its client sent it, and the function that completes its
        answer."""

    def rights_of(self, request: Request) -> Rights:
        """The rights of a request's client."""
        client_id = (request.client_id or "")[:MAX_SHOWN_CHARS]
        requester = Requester(request.identity.principal, request.client_host, client_id)
        return Rights(self._authorizer, self._view.image.acls, requester, self._on_denied)

    def unreadable(self, request: Request, topics: Iterable[str]) -> frozenset[str]:
        """The topics that a request's client may not READ."""
        return self.rights_of(request).denied(AclOperation.READ, AclResource.TOPIC, topics)

    # --------------------------------------------------------------------- admission in part

    def will_complete(self, request: Request, complete: Callable[..., object]) -> None:
        """Complete the answer to a request of which a handler gets only a part."""
        self._incomplete[request.connection_id] = request, complete

    def complete(self, request: Request, body: object) -> tuple[Request, object]:
        """Return the request as its client sent it, and the completed answer."""
        incomplete = self._incomplete.pop(request.connection_id, None)
        if incomplete is None:
            return request, body
        original, complete = incomplete
        return original, complete(body)

    def connection_closed(self, connection_id: int) -> None:
        """Forget a connection's request, which needs no answer any more."""
        self._incomplete.pop(connection_id, None)

    # ------------------------------------------------------------------------------- events

    def on_metadata(self, delta: MetadataDelta) -> None:
        """Note changed ACLs, by which this broker decides from now on."""
        created = sum(isinstance(record, AccessControlEntryRecord) for record in delta.acls)
        cause: NoteId | None = delta.acls[-1].cause
        self._denials.clear()
        if cause is None:
            return  # the ACLs with which the cluster began
        view = self._view
        applied = AclsApplied(
            broker=view.node_id,
            created_count=created,
            deleted_count=len(delta.acls) - created,
            acl_count=len(view.image.acls),
        )
        self._outbox.note(applied, cause)

    def _on_denied(self, denial: Denial) -> None:
        times = self._denials.count(denial)
        if times:
            view = self._view
            self._outbox.note(denied_event(denial, view.node_id, view.image.offset, times))


def access_of(view: BrokerView, outbox: Outbox) -> Access | None:
    """The authorizer that a broker's static configs name; None if there is none."""
    config = view.static_config
    authorizer = authorizer_of(
        config.authorizer_class_name, config.super_users, config.allow_everyone_if_no_acl_found
    )
    return None if authorizer is None else Access(authorizer, view, outbox)
