"""The logins at a broker's listeners with security: kept by connection, ended after a delay.

Owns: the authenticators, the delay before a failed login is answered and its connection closed, the
clients' sessions for readers.  Never: decides whether a client may come in (security/sasl/ does),
reads frames (channel.py does), counts (authentications.py).
Kafka: Selector (DelayedAuthenticationFailureClose), CredentialCache, DelegationTokenCache.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from typing import final

from msgspec import Struct

from kcluster.broker.authentications import Authentications
from kcluster.broker.connected import ConnectedClients
from kcluster.broker.ports import BrokerView, Outbox
from kcluster.contract import (
    CloseConnection,
    EndSessions,
    HandshakeFailed,
    LoginFailed,
    NoteId,
    Reply,
    Request,
    Rng,
)
from kcluster.events.security import (
    AuthenticationFailed,
    CredentialsApplied,
    SessionsEnded,
    TlsHandshakeFailed,
)
from kcluster.metadata.records import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from kcluster.principals import ANONYMOUS, MAX_SHOWN_CHARS, ClientIdentity
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.messages import Message, SaslAuthenticateRequest
from kcluster.security.certificates import HandshakeProblem
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


class ClientSession(Struct, frozen=True):
    """A connected client that has been let in.

    `client_id`: the name that it gives itself; `host`: its address; `mechanism`: empty without
    SASL; `ends_ms`: the time by which it must have logged in again, None: never.
    """

    client_id: str
    host: str
    identity: ClientIdentity
    mechanism: str = ""
    ends_ms: int | None = None


@final
class Logins:
    """The logins of a broker from its start to its stop.  `settings`: of the listeners with SASL,
    by name."""

    def __init__(
        self,
        settings: Mapping[str, SaslSettings],
        view: BrokerView,
        timers: Timers,
        outbox: Outbox,
        rng: Rng,
    ) -> None:
        self.settings = settings
        self.clients = ConnectedClients()
        self.authentications = Authentications(timers, outbox)
        self._view = view
        self._credentials = KnownCredentials(view)
        self._timers = timers
        self._outbox = outbox
        self._rng = rng
        self._logins: dict[int, SaslAuthenticator] = {}

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

    # ------------------------------------------------------------------------- for the drivers

    def secured(self, identity: ClientIdentity) -> None:
        """Count a successful TLS handshake, unless the listener has SASL: then the login counts."""
        if not identity.protocol.has_sasl:
            self.authentications.secured(identity.listener)

    # ------------------------------------------------------------------------ for the readers

    def sessions(self) -> Iterator[ClientSession]:
        """The clients that are let in now."""
        for connection_id, client in self.clients.by_connection.items():
            identity, login = client.identity, self._logins.get(connection_id)
            if login is None:
                yield ClientSession(client.name, client.host, identity)
            elif login.is_complete or login.identity.principal != ANONYMOUS:
                yield ClientSession(
                    client.name, client.host, login.identity, login.mechanism, login.session_ends_ms
                )

    # ------------------------------------------------------------------------ for the handlers

    def finish(self, request: Request, step: LoginStep, now_ms: int) -> Message | None:
        """The answer to a SASL request; None: the login failed, and is answered and ended after a
        delay."""
        failure = step.failure
        if failure is None:
            if request.api_key == ApiKey.SASL_AUTHENTICATE:
                self._count_success(request)
            return step.body
        failed = self.failed(failure, request.connection_id, request.client_host)
        failed.request, failed.answer = request, step.body
        self.end(failed, now_ms)
        return None

    def _count_success(self, request: Request) -> None:
        """Count a login that has just succeeded; other answers do not count."""
        login = self._logins[request.connection_id]
        if not login.is_new_session:
            return
        login.is_new_session = False
        counts = self.authentications.at(login.identity.listener)
        if login.has_reauthenticated:
            counts.successful_reauthentication += 1
        else:
            counts.successful += 1
            counts.successful_no_reauth += not request.api_version
        self.clients.revision += 1

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
        self.clients.connection_closed(connection_id)
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
        self.clients.revision += 1
        self._outbox.note(SessionsEnded(self._view.node_id, ended.user, ended.mechanism, count))

    # -------------------------------------------------------------------------------- events

    def handshake_failed(self, failed: HandshakeFailed, now_ms: int) -> None:
        """Report a client whose TLS handshake failed."""
        self.authentications.at(failed.listener).failed += 1
        event = TlsHandshakeFailed(
            self._view.node_id,
            failed.listener,
            failed.client_host,
            HandshakeProblem(failed.problem),
            failed.detail[:MAX_SHOWN_CHARS],
        )
        self.authentications.report(event, now_ms)

    def on_metadata(
        self, changes: Iterable[UserScramCredentialRecord | RemoveUserScramCredentialRecord]
    ) -> None:
        """Note changed credentials, by which this broker decides from now on."""
        users: dict[NoteId, dict[str, None]] = {}
        for change in changes:
            if change.cause is not None:  # else the cluster began with it
                users.setdefault(change.cause, {})[change.name] = None
        for cause, names in users.items():
            self._outbox.note(CredentialsApplied(self._view.node_id, tuple(names)), cause)

    def _report(self, login: SaslAuthenticator, failed: LoginFailed, now_ms: int) -> str:
        """Count and note a failure; its text for the log."""
        problem = LoginProblem(failed.problem)
        listener = login.identity.listener
        counts = self.authentications.at(listener)
        if problem is LoginProblem.SESSION_EXPIRED:
            counts.expired_connections_killed += 1
        elif not failed.is_delayed:
            pass  # in Kafka, a lost connection
        elif login.session_ends_ms is not None:
            counts.failed_reauthentication += 1
        else:
            counts.failed += 1
        event = AuthenticationFailed(
            self._view.node_id,
            listener,
            login.mechanism,
            failed.client_host,
            login.client_id[:MAX_SHOWN_CHARS],
            problem,
            failed.user[:MAX_SHOWN_CHARS],
        )
        self.authentications.report(event, now_ms)
        detail = f" ({failed.detail})" if failed.detail else ""
        return f"login failed: {problem}{detail}"


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
