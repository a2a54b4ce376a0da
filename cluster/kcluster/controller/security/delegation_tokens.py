"""CreateDelegationToken, RenewDelegationToken and ExpireDelegationToken (APIs 38, 39, 40): the
tokens in the metadata.

Owns: the acceptance of tokens, their expiry, and the records for them.  Never: checks a client's
rights or describes a token (brokers do), authenticates by one.
Kafka: DelegationTokenControlManager; KIP-48, KIP-373, KIP-900.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from kcluster.controller.ports import MetadataPort
from kcluster.controller.registry import Handler
from kcluster.metadata.records import (
    DelegationTokenRecord,
    RemoveDelegationTokenRecord,
    TokenChange,
)
from kcluster.principals import USER_TYPE, Principal
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.uuids import uuid_text
from kcluster.security.tokens import TokenSettings

_TIMER: Final = "expired delegation tokens"


class DelegationTokens:
    """The delegation tokens in the metadata.  `settings`: None if there are none."""

    def __init__(self, metadata: MetadataPort, settings: TokenSettings | None) -> None:
        self._metadata = metadata
        self._settings = settings

    def handlers(self) -> dict[str, Handler]:
        """The handlers of this part; see registry.py."""
        return {} if self._settings is None else {"TokenChange": self.change}

    def start(self, now_ms: int) -> None:
        """Sweep expired tokens from now on."""
        if self._settings is not None:
            self._sweep(now_ms)

    def _sweep(self, now_ms: int) -> None:
        assert self._settings is not None
        tokens = self._metadata.image.delegation_tokens.values()
        expired = [token.token_id for token in tokens if token.is_expired(now_ms)]
        self._metadata.commit([RemoveDelegationTokenRecord(token_id) for token_id in expired])
        self._metadata.timers.set(_TIMER, now_ms + self._settings.check_interval_ms, self._sweep)

    def change(
        self, change: TokenChange, now_ms: int
    ) -> (
        m.CreateDelegationTokenResponse
        | m.RenewDelegationTokenResponse
        | m.ExpireDelegationTokenResponse
    ):
        """Create, renew or expire a token."""
        assert self._settings is not None
        match change.body:
            case m.CreateDelegationTokenRequest() as creation:
                return self._create(creation, change.requester, self._settings, now_ms)
            case m.RenewDelegationTokenRequest() as renewal:
                return self._renew(renewal, change.requester, self._settings, now_ms)
            case m.ExpireDelegationTokenRequest() as expiry:
                return self._expire(expiry, change.requester, self._settings, now_ms)
            case _:
                raise AssertionError(change)

    def _create(
        self,
        request: m.CreateDelegationTokenRequest,
        requester: Principal,
        settings: TokenSettings,
        now_ms: int,
    ) -> m.CreateDelegationTokenResponse:
        owner = requester
        if request.owner_principal_name:
            owner = Principal(request.owner_principal_type or "", request.owner_principal_name)
        lifetime_ms = settings.max_lifetime_ms
        if request.max_lifetime_ms > 0:
            lifetime_ms = min(lifetime_ms, request.max_lifetime_ms)
        token = DelegationTokenRecord(
            token_id=uuid_text(self._metadata.rng.randbytes(16)),
            owner=owner,
            requester=requester,
            renewers=tuple(
                Principal(USER_TYPE, renewer.principal_name) for renewer in request.renewers
            ),
            issued_ms=now_ms,
            expires_ms=now_ms + min(lifetime_ms, settings.expiry_ms),
            max_ms=now_ms + lifetime_ms,
        )
        self._metadata.commit([token])
        return m.CreateDelegationTokenResponse(
            principal_type=owner.type,
            principal_name=owner.name,
            token_requester_principal_type=requester.type,
            token_requester_principal_name=requester.name,
            issue_timestamp_ms=token.issued_ms,
            expiry_timestamp_ms=token.expires_ms,
            max_timestamp_ms=token.max_ms,
            token_id=token.token_id,
            hmac=settings.hmac_of(token.token_id),
        )

    def _find(self, hmac: bytes, settings: TokenSettings) -> DelegationTokenRecord | None:
        tokens = self._metadata.image.delegation_tokens
        token_id = settings.find(tokens, hmac)
        return None if token_id is None else tokens[token_id]

    def _renew(
        self,
        request: m.RenewDelegationTokenRequest,
        requester: Principal,
        settings: TokenSettings,
        now_ms: int,
    ) -> m.RenewDelegationTokenResponse:
        response = m.RenewDelegationTokenResponse
        token = self._find(bytes(request.hmac), settings)
        if token is None:
            return response(error_code=ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
        if token.is_expired(now_ms):
            return response(error_code=ErrorCode.DELEGATION_TOKEN_EXPIRED)
        if not token.may_renew(requester):
            return response(error_code=ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
        period_ms = settings.expiry_ms
        if request.renew_period_ms > 0:
            period_ms = min(period_ms, request.renew_period_ms)
        return response(expiry_timestamp_ms=self._set_end(token, now_ms + period_ms))

    def _expire(
        self,
        request: m.ExpireDelegationTokenRequest,
        requester: Principal,
        settings: TokenSettings,
        now_ms: int,
    ) -> m.ExpireDelegationTokenResponse:
        response = m.ExpireDelegationTokenResponse
        token = self._find(bytes(request.hmac), settings)
        if token is None:
            return response(error_code=ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
        if not token.may_renew(requester):
            return response(error_code=ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
        if request.expiry_time_period_ms < 0:
            self._metadata.commit([RemoveDelegationTokenRecord(token.token_id)])
            return response(expiry_timestamp_ms=now_ms)
        if token.is_expired(now_ms):
            return response(error_code=ErrorCode.DELEGATION_TOKEN_EXPIRED)
        end_ms = now_ms + request.expiry_time_period_ms
        return response(expiry_timestamp_ms=self._set_end(token, end_ms))

    def _set_end(self, token: DelegationTokenRecord, end_ms: int) -> int:
        """Let a token expire at `end_ms`, or at the end of its lifetime if that is earlier; returns
        the time."""
        expires_ms = min(end_ms, token.max_ms)
        self._metadata.commit([replace(token, expires_ms=expires_ms)])
        return expires_ms
