"""SaslHandshake 17 and SaslAuthenticate 36; delegation tokens 38-41, as a listener without
authentication answers them.

Owns: these refusals.  Never: decides about a login (security/sasl/authenticator.py does).
Kafka: KafkaApis.handleSaslHandshakeRequest, handleSaslAuthenticateRequest, ControllerApis (tokens
are forwarded there, but refused before: allowTokenRequests); KIP-43, KIP-48, KIP-152.
Versions:
- SaslHandshake v0-1, SaslAuthenticate v0-2
- CreateDelegationToken and DescribeDelegationToken v1-3, Renew and Expire v1-2
- CreateDelegationToken v3: names the requester (KIP-373)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kcluster.broker.broker import Broker
from kcluster.broker.registry import PARKED, Answer, handles
from kcluster.contract import Request
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kcluster.security.sasl.authenticator import SaslAuthenticator

ANONYMOUS: Final = ("User", "ANONYMOUS")
"""The principal of every client, because no client authenticates.  Kafka:
KafkaPrincipal.ANONYMOUS."""

TOO_LATE: Final = "SaslAuthenticate request received after successful authentication"
_NOT_HERE: Final = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
_NO_TOKEN_MS: Final = -1
"""The times of a delegation token in a response without one."""


@handles(ApiKey.SASL_HANDSHAKE, versions=(0, 1))
def sasl_handshake(broker: Broker, request: Request, now_ms: int) -> Answer:
    """Choose the mechanism of a login.

    Behaviour:
    - ILLEGAL_SASL_STATE without mechanisms on a listener without SASL, and for a client that has
      logged in and need not log in again;
    - UNSUPPORTED_SASL_MECHANISM with the enabled mechanisms, after the delay of a failed login.
    """
    login = _login(broker, request)
    if login is None or broker.logins is None:
        return m.SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    step = login.handshake(request.body, request.api_version, now_ms)
    return broker.logins.finish(request, step, now_ms) or PARKED


@handles(ApiKey.SASL_AUTHENTICATE, versions=(0, 2))
def sasl_authenticate(broker: Broker, request: Request, now_ms: int) -> Answer:
    """Take a token of a login.

    Behaviour:
    - ILLEGAL_SASL_STATE on a listener without SASL, and once the client has logged in;
    - SASL_AUTHENTICATION_FAILED after the delay of a failed login, which ends the connection.
    Versions:
    - v1: the session's lifetime (KIP-368)
    """
    login = _login(broker, request)
    if login is None or broker.logins is None:
        return m.SaslAuthenticateResponse(
            error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=TOO_LATE
        )
    step = login.authenticate(request.body, now_ms)
    return broker.logins.finish(request, step, now_ms) or PARKED


def _login(broker: Broker, request: Request) -> SaslAuthenticator | None:
    return None if broker.logins is None else broker.logins.get(request.connection_id)


@handles(ApiKey.CREATE_DELEGATION_TOKEN, versions=(1, 3))
def create_token(broker: Broker, request: Request, now_ms: int) -> m.CreateDelegationTokenResponse:
    """Refuse with DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, after a check of the token's owner: an
    owner name without a type (null) is Kafka's UNKNOWN_SERVER_ERROR.
    """
    body: m.CreateDelegationTokenRequest = request.body
    owner, error = ANONYMOUS, _NOT_HERE
    principal_type, name = body.owner_principal_type, body.owner_principal_name
    if name and principal_type is None:
        error = ErrorCode.UNKNOWN_SERVER_ERROR
    elif name and principal_type is not None:
        owner = (principal_type, name)
    return m.CreateDelegationTokenResponse(
        error_code=error,
        principal_type=owner[0],
        principal_name=owner[1],
        token_requester_principal_type=ANONYMOUS[0],
        token_requester_principal_name=ANONYMOUS[1],
        issue_timestamp_ms=_NO_TOKEN_MS,
        expiry_timestamp_ms=_NO_TOKEN_MS,
        max_timestamp_ms=_NO_TOKEN_MS,
    )


@handles(ApiKey.RENEW_DELEGATION_TOKEN, versions=(1, 2))
def renew_token(broker: Broker, request: Request, now_ms: int) -> m.RenewDelegationTokenResponse:
    """Refuse with DELEGATION_TOKEN_REQUEST_NOT_ALLOWED."""
    return m.RenewDelegationTokenResponse(error_code=_NOT_HERE, expiry_timestamp_ms=_NO_TOKEN_MS)


@handles(ApiKey.EXPIRE_DELEGATION_TOKEN, versions=(1, 2))
def expire_token(broker: Broker, request: Request, now_ms: int) -> m.ExpireDelegationTokenResponse:
    """Refuse with DELEGATION_TOKEN_REQUEST_NOT_ALLOWED."""
    return m.ExpireDelegationTokenResponse(error_code=_NOT_HERE, expiry_timestamp_ms=_NO_TOKEN_MS)


@handles(ApiKey.DESCRIBE_DELEGATION_TOKEN, versions=(1, 3))
def describe_tokens(
    broker: Broker, request: Request, now_ms: int
) -> m.DescribeDelegationTokenResponse:
    """Refuse with DELEGATION_TOKEN_REQUEST_NOT_ALLOWED."""
    return m.DescribeDelegationTokenResponse(error_code=_NOT_HERE)
