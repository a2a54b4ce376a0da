"""The settings that each library needs to log in."""

from __future__ import annotations

import pytest

from kcluster.principals import SecurityProtocol
from kcluster.security.client_settings import SETTINGS_OF, Login, LoginFiles, text_of

FILES = LoginFiles("/tls/ca.pem", "/tls/alice.pem", "/tls/alice.key", "/tls/alice-store.pem")
ALICE = Login("a:1,b:2", SecurityProtocol.SASL_SSL, "SCRAM-SHA-512", "alice", 'pass"word\\', FILES)


def shown(library: str, login: Login) -> list[str]:
    return text_of(library, SETTINGS_OF[library](login)).splitlines()


def test_settings__java_reads_pem_files_and_a_quoted_password() -> None:
    assert shown("java", ALICE) == [
        "bootstrap.servers=a:1,b:2",
        "security.protocol=SASL_SSL",
        "sasl.mechanism=SCRAM-SHA-512",
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required"
        ' username="alice" password="pass\\\\"word\\\\\\\\";',
        "ssl.truststore.type=PEM",
        "ssl.truststore.location=/tls/ca.pem",
        "ssl.keystore.type=PEM",
        "ssl.keystore.location=/tls/alice-store.pem",
    ]


@pytest.mark.parametrize(
    ("library", "lines"),
    [
        (
            "librdkafka",
            [
                "bootstrap.servers=a:1,b:2",
                "security.protocol=SASL_SSL",
                "sasl.mechanism=SCRAM-SHA-512",
                "sasl.username=alice",
                'sasl.password=pass"word\\\\',
                "ssl.ca.location=/tls/ca.pem",
                "ssl.certificate.location=/tls/alice.pem",
                "ssl.key.location=/tls/alice.key",
            ],
        ),
        (
            "aiokafka",
            [
                "bootstrap_servers='a:1,b:2',",
                "security_protocol='SASL_SSL',",
                "sasl_mechanism='SCRAM-SHA-512',",
                "sasl_plain_username='alice',",
                "sasl_plain_password='pass\"word\\\\',",
                "ssl_context=aiokafka.helpers.create_ssl_context(cafile='/tls/ca.pem',"
                " certfile='/tls/alice.pem', keyfile='/tls/alice.key'),",
            ],
        ),
        (
            "franz-go",
            [
                'kgo.SeedBrokers("a:1", "b:2"),',
                "kgo.DialTLSConfig(tlsConfig),",
                'kgo.SASL(scram.Auth{User: "alice", Pass: "pass\\"word\\\\"}.AsSha512Mechanism()),',
            ],
        ),
        (
            "kafkajs",
            [
                "{",
                '  brokers: ["a:1", "b:2"],',
                '  ssl: {ca: [fs.readFileSync("/tls/ca.pem")], cert:'
                ' fs.readFileSync("/tls/alice.pem"), key: fs.readFileSync("/tls/alice.key")},',
                '  sasl: {mechanism: "scram-sha-512", username: "alice", password:'
                ' "pass\\"word\\\\"},',
                "}",
            ],
        ),
    ],
)
def test_settings__as_each_library_writes_them(library: str, lines: list[str]) -> None:
    assert shown(library, ALICE) == lines


@pytest.mark.parametrize("library", SETTINGS_OF)
def test_settings__a_plaintext_cluster_needs_the_address_alone(library: str) -> None:
    text = text_of(library, SETTINGS_OF[library](Login("a:1")))
    assert "a:1" in text
    assert not any(word in text.lower() for word in ("sasl", "password", "tls", "ssl"))


def test_settings__the_password_is_in_no_repr() -> None:
    assert "pass" not in repr(ALICE)
