"""Delegation tokens, with the answers that Apache Kafka 4.4.0 gave to the same requests."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import pytest

from kcluster.config.topology.model import Topology
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from kcluster.security.sasl.plain import PlainClient
from kcluster.security.sasl.scram import ScramClient
from kcluster.security.tokens import DAY_MS, TokenSettings
from tests.rig.byte_worlds import MemoryBytes
from tests.rig.logins import SaslLine

TOPOLOGY = """
brokers: 2
profile: fast
listeners: {CLIENT: {protocol: SASL_PLAINTEXT}, INSIDE: {protocol: PLAINTEXT}}
config: {delegation.token.secret.key: hush, delegation.token.expiry.check.interval.ms: 3000}
security: {users: {alice: a, bob: b}}
"""
PASSWORDS = {"alice": "a", "bob": "b"}
CREATE, RENEW = m.CreateDelegationTokenRequest, m.RenewDelegationTokenRequest
EXPIRE, DESCRIBE = m.ExpireDelegationTokenRequest, m.DescribeDelegationTokenRequest
Token = m.CreateDelegationTokenResponse


@pytest.fixture
def world() -> Iterator[MemoryBytes]:
    world = MemoryBytes(Topology.parse(TOPOLOGY))
    yield world
    world.finish()


def pass_time(world: MemoryBytes, ms: int) -> None:
    driver = world.cluster.driver
    driver.advance(driver.now_us + ms * 1_000, lambda: False)


def ask(world: MemoryBytes, user: str, body: Any, broker: int = 1) -> Any:
    line = SaslLine.to(world, broker, "CLIENT")
    line.login(PlainClient(user, PASSWORDS[user]))
    answer = line.ask(body)
    line.close()
    return answer


def create(world: MemoryBytes, lifetime_ms: int = -1, *renewers: str, **owner: str) -> Token:
    made = [CREATE.CreatableRenewers("User", renewer) for renewer in renewers]
    body = CREATE(max_lifetime_ms=lifetime_ms, renewers=made, **owner)
    token: Token = ask(world, "alice", body)
    assert token.error_code == 0
    return token


def login(world: MemoryBytes, token: Token, broker: int = 1) -> tuple[SaslLine, Any]:
    """A line of a client that logs in with a token, and the last answer."""
    password = b64encode(token.hmac).decode()
    line = SaslLine.to(world, broker, "CLIENT")
    client = ScramClient("SCRAM-SHA-256", token.token_id, password, "nonce", by_token=True)
    return line, line.login(client)


def renew(world: MemoryBytes, user: str, token: Token, period_ms: int = -1) -> tuple[int, int]:
    answer = ask(world, user, RENEW(hmac=token.hmac, renew_period_ms=period_ms))
    left_ms = answer.expiry_timestamp_ms and answer.expiry_timestamp_ms - token.issue_timestamp_ms
    return answer.error_code, left_ms


def expire(world: MemoryBytes, user: str, token: Token, period_ms: int = -1) -> int:
    answer = ask(world, user, EXPIRE(hmac=token.hmac, expiry_time_period_ms=period_ms))
    code: int = answer.error_code
    return code


def described(world: MemoryBytes, user: str, owners: Any = None) -> list[Any]:
    tokens: list[Any] = ask(world, user, DESCRIBE(owners=owners)).tokens
    return tokens


def test_token__its_owner_logs_in_with_it_at_every_broker(world: MemoryBytes) -> None:
    token = create(world)
    assert token.expiry_timestamp_ms - token.issue_timestamp_ms == DAY_MS
    assert token.max_timestamp_ms - token.issue_timestamp_ms == 7 * DAY_MS
    for broker in (1, 2):
        line, answer = login(world, token, broker)
        assert DAY_MS - 1_000 < answer.session_lifetime_ms <= DAY_MS
        assert line.ask(m.MetadataRequest(topics=[])).brokers
        not_allowed = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        assert line.ask(CREATE()).error_code == not_allowed
        assert line.ask(DESCRIBE(owners=None)).error_code == not_allowed
        assert line.ask(RENEW(hmac=token.hmac)).error_code == not_allowed
        line.close()
    (shown,) = described(world, "alice")
    assert (shown.token_id, bytes(shown.hmac)) == (token.token_id, bytes(token.hmac))
    assert described(world, "alice", []) == []
    bob = DESCRIBE.DescribeDelegationTokenOwner("User", "bob")
    assert described(world, "alice", [bob]) == []


def test_token__for_another_owner(world: MemoryBytes) -> None:
    token = create(world, owner_principal_type="User", owner_principal_name="carol")
    assert (token.principal_name, token.token_requester_principal_name) == ("carol", "alice")
    mismatch = ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert renew(world, "alice", token)[0] == mismatch


def test_token__renewed_by_its_owner_and_renewers_until_its_life_ends(world: MemoryBytes) -> None:
    token = create(world, 5_000, "bob")
    pass_time(world, 1_000)
    assert renew(world, "bob", token, 1_000)[1] < 5_000
    assert renew(world, "alice", token, 2**62) == (0, 5_000)
    assert renew(world, "alice", token, 0) == (0, 5_000)
    stranger = create(world)
    mismatch = ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert renew(world, "bob", stranger) == (mismatch, 0)
    assert expire(world, "bob", stranger) == mismatch
    pass_time(world, 4_100)
    expired = ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert renew(world, "bob", token) == (expired, 0)
    assert expire(world, "alice", token, 100) == expired


def test_token__an_expired_one_begins_a_session_that_is_over(world: MemoryBytes) -> None:
    token = create(world, 1_000)
    pass_time(world, 1_100)
    line, answer = login(world, token)
    assert (answer.error_code, answer.session_lifetime_ms) == (0, 0)
    assert line.ask(m.MetadataRequest(topics=[])) is None
    pass_time(world, 3_000)
    assert described(world, "alice") == [], "it was swept"


def test_token__removed_by_a_negative_period(world: MemoryBytes) -> None:
    token = create(world)
    assert expire(world, "alice", token, 300) == 0
    pass_time(world, 400)
    assert expire(world, "alice", token) == 0
    not_found = ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert expire(world, "alice", token) == not_found
    assert renew(world, "alice", token) == (not_found, 0)
    assert login(world, token)[1].error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_token__a_broker_that_is_cut_off_still_knows_a_removed_one(world: MemoryBytes) -> None:
    token = create(world)
    cut = world.cluster.network.cut(2, "controller")
    assert expire(world, "alice", token) == 0
    assert login(world, token, 2)[1].error_code == 0
    cut()
    pass_time(world, 1_000)
    assert login(world, token, 2)[1].error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_token__refusals(world: MemoryBytes) -> None:
    group = CREATE(renewers=[CREATE.CreatableRenewers("Group", "g")])
    assert ask(world, "alice", group).error_code == ErrorCode.INVALID_PRINCIPAL_TYPE
    line = SaslLine.to(world, 1, "INSIDE")
    not_allowed = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert line.ask(CREATE()).error_code == not_allowed
    without = MemoryBytes(
        Topology.parse(TOPOLOGY.replace("delegation.token.secret.key: hush, ", ""))
    )
    disabled = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    for body in (CREATE(), RENEW(), EXPIRE(), DESCRIBE(owners=None)):
        assert ask(without, "alice", body).error_code == disabled
    without.finish()


def test_secrets__are_in_no_representation() -> None:
    assert "hush" not in repr(TokenSettings(b"hush"))
    shown = Topology.parse(TOPOLOGY).without_secrets()
    assert "hush" not in repr(shown)
    assert shown.config == {"delegation.token.expiry.check.interval.ms": "3000"}
