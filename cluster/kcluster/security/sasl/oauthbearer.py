"""OAUTHBEARER: a client shows a token (RFC 7628, KIP-255).

Owns: both sides of the exchange, and unsecured tokens, Kafka's own test mode.  Never: checks a
signature, fetches a token.
Kafka: OAuthBearerSaslServer, OAuthBearerClientInitialResponse, OAuthBearerUnsecuredJws,
OAuthBearerUnsecuredValidatorCallbackHandler, OAuthBearerValidationUtils.

    client  n,,^Aauth=Bearer TOKEN^A^A
    server  nothing, or {"status":"invalid_token"}, which the client acknowledges with ^A
"""

from __future__ import annotations

import binascii
import math
import re
from base64 import b64encode, urlsafe_b64decode
from collections.abc import Callable, Mapping
from typing import Final, final

import msgspec
from msgspec import Struct

from kcluster.security.sasl.exchange import (
    Answer,
    Broken,
    Challenge,
    LoginAccepted,
    LoginProblem,
    LoginRefused,
)
from kcluster.security.sasl.mechanisms import OAUTHBEARER

_SEPARATOR: Final = "\x01"
_SASLNAME: Final = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_FIRST: Final = re.compile(
    f"n,(?:a=(?P<authzid>{_SASLNAME}))?,\x01"
    r"(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*)\x01"
)
_AUTH: Final = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)", re.ASCII)
_MAX_LONG: Final = 2**63 - 1


class ValidToken(Struct, frozen=True):
    """A token that was accepted."""

    principal: str
    expires_at_ms: int


class InvalidToken(Struct, frozen=True):
    """A token that was not accepted; `scope`: the scope that it lacks."""

    problem: LoginProblem = LoginProblem.INVALID_TOKEN
    scope: str | None = None


class TokenRules(Struct, frozen=True):
    """What a listener asks of a signed token; the fields are Kafka's configs sasl.oauthbearer.*."""

    audiences: tuple[str, ...] = ()
    """The token must name one of them; empty: any audience."""
    issuer: str | None = None
    scope_claim: str = "scope"
    subject_claim: str = "sub"
    clock_skew_ms: int = 30_000


Validated = ValidToken | InvalidToken | Broken
Validator = Callable[[str, int], Validated]
"""Validates a token: (token, now_ms) -> the result."""


@final
class OAuthBearerServer:
    """The server's side."""

    def __init__(self, validate: Validator) -> None:
        self._validate = validate
        self._error: tuple[LoginProblem, str] | None = None
        """The problem that the client was sent, with its text."""

    def evaluate(self, message: bytes, now_ms: int) -> Answer:
        if message == _SEPARATOR.encode() and self._error is not None:
            problem, text = self._error
            return LoginRefused(problem, "", text)
        self._error = None
        first = _FIRST.fullmatch(message.decode(errors="replace"))
        if first is None:
            return LoginRefused(LoginProblem.MALFORMED)
        pairs = dict(pair.split("=", 1) for pair in first["pairs"].split(_SEPARATOR)[:-1])
        auth = _AUTH.fullmatch(pairs.get("auth", ""))
        if auth is None:
            return LoginRefused(LoginProblem.MALFORMED)
        if auth["scheme"].lower() != "bearer":
            # Kafka 4.4.0 fails while it formats the error.
            return Broken(LoginProblem.MALFORMED)
        token = self._validate(auth["token"], now_ms)
        if isinstance(token, Broken):
            return token
        if isinstance(token, InvalidToken):
            text = _error_text(token.scope)
            self._error = token.problem, text
            return Challenge(text.encode())
        authorization_id = first["authzid"]
        if authorization_id and authorization_id != token.principal:
            text = (
                f"Authentication failed: Client requested an authorization id ({authorization_id})"
                f" that is different from the token's principal name ({token.principal})"
            )
            return LoginRefused(LoginProblem.OTHER_AUTHORIZATION_ID, token.principal, text)
        return LoginAccepted(b"", token.principal, expires_at_ms=token.expires_at_ms)


@final
class OAuthBearerClient:
    """The client's side.  `extensions`: further names and values (KIP-342)."""

    mechanism = OAUTHBEARER

    def __init__(self, token: str, extensions: Mapping[str, str] = {}) -> None:
        pairs = {"auth": f"Bearer {token}", **extensions}
        joined = "".join(f"{key}={value}{_SEPARATOR}" for key, value in pairs.items())
        self._first: bytes | None = f"n,,{_SEPARATOR}{joined}{_SEPARATOR}".encode()

    def respond(self, challenge: bytes) -> bytes | None:
        first, self._first = self._first, None
        if first is not None:
            return first
        return _SEPARATOR.encode() if challenge else None


