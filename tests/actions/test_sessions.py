"""Sessions and tokens that end at once: what clients see, what is recorded and refused."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator

import pytest

from kcluster.actions.sessions import EndSessionsNow, ExpireToken
from kcluster.config.topology.model import Topology
from kcluster.events import SessionsEnded, TokensExpired
from kcluster.operations.errors import ClusterError
from kcluster.protocol import messages as m
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.perform import do
from kcluster.scenario.play.running import run_scenario
from kcluster.scenario.recorded import scenario_of
from kcluster.security.sasl.oauthbearer import OAuthBearerClient, unsecured_token
from kcluster.security.sasl.plain import PlainClient
from kcluster.security.sasl.scram import ScramClient
from tests.rig.byte_worlds import KINDS, MemoryBytes
from tests.rig.logins import SaslLine

TOPOLOGY = """
brokers: 2
profile: fast
listeners: {CLIENT: {protocol: SASL_PLAINTEXT}, INSIDE: {protocol: PLAINTEXT}}
config:
  sasl.enabled.mechanisms: [PLAIN, SCRAM-SHA-256, OAUTHBEARER]
  delegation.token.secret.key: a-secret-key
security: {users: {alice: a, bob: b}}
"""
FAILED = 58
METADATA = m.MetadataRequest(topics=[])


@pytest.fixture
def world() -> Iterator[MemoryBytes]:
    world = MemoryBytes(Topology.parse(TOPOLOGY))
    yield world
    world.finish()


def logged_in(world: object, broker: int, user: str = "alice") -> SaslLine:
    line = SaslLine.to(world, broker, "CLIENT")
    assert not line.login(PlainClient(user, user[0])).error_code
    return line


def ended(world: MemoryBytes) -> list[tuple[int, int]]:
    """(broker, the number of its sessions that ended), for each event."""
    events = [entry.note.event for entry in world.cluster.events()]
    return [(one.broker, one.sessions) for one in events if isinstance(one, SessionsEnded)]


@pytest.mark.parametrize("kind", KINDS)
def test_end_sessions__closes_at_the_next_request_unless_the_client_logs_in(kind: str) -> None:
    world = KINDS[kind](Topology.parse(TOPOLOGY))
    asks, logs_in = logged_in(world, 1), logged_in(world, 1)
    do(world.cluster, "end_sessions", 1)
    assert not logs_in.login(PlainClient("alice", "a")).error_code
    assert logs_in.ask(METADATA) is not None
    assert asks.ask(METADATA) is None
    for line in (asks, logs_in):
        line.close()
    world.finish()


def test_end_sessions__of_one_user_at_one_broker(world: MemoryBytes) -> None:
    alice, bob, elsewhere = logged_in(world, 1), logged_in(world, 1, "bob"), logged_in(world, 2)
    do(world.cluster, "end_sessions", brokers=1, user="alice")
    assert alice.ask(m.ApiVersionsRequest()) is None, "KIP-368 spares no other request"
    assert bob.ask(METADATA) is not None
    assert elsewhere.ask(METADATA) is not None
    assert ended(world) == [(1, 1)]


def test_end_sessions__twice_and_of_a_user_who_is_not_there(world: MemoryBytes) -> None:
    line = logged_in(world, 1)
    do(world.cluster, "end_sessions", "all")
    do(world.cluster, "end_sessions", brokers="all", user="carol")
    do(world.cluster, "end_sessions", "all")
    assert ended(world) == [(1, 1), (2, 0), (1, 0), (2, 0), (1, 0), (2, 0)]
    assert line.ask(METADATA) is None


def test_end_sessions__leaves_alone_what_is_down_unless_it_is_all(world: MemoryBytes) -> None:
    line = logged_in(world, 1)
    world.cluster.kill(2)
    do(world.cluster, "end_sessions", "all")
    assert ended(world) == [(1, 1)]
    line.close()
    with pytest.raises(ClusterError, match="broker 2 is down"):
        do(world.cluster, "end_sessions", 2)


def test_end_sessions__of_a_paused_broker_end_when_it_goes_on(world: MemoryBytes) -> None:
    line = logged_in(world, 1)
    world.cluster.pause(1)
    do(world.cluster, "end_sessions", 1)
    assert ended(world) == []
    world.cluster.resume(1)
    assert ended(world) == [(1, 1)]
    assert line.ask(METADATA) is None


def by_token(world: MemoryBytes, broker: int, token: str) -> tuple[SaslLine, int]:
    line = SaslLine.to(world, broker, "CLIENT")
    answer = line.login(OAuthBearerClient(token))
    # A broker tells the client of its token's fault before it refuses it (RFC 7628).
    return line, FAILED if answer.error_code or answer.auth_bytes else 0


def test_expire_token__is_refused_everywhere_and_a_new_one_is_not(world: MemoryBytes) -> None:
    now_ms = world.cluster.driver.now_ms()
    token = unsecured_token("alice", now_ms, 600_000)
    line, error = by_token(world, 1, token)
    assert not error
    by_password = logged_in(world, 1)
    do(world.cluster, "expire_token", "alice")
    assert line.ask(METADATA) is None, "its session ends with the token"
    assert by_password.ask(METADATA) is not None
    for broker in (1, 2):
        assert by_token(world, broker, token)[1] == FAILED
    new = unsecured_token("alice", now_ms + 1_000, 600_000)
    assert not by_token(world, 2, new)[1]


def test_expire_token__a_delegation_token_logs_nobody_in_any_more(world: MemoryBytes) -> None:
    owner = logged_in(world, 1)
    made = owner.ask(m.CreateDelegationTokenRequest(max_lifetime_ms=-1))
    assert not made.error_code

    def login() -> int:
        password = b64encode(bytes(made.hmac)).decode()
        client = ScramClient("SCRAM-SHA-256", made.token_id, password, "n", by_token=True)
        return SaslLine.to(world, 1, "CLIENT").login(client).error_code

    assert login() == 0
    do(world.cluster, "expire_token", "alice")
    world.cluster.driver.advance(world.cluster.driver.now_us + 100_000, lambda: False)
    assert login() == FAILED
    expired = [entry.note.event for entry in world.cluster.events()]
    assert TokensExpired("alice", 0, 1) in expired


@pytest.mark.parametrize(
    ("verb", "keys", "words"),
    [
        ("expire_token", {"user": "alice"}, "user alice has no delegation token"),
        ("end_sessions", {"brokers": 7}, "there is no broker 7"),
    ],
)
def test_sessions__refusals(
    world: MemoryBytes, verb: str, keys: dict[str, object], words: str
) -> None:
    with pytest.raises(ClusterError, match=words):
        do(world.cluster, verb, **keys)


def test_end_sessions__needs_sasl() -> None:
    world = MemoryBytes(Topology.of(brokers=1))
    with pytest.raises(ClusterError, match="broker 1 has no listener with SASL"):
        do(world.cluster, "end_sessions", 1)
    world.finish()


def test_sessions__are_recorded_as_steps(world: MemoryBytes) -> None:
    by_token(world, 1, unsecured_token("alice", world.cluster.driver.now_ms(), 600_000))
    do(world.cluster, "end_sessions", brokers=2, user="bob")
    do(world.cluster, "expire_token", "alice")
    notes = [entry.note for entry in world.cluster.events()]
    recorded = scenario_of(notes, world.cluster.topology, "ends", notes[0].at_ms)
    first, second = (step.action for step in Scenario.parse(recorded).steps)
    assert isinstance(first, EndSessionsNow)
    assert first.written() == {"brokers": 2, "user": "bob"}
    assert isinstance(second, ExpireToken)
    assert second.written() == "alice"


def test_sessions__end_while_a_leader_dies_and_nothing_is_lost() -> None:
    result = run_scenario(
        Scenario.parse("""
topology:
  brokers: 3
  profile: fast
  listeners: {CLIENT: {protocol: SASL_PLAINTEXT}}
  config: {sasl.enabled.mechanisms: [OAUTHBEARER]}
  topics: {orders: {replication_factor: 3, config: {min.insync.replicas: 2}}}
workload:
  producers: {topic: orders, rate: 100/s, user: alice}
  consumers: {topics: orders, name: reader, group: billing, user: alice}
duration: 4s
steps:
  - {at: 1s, kill: leader(orders-0), for: 1s}
  - {at: 1s, end_sessions: all but leader(orders-0)}
  - {at: 3s, expire_token: alice}
checks: {verdict: valid, events: [sessions_ended, tokens_expired, authentication_failed]}
"""),
        "virtual",
    )
    assert not result.failures
