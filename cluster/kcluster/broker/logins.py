"""The logins of a broker's SASL connections: kept by connection, ended after a delay, reported.

Owns: the authenticators, the delay before a failed login is answered and its connection closed, the
events of failures (equal ones within a second are one event).  Never: decides whether a client may
come in (security/sasl/ does), reads frames (channel.py does).
Kafka: Selector (DelayedAuthenticationFailureClose), CredentialCache, DelegationTokenCache.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Final, final

from kcluster.broker.ports import BrokerView, Outbox
from kcluster.contract import CloseConnection, EndSessions, LoginFailed, Reply, Request, Rng
from kcluster.events.clients import AuthenticationFailed
from kcluster.events.security import SessionsEnded
from kcluster.principals import ClientIdentity
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.messages import Message, SaslAuthenticateRequest
from kcluster.security.sasl.authenticator import (
    LoginFailure,
    LoginStep,
    SaslAuthenticator,
    SaslState,
)
from kcluster.security.sasl.exchange import LoginProblem
from kcluster.security.sasl.mechanisms import SCRAM_CODES
from kcluster.security.sasl.scram import TokenCredential
from kcluster.security.sasl.scram_keys import MIN_ITERATIONS, Credential, derive_keys
from kcluster.security.sasl.settings import SaslSettings
from kcluster.timers import Timers

FOLD_MS: Final = 1_000
"""The time for which equal failures are counted before the next event."""
MAX_FOLDED: Final = 1_000
"""The maximum number of different failures that are counted at a time; further ones are not
reported."""
MAX_SHOWN: Final = 100
"""The number of characters of a user's name that are reported: a client may send any name."""

_Fold = tuple[str, str, str, LoginProblem, str]


