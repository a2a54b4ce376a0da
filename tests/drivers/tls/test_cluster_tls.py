"""Listeners with TLS in a cluster, over TCP and in virtual time."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kcluster.config.files.problems import TopologyError
from kcluster.config.topology.model import Topology
from kcluster.drivers.tls.credentials import Credentials, certificates_pem
from kcluster.drivers.tls.optional import require_stores
from kcluster.principals import ANONYMOUS, Principal, SecurityProtocol
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.scenario.perform import do
from kcluster.security.certificates import CertificateState
from tests.drivers.tls.wire import AUTHORITY, TlsLine, load
from tests.rig.byte_worlds import KINDS
from tests.rig.lines import CLOSED, ByteLine
from tests.rig.patience import PATIENCE_S

SECURE = {"SECURE": {"protocol": "SSL"}}
BIG = m.FindCoordinatorRequest(coordinator_keys=["g" * 30_000] * 30)
ALTER = m.IncrementalAlterConfigsRequest
BROKER = 4


class Secured:
    """A one-broker cluster whose only listener has TLS."""

    def __init__(self, kind: str, **topology: Any) -> None:
        self.world = KINDS[kind](
            Topology.of(brokers=1, listeners=SECURE, profile="fast", **topology)
        )
        self.cluster: Any = self.world.cluster

    @property
    def tls(self) -> Any:
        return self.cluster.driver.tls

    def context(self, client: Credentials | None = None) -> ssl.SSLContext:
        trusted = [self.tls.authority.certificate, AUTHORITY.certificate]
        context = ssl.create_default_context(cadata=certificates_pem(trusted).decode())
        if client is not None:
            load(context, client)
        return context

    def connect(self, client: Credentials | None = None) -> TlsLine:
        return TlsLine(self.world.connect(), self.context(client))

    def principals(self) -> list[Principal]:
        """Of the open connections, as the listener knows them."""
        listener = self.world.listener()
        return [listener.channel.identity_of(each).principal for each in listener.connections]

    def logged(self, words: str) -> None:
        self.cluster.wait_until(
            lambda: any(words in line for line in self.world.lines), PATIENCE_S, words
        )


@pytest.fixture(params=KINDS)
def make(request: pytest.FixtureRequest) -> Iterator[Callable[..., Secured]]:
    made: list[Secured] = []

    def secured(**topology: Any) -> Secured:
        made.append(Secured(request.param, **({"security": {"tls": "auto"}} | topology)))
        return made[-1]

    yield secured
    for each in made:
        each.world.finish()


def ask(line: TlsLine, key: ApiKey, version: int, body: Any) -> Any:
    asked = ByteLine(line)
    asked.send(key, version, body)
    return asked.outcome(int(PATIENCE_S * 1000))


def answers(line: TlsLine) -> bool:
    answer = ask(line, ApiKey.API_VERSIONS, 3, m.ApiVersionsRequest(client_software_name="x"))
    return answer is not CLOSED and answer.error_code != ErrorCode.UNSUPPORTED_VERSION


def test_cluster__serves_tls_and_nothing_else(make: Callable[..., Secured]) -> None:
    one = make()
    with one.connect() as line:
        assert answers(line)
        assert len(ask(line, ApiKey.FIND_COORDINATOR, 4, BIG).coordinators) == 30
        assert one.principals() == [ANONYMOUS]
    with one.world.connect() as plain:
        plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
        one.logged("SSL handshake failed: the client sent an HTTP request")
    with one.connect() as line:
        assert answers(line)


def test_cluster__a_failed_handshake_is_not_delayed(make: Callable[..., Secured]) -> None:
    # As 4.4.0, whose connection.failed.authentication.delay.ms is for SASL alone.
    one = make(config={"connection.failed.authentication.delay.ms": 3_600_000})
    with one.world.connect() as plain:
        plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
        while plain.recv(100):
            pass  # the alert


def test_cluster__a_certificate_names_the_client(make: Callable[..., Secured]) -> None:
    rules = "RULE:^CN=(nobody)$/$1/,RULE:^CN=(a.*)$/$1/U"
    one = make(
        security={"tls": {"client_auth": "required"}}, config={"ssl.principal.mapping.rules": rules}
    )
    with one.connect(one.tls.authority.for_client("alice")) as line:
        assert answers(line)
        assert one.principals() == [Principal("User", "ALICE")]
    with pytest.raises(ssl.SSLError, match="CERTIFICATE_REQUIRED"), one.connect() as line:
        answers(line)
    with one.connect(one.tls.authority.for_client("bob")) as line:
        assert not answers(line)
        one.logged("no rule of ssl.principal.mapping.rules applies to the client's name: CN=bob")


def test_cluster__a_restarted_broker_has_a_certificate_of_the_same_ca(
    make: Callable[..., Secured],
) -> None:
    one = make()
    context = one.context()
    one.cluster.kill(1)
    one.cluster.start(1)
    with TlsLine(one.world.connect(), context) as line:
        assert answers(line)


def test_cluster__a_bad_certificate_is_shown_to_new_connections(
    make: Callable[..., Secured],
) -> None:
    one = make()
    with one.connect() as old:
        assert answers(old)
        for state, words in (
            (CertificateState.EXPIRED, "certificate has expired"),
            (CertificateState.WRONG_NAME, "Hostname mismatch"),
        ):
            do(one.cluster, "certificate", brokers=1, state=state.value)
            with pytest.raises(ssl.SSLCertVerificationError, match=words):
                one.connect()
        do(one.cluster, "certificate", brokers=1, state="valid")
        with one.connect() as line:
            assert answers(line)
        assert answers(old)


# --------------------------------------------------------------------------- keystores of the user


def store(path: Path, credentials: Credentials) -> str:
    path.write_bytes(credentials.pem())
    return str(path)


def set_configs(line: TlsLine, **configs: str) -> Any:
    """Set configs of the listener; underscores stand for dots."""
    items = [
        ALTER.AlterableConfig(
            name=f"listener.name.secure.ssl.{name.replace('_', '.')}",
            config_operation=0,
            value=value,
        )
        for name, value in configs.items()
    ]
    resource = ALTER.AlterConfigsResource(resource_type=BROKER, resource_name="1", configs=items)
    answer = ask(line, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, ALTER(resources=[resource]))
    return answer.responses[0]


def test_keystore__is_replaced_while_the_broker_runs(
    make: Callable[..., Secured], tmp_path: Path
) -> None:
    names = ["localhost", "broker"]
    first, second = AUTHORITY.for_broker(names), AUTHORITY.for_broker([*names, "another"])
    path = store(tmp_path / "broker.pem", first)
    one = make(security={"tls": {"keystore": path}})
    with one.connect() as line:
        assert line.tls.getpeercert(binary_form=True) == first_of(first)
        refusals = {
            "subject": AUTHORITY.for_broker(["elsewhere", *names]),
            "lack a name": AUTHORITY.for_broker(["localhost"]),
        }
        for words, credentials in refusals.items():
            answer = set_configs(line, keystore_location=store(tmp_path / "x.pem", credentials))
            assert answer.error_code == ErrorCode.INVALID_REQUEST
            assert words in answer.error_message
        answer = set_configs(line, keystore_location=str(tmp_path / "none.pem"))
        assert "No such file" in answer.error_message
        answer = set_configs(line, keystore_location=store(tmp_path / "y.pem", second))
        assert answer.error_code == ErrorCode.NONE
        with one.connect() as newer:
            assert newer.tls.getpeercert(binary_form=True) == first_of(second)
        again = store(tmp_path / "y.pem", first)  # the same file, with other content
        refused = set_configs(line, keystore_location=again)
        assert refused.error_code == ErrorCode.INVALID_REQUEST
        store(tmp_path / "y.pem", AUTHORITY.for_broker([*names, "another", "third"]))
        assert set_configs(line, keystore_location=again).error_code == ErrorCode.NONE
        with one.connect() as newest:
            assert "third" in str(newest.tls.getpeercert())
        assert answers(line)


def first_of(credentials: Credentials) -> bytes:
    pem = certificates_pem([credentials.certificate]).decode()
    return ssl.PEM_cert_to_DER_cert(pem)


def test_keystore__pem_texts_in_configs_and_tls_versions(make: Callable[..., Secured]) -> None:
    credentials = AUTHORITY.for_broker(["localhost"])
    key, chain = credentials.pem().split(b"-----END PRIVATE KEY-----\n")
    one = make(
        security=None,
        config={
            "ssl.keystore.type": "PEM",
            "listener.name.secure.ssl.keystore.key": key.decode() + "-----END PRIVATE KEY-----\n",
            "listener.name.secure.ssl.keystore.certificate.chain": chain.decode(),
            "ssl.enabled.protocols": "TLSv1.2",
        },
    )
    with one.connect() as line:
        assert line.tls.version() == "TLSv1.2"
        assert answers(line)
        described = ask(
            line,
            ApiKey.DESCRIBE_CONFIGS,
            4,
            m.DescribeConfigsRequest(
                resources=[m.DescribeConfigsRequest.DescribeConfigsResource(BROKER, "1", None)]
            ),
        )
        assert b"PRIVATE KEY" not in repr(described).encode()


WRONG: dict[str, tuple[str, str]] = {
    "a file that is not there": (
        "security: {tls: {keystore: none.p12, keystore_password: x}}\n",
        "t.yaml:3:28 security.tls.keystore: none.p12: No such file or directory",
    ),
    "no certificate at all": (
        "",
        "t.yaml:2:12 listeners.CLIENT: the listener CLIENT of broker 1 needs a certificate: set"
        " security: {tls: auto}, or ssl.keystore.location",
    ),
    "a key of security": (
        "security: {tsl: auto}\n",
        "t.yaml:3:12 security.tsl: no such key of security; did you mean tls?",
    ),
    "a word for tls": (
        "security: {tls: yes}\n",
        "t.yaml:3:17 security.tls: yes; it must be auto, or a mapping like {keystore: broker.p12}",
    ),
    "a password of nothing": (
        "security: {tls: {keystore_password: x}}\n",
        "t.yaml:3:37 security.tls.keystore_password: needs keystore",
    ),
    "a suffix": (
        "security: {tls: {keystore: a.key}}\n",
        "t.yaml:3:28 security.tls.keystore: a.key; its name must end in .pem, .crt, .p12, .pfx,"
        " .jks",
    ),
    "a directory that is a file": (
        f"security: {{tls: {{files: {__file__}}}}}\n",
        f"t.yaml:3:25 security.tls.files: {__file__}: File exists",
    ),
    "a rule": (
        "security: {tls: auto}\nconfig: {ssl.principal.mapping.rules: 'RULE:(/'}\n",
        "t.yaml:4:39 config.ssl.principal.mapping.rules: not a rule: RULE:(/; rules are DEFAULT and"
        " RULE:pattern/replacement/ with an L or U at the end",
    ),
    "an old version": (
        "security: {tls: auto}\nconfig: {ssl.enabled.protocols: TLSv1.1}\n",
        "t.yaml:4:33 config.ssl.enabled.protocols: none of them works here; TLSv1.2, TLSv1.3 do",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_topology__what_is_wrong_with_tls_is_told_with_its_place(case: str) -> None:
    text, expected = WRONG[case]
    with pytest.raises(TopologyError) as caught:
        require_stores(
            Topology.parse(
                f"brokers: 1\nlisteners: {{CLIENT: {{protocol: SSL}}}}\n{text}", "t.yaml"
            )
        )
    assert expected in str(caught.value).splitlines()


def test_topology__tls_configs_have_an_effect_only_with_tls() -> None:
    config = {"ssl.client.auth": "none", "listener.name.secure.ssl.keystore.type": "PEM"}
    assert len(Topology.of(brokers=1, config=config).without_effect) == 2
    secured = Topology.of(brokers=1, config=config, listeners=SECURE, security={"tls": "auto"})
    assert secured.without_effect == ()
    assert secured.brokers[0].all_listeners[0].protocol is SecurityProtocol.SSL
