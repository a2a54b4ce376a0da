"""The server's side of SASL on one connection: handshake, tokens, sessions, re-authentication.

Owns: the state of a connection's login, and all its transitions; who the client is.  Never: reads a
frame or closes a connection (broker/channel.py and broker/logins.py do, as the results here say),
checks a password (the mechanisms do).
Kafka: SaslServerAuthenticator, KafkaChannel.maybeBeginServerReauthentication; KIP-43, KIP-152,
KIP-368.

    HANDSHAKE_OR_VERSIONS   ApiVersions or SaslHandshake may come
    HANDSHAKE               SaslHandshake must come, since ApiVersions was answered
    AUTHENTICATE            a token must come: in SaslAuthenticate, or bare after SaslHandshake v0
    COMPLETE                any request may come; SaslHandshake begins a re-authentication
    OTHER_MECHANISM         a re-authentication named another mechanism: the next frame fails it
    FAILED                  nothing more is taken

Most failures are answered, and the connection closed, after a delay
(connection.failed.authentication.delay.ms); others close it at once, without an answer: those for
which Kafka's server throws no AuthenticationException.  DIFFERS: Kafka looks for delays that are
over every 300 ms, here they are exact.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final, Protocol, final

from msgspec import Struct
from msgspec.structs import replace

from kcluster.contract import Rng
from kcluster.principals import USER_TYPE, ClientIdentity, Principal
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.security.sasl.exchange import (
    Broken,
    Challenge,
    LoginAccepted,
    LoginProblem,
    LoginRefused,
    SaslServer,
)
from kcluster.security.sasl.mechanisms import OAUTHBEARER, PLAIN
from kcluster.security.sasl.nonces import draw_text
from kcluster.security.sasl.oauthbearer import OAuthBearerServer
from kcluster.security.sasl.plain import PlainServer
from kcluster.security.sasl.scram import ScramServer, TokenCredential
from kcluster.security.sasl.scram_keys import Credential
from kcluster.security.sasl.settings import SaslSettings

MIN_REAUTH_INTERVAL_MS: Final = 1_000
"""The time between two re-authentications; Kafka's own constant."""

EARLIEST_REAUTH: Final = 0.85
"""The part of a session after which clients log in again at the earliest."""
REAUTH_TOLERATED: Final = 0.7
"""The part of a session after which a client may log in again, if EARLIEST_REAUTH of the session is
a second or more."""

MAX_LIFETIME_MS: Final = (2**63 - 1) // 1_000_000
"""The longest session: Kafka counts it in nanoseconds, and fails where they overflow."""

_TOO_LATE: Final = "SaslAuthenticate request received after successful authentication"


class SaslState(Enum):
    """The state of a connection's login."""

    HANDSHAKE_OR_VERSIONS = auto()
    HANDSHAKE = auto()
    AUTHENTICATE = auto()
    COMPLETE = auto()
    OTHER_MECHANISM = auto()
    FAILED = auto()


class LoginFailure(Struct, frozen=True):
    """The end of a login, and of its connection."""

    problem: LoginProblem
    user: str = ""
    """The user that the client named, if it named one."""
    is_delayed: bool = False
    """Whether the connection closes, and the answer is sent, only after a delay."""
    is_answered: bool = False
    """Whether the request is answered with ILLEGAL_SASL_STATE before."""


class LoginStep(Struct, frozen=True):
    """The result of a SASL request: its answer, None for none, and the login's end."""

    body: m.Message | None
    failure: LoginFailure | None = None


class CredentialSource(Protocol):
    """The credentials that the broker knows from the metadata."""

    def credential(self, mechanism: str, user: str) -> Credential | None:
        """A user's SCRAM credential."""

    def token(self, mechanism: str, token_id: str) -> TokenCredential | None:
        """A delegation token."""


