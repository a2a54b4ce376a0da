"""Logins at the brokers of a whole cluster: what a broker knows that is cut off, or restarted."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest

from kcluster.config.topology.model import Topology
from kcluster.contract import Note
from kcluster.events import AuthenticationFailed
from kcluster.protocol import messages as m
from kcluster.scenario.perform import do
from kcluster.security.sasl.exchange import LoginProblem
from kcluster.security.sasl.oauthbearer import OAuthBearerClient, unsecured_token
from kcluster.security.sasl.plain import PlainClient
from kcluster.security.sasl.scram import ScramClient
from tests.rig.byte_worlds import KINDS, LiveBytes, MemoryBytes
from tests.rig.logins import SaslLine

TOPOLOGY = """
brokers: 3
profile: fast
listeners: {CLIENT: {protocol: SASL_PLAINTEXT}, INSIDE: {protocol: PLAINTEXT}}
config:
  sasl.enabled.mechanisms: [PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER]
  listener.name.client.plain.connections.max.reauth.ms: 60000
security: {users: {alice: old, bob: {password: b, mechanisms: PLAIN}}}
"""
SHA_256, SHA_512 = "SCRAM-SHA-256", "SCRAM-SHA-512"
FAILED = 58


@pytest.fixture
def world() -> Iterator[MemoryBytes]:
    world = MemoryBytes(Topology.parse(TOPOLOGY))
    yield world
    world.finish()


def by_scram(
    world: MemoryBytes | LiveBytes, broker: int, password: str, mechanism: str = SHA_256
) -> int:
    line = SaslLine.to(world, broker, "CLIENT")
    answer = line.login(ScramClient(mechanism, "alice", password, "nonce"))
    line.close()
    return answer.error_code


def pass_time(world: MemoryBytes, ms: int) -> None:
    driver = world.cluster.driver
    driver.advance(driver.now_us + ms * 1_000, lambda: False)


def change_password(world: MemoryBytes, password: str) -> None:
    """As kafka-configs does, at a listener that asks nobody's name."""
    request = m.AlterUserScramCredentialsRequest
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), b"salt", 4096)
    line = SaslLine.to(world, 1, "INSIDE")
    answer = line.ask(
        request(upsertions=[request.ScramCredentialUpsertion("alice", 1, 4096, b"salt", salted)])
    )
    assert answer.results[0].error_code == 0
    line.close()


@pytest.mark.parametrize("kind", KINDS)
def test_users__of_the_topology_log_in_at_every_broker(kind: str) -> None:
    world = KINDS[kind](Topology.parse(TOPOLOGY))
    for broker in (1, 2, 3):
        assert by_scram(world, broker, "old") == 0
    assert by_scram(world, 1, "old", SHA_512) == 0
    line = SaslLine.to(world, 1, "CLIENT")
    assert line.login(PlainClient("bob", "b")).session_lifetime_ms == 60_000
    brokers = line.ask(m.MetadataRequest(topics=[])).brokers
    assert {one.port for one in brokers} == {
        endpoints[0].port for endpoints in world.cluster.plan.endpoints.values()
    }
    line.close()
    world.finish()


def test_users__only_by_their_own_mechanisms(world: MemoryBytes) -> None:
    line = SaslLine.to(world, 1, "CLIENT")
    client = ScramClient(SHA_256, "bob", "b", "nonce")
    assert line.login(client).error_code == FAILED
    assert line.read_frame() is None, "the connection is closed"


def test_password__a_broker_that_is_cut_off_knows_the_old_one(world: MemoryBytes) -> None:
    cut = world.cluster.network.cut(3, "controller")
    change_password(world, "new")
    pass_time(world, 100)
    assert (by_scram(world, 1, "new"), by_scram(world, 1, "old")) == (0, FAILED)
    assert (by_scram(world, 3, "new"), by_scram(world, 3, "old")) == (FAILED, 0)
    cut()
    pass_time(world, 1_000)
    assert (by_scram(world, 3, "new"), by_scram(world, 3, "old")) == (0, FAILED)


