"""Access: the token, and the names under which the server may be reached.

Owns: these checks.  Never: knows a route.
Kafka: no counterpart.

A page of some site can send requests to this machine, and can have its own name resolve to it (DNS
rebinding).  It cannot read the token, and its requests carry its own name in Host.
"""

from __future__ import annotations

import hmac
from http import HTTPStatus
from ipaddress import ip_address
from typing import TYPE_CHECKING

from kcluster.web.problems import RefusedRequest

if TYPE_CHECKING:
    from werkzeug.wrappers import Request


class AccessControl:
    """The checks of a server.  `token`: the token that requests must carry.  `names`: the names
    under which the server is reached, besides localhost and loopback addresses; `is_public`:
    whether it listens on other addresses too, so that any address in Host is right (an address
    cannot be rebound)."""

    def __init__(self, token: str, names: tuple[str, ...] = (), is_public: bool = False) -> None:
        self._token = token.encode()
        self._names = {"localhost", *(name.lower() for name in names)}
        self._is_public = is_public

    def check_host(self, request: Request) -> None:
        """Refuse a request for another server's name."""
        host = host_name(request.environ.get("HTTP_HOST", ""))
        if host in self._names:
            return
        try:
            address = ip_address(host)
        except ValueError:
            detail = f"Host: {host or 'missing'} is not a name of this server (--allow-host NAME)"
            raise RefusedRequest(HTTPStatus.MISDIRECTED_REQUEST, detail) from None
        if not (self._is_public or address.is_loopback):
            detail = f"Host: {host} is not an address of this server"
            raise RefusedRequest(HTTPStatus.MISDIRECTED_REQUEST, detail)

    def check_token(self, request: Request) -> None:
        """Refuse a request without the token.  The token is in the Authorization header or, for
        pages and event streams, in the parameter `token`."""
        kind, _, given = request.headers.get("Authorization", "").partition(" ")
        if kind.lower() != "bearer":
            given = request.args.get("token", "")
        if not hmac.compare_digest(given.strip().encode(), self._token):
            detail = "a wrong token" if given else "no token"
            raise RefusedRequest(
                HTTPStatus.UNAUTHORIZED,
                f"{detail}; send the header Authorization: Bearer TOKEN",
                headers={"WWW-Authenticate": "Bearer"},
            )


def host_name(header: str) -> str:
    """The name or address in a Host header, without its port."""
    text = header.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0]