@final
class Logins:
    """The logins of a broker from its start to its stop.  `settings`: by listener."""

    def __init__(
        self,
        settings: Mapping[str, SaslSettings],
        view: BrokerView,
        timers: Timers,
        outbox: Outbox,
        rng: Rng,
    ) -> None:
        self.settings = settings
        self._view = view
        self._credentials = KnownCredentials(view)
        self._timers = timers
        self._outbox = outbox
        self._rng = rng
        self._logins: dict[int, SaslAuthenticator] = {}
        self._folded: dict[_Fold, int] = {}
        """The number of failures since the last event, by their facts."""

    # ----------------------------------------------------------------------- for the channels

    def of(self, connection_id: int, listener: ClientIdentity) -> SaslAuthenticator:
        """The login of a connection, which begins with its first frame."""
        login = self._logins.get(connection_id)
        if login is None:
            settings = self.settings[listener.listener]
            login = SaslAuthenticator(settings, listener, self._credentials, self._rng)
            self._logins[connection_id] = login
        return login

    def get(self, connection_id: int) -> SaslAuthenticator | None:
        """The login of a connection; None if its listener has no SASL."""
        return self._logins.get(connection_id)

    def raw_token(
        self,
        login: SaslAuthenticator,
        frame: memoryview,
        connection_id: int,
        client_host: str,
        now_ms: int,
    ) -> Request:
        """A token without a request's header (after SaslHandshake v0), as a request."""
        login.awaits_raw_answer = True
        token = SaslAuthenticateRequest(auth_bytes=bytes(frame))
        key = ApiKey.SASL_AUTHENTICATE
        return Request(connection_id, key, 0, 0, None, token, client_host, now_ms, login.identity)

    def failed(self, failure: LoginFailure, connection_id: int, client_host: str) -> LoginFailed:
        """The end of a login, for the broker."""
        return LoginFailed(
            connection_id, client_host, failure.problem, failure.user, "", failure.is_delayed
        )

    def malformed(
        self, login: SaslAuthenticator, connection_id: int, client_host: str, detail: str
    ) -> LoginFailed:
        """The end of the login of a client whose frame is not a request that the broker serves."""
        login.reject()
        return LoginFailed(connection_id, client_host, LoginProblem.NOT_SASL, detail=detail)

    def unreadable(
        self, connection_id: int, listener: ClientIdentity, client_host: str, detail: str
    ) -> LoginFailed | None:
        """The end of the login of a client whose bytes are no frame; None if it has ended."""
        login = self.of(connection_id, listener)
        if login.state is SaslState.FAILED:
            return None
        login.reject()
        problem = LoginProblem.TOO_LARGE
        return LoginFailed(connection_id, client_host, problem, detail=detail, is_delayed=True)

    # ------------------------------------------------------------------------ for the handlers

    def finish(self, request: Request, step: LoginStep, now_ms: int) -> Message | None:
        """The answer to a SASL request; None: the login failed, and is answered and ended after a
        delay."""
        failure = step.failure
        if failure is None:
            return step.body
        failed = self.failed(failure, request.connection_id, request.client_host)
        failed.request, failed.answer = request, step.body
        self.end(failed, now_ms)
        return None

    def end(self, failed: LoginFailed, now_ms: int) -> None:
        """Report a failed login, and close its connection, after a delay if it has one."""
        login = self._logins.get(failed.connection_id)
        if login is None:
            return
        reason = self._report(login, failed, now_ms)

        def close(_now_ms: int) -> None:
            if failed.request is not None and failed.answer is not None:
                self._outbox.emit(Reply(failed.request, failed.answer, reason))
            else:
                self._outbox.emit(CloseConnection(failed.connection_id, reason))

        delay_ms = login.settings.failure_delay_ms if failed.is_delayed else 0
        if delay_ms:
            self._timers.set(("failed login", failed.connection_id), now_ms + delay_ms, close)
        else:
            close(now_ms)

    def connection_closed(self, connection_id: int) -> None:
        """Forget a connection."""
        if self._logins.pop(connection_id, None) is not None:
            self._timers.cancel(("failed login", connection_id))

    def end_sessions(self, ended: EndSessions, now_ms: int) -> None:
        """End the sessions of a user, or of all."""
        count = sum(
            login.end_session(now_ms)
            for login in self._logins.values()
            if ended.user in (None, login.identity.principal.name)
            and ended.mechanism in ("", login.mechanism)
        )
        self._outbox.note(SessionsEnded(self._view.node_id, ended.user, ended.mechanism, count))

    # -------------------------------------------------------------------------------- events

    def _report(self, login: SaslAuthenticator, failed: LoginFailed, now_ms: int) -> str:
        """Note the failure, unless equal ones were noted a moment ago; its text for the log."""
        problem = LoginProblem(failed.problem)
        listener = login.identity.listener
        user = failed.user[:MAX_SHOWN]
        key = (listener, login.mechanism, failed.client_host, problem, user)
        event = AuthenticationFailed(*key)
        if key in self._folded:
            self._folded[key] += 1
        elif len(self._folded) < MAX_FOLDED:
            self._outbox.note(event)
            self._folded[key] = 0
            self._timers.set(("failed logins", *key), now_ms + FOLD_MS, self._unfold(key))
        detail = f" ({failed.detail})" if failed.detail else ""
        return f"login failed: {problem}{detail}"

    def _unfold(self, key: _Fold) -> Callable[[int], None]:
        """Note the failures of the past second; count on if there were any."""

        def unfold(now_ms: int) -> None:
            times = self._folded.pop(key)
            if times:
                self._outbox.note(AuthenticationFailed(*key, times=times))
                self._folded[key] = 0
                self._timers.set(("failed logins", *key), now_ms + FOLD_MS, unfold)

        return unfold


@final
class KnownCredentials:
    """The credentials in a broker's metadata image, which may lag behind the controller's."""

    def __init__(self, view: BrokerView) -> None:
        self._view = view

    def credential(self, mechanism: str, user: str) -> Credential | None:
        """A user's SCRAM credential."""
        return self._view.image.scram_credentials.get((user, SCRAM_CODES[mechanism]))

    def token(self, mechanism: str, token_id: str) -> TokenCredential | None:
        """A delegation token.  Its HMAC in base 64 counts as its password."""
        settings, image = self._view.tokens, self._view.image
        token = image.delegation_tokens.get(token_id)
        if settings is None or token is None:
            return None
        password = b64encode(settings.hmac_of(token_id)).decode()
        keys = derive_keys(mechanism, password, token_id.encode(), MIN_ITERATIONS)
        return TokenCredential(token.owner.name, keys, token.expires_ms)
