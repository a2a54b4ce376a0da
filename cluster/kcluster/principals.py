"""Who sent a request, and by which door: principals, security protocols, endpoints, identities.

Owns: these values.  Never: authenticates, or decides what a principal may do (security/ does);
imports anything of ours, since contract.py needs these.
Kafka: KafkaPrincipal, SecurityProtocol, Endpoint, RequestContext.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from msgspec import Struct

USER_TYPE: Final = "User"
"""The type of every principal that authenticates."""

DEFAULT_LISTENER: Final = "PLAINTEXT"

MAX_SHOWN_CHARS: Final = 100
"""The maximum length at which a client's names are reported: a client may send names of any
length."""


class SecurityProtocol(IntEnum):
    """How a listener's clients encrypt and authenticate.  Kafka: SecurityProtocol, with its
    ids."""

    PLAINTEXT = 0
    SSL = 1
    SASL_PLAINTEXT = 2
    SASL_SSL = 3

    @property
    def has_tls(self) -> bool:
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    @property
    def has_sasl(self) -> bool:
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)


class BrokerEndpoint(Struct, frozen=True, gc=False):
    """The address of a broker for the clients of one of its listeners."""

    host: str
    port: int
    listener: str = DEFAULT_LISTENER
    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.listener}://{host}:{self.port}"


class Principal(Struct, frozen=True, order=True):
    """A client's name for authorization, as ACLs write it: `User:alice`."""

    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS: Final = Principal(USER_TYPE, "ANONYMOUS")
"""The principal of clients that do not authenticate.  Kafka: KafkaPrincipal.ANONYMOUS."""


class ClientIdentity(Struct, frozen=True):
    """The client of a connection, as its listener has authenticated it.

    `listener`: the name of the listener by which it came; `by_token`: whether it logged in with a
    delegation token (KIP-48); `certificate_until_ms`: the end of the certificate that it showed, in
    ms since 1970.
    """

    principal: Principal = ANONYMOUS
    listener: str = DEFAULT_LISTENER
    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    by_token: bool = False
    certificate_until_ms: int | None = None


UNAUTHENTICATED: Final = ClientIdentity()
"""The identity of clients of a plaintext listener, and of brokers."""
