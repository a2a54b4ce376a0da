"""SASL and delegation tokens on a listener without either."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.protocol import messages as m
from kcluster.protocol.apis import VERSIONS, ApiKey
from kcluster.protocol.errors import ErrorCode
from tests.rig.one_broker import OneBroker

REQUESTS = {
    ApiKey.SASL_HANDSHAKE: m.SaslHandshakeRequest(mechanism="PLAIN"),
    ApiKey.SASL_AUTHENTICATE: m.SaslAuthenticateRequest(auth_bytes=b"\0user\0secret"),
    ApiKey.CREATE_DELEGATION_TOKEN: m.CreateDelegationTokenRequest(),
    ApiKey.RENEW_DELEGATION_TOKEN: m.RenewDelegationTokenRequest(hmac=b"x"),
    ApiKey.EXPIRE_DELEGATION_TOKEN: m.ExpireDelegationTokenRequest(hmac=b"x"),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: m.DescribeDelegationTokenRequest(owners=None),
}
NOT_HERE = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


@pytest.mark.parametrize(
    ("api_key", "version"),
    [(key, v) for key in REQUESTS for v in range(VERSIONS[key][0], VERSIONS[key][1] + 1)],
)
def test_authentication__is_refused_in_every_version(
    one: OneBroker, api_key: ApiKey, version: int
) -> None:
    answer = one.ask(api_key, version, REQUESTS[api_key])
    sasl = api_key in (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)
    assert answer.error_code == (ErrorCode.ILLEGAL_SASL_STATE if sasl else NOT_HERE)
    if hasattr(answer, "expiry_timestamp_ms"):
        assert answer.expiry_timestamp_ms == -1


@pytest.mark.parametrize(
    ("owner", "error", "principal"),
    [
        ((None, None), NOT_HERE, ("User", "ANONYMOUS")),
        (("User", ""), NOT_HERE, ("User", "ANONYMOUS")),
        (("User", None), NOT_HERE, ("User", "ANONYMOUS")),
        (("User", "ann"), NOT_HERE, ("User", "ann")),
        (("", "ann"), NOT_HERE, ("", "ann")),
        ((None, "ann"), ErrorCode.UNKNOWN_SERVER_ERROR, ("User", "ANONYMOUS")),
    ],
)
def test_create_token__names_the_owner(
    one: OneBroker, owner: Any, error: ErrorCode, principal: tuple[str, str]
) -> None:
    body = m.CreateDelegationTokenRequest(
        owner_principal_type=owner[0], owner_principal_name=owner[1]
    )
    answer = one.ask(ApiKey.CREATE_DELEGATION_TOKEN, 3, body)
    assert answer.error_code == error
    assert (answer.principal_type, answer.principal_name) == principal
    assert answer.token_requester_principal_name == "ANONYMOUS"
