"""SaslHandshake (API 17, v0-1) and SaslAuthenticate (API 36, v0-2).

Owns: the answers on a listener without SASL.  Never: decides about a login
(security/sasl/authenticator.py does).
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
    login.client_id = request.client_id or ""
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
