"""Who is logged in at which broker, and what expires: a row for each change.

Owns: the detection of changes.  Never: reads a password or a token.
Kafka: no counterpart; a broker logs failures only.

A look costs a comparison per broker while no client comes, goes or logs in again.  On a cluster
without security there is no look, and there are no rows.
"""

from __future__ import annotations

from typing import Final

from kcluster.broker.node_view import BrokerNodeView
from kcluster.events.security import AuthenticationFailed
from kcluster.evidence.client_names import client_name
from kcluster.evidence.kept_rows import StateRows
from kcluster.evidence.rows import CredentialRow, LoginRow
from kcluster.metadata.image import MetadataImage
from kcluster.operations.controller import controller_image
from kcluster.operations.security_status import (
    CredentialKind,
    CredentialStatus,
    LoginStatus,
    credentials_of,
    has_security,
    logins_of,
)
from kcluster.principals import USER_TYPE, Principal
from kcluster.runtime.build import Plan
from kcluster.runtime.dispatch import Dispatcher

MAX_ROWS: Final = 20_000
GONE: Final = "gone"

_LoginKey = tuple[str, int, str, str]
"""(client id, broker, listener, principal)."""
_CredentialKey = tuple[str, str, str]


def login_key(row: LoginRow) -> _LoginKey:
    """What makes two rows the states of one login."""
    return row.client_id, row.broker, row.listener, row.principal


def credential_key(row: CredentialRow) -> _CredentialKey:
    """What makes two rows the states of one credential."""
    return row.kind, row.owner, row.name


class SecurityStates:
    """The logins and credentials of a cluster."""

    def __init__(self, dispatcher: Dispatcher, plan: Plan) -> None:
        self.logins: StateRows[_LoginKey, LoginRow] = StateRows(login_key, MAX_ROWS)
        self.credentials: StateRows[_CredentialKey, CredentialRow] = StateRows(
            credential_key, MAX_ROWS
        )
        self._dispatcher = dispatcher
        self._plan = plan
        self.is_secured = has_security(plan)
        self._seen: dict[int, tuple[BrokerNodeView, int]] = {}
        """The life of each broker, and the revision of its clients, at the last look."""
        self._credentials_seen: tuple[CredentialStatus, ...] = ()
        self._metadata_offset = -1
        self._is_changed = False
        """Whether a certificate has been replaced since the last look."""

    def look(self) -> None:
        """Read the changes since the last look."""
        if not self.is_secured:
            return
        now_ms, nodes = self._dispatcher.now_ms, self._dispatcher.brokers()
        is_changed = self._is_changed
        for node in nodes:
            if node.logins is None:
                continue
            seen = (node, node.logins.clients.revision)
            if self._seen.get(node.node_id) != seen:
                self._seen[node.node_id] = seen
                self._read(now_ms, node.node_id, list(logins_of(self._dispatcher, node.node_id)))
                is_changed = True
        for broker in self._seen.keys() - {node.node_id for node in nodes}:
            del self._seen[broker]
            self._read(now_ms, broker, [])
            is_changed = True
        image = controller_image(self._dispatcher)
        if is_changed or image.offset != self._metadata_offset:
            self._metadata_offset, self._is_changed = image.offset, False
            self._read_credentials(now_ms, image)
            self.logins.trim()

    def certificate_replaced(self) -> None:
        """Take note that a broker shows another certificate."""
        self._is_changed = True
        self.look()

    def refused(self, at_ms: int, event: AuthenticationFailed) -> None:
        """Take note of a login that was refused, beside the sessions that the client has."""
        self.look()
        principal = str(Principal(USER_TYPE, event.user)) if event.user else ""
        key = (event.client_id, event.broker, event.listener, principal)
        old = self.logins.newest.get(key)
        self.logins.add(
            LoginRow(
                self._name(event.client_id),
                *key[:3],
                event.mechanism,
                principal,
                0 if old is None else old.connections,
                -1 if old is None else old.ends_ms,
                str(event.problem),
                at_ms,
            )
        )

    def _read(self, now_ms: int, broker: int, sessions: list[LoginStatus]) -> None:
        """Add a row for each session of a broker that has changed."""
        newest = self.logins.newest
        left = {key for key, row in newest.items() if row.broker == broker and row.connections}
        for one in sessions:
            key = (one.client_id, broker, one.listener, one.principal)
            left.discard(key)
            ends_ms = -1 if one.ends_ms is None else one.ends_ms
            old = newest.get(key)
            if old is not None and (old.connections, old.ends_ms) == (one.connections, ends_ms):
                continue
            # A connection that is left of several says nothing about a login that was refused.
            is_less = old is not None and one.connections < old.connections
            self.logins.add(
                LoginRow(
                    self._name(one.client_id),
                    *key[:3],
                    one.mechanism,
                    one.principal,
                    one.connections,
                    ends_ms,
                    old.problem if old is not None and is_less else "",
                    now_ms,
                )
            )
        for key in sorted(left):
            old = newest[key]
            self.logins.add(
                LoginRow(
                    old.client, *key[:3], old.mechanism, old.principal, 0, -1, old.problem, now_ms
                )
            )

    def _read_credentials(self, now_ms: int, image: MetadataImage) -> None:
        """Add a row for each credential that has changed.  `image`: the controller's."""
        found = tuple(credentials_of(self._plan, self._dispatcher, image))
        if found == self._credentials_seen:
            return
        now = {(str(one.kind), one.owner, one.name): one for one in found}
        for one in self._credentials_seen:
            key = (str(one.kind), one.owner, one.name)
            # A client's certificate is known while the client is connected, and valid after that.
            if key not in now and one.kind is CredentialKind.DELEGATION_TOKEN:
                self.credentials.add(CredentialRow(*key, GONE, -1, now_ms))
        for key, one in now.items():
            until_ms = -1 if one.until_ms is None else one.until_ms
            old = self.credentials.newest.get(key)
            if old is None or (old.state, old.until_ms) != (str(one.state), until_ms):
                self.credentials.add(CredentialRow(*key, str(one.state), until_ms, now_ms))
        self._credentials_seen = found
        self.credentials.trim()

    def _name(self, client_id: str) -> str:
        return client_name(client_id, self._plan.fabric.clients)
