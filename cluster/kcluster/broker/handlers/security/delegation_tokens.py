"""CreateDelegationToken 38, RenewDelegationToken 39, ExpireDelegationToken 40 and
DescribeDelegationToken 41.

Owns: who may ask for a token, the description of tokens from the image.  Never: makes or changes a
token (the controller does).
Kafka: KafkaApis (allowTokenRequests), DelegationTokenManager.filterToken; KIP-48, KIP-373.
Versions:
- Create and Describe v1-3, Renew and Expire v1-2
- v3: an owner that is not the requester (KIP-373)

DELEGATION_TOKEN_REQUEST_NOT_ALLOWED for clients that did not log in, or did so by a token;
DELEGATION_TOKEN_AUTH_DISABLED without delegation.token.secret.key.
"""

from __future__ import annotations

from typing import Final

from kcluster.broker.broker import Broker
from kcluster.broker.registry import PARKED, Answer, handles
from kcluster.contract import Request
from kcluster.metadata.records import DelegationTokenRecord, TokenChange
from kcluster.principals import ANONYMOUS, USER_TYPE, Principal, SecurityProtocol
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.security.acls import AclOperation, AclResource
from kcluster.security.tokens import TokenSettings

_NOT_ALLOWED: Final = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
_DISABLED: Final = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
_NO_TOKEN_MS: Final = -1
"""The times of a delegation token in a broker's response without one."""


@handles(ApiKey.CREATE_DELEGATION_TOKEN, versions=(1, 3))
def create_token(broker: Broker, request: Request, now_ms: int) -> Answer:
    """Have the controller create a token.

    Behaviour:
    - an owner name without a type (null) is Kafka's UNKNOWN_SERVER_ERROR on a listener without
      authentication;
    - DELEGATION_TOKEN_AUTHORIZATION_FAILED without CREATE_TOKENS for another owner;
    - INVALID_PRINCIPAL_TYPE for a renewer that is no user.
    """
    body: m.CreateDelegationTokenRequest = request.body
    requester = owner = request.identity.principal
    kind, name = body.owner_principal_type, body.owner_principal_name
    error = ErrorCode.NONE if _may_ask(request) else _NOT_ALLOWED
    if name and kind is None and error:
        error = ErrorCode.UNKNOWN_SERVER_ERROR
    elif name:
        owner = Principal(kind or "", name)
    if not error:
        error = _creation_error(broker, request, owner)
    if error or broker.view.tokens is None:
        return m.CreateDelegationTokenResponse(
            error_code=error or _DISABLED,
            principal_type=owner.type,
            principal_name=owner.name,
            token_requester_principal_type=requester.type,
            token_requester_principal_name=requester.name,
            issue_timestamp_ms=_NO_TOKEN_MS,
            expiry_timestamp_ms=_NO_TOKEN_MS,
            max_timestamp_ms=_NO_TOKEN_MS,
        )
    late = m.CreateDelegationTokenResponse(error_code=ErrorCode.REQUEST_TIMED_OUT)
    return _change(broker, request, late, now_ms)


def _creation_error(broker: Broker, request: Request, owner: Principal) -> ErrorCode:
    if owner != request.identity.principal and broker.access is not None:
        rights = broker.access.rights_of(request)
        if not rights.may(AclOperation.CREATE_TOKENS, AclResource.USER, str(owner)):
            return ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    if any(renewer.principal_type != USER_TYPE for renewer in request.body.renewers):
        return ErrorCode.INVALID_PRINCIPAL_TYPE
    return ErrorCode.NONE


@handles(ApiKey.RENEW_DELEGATION_TOKEN, versions=(1, 2))
def renew_token(broker: Broker, request: Request, now_ms: int) -> Answer:
    """Have the controller renew a token.

    Behaviour:
    - DELEGATION_TOKEN_NOT_FOUND, _EXPIRED, _OWNER_MISMATCH, in this order.
    """
    error = _change_error(broker, request)
    response = m.RenewDelegationTokenResponse
    if error:
        return response(error_code=error, expiry_timestamp_ms=_NO_TOKEN_MS)
    return _change(broker, request, response(error_code=ErrorCode.REQUEST_TIMED_OUT), now_ms)


