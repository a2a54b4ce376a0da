"""The clients that are connected to a broker with security, and their identities.

Owns: the identity of each connection, from the requests that the broker gets.  Never:
authenticates, closes a connection, keeps a password.
Kafka: RequestContext, which the request log shows with each request.

A client is known from its first request that reaches the broker until its connection closes.
"""

from __future__ import annotations

from typing import final

from msgspec import Struct

from kcluster.contract import Request
from kcluster.principals import MAX_SHOWN_CHARS, ClientIdentity


class ConnectedClient(Struct, frozen=True):
    """The client of a connection.  `name`: its client.id; `host`: the address from which it
    came."""

    name: str
    host: str
    identity: ClientIdentity


@final
class ConnectedClients:
    """The clients of one life of one broker.  `revision` grows when one comes, goes, or logs in
    again."""

    __slots__ = ("by_connection", "revision")

    def __init__(self) -> None:
        self.by_connection: dict[int, ConnectedClient] = {}
        self.revision = 0

    def seen(self, request: Request) -> None:
        """Take note of the client of a request."""
        known = self.by_connection.get(request.connection_id)
        if known is not None and known.identity is request.identity:
            return
        name = (request.client_id or "")[:MAX_SHOWN_CHARS]
        client = ConnectedClient(name, request.client_host, request.identity)
        self.by_connection[request.connection_id] = client
        self.revision += 1

    def connection_closed(self, connection_id: int) -> None:
        """Forget the client of a connection."""
        if self.by_connection.pop(connection_id, None) is not None:
            self.revision += 1
