"""Logs in by SASL on a connection of either system.

Owns: the exchange of a `Login`.  Never: knows a mechanism (kcluster/security/sasl/ has their
clients), or who may log in.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Final, Protocol

from compare.case import Login
from compare.filling import Values
from compare.plain import plain
from compare.systems import System
from kcluster.protocol import messages as m
from kcluster.protocol.apis import APIS, ApiKey
from kcluster.protocol.framing import decode_response_frame
from kcluster.security.sasl.exchange import SaslClient
from kcluster.security.sasl.mechanisms import OAUTHBEARER, PLAIN
from kcluster.security.sasl.oauthbearer import OAuthBearerClient, unsecured_token
from kcluster.security.sasl.plain import PlainClient
from kcluster.security.sasl.scram import ScramClient

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

    def frame(self, api: ApiKey, version: int, client_id: str | None, request: Any) -> bytes:
        """The bytes of a request."""


def log_in(
    runner: Frames, login: Login, to: int, values: Values, more_masks: Mapping[str, str] = {}
) -> list[Any]:
    """Log in at a broker; the answers as plain data."""
    if login.is_new:
        runner.connect(login.on, to)
    client = _client(login, runner.system.now_ms(), values)
    masks = {**(_TOKEN_MASKS if login.mechanism == OAUTHBEARER else _MASKS), **more_masks}
    answers: list[Any] = []

    def ask(api: ApiKey, version: int, body: Any) -> Any:
        """The answer, or None if there is none; it is noted."""
        received = runner.exchange(login.on, to, runner.frame(api, version, "login", body))
        if isinstance(received, str):
            answers.append(received)
            return None
        answer = decode_response_frame(api, version, memoryview(received))[1]
        answers.append(plain(APIS[api].name, answer, values, masks))
        return answer

    answer = ask(ApiKey.SASL_HANDSHAKE, 1, m.SaslHandshakeRequest(mechanism=login.mechanism))
    challenge = b""
    while answer is not None and not answer.error_code:
        token = client.respond(challenge)
        assert token is not None, "the server expects more than the client has to say"
        body = m.SaslAuthenticateRequest(auth_bytes=token)
        answer = ask(ApiKey.SASL_AUTHENTICATE, login.version, body)
        challenge = bytes(answer.auth_bytes) if answer is not None else b""
        if not challenge or challenge.startswith(b"v="):
            break
    return answers


def _client(login: Login, now_ms: int, values: Values) -> SaslClient:
    user, password = values.fill(login.user), values.fill(login.password)
    if login.mechanism == OAUTHBEARER:
        return OAuthBearerClient(unsecured_token(user, now_ms, LIFETIME_MS))
    if login.mechanism == PLAIN:
        return PlainClient(user, password)
    if isinstance(password, bytes):
        password = b64encode(password).decode()
    return ScramClient(login.mechanism, user, password, "nonce", by_token=login.by_token)
