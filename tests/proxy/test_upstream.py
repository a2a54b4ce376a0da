"""Logins and TLS through a proxy: the client's own, and the proxy's."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kcluster.cli.work.proxy_options import client_tls
from kcluster.config.topology.model import Topology
from kcluster.drivers.tls.authority import Authority
from kcluster.drivers.tls.credentials import certificates_pem
from kcluster.handle.cluster import Cluster
from kcluster.principals import SecurityProtocol
from kcluster.protocol import messages as m
from kcluster.proxy.upstream import UpstreamError, UpstreamSecurity
from kcluster.security.client_access import ClientAccess
from kcluster.security.sasl.plain import PlainClient as PlainLogin
from kcluster.security.sasl.scram import ScramClient
from tests.rig.proxied import PlainClient, proxy_before

USER, PASSWORD = "alice", "alice-secret"
SCRAM = "SCRAM-SHA-256"


def secured_cluster() -> Cluster:
    """A cluster whose first listener demands a login."""
    topology = Topology.of(
        brokers=1,
        profile="fast",
        listeners={"LOGIN": {"protocol": "SASL_PLAINTEXT"}},
        security={"users": {USER: {"password": PASSWORD, "mechanisms": ["PLAIN", SCRAM]}}},
        config={"sasl.enabled.mechanisms": f"PLAIN,{SCRAM}"},
    )
    return Cluster(topology)


@pytest.fixture(scope="module")
def secured() -> Iterator[Cluster]:
    with secured_cluster() as running:
        yield running


def log_in(client: PlainClient, login: PlainLogin | ScramClient) -> m.SaslAuthenticateResponse:
    handshake = client.ask(m.SaslHandshakeRequest(mechanism=login.mechanism))
    assert not handshake.error_code
    challenge = b""
    while True:
        token = login.respond(challenge)
        assert token is not None
        answer: m.SaslAuthenticateResponse = client.ask(m.SaslAuthenticateRequest(auth_bytes=token))
        if answer.error_code or not answer.auth_bytes or answer.auth_bytes[:2] == b"v=":
            return answer
        challenge = bytes(answer.auth_bytes)


LOGINS: dict[str, Callable[[], PlainLogin | ScramClient]] = {
    "PLAIN": lambda: PlainLogin(USER, PASSWORD),
    SCRAM: lambda: ScramClient(SCRAM, USER, PASSWORD, "abcdef"),
}


@pytest.mark.parametrize("mechanism", LOGINS)
def test_upstream__a_clients_own_login_passes(secured: Cluster, mechanism: str) -> None:
    with proxy_before(secured.bootstrap) as found:
        assert any("become known when clients have logged in" in x for x in found.lines())
        with found.client() as client:
            assert not log_in(client, LOGINS[mechanism]()).error_code
            (broker,) = client.ask(m.MetadataRequest(topics=None)).brokers
        assert (broker.host, broker.port) == found.broker(1)
        rows = found.rows_of("exchanges.jsonl")
        assert [x.api for x in rows][-1] == "Metadata"
        assert PASSWORD not in repr(found.rows.of)


def test_upstream__a_wrong_password_is_refused_by_the_broker(secured: Cluster) -> None:
    with proxy_before(secured.bootstrap) as found, found.client() as client:
        answer = log_in(client, PlainLogin(USER, "wrong"))
        assert answer.error_code == 58


def test_upstream__bare_tokens_after_the_old_handshake_pass(secured: Cluster) -> None:
    with proxy_before(secured.bootstrap) as found, found.client() as client:
        assert not client.ask(m.SaslHandshakeRequest(mechanism="PLAIN"), 0).error_code
        token = PlainLogin(USER, PASSWORD).respond(b"")
        assert token is not None
        client.socket.sendall(len(token).to_bytes(4, "big") + token)
        assert client.frame() == b""
        assert client.ask(m.MetadataRequest(topics=None)).brokers


def test_upstream__kerberos_is_refused_with_the_reason(secured: Cluster) -> None:
    with proxy_before(secured.bootstrap) as found, found.client() as client:
        client.send(m.SaslHandshakeRequest(mechanism="GSSAPI"))
        assert client.is_closed()
        assert any("a Kerberos ticket names the broker's host" in x for x in found.lines())


@pytest.mark.parametrize("mechanism", LOGINS)
def test_upstream__the_proxy_logs_in_for_clients(secured: Cluster, mechanism: str) -> None:
    access = ClientAccess(
        protocol=SecurityProtocol.SASL_PLAINTEXT, mechanism=mechanism, user=USER, password=PASSWORD
    )
    with proxy_before(secured.bootstrap, security=UpstreamSecurity(login=access)) as found:
        place = found.broker(1)
        with PlainClient(place) as client:
            assert client.ask(m.MetadataRequest(topics=None)).brokers


def test_upstream__a_refused_login_of_the_proxy_is_one_line(secured: Cluster) -> None:
    access = ClientAccess(
        protocol=SecurityProtocol.SASL_PLAINTEXT, mechanism="PLAIN", user=USER, password="wrong"
    )
    with (
        pytest.raises(UpstreamError, match="SASL_AUTHENTICATION_FAILED") as caught,
        proxy_before(secured.bootstrap, security=UpstreamSecurity(login=access)),
    ):
        pass
    assert "wrong" not in str(caught.value)


# ------------------------------------------------------------------------------------------ TLS


@pytest.fixture(scope="module")
def with_tls() -> Iterator[Cluster]:
    topology = Topology.of(
        brokers=1, profile="fast", listeners={"TLS": {"protocol": "SSL"}}, security={"tls": "auto"}
    )
    with Cluster(topology) as running:
        yield running


def test_upstream__a_cluster_with_tls_is_reached_by_clients_without(with_tls: Cluster) -> None:
    context = ssl.create_default_context(cafile=with_tls.certificates.ca_file)
    with proxy_before(with_tls.bootstrap, security=UpstreamSecurity(tls=context)) as found:
        place = found.broker(1)
        with PlainClient(place) as client:
            sent = [client.send(m.MetadataRequest(topics=None)) for _ in range(100)]
            assert all(client.receive(each).brokers for each in sent)


def test_upstream__a_certificate_of_an_unknown_authority_is_one_line(with_tls: Cluster) -> None:
    context = ssl.create_default_context()
    with (
        pytest.raises(UpstreamError, match="certificate verify failed"),
        proxy_before(with_tls.bootstrap, security=UpstreamSecurity(tls=context)),
    ):
        pass


def test_upstream__a_listener_without_tls_is_one_line(secured: Cluster) -> None:
    context = ssl.create_default_context()
    with (
        pytest.raises(UpstreamError, match=r"TLS|closed the connection"),
        proxy_before(secured.bootstrap, security=UpstreamSecurity(tls=context)),
    ):
        pass


def test_upstream__clients_come_with_tls_to_a_cluster_without(tmp_path: Path) -> None:
    authority = Authority()
    certificate, trusted = tmp_path / "proxy.pem", tmp_path / "ca.pem"
    certificate.write_bytes(authority.for_broker(["127.0.0.1"]).pem())
    trusted.write_bytes(certificates_pem([authority.certificate]))
    context = client_tls((certificate, certificate))
    with (
        Cluster(Topology.of(brokers=1, profile="fast")) as cluster,
        proxy_before(cluster.bootstrap, tls=context) as found,
    ):
        place = found.broker(1)
        with PlainClient(place) as client:
            client.socket = ssl.create_default_context(cafile=trusted).wrap_socket(
                client.socket, server_hostname=place[0]
            )
            sent = [client.send(m.MetadataRequest(topics=None)) for _ in range(200)]
            assert all(client.receive(each).brokers for each in sent)
        with PlainClient(place) as plain:
            plain.send(m.MetadataRequest(topics=None))
            while not plain.is_closed():
                pass  # an alert comes first
        assert any("no TLS" in line for line in found.lines())
