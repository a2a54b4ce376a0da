"""Clients' own logins, which pass the proxy: which can, and the tokens that have no header.

Owns: the number of bare tokens after SaslHandshake v0, the refusal of a mechanism.  Never: reads a
token.  Kafka: SaslServerAuthenticator, SaslClientAuthenticator; KIP-43, KIP-152.

With PLAIN, SCRAM and OAUTHBEARER a token does not name the host that the client has connected to,
so it is as good behind the proxy.  A Kerberos ticket does name it.
"""

from __future__ import annotations

from typing import Final

from kcluster.protocol.apis import codec, is_known
from kcluster.protocol.errors import ProtocolError
from kcluster.proxy.exchange import Exchange

_TOKENS: Final = {"PLAIN": 1, "SCRAM-SHA-256": 2, "SCRAM-SHA-512": 2, "OAUTHBEARER": 1}
"""The tokens that a client sends with each mechanism."""
KERBEROS: Final = "GSSAPI"


def mechanism_of(exchange: Exchange, frame: memoryview) -> str:
    """The mechanism that a SaslHandshake names; empty if the request cannot be read."""
    if not is_known(exchange.api_key, exchange.api_version):
        return ""
    try:
        body = codec(exchange.api_key, exchange.api_version).decode_request(
            frame, exchange.body_position
        )
    except ProtocolError:
        return ""
    return str(body.mechanism)


def refusal_of_mechanism(exchange: Exchange, frame: memoryview) -> str | None:
    """The reason why a mechanism cannot pass; None if it can."""
    if mechanism_of(exchange, frame) != KERBEROS:
        return None
    return (
        "GSSAPI cannot pass a proxy: a Kerberos ticket names the broker's host; connect the client"
        " without SASL, and let the proxy log in (--command-config)"
    )


class BareTokens:
    """The tokens without a header that a connection's client is about to send: only after
    SaslHandshake v0, which came before SaslAuthenticate."""

    def __init__(self) -> None:
        self._left = 0

    @property
    def is_next(self) -> bool:
        """Whether the next frame is a token."""
        return self._left > 0

    def on_request(self, exchange: Exchange, frame: memoryview) -> None:
        """Take note of a SaslHandshake."""
        if exchange.api_version == 0:
            self._left = _TOKENS.get(mechanism_of(exchange, frame), 1)

    def sent(self) -> None:
        """Take note of a token."""
        self._left -= 1
