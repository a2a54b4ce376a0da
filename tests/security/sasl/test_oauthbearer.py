"""OAUTHBEARER with unsecured tokens, with the answers that Apache Kafka 4.4.0 gave to the same."""

from __future__ import annotations

import itertools
import json
from base64 import urlsafe_b64encode

import pytest

from kcluster.security.sasl.exchange import (
    Broken,
    Challenge,
    LoginAccepted,
    LoginProblem,
    LoginRefused,
)
from kcluster.security.sasl.oauthbearer import (
    OAuthBearerClient,
    OAuthBearerServer,
    UnsecuredTokens,
    ValidToken,
    unsecured_token,
)

NOW_MS = 1_700_000_000_000
NOW_S = NOW_MS / 1000
NESTED = urlsafe_b64encode(b"[" * 99_999).decode()
INVALID = Challenge(b'{"status":"invalid_token"}')


def part(value: object) -> str:
    return urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def token(claims: object, header: object = {"alg": "none"}, signature: str = "") -> str:
    return f"{part(header)}.{part(claims)}.{signature}"


def show(value: str, extra: str = "", authorization: str = "") -> object:
    message = f"n,{authorization},\x01auth=Bearer {value}{extra}\x01\x01"
    return OAuthBearerServer(UnsecuredTokens().validate).evaluate(message.encode(), NOW_MS)


def test_token__its_subject_logs_in_until_it_expires() -> None:
    claims = {"sub": "alice", "exp": NOW_S + 3.7}
    accepted = LoginAccepted(b"", "alice", expires_at_ms=NOW_MS + 3_700)
    assert show(token(claims)) == accepted
    assert show(token(claims | {"iat": NOW_S})) == accepted
    assert show(token(claims), extra="\x01foo=bar") == accepted
    assert show(token(claims), authorization="a=alice") == accepted
    assert show(token(claims | {"scope": ["a", "b"]})) == accepted


def test_token__may_come_from_a_clock_ahead_of_the_clusters() -> None:
    """That of a live cluster falls behind on a busy machine, and never catches up."""
    claims = {"sub": "alice", "iat": NOW_S + 7_200, "exp": NOW_S + 10_800}
    assert isinstance(show(token(claims)), LoginAccepted)


def test_token__both_sides_understand_each_other() -> None:
    client = OAuthBearerClient(unsecured_token("alice", NOW_MS, 60_000), {"foo": "bar"})
    server = OAuthBearerServer(UnsecuredTokens().validate)
    answer = server.evaluate(client.respond(b"") or b"", NOW_MS)
    assert answer == LoginAccepted(b"", "alice", expires_at_ms=NOW_MS + 60_000)
    assert client.respond(b"") is None


@pytest.mark.parametrize(
    "value",
    [
        token({"sub": "alice", "exp": NOW_S - 10}),
        token({"sub": "alice", "exp": NOW_S + 100, "iat": NOW_S + 100}),
        token({"exp": NOW_S + 100}),
        token({"sub": 3, "exp": NOW_S + 100}),
        token({"sub": " ", "exp": NOW_S + 100}),
        token({"sub": "alice"}),
        token({"sub": "alice", "exp": "x"}),
        token({"sub": "alice", "exp": NOW_S + 100, "scope": 5}),
        token({"sub": "alice", "exp": NOW_S + 100}, {"alg": "RS256"}, "abc"),
        token({"sub": "alice", "exp": NOW_S + 100}, signature="abc"),
        "abc",
        "a..b",
        "YWJj.YWJj.",
        "a~b.c~d.",
        f"{NESTED}.{NESTED}.",
    ],
    ids=itertools.count(),
)
def test_token__a_wrong_one_is_refused_once_the_client_acknowledges(value: str) -> None:
    server = OAuthBearerServer(UnsecuredTokens().validate)
    assert server.evaluate(f"n,,\x01auth=Bearer {value}\x01\x01".encode(), NOW_MS) == INVALID
    refused = server.evaluate(b"\x01", NOW_MS)
    assert isinstance(refused, LoginRefused)
    assert refused.message == '{"status":"invalid_token"}'


@pytest.mark.parametrize("expires_s", [10**400, 1e306, 2**63], ids=itertools.count())
def test_token__a_time_beyond_all_numbers_is_the_last_one(expires_s: float) -> None:
    accepted = UnsecuredTokens().validate(token({"sub": "alice", "exp": expires_s}), NOW_MS)
    assert accepted == ValidToken("alice", 2**63 - 1)


def test_token__a_scope_may_be_required() -> None:
    tokens = UnsecuredTokens(required_scopes=("a", "b"))
    server = OAuthBearerServer(tokens.validate)
    shown = token({"sub": "alice", "exp": NOW_S + 100, "scope": ["b"]})
    assert server.evaluate(f"n,,\x01auth=Bearer {shown}\x01\x01".encode(), NOW_MS) == Challenge(
        b'{"status":"insufficient_scope", "scope":"[a, b]"}'
    )


def test_message__malformed_ones() -> None:
    server = OAuthBearerServer(UnsecuredTokens().validate)
    for message in (b"garbage", b"", b"\x01", b"n,,\x01host=abc\x01\x01", b"n,,\x01auth=x\x01\x01"):
        assert server.evaluate(message, NOW_MS) == LoginRefused(LoginProblem.MALFORMED)
    broken = Broken(LoginProblem.MALFORMED)
    assert server.evaluate(b"n,,\x01auth=Basic abc\x01\x01", NOW_MS) == broken
    for value in (token([2], [1]), token({"sub": "a", "exp": NOW_S + 100}, {"typ": "JWT"})):
        assert show(value) == Broken(LoginProblem.INVALID_TOKEN)


def test_authorization_id__must_be_the_subject() -> None:
    refused = show(token({"sub": "alice", "exp": NOW_S + 100}), authorization="a=bob")
    assert isinstance(refused, LoginRefused)
    assert refused.message == (
        "Authentication failed: Client requested an authorization id (bob) that is different from"
        " the token's principal name (alice)"
    )
