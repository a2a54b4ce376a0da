"""Logs in by SASL on a connection of either system.

Owns: the exchange of a `Login`.  Never: knows a mechanism (kcluster/security/sasl/ has their
clients), or who may log in.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Final, Protocol

from kcluster.conform.case import LogIn
from kcluster.conform.filling import Values
from kcluster.conform.plain import plain
from kcluster.conform.systems import System
from kcluster.protocol import messages as m
from kcluster.protocol.apis import APIS, ApiKey
from kcluster.protocol.framing import decode_response_frame
from kcluster.protocol.messages import Message
from kcluster.security.sasl.exchange import SaslClient
from kcluster.security.sasl.mechanisms import OAUTHBEARER, PLAIN
from kcluster.security.sasl.oauthbearer import OAuthBearerClient, unsecured_token
from kcluster.security.sasl.plain import PlainClient
from kcluster.security.sasl.scram import ScramClient

PLAIN_USERS: Final = {"alice": "alice-secret", "bob": "bob-secret"}
"""Passwords of PLAIN.  Users of SCRAM are made by the cases; a token of OAUTHBEARER may have any
name."""
REAUTH_MS: Final = 2_500
"""connections.max.reauth.ms of SCRAM-SHA-512, the only mechanism that has one."""
LIFETIME_MS: Final = 86_400_000
"""Of the tokens of OAUTHBEARER."""
_MASKS: Final = {"auth_bytes": "a nonce is drawn at random"}
_TOKEN_MASKS: Final = {**_MASKS, "session_lifetime_ms": "what is left of the token's time"}


class Frames(Protocol):
    """What this needs of a Runner."""

    system: System

    def connect(self, on: str, to: int) -> None:
        """Open a connection to the listener with logins."""

    def exchange(self, on: str, to: int, frame: bytes) -> bytes | str:
        """Send a frame, and receive the next one."""

    def frame(
        self, api: ApiKey, version: int, client_id: str | None, request: Message | None
    ) -> bytes:
        """The bytes of a request."""


def log_in(
    runner: Frames, login: LogIn, to: int, values: Values, more_masks: Mapping[str, str] = {}
) -> list[object]:
    """Log in at a broker; the answers as plain data."""
    if login.is_new:
        runner.connect(login.on, to)
    client = _client(login, runner.system.now_ms(), values)
    masks = {**(_TOKEN_MASKS if login.mechanism == OAUTHBEARER else _MASKS), **more_masks}
    answers: list[object] = []

    def ask(api: ApiKey, version: int, body: Message) -> bytes | None:
        """The challenge in the answer, or None if there is no answer without an error."""
        received = runner.exchange(login.on, to, runner.frame(api, version, "login", body))
        if isinstance(received, str):
            answers.append(received)
            return None
        answer: Message = decode_response_frame(api, version, memoryview(received))[1]
        answers.append(plain(APIS[api].name, answer, values, masks))
        if isinstance(answer, m.SaslAuthenticateResponse):
            return None if answer.error_code else bytes(answer.auth_bytes)
        assert isinstance(answer, m.SaslHandshakeResponse)
        return None if answer.error_code else b""

    named = m.SaslHandshakeRequest(mechanism=login.mechanism)
    challenge = ask(ApiKey.SASL_HANDSHAKE, 1, named)
    while challenge is not None:
        token = client.respond(challenge)
        assert token is not None, "the server expects more than the client has to say"
        body = m.SaslAuthenticateRequest(auth_bytes=token)
        challenge = ask(ApiKey.SASL_AUTHENTICATE, login.version, body)
        if not challenge or challenge.startswith(b"v="):
            break
    return answers


def _client(login: LogIn, now_ms: int, values: Values) -> SaslClient:
    user, filled = str(values.fill(login.user)), values.fill(login.password)
    if login.mechanism == OAUTHBEARER:
        return OAuthBearerClient(unsecured_token(user, now_ms, LIFETIME_MS))
    if login.mechanism == PLAIN:
        return PlainClient(user, str(filled))
    password = b64encode(filled).decode() if isinstance(filled, bytes) else str(filled)
    return ScramClient(login.mechanism, user, password, "nonce", by_token=login.by_token)
