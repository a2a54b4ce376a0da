"""PLAIN: a user's name and password, in plain text (RFC 4616).

Owns: both sides of the exchange, which is one message.  Never: shows a password.
Kafka: PlainSaslServer, PlainServerCallbackHandler.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Final, final

from kcluster.security.sasl.exchange import Answer, LoginAccepted, LoginProblem, LoginRefused
from kcluster.security.sasl.mechanisms import PLAIN

_TOKENS: Final = 3
_MAX_TOKENS: Final = 4


@final
class PlainServer:
    """The server's side.  `passwords`: the password of each user."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords

    def evaluate(self, message: bytes, now_ms: int) -> Answer:
        """Check `[authorization id] NUL user NUL password`."""
        tokens = message.decode(errors="replace").split("\0", _MAX_TOKENS)[:_MAX_TOKENS]
        if len(tokens) != _TOKENS:
            text = f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(tokens)}"
            return LoginRefused(LoginProblem.MALFORMED, "", text)
        authorization_id, user, password = tokens
        if not user:
            text = "Authentication failed: username not specified"
            return LoginRefused(LoginProblem.NO_USER_NAME, "", text)
        if not password:
            text = "Authentication failed: password not specified"
            return LoginRefused(LoginProblem.NO_PASSWORD, user, text)
        expected = self._passwords.get(user)
        if expected is None or not hmac.compare_digest(password.encode(), expected.encode()):
            known = expected is not None
            problem = LoginProblem.WRONG_PASSWORD if known else LoginProblem.UNKNOWN_USER
            return LoginRefused(
                problem, user, "Authentication failed: Invalid username or password"
            )
        if authorization_id and authorization_id != user:
            return LoginRefused(LoginProblem.OTHER_AUTHORIZATION_ID, user, OTHER_ID_TEXT)
        return LoginAccepted(b"", user)


OTHER_ID_TEXT: Final = (
    "Authentication failed: Client requested an authorization id that is different from username"
)
"""Kafka's text for PLAIN and SCRAM."""


@final
class PlainClient:
    """The client's side."""

    mechanism = PLAIN

    def __init__(self, user: str, password: str) -> None:
        self._message: bytes | None = f"\0{user}\0{password}".encode()

    def respond(self, challenge: bytes) -> bytes | None:
        message, self._message = self._message, None
        return message
