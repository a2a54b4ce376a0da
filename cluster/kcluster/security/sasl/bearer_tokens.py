"""The tokens of OAUTHBEARER that a cluster's brokers have accepted, or an action has expired.

Owns: these tokens.  Never: validates a token itself (oauthbearer.py, signed_tokens.py), shows one.
Kafka: no counterpart; an authorization server that revokes a token, and brokers that ask it.
"""

from __future__ import annotations

from typing import Final, final

from kcluster.security.sasl.exchange import LoginProblem
from kcluster.security.sasl.oauthbearer import InvalidToken, Validated, Validator, ValidToken

MAX_TOKENS: Final = 10_000
"""The number of tokens that are remembered; the oldest is forgotten first."""


@final
class BearerTokens:
    """The tokens of one cluster's users."""

    def __init__(self) -> None:
        self._accepted: dict[str, str] = {}
        """The user of each token that was accepted."""
        self._expired: dict[str, None] = {}

    def checked(self, validate: Validator) -> Validator:
        """A validator that also refuses tokens that an action has expired."""

        def check(token: str, now_ms: int) -> Validated:
            validated = validate(token, now_ms)
            if not isinstance(validated, ValidToken):
                return validated
            if token in self._expired:
                return InvalidToken(LoginProblem.EXPIRED_TOKEN)
            self._accepted[token] = validated.principal
            _forget_oldest(self._accepted)
            return validated

        return check

    def expire(self, user: str) -> int:
        """Expire the tokens by which this user has logged in so far; returns their number."""
        tokens = [token for token, owner in self._accepted.items() if owner == user]
        for token in tokens:
            del self._accepted[token]
            self._expired[token] = None
            _forget_oldest(self._expired)
        return len(tokens)


def _forget_oldest(tokens: dict[str, str] | dict[str, None]) -> None:
    if len(tokens) > MAX_TOKENS:
        del tokens[next(iter(tokens))]