def test_password__a_restarted_broker_knows_the_new_one(world: MemoryBytes) -> None:
    world.cluster.kill(3)
    change_password(world, "new")
    world.cluster.start(3)
    world.cluster.wait_until_in_sync((3,))
    assert by_scram(world, 3, "new") == 0


@pytest.mark.parametrize("kind", KINDS)
def test_password__a_restarted_broker_refuses_no_login_because_it_lags(kind: str) -> None:
    # IBM/sarama#1940 cannot happen with KRaft: the port opens when the broker has caught up.
    world = KINDS[kind](Topology.parse(TOPOLOGY))
    world.cluster.kill(3, wait=False)
    do(world.cluster, "password", user="alice", to="new")
    heal = world.cluster.network.cut(3, "controller")
    world.cluster.start(3, wait=False)
    with pytest.raises(ConnectionRefusedError):
        SaslLine.to(world, 3, "CLIENT")
    heal()
    world.cluster.wait_until_in_sync((3,))
    assert by_scram(world, 3, "new") == 0
    world.finish()


def test_token__logs_in_by_the_clock_of_the_cluster(world: MemoryBytes) -> None:
    now_ms = world.cluster.driver.now_ms()
    line = SaslLine.to(world, 1, "CLIENT")
    token = unsecured_token("carol", now_ms, 5_000)
    assert 4_900 < line.login(OAuthBearerClient(token)).session_lifetime_ms <= 5_000
    pass_time(world, 5_001)
    assert line.ask(m.MetadataRequest(topics=[])) is None, "the session has ended"


def test_failure__is_an_event_and_a_line_of_the_log(world: MemoryBytes) -> None:
    notes: list[Note] = []
    world.cluster.driver.dispatcher.note_sinks += (notes.append,)
    began_ms = world.cluster.driver.now_ms()
    assert by_scram(world, 1, "hush") == FAILED
    assert world.cluster.driver.now_ms() - began_ms >= 100
    (event,) = [n.event for n in notes if isinstance(n.event, AuthenticationFailed)]
    assert (event.problem, event.user) == (LoginProblem.WRONG_PASSWORD, "alice")
    assert any("login failed: wrong password" in line for line in world.lines)
    assert not any("hush" in line for line in (*world.lines, *map(repr, notes)))


def test_garbage__of_other_protocols_is_closed(world: MemoryBytes) -> None:
    for sent in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00\xc8\x01", b"\0\0\0\1x"):
        line = SaslLine.to(world, 1, "CLIENT")
        line.sock.sendall(sent)
        assert line.read_frame() is None


def test_large_requests__only_after_the_login(world: MemoryBytes) -> None:
    line = SaslLine.to(world, 1, "CLIENT")
    line.login(PlainClient("alice", "old"))
    request = m.MetadataRequest(
        topics=[m.MetadataRequest.MetadataRequestTopic(name="x" * 30_000)] * 20
    )
    assert line.ask(request, 5) is not None
    line = SaslLine.to(world, 1, "CLIENT")
    line.sock.sendall((600_000).to_bytes(4, "big"))
    assert line.read_frame() is None


def test_quotas__are_those_of_the_user_that_logged_in(world: MemoryBytes) -> None:
    request = m.AlterClientQuotasRequest
    entry = request.EntryData(
        [request.EntityData("user", "alice")], [request.OpData("request_percentage", 0.0001, False)]
    )
    inside = SaslLine.to(world, 1, "INSIDE")
    assert inside.ask(request([entry])).entries[0].error_code == 0
    throttle_ms = {}
    for user, password in (("alice", "old"), ("bob", "b")):
        line = SaslLine.to(world, 1, "CLIENT")
        line.login(PlainClient(user, password))
        throttle_ms[user] = line.ask(m.MetadataRequest(topics=[])).throttle_time_ms
        line.close()
    assert throttle_ms["alice"] > 0
    assert throttle_ms["bob"] == 0
