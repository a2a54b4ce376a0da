"""Signed tokens of OAUTHBEARER: JSON Web Tokens, and the keys that sign them (RFC 7519, RFC 7517).

Owns: the checks of Kafka's validator, by the cluster's clock.  Never: fetches or reads a key set,
checks a signature itself (PyJWT does).
Kafka: OAuthBearerValidatorCallbackHandler, BrokerJwtValidator, ClaimValidationUtils; KIP-768.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import jwt
import msgspec
from jwt.types import Options
from msgspec import Struct

from kcluster.security.sasl.exchange import LoginProblem
from kcluster.security.sasl.oauthbearer import (
    InvalidToken,
    TokenRules,
    Validated,
    ValidToken,
    round_ms,
)


class _KeySet(Struct):
    keys: list[dict[str, object]]


@final
class SignedTokens:
    """Accepts tokens that are signed by a key of a set.  ValueError if the set has no usable
    key."""

    def __init__(self, key_set: bytes, rules: TokenRules) -> None:
        try:
            self._keys = jwt.PyJWKSet(msgspec.json.decode(key_set, type=_KeySet).keys).keys
        except (jwt.PyJWTError, msgspec.DecodeError) as error:
            raise ValueError(f"no set of keys (JWKS): {error}") from None
        self._rules = rules
        # The times are checked here, by the clock of the cluster.
        self._options: Options = {
            "require": ["exp", "iat"],
            "verify_aud": bool(rules.audiences),
            "verify_exp": False,
            "verify_iat": False,
            "verify_jti": False,
            "verify_nbf": False,
            "verify_sub": False,
        }

    def validate(self, token: str, now_ms: int) -> Validated:
        """Check the signature, then the claims."""
        claims = self._verify(token)
        if claims is None:
            return InvalidToken()
        rules = self._rules
        subject, scope = claims.get(rules.subject_claim), claims.get(rules.scope_claim, [])
        expires_s, issued_s = claims["exp"], claims["iat"]
        begins_s = claims.get("nbf", 0)
        if (
            not isinstance(expires_s, float | int)
            or not isinstance(issued_s, float | int)
            or not isinstance(begins_s, float | int)
            or not isinstance(subject, str)
            or not subject.strip()
            or not isinstance(scope, str | list)
        ):
            return InvalidToken()
        if now_ms - rules.clock_skew_ms >= 1000 * expires_s:
            return InvalidToken(LoginProblem.EXPIRED_TOKEN)
        if now_ms + rules.clock_skew_ms < 1000 * begins_s:
            return InvalidToken()
        return ValidToken(subject.strip(), round_ms(expires_s))

    def _verify(self, token: str) -> Mapping[str, object] | None:
        """The claims of a token with a right signature, audience and issuer."""
        try:
            key_id = jwt.get_unverified_header(token).get("kid")
        except jwt.PyJWTError:
            return None
        for key in self._keys:
            if key_id is not None and key.key_id != key_id:
                continue
            claims = self._decode(token, key)
            if claims is not None:
                return claims
        return None

    def _decode(self, token: str, key: jwt.PyJWK) -> Mapping[str, object] | None:
        rules = self._rules
        try:
            claims: Mapping[str, object] = jwt.decode(
                token,
                key,
                algorithms=[key.algorithm_name],
                audience=rules.audiences or None,
                issuer=rules.issuer,
                options=self._options,
            )
        except jwt.PyJWTError:
            return None
        return claims
