"""How a client gets into a cluster: its listener, its user and its password.

Owns: this value.  Never: chooses one (config/topology/client_access.py does), logs in
(sasl/client_authenticator.py does), shows a password.
Kafka: the security configs of a client: security.protocol, sasl.mechanism, sasl.jaas.config.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from kcluster.principals import (
    ANONYMOUS,
    DEFAULT_LISTENER,
    USER_TYPE,
    ClientIdentity,
    Principal,
    SecurityProtocol,
)


class ClientAccess(Struct, frozen=True):
    """`user`, `mechanism`, `password`: for a listener with SASL.  `certified_name`: the principal's
    name at a listener that knows `user` by a certificate.  The password is in no repr."""

    listener: str = DEFAULT_LISTENER
    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    mechanism: str | None = None
    user: str | None = None
    password: str = ""
    certified_name: str | None = None

    def __repr__(self) -> str:
        return f"<{self.principal} at {self.listener}>"

    @property
    def principal(self) -> Principal:
        """The client's name, once it has logged in."""
        name = self.user if self.protocol.has_sasl else self.certified_name
        return ANONYMOUS if name is None else Principal(USER_TYPE, name)

    @property
    def identity(self) -> ClientIdentity:
        """The client, before it logs in."""
        principal = ANONYMOUS if self.protocol.has_sasl else self.principal
        return ClientIdentity(principal, self.listener, self.protocol)


OPEN: Final = ClientAccess()
"""The access to a cluster without security."""
