"""Every API is guarded somewhere, or open to everyone on purpose."""

from __future__ import annotations

from kcluster.broker.authorization import GUARDS, OPEN
from kcluster.broker.registry import SERVED_APIS
from kcluster.controller.security.authorization import GUARDS as CONTROLLERS_GUARDS
from kcluster.protocol.apis import APIS, ApiKey

IN_THEIR_HANDLERS = {
    ApiKey.FETCH, ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN, ApiKey.DESCRIBE_DELEGATION_TOKEN,
}  # fmt: skip
"""Guarded where sessions are, or where tokens know their owners."""


def test_table__each_api_is_guarded_or_open() -> None:
    forwarded = {key for key in SERVED_APIS if f"{APIS[key].name}Request" in CONTROLLERS_GUARDS}
    guarded = set(GUARDS) | forwarded | IN_THEIR_HANDLERS
    assert set(SERVED_APIS) == guarded | OPEN
    assert not guarded & OPEN
