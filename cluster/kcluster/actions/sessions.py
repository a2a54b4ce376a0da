"""Actions on the sessions of clients that have logged in, and on their tokens.

Owns: these actions.  Never: ends a session (security/sasl/authenticator.py does), shows a token.
Kafka: KIP-368, kafka-delegation-tokens.sh --expire; an authorization server that revokes a token.
"""

from __future__ import annotations

from typing import Annotated

from kcluster.actions.base import Action, action
from kcluster.actions.kinds import BROKERS
from kcluster.actions.menu import MenuItem
from kcluster.actions.recording import Recording, these
from kcluster.actions.requests import refused
from kcluster.actions.stage import Stage
from kcluster.config.files.fields import text
from kcluster.events.security import SessionsEnded, TokensExpired
from kcluster.operations.targets import Targets


@action("end_sessions", short="brokers", example="end_sessions: {brokers: all, user: alice}")
class EndSessionsNow(Action, frozen=True):
    """End the sessions of clients that have logged in by SASL, as if connections.max.reauth.ms had
    passed.  The next request of such a client closes its connection, unless it logs in again first;
    clients that know nothing of the end connect again.  It cannot be undone."""

    IS_FAULT = False
    MENU = (MenuItem("broker", "End its clients' sessions", "{broker}", ("up",), needs="sasl"),)
    brokers: Annotated[Targets, BROKERS, "The brokers."]
    user: Annotated[str, text(), "The user; without it all users."] = ""

    def affected(self, stage: Stage) -> tuple[int, ...]:
        return stage.nodes(self.brokers)

    def do(self, stage: Stage) -> None:
        stage.verbs.end_sessions(stage.nodes(self.brokers), self.user or None)

    RECORDED_FROM = (SessionsEnded,)

    @classmethod
    def record(cls, event: SessionsEnded, recording: Recording) -> None:
        if not event.mechanism:  # else a consequence of expire_token
            recording.add(cls(these([event.broker]), event.user or ""), event)


@action("expire_token", short="user", example="expire_token: alice")
class ExpireToken(Action, frozen=True):
    """Expire a user's tokens now: its delegation tokens, and the tokens by which it has logged in
    by OAUTHBEARER.  The sessions of the latter end, and brokers refuse them from then on; a new
    token of the same user is accepted.  As in Kafka, sessions of a delegation token last until the
    end that it had at the login.  It cannot be undone."""

    IS_FAULT = False
    user: Annotated[str, text(), "The owner of the tokens."]

    def do(self, stage: Stage) -> None:
        for hmac in stage.verbs.expire_tokens(self.user):
            on_end = refused(stage, f"expire_token of {self.user}")
            stage.verbs.admin.expire_token(hmac, self.user, on_end)

    RECORDED_FROM = (TokensExpired,)

    @classmethod
    def record(cls, event: TokensExpired, recording: Recording) -> None:
        recording.add(cls(event.user), event)