def _error_text(scope: str | None) -> str:
    if scope is None:
        return '{"status":"invalid_token"}'
    return f'{{"status":"insufficient_scope", "scope":"{scope}"}}'


# -------------------------------------------------------------------------------- unsecured tokens


class UnsecuredTokens(Struct, frozen=True):
    """Accepts unsigned tokens, which anybody can make.  The fields are the options
    `unsecuredValidator...` of OAuthBearerLoginModule."""

    principal_claim: str = "sub"
    scope_claim: str = "scope"
    required_scopes: tuple[str, ...] = ()
    clock_skew_ms: int = 0

    def validate(self, token: str, now_ms: int) -> Validated:
        """Check the form of the token, its times and its scopes."""
        parts = token.split(".")
        if ".." in token or len(parts) != 3:
            return InvalidToken()
        header, claims = _decode(parts[0]), _decode(parts[1])
        if header is None or claims is None:
            return InvalidToken()
        if "alg" not in header:
            return Broken(LoginProblem.INVALID_TOKEN)
        if header["alg"] != "none" or parts[2]:
            return InvalidToken()
        return self._validate_claims(claims, now_ms)

    def _validate_claims(self, claims: Mapping[str, object], now_ms: int) -> Validated:
        principal = claims.get(self.principal_claim)
        expires_s, issued_s = claims.get("exp"), claims.get("iat", 0)
        scopes = claims.get(self.scope_claim, [])
        if (
            not isinstance(principal, str)
            or not principal.strip()
            or not isinstance(expires_s, float | int)
            or not isinstance(issued_s, float | int)
            or not isinstance(scopes, str | list)
        ):
            return InvalidToken()
        if now_ms - self.clock_skew_ms >= 1000 * expires_s:
            return InvalidToken(LoginProblem.EXPIRED_TOKEN)
        # DIFFERS: Kafka refuses a token from the future.  A live cluster's clock falls behind on a
        # busy machine, for good (docs/decisions/017-the-live-clock.md).
        if "iat" in claims and expires_s <= issued_s:
            return InvalidToken()
        has = {scope.strip() for scope in ([scopes] if isinstance(scopes, str) else scopes)}
        if not has.issuperset(self.required_scopes):
            return InvalidToken(scope=f"[{', '.join(self.required_scopes)}]")
        return ValidToken(principal, round_ms(expires_s))


def round_ms(seconds: float) -> int:
    """Milliseconds, as Java's Math.round gives them; an int may be larger than any float."""
    try:
        scaled = 1000 * float(seconds)
    except OverflowError:
        return _MAX_LONG
    return min(math.floor(scaled + 0.5), _MAX_LONG) if math.isfinite(scaled) else _MAX_LONG


def _decode(part: str) -> dict[str, object] | None:
    """The members of a JSON object in base 64; None if malformed.  As in Kafka, values other than
    numbers and arrays count as text, and JSON other than an object counts as an empty object."""
    try:
        decoded = msgspec.json.decode(_base64_url(part))
    except (binascii.Error, ValueError, msgspec.DecodeError, RecursionError):
        return None
    if not isinstance(decoded, dict):
        return {}
    return {name: _claim(value) for name, value in decoded.items()}


def _base64_url(part: str) -> bytes:
    if set(part) & set("+/~"):
        raise binascii.Error("not the alphabet for URLs")
    return urlsafe_b64decode(part + "=" * (-len(part) % 4))


def _claim(value: object) -> object:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, dict):
        return ""
    if isinstance(value, list):
        return [one if isinstance(one, str) else str(one) for one in value]
    return value


def unsecured_token(subject: str, issued_at_ms: int, lifetime_ms: int) -> str:
    """An unsecured token.  Kafka: OAuthBearerUnsecuredLoginCallbackHandler."""
    times = {"iat": issued_at_ms / 1000, "exp": (issued_at_ms + lifetime_ms) / 1000}
    parts = ({"alg": "none"}, {"sub": subject, **times})
    encoded = (b64encode(msgspec.json.encode(part), b"-_").rstrip(b"=").decode() for part in parts)
    return f"{'.'.join(encoded)}."
