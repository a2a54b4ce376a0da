"""The exchange of one SASL mechanism, for the authenticator that drives it and for clients.

Owns: the answers of a mechanism's server to a client's message, the reasons of refusals, the
protocols of both sides.  Never: knows a request of Kafka (authenticator.py does), or a mechanism.
Kafka: javax.security.sasl.SaslServer and SaslClient, SaslException, SaslAuthenticationException.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from msgspec import Struct


class LoginProblem(StrEnum):
    """The reason why a login failed.  None of them contains a secret."""

    UNKNOWN_USER = "unknown user"
    WRONG_PASSWORD = "wrong password"
    NO_USER_NAME = "no user name"
    NO_PASSWORD = "no password"
    OTHER_AUTHORIZATION_ID = "another authorization id"
    WRONG_NONCE = "wrong nonce"
    UNKNOWN_TOKEN = "unknown delegation token"
    INVALID_TOKEN = "invalid token"
    EXPIRED_TOKEN = "expired token"
    MALFORMED = "malformed message"
    UNSUPPORTED_MECHANISM = "mechanism not enabled"
    UNEXPECTED_REQUEST = "unexpected request"
    NOT_SASL = "not a SASL client"
    TOO_LARGE = "request too large"
    OTHER_PRINCIPAL = "another principal in re-authentication"
    OTHER_MECHANISM = "another mechanism in re-authentication"
    SESSION_EXPIRED = "session expired"


class Challenge(Struct, frozen=True):
    """The server's next message; the client must answer it."""

    data: bytes


class LoginAccepted(Struct, frozen=True):
    """The client is the user `user`; `data`: the server's last message.

    `expires_at_ms`: the time at which the credential expires; None: never.
    """

    data: bytes
    user: str
    by_token: bool = False
    expires_at_ms: int | None = None


class LoginRefused(Struct, frozen=True):
    """The client is refused.

    `message`: the text for the client; None: the general text, which does not disclose whether the
    user exists.  Kafka: SaslAuthenticationException with a message, else SaslException.
    """

    problem: LoginProblem
    user: str = ""
    message: str | None = None


class Broken(Struct, frozen=True):
    """The message makes Kafka's server throw an exception of another kind: the connection closes
    without an answer."""

    problem: LoginProblem


Answer = Challenge | LoginAccepted | LoginRefused | Broken


class SaslServer(Protocol):
    """A mechanism's server, for one exchange."""

    def evaluate(self, message: bytes, now_ms: int, /) -> Answer:
        """Take the client's next message."""


class SaslClient(Protocol):
    """A mechanism's client, for one exchange."""

    @property
    def mechanism(self) -> str:
        """The mechanism's name."""

    def respond(self, challenge: bytes, /) -> bytes | None:
        """The answer to the server's message; the first message has an empty challenge.  None if
        nothing is left to send.  Raises ServerNotTrusted for a server that does not prove that it
        knows the password."""


class ServerNotTrusted(Exception):
    """A server sent a malformed message, or did not prove that it knows the password."""