@handles(ApiKey.EXPIRE_DELEGATION_TOKEN, versions=(1, 2))
def expire_token(broker: Broker, request: Request, now_ms: int) -> Answer:
    """Have the controller change the end of a token, or remove it (if the period is negative).

    Behaviour:
    - DELEGATION_TOKEN_NOT_FOUND, _OWNER_MISMATCH, _EXPIRED, in this order; an expired token can be
      removed.
    """
    error = _change_error(broker, request)
    response = m.ExpireDelegationTokenResponse
    if error:
        return response(error_code=error, expiry_timestamp_ms=_NO_TOKEN_MS)
    return _change(broker, request, response(error_code=ErrorCode.REQUEST_TIMED_OUT), now_ms)


@handles(ApiKey.DESCRIBE_DELEGATION_TOKEN, versions=(1, 3))
def describe_tokens(
    broker: Broker, request: Request, now_ms: int
) -> m.DescribeDelegationTokenResponse:
    """Describe the tokens of the named owners, or of all (null), as far as the client may see them.

    Behaviour:
    - no tokens for an empty list;
    - tokens that the client owns, requested or may renew; others with DESCRIBE on the token or
      DESCRIBE_TOKENS on its owner.
    """
    error = _change_error(broker, request)
    settings = broker.view.tokens
    if error or settings is None:
        return m.DescribeDelegationTokenResponse(error_code=error)
    owners = request.body.owners
    named = None
    if owners is not None:
        named = {Principal(each.principal_type, each.principal_name) for each in owners}
    return m.DescribeDelegationTokenResponse(
        tokens=[
            _described(token, settings)
            for token in broker.image.delegation_tokens.values()
            if (named is None or any(_concerns(token, one) for one in sorted(named)))
            and _may_see(broker, request, token)
        ]
    )


def _concerns(token: DelegationTokenRecord, principal: Principal) -> bool:
    return principal == token.requester or token.may_renew(principal)


def _may_see(broker: Broker, request: Request, token: DelegationTokenRecord) -> bool:
    if broker.access is None or _concerns(token, request.identity.principal):
        return True
    rights = broker.access.rights_of(request)
    return rights.may(
        AclOperation.DESCRIBE, AclResource.DELEGATION_TOKEN, token.token_id, silently=True
    ) or rights.may(AclOperation.DESCRIBE_TOKENS, AclResource.USER, str(token.owner), silently=True)


def _described(
    token: DelegationTokenRecord, settings: TokenSettings
) -> m.DescribeDelegationTokenResponse.DescribedDelegationToken:
    response = m.DescribeDelegationTokenResponse
    return response.DescribedDelegationToken(
        principal_type=token.owner.type,
        principal_name=token.owner.name,
        token_requester_principal_type=token.requester.type,
        token_requester_principal_name=token.requester.name,
        issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expires_ms,
        max_timestamp=token.max_ms,
        token_id=token.token_id,
        hmac=settings.hmac_of(token.token_id),
        renewers=[
            response.DescribedDelegationTokenRenewer(renewer.type, renewer.name)
            for renewer in token.renewers
        ],
    )


def _may_ask(request: Request) -> bool:
    """Whether a client may ask for tokens at all.  Kafka: KafkaApis.allowTokenRequests."""
    identity = request.identity
    if identity.by_token or identity.protocol is SecurityProtocol.PLAINTEXT:
        return False
    return identity.protocol.has_sasl or identity.principal != ANONYMOUS


def _change_error(broker: Broker, request: Request) -> ErrorCode:
    if not _may_ask(request):
        return _NOT_ALLOWED
    return ErrorCode.NONE if broker.view.tokens is not None else _DISABLED


def _change(broker: Broker, request: Request, late: m.Message, now_ms: int) -> Answer:
    """Have the controller change a token.  `late`: the answer if it gives none in time."""

    def on_answer(answer: m.Message | None, now_ms: int) -> None:
        broker.reply(request, late if answer is None else answer)

    change = TokenChange(request.body, request.identity.principal)
    broker.ask_controller(change, on_answer, broker.config.request_timeout_ms, now_ms)
    return PARKED