@final
class SaslAuthenticator:
    """The login of one connection.  `listener`: the identity of the listener's clients before they
    log in."""

    def __init__(
        self,
        settings: SaslSettings,
        listener: ClientIdentity,
        credentials: CredentialSource,
        rng: Rng,
    ) -> None:
        self.settings = settings
        self.identity = listener
        """The client, once it has logged in."""
        self.state = SaslState.HANDSHAKE_OR_VERSIONS
        self.mechanism = ""
        self.client_id = ""
        """The client's name, as it says."""
        self.is_new_session = False
        """Whether the client has just logged in."""
        self.awaits_raw_answer = False
        """Whether the answer to the last token is sent as bare bytes (SaslHandshake v0)."""
        self.session_ends_ms: int | None = None
        """The time after which the client must have logged in again; None: never."""
        self._credentials = credentials
        self._rng = rng
        self._server: SaslServer | None = None
        self._is_raw = False
        self._reauthenticated_ms: int | None = None
        """The time at which the last re-authentication began."""
        self._reauth_interval_ms = MIN_REAUTH_INTERVAL_MS

    def __repr__(self) -> str:
        return f"<login {self.state.name} {self.mechanism} {self.identity.principal}>"

    @property
    def is_complete(self) -> bool:
        return self.state is SaslState.COMPLETE

    @property
    def has_reauthenticated(self) -> bool:
        """Whether the client has logged in again on its connection, or begun to."""
        return self._reauthenticated_ms is not None

    @property
    def takes_raw_tokens(self) -> bool:
        """Whether the next frame is a token, and no request."""
        return self.state is SaslState.AUTHENTICATE and self._is_raw

    # ------------------------------------------------------------------------- before a request

    def admit(self, api_key: int, size_bytes: int, now_ms: int) -> LoginFailure | None:
        """The reason why a connection's next request ends its login or session; None if it may be
        served.  Nothing changes but that the login has failed."""
        failure = self._find_failure(api_key, size_bytes, now_ms)
        if failure is not None:
            self.state = SaslState.FAILED
        return failure

    def _find_failure(self, api_key: int, size_bytes: int, now_ms: int) -> LoginFailure | None:
        state = self.state
        if state is SaslState.COMPLETE:
            begins = api_key == ApiKey.SASL_HANDSHAKE and self._may_reauthenticate(now_ms)
            if begins or not self._is_expired(now_ms):
                return None
            return LoginFailure(LoginProblem.SESSION_EXPIRED, self.identity.principal.name)
        if size_bytes > self.settings.max_receive_bytes:
            return LoginFailure(LoginProblem.TOO_LARGE, is_delayed=True)
        if state is SaslState.OTHER_MECHANISM:
            user = self.identity.principal.name
            return LoginFailure(LoginProblem.OTHER_MECHANISM, user, is_delayed=True)
        if state is SaslState.AUTHENTICATE:
            if self._is_raw or api_key == ApiKey.SASL_AUTHENTICATE:
                return None
            return LoginFailure(LoginProblem.UNEXPECTED_REQUEST, is_delayed=True, is_answered=True)
        is_first = api_key == ApiKey.API_VERSIONS and state is SaslState.HANDSHAKE_OR_VERSIONS
        if is_first or (api_key == ApiKey.SASL_HANDSHAKE and state is not SaslState.FAILED):
            return None
        return LoginFailure(LoginProblem.UNEXPECTED_REQUEST)

    def reject(self) -> None:
        """Fail, because the client sent something that is no request."""
        self.state = SaslState.FAILED

    def end_session(self, now_ms: int) -> bool:
        """End the session now, unless it has ended; whether there was one."""
        if self.state is not SaslState.COMPLETE or self._is_expired(now_ms):
            return False
        self.session_ends_ms = now_ms - 1
        return True

    def _is_expired(self, now_ms: int) -> bool:
        return self.session_ends_ms is not None and now_ms > self.session_ends_ms

    def _may_reauthenticate(self, now_ms: int) -> bool:
        if self.session_ends_ms is None:
            return False
        last_ms = self._reauthenticated_ms
        return last_ms is None or now_ms - last_ms >= self._reauth_interval_ms

    # ------------------------------------------------------------------------------- requests

    def versions_answered(self) -> None:
        """Take note that a valid ApiVersions request was answered."""
        if self.state is SaslState.HANDSHAKE_OR_VERSIONS:
            self.state = SaslState.HANDSHAKE

    def handshake(self, request: m.SaslHandshakeRequest, version: int, now_ms: int) -> LoginStep:
        """Choose the mechanism."""
        again = self.state is SaslState.COMPLETE
        if again and not self._may_reauthenticate(now_ms):
            return LoginStep(m.SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE))
        mechanism, listed = request.mechanism, self.settings.listed
        if again:
            self._reauthenticated_ms = now_ms
        if mechanism not in listed:
            self.state = SaslState.FAILED
            if again:
                # 4.4.0 begins a re-authentication where exceptions close the connection at once.
                return LoginStep(None, LoginFailure(LoginProblem.UNSUPPORTED_MECHANISM))
            error = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            failure = LoginFailure(LoginProblem.UNSUPPORTED_MECHANISM, is_delayed=True)
            return LoginStep(m.SaslHandshakeResponse(error_code=error, mechanisms=listed), failure)
        if again and mechanism != self.mechanism:
            self.state = SaslState.OTHER_MECHANISM
        else:
            self.state = SaslState.AUTHENTICATE
            self.mechanism = mechanism
            self._is_raw = version == 0
            self._server = self._create_server(mechanism)
        return LoginStep(m.SaslHandshakeResponse(mechanisms=listed))

    def _create_server(self, mechanism: str) -> SaslServer:
        settings, source = self.settings, self._credentials
        if mechanism == PLAIN:
            return PlainServer(settings.passwords)
        if mechanism == OAUTHBEARER:
            return OAuthBearerServer(settings.validate_token)
        return ScramServer(
            mechanism,
            lambda user: source.credential(mechanism, user),
            lambda token_id: source.token(mechanism, token_id),
            draw_text(self._rng),
        )

    def authenticate(self, request: m.SaslAuthenticateRequest, now_ms: int) -> LoginStep:
        """Take the client's next token."""
        if self.state is not SaslState.AUTHENTICATE or self._server is None:
            error = ErrorCode.ILLEGAL_SASL_STATE
            return LoginStep(m.SaslAuthenticateResponse(error_code=error, error_message=_TOO_LATE))
        match self._server.evaluate(bytes(request.auth_bytes), now_ms):
            case Challenge(data=data):
                return LoginStep(m.SaslAuthenticateResponse(auth_bytes=data))
            case LoginAccepted() as accepted:
                return self._accept(accepted, now_ms)
            case LoginRefused() as refused:
                return self._refuse(refused)
            case Broken(problem=problem):
                self.state = SaslState.FAILED
                return LoginStep(None, LoginFailure(problem))

    def _accept(self, accepted: LoginAccepted, now_ms: int) -> LoginStep:
        principal = Principal(USER_TYPE, accepted.user)
        before = self.identity.principal
        if self._reauthenticated_ms is not None and principal != before:
            text = (
                "Cannot change principals during re-authentication from"
                f" {before.type}.{before.name}: {principal.type}.{principal.name}"
            )
            return self._refuse(LoginRefused(LoginProblem.OTHER_PRINCIPAL, accepted.user, text))
        limits_ms = [self.settings.max_reauth_ms.get(self.mechanism, 0)]
        if accepted.expires_at_ms is not None:
            limits_ms.append(max(accepted.expires_at_ms - now_ms, 0))
        if limits_ms[0] <= 0:
            del limits_ms[0]
        lifetime_ms = min(limits_ms, default=0)
        if lifetime_ms > MAX_LIFETIME_MS:
            self.state = SaslState.FAILED
            return LoginStep(None, LoginFailure(LoginProblem.INVALID_TOKEN, accepted.user))
        self.state, self._server, self.is_new_session = SaslState.COMPLETE, None, True
        self.identity = replace(self.identity, principal=principal, by_token=accepted.by_token)
        # A session that is over when it begins ends within its first millisecond.
        self.session_ends_ms = now_ms + (lifetime_ms or -1) if limits_ms else None
        self._reauth_interval_ms = _reauth_interval_ms(lifetime_ms)
        return LoginStep(
            m.SaslAuthenticateResponse(auth_bytes=accepted.data, session_lifetime_ms=lifetime_ms)
        )

    def _refuse(self, refused: LoginRefused) -> LoginStep:
        self.state, self._server = SaslState.FAILED, None
        if self._is_raw:
            is_delayed = refused.message is not None
            return LoginStep(None, LoginFailure(refused.problem, refused.user, is_delayed))
        again = self._reauthenticated_ms is not None
        text = refused.message or (
            f"Authentication failed during {'re-authentication' if again else 'authentication'}"
            f" due to invalid credentials with SASL mechanism {self.mechanism}"
        )
        error = ErrorCode.SASL_AUTHENTICATION_FAILED
        body = m.SaslAuthenticateResponse(error_code=error, error_message=text)
        return LoginStep(body, LoginFailure(refused.problem, refused.user, is_delayed=True))


def _reauth_interval_ms(lifetime_ms: int) -> int:
    """The least time between two re-authentications.

    DIFFERS: in Kafka always MIN_REAUTH_INTERVAL_MS.  A live cluster's clock falls behind on a busy
    machine (docs/decisions/017-the-live-clock.md).  By that clock, a client that waited for 85 % of
    its session, and so for a second, could come too early.
    """
    if lifetime_ms * EARLIEST_REAUTH < MIN_REAUTH_INTERVAL_MS:
        return MIN_REAUTH_INTERVAL_MS
    return min(MIN_REAUTH_INTERVAL_MS, round(lifetime_ms * REAUTH_TOLERATED))
