"""Tokens that were expired by hand, and how many a cluster remembers."""

from __future__ import annotations

from kcluster.security.sasl.bearer_tokens import MAX_TOKENS, BearerTokens
from kcluster.security.sasl.exchange import LoginProblem
from kcluster.security.sasl.oauthbearer import InvalidToken, UnsecuredTokens, unsecured_token

TOKENS = [unsecured_token("alice", number, 1_000_000) for number in range(3)]


def test_expire__refuses_the_tokens_of_a_user_that_were_accepted() -> None:
    known = BearerTokens()
    check = known.checked(UnsecuredTokens().validate)
    bobs = unsecured_token("bob", 0, 1_000_000)
    for token in (*TOKENS[:2], bobs):
        assert not isinstance(check(token, 0), InvalidToken)
    assert known.expire("alice") == 2
    assert [check(token, 0) for token in TOKENS[:2]] == [
        InvalidToken(LoginProblem.EXPIRED_TOKEN)
    ] * 2
    for token in (TOKENS[2], bobs):
        assert not isinstance(check(token, 0), InvalidToken)
    assert known.expire("carol") == 0


def test_expire__counts_no_token_that_was_refused() -> None:
    known = BearerTokens()
    check = known.checked(UnsecuredTokens().validate)
    check(TOKENS[0], 2_000_000)
    assert known.expire("alice") == 0


def test_accepted__the_oldest_is_forgotten_first() -> None:
    known = BearerTokens()
    check = known.checked(UnsecuredTokens().validate)
    for number in range(MAX_TOKENS + 1):
        check(unsecured_token("alice", number, 1_000_000), 0)
    assert known.expire("alice") == MAX_TOKENS
    assert not isinstance(check(TOKENS[0], 0), InvalidToken)
    assert isinstance(check(TOKENS[1], 0), InvalidToken)
