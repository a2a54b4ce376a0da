"""The client's side of SASL on one connection: versions, handshake, tokens, re-authentication.

Owns: the state of a connection's login at the client, and all its transitions; the time at which
the client logs in again.  Never: sends a request (clients/logins.py does, as the results here say),
checks a password (the broker does, with authenticator.py).
Kafka: SaslClientAuthenticator, KafkaChannel.maybeBeginClientReauthentication; KIP-152, KIP-368.

    VERSIONS       ApiVersions is not answered; only on a new connection
    HANDSHAKE      SaslHandshake is not answered
    AUTHENTICATE   a token is not answered
    COMPLETE       requests may be sent, until `reauthenticates_at_ms`
    FAILED         the broker refused the client, or the client does not trust the broker

A re-authentication begins with SaslHandshake, at a random time between 85 and 95 % of the session,
so that the connections of many clients do not log in again at the same time.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Any, Final, final

from msgspec import Struct

from kcluster.contract import Rng
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode, error_of
from kcluster.security.client_access import ClientAccess
from kcluster.security.sasl.exchange import SaslClient, ServerNotTrusted
from kcluster.security.sasl.mechanisms import OAUTHBEARER
from kcluster.security.sasl.nonces import draw_text
from kcluster.security.sasl.oauthbearer import OAuthBearerClient, unsecured_token
from kcluster.security.sasl.plain import PlainClient
from kcluster.security.sasl.scram import ScramClient
from kcluster.security.sasl.scram_keys import HASHES

SESSION_PART: Final = 0.85
"""The part of a session after which the client logs in again at the earliest; the rest leaves time
for the network, and for clocks that differ."""
SESSION_JITTER: Final = 0.10
"""The random part that is added to it."""
TOKEN_LIFETIME_MS: Final = 3_600_000
"""The default of unsecuredLoginLifetimeSeconds."""

API_VERSIONS_VERSION: Final = 5
_HANDSHAKE_VERSION: Final = 1
_AUTHENTICATE_VERSION: Final = 2


class ClientSaslState(Enum):
    """The state of a connection's login at the client."""

    VERSIONS = auto()
    HANDSHAKE = auto()
    AUTHENTICATE = auto()
    COMPLETE = auto()
    FAILED = auto()


class SaslQuestion(Struct, frozen=True):
    """The next request of a login."""

    api_key: int
    version: int
    body: m.Message


@final
class ClientAuthenticator:
    """The login of one connection."""

    def __init__(self, access: ClientAccess, rng: Rng) -> None:
        self.state = ClientSaslState.VERSIONS
        self.reauthenticates_at_ms: int | None = None
        """The time after which the client logs in again before its next request; None: never."""
        self.error = ErrorCode.NONE
        """The reason of FAILED."""
        self.detail = ""
        """The broker's text for it, or why the client does not trust the broker."""
        self._access = access
        self._rng = rng
        self._authenticate_version = 0
        self._client: SaslClient | None = None

    def __repr__(self) -> str:
        return f"<login of {self._access.user}: {self.state.name}>"

    def begin(self) -> SaslQuestion:
        """The first request of a login: on a new connection, or at the end of a session."""
        self.reauthenticates_at_ms = None
        if self.state is ClientSaslState.COMPLETE:
            return self._handshake()
        self.state = ClientSaslState.VERSIONS
        return SaslQuestion(
            ApiKey.API_VERSIONS,
            API_VERSIONS_VERSION,
            m.ApiVersionsRequest(client_software_name="kcluster", client_software_version="1"),
        )

    def must_begin(self, now_ms: int) -> bool:
        """Whether the client must log in again before its next request."""
        at_ms = self.reauthenticates_at_ms
        return at_ms is not None and now_ms >= at_ms

    def take(self, answer: Any, now_ms: int) -> SaslQuestion | None:
        """Take the answer to the last request; the next one, None once the login has ended."""
        if self.state is ClientSaslState.VERSIONS:
            return self._take_versions(answer)
        error = error_of(answer.error_code)
        if self.state is ClientSaslState.HANDSHAKE:
            if error:
                enabled = ", ".join(answer.mechanisms) or "no mechanism"
                self._fail(error, f"{self._access.mechanism} is not enabled; {enabled} is")
                return None
            self.state = ClientSaslState.AUTHENTICATE
            self._client = _create_client(self._access, self._rng, now_ms)
            return self._token(b"")
        if error:
            self._fail(error, answer.error_message or "")
            return None
        token = self._token(bytes(answer.auth_bytes))
        if token is None and self.state is not ClientSaslState.FAILED:
            self._complete(answer.session_lifetime_ms, now_ms)
        return token

    def _take_versions(self, answer: m.ApiVersionsResponse) -> SaslQuestion | None:
        newest = {each.api_key: each.max_version for each in answer.api_keys}
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            # An older broker answers in version 0 with its own versions (KIP-511).
            version = min(newest.get(ApiKey.API_VERSIONS, 0), API_VERSIONS_VERSION)
            body = m.ApiVersionsRequest(
                client_software_name="kcluster", client_software_version="1"
            )
            return SaslQuestion(ApiKey.API_VERSIONS, version, body)
        if answer.error_code:
            self._fail(error_of(answer.error_code), "")
            return None
        self._authenticate_version = min(
            newest.get(ApiKey.SASL_AUTHENTICATE, 0), _AUTHENTICATE_VERSION
        )
        return self._handshake()

    def _handshake(self) -> SaslQuestion:
        self.state = ClientSaslState.HANDSHAKE
        body = m.SaslHandshakeRequest(mechanism=self._access.mechanism or "")
        return SaslQuestion(ApiKey.SASL_HANDSHAKE, _HANDSHAKE_VERSION, body)

    def _token(self, challenge: bytes) -> SaslQuestion | None:
        """The client's answer to a challenge; None if it has none."""
        assert self._client is not None
        try:
            token = self._client.respond(challenge)
        except ServerNotTrusted as refused:
            self._fail(ErrorCode.SASL_AUTHENTICATION_FAILED, str(refused))
            return None
        if token is None:
            return None
        body = m.SaslAuthenticateRequest(auth_bytes=token)
        return SaslQuestion(ApiKey.SASL_AUTHENTICATE, self._authenticate_version, body)

    def _complete(self, lifetime_ms: int, now_ms: int) -> None:
        self.state, self._client = ClientSaslState.COMPLETE, None
        if lifetime_ms > 0:
            part = SESSION_PART + SESSION_JITTER * self._rng.random()
            self.reauthenticates_at_ms = now_ms + int(lifetime_ms * part)

    def _fail(self, error: ErrorCode, detail: str) -> None:
        self.state, self._client = ClientSaslState.FAILED, None
        self.error, self.detail = error, detail


def _create_client(access: ClientAccess, rng: Rng, now_ms: int) -> SaslClient:
    user, mechanism = access.user or "", access.mechanism or ""
    if mechanism in HASHES:
        return ScramClient(mechanism, user, access.password, draw_text(rng))
    if mechanism == OAUTHBEARER:
        return OAuthBearerClient(unsecured_token(user, now_ms, TOKEN_LIFETIME_MS))
    return PlainClient(user, access.password)
