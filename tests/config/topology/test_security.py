"""The key `security` of topology files: users, and the configs of SASL listeners."""

from __future__ import annotations

import pytest
from msgspec import to_builtins

from kcluster.config.files.problems import TopologyError
from kcluster.config.topology.model import Topology
from kcluster.config.topology.sasl import sasl_settings
from kcluster.security.sasl.oauthbearer import UnsecuredTokens
from kcluster.security.sasl.settings import SaslSettings

HEAD = """\
brokers: 2
listeners:
  CLIENT: {protocol: SASL_PLAINTEXT}
  OTHER: {protocol: SASL_PLAINTEXT}
  INSIDE: {protocol: PLAINTEXT}
"""


def settings(text: str) -> dict[str, SaslSettings]:
    topology = Topology.parse(HEAD + text)
    spec = topology.brokers[0]
    return sasl_settings(spec.all_listeners, topology.config_texts(1), topology.security.users)


def problems(text: str) -> list[str]:
    with pytest.raises(TopologyError) as error:
        Topology.parse(text)
    return [str(problem) for problem in error.value.problems]


def test_users__log_in_by_every_mechanism_that_takes_a_password() -> None:
    found = settings(
        "security: {users: {alice: alice-secret, bob: {password: b, mechanisms: SCRAM-SHA-256}}}"
    )
    assert found.keys() == {"CLIENT", "OTHER"}
    assert found["CLIENT"].mechanisms == ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
    assert found["CLIENT"].passwords == {"alice": "alice-secret"}


def test_configs__of_a_mechanism_of_a_listener_and_of_the_broker() -> None:
    found = settings(
        """
config:
  sasl.enabled.mechanisms: [PLAIN, OAUTHBEARER]
  connections.max.reauth.ms: 9000
  connection.failed.authentication.delay.ms: 7
  listener.name.client.connections.max.reauth.ms: 8000
  listener.name.client.plain.connections.max.reauth.ms: 7000
  listener.name.client.plain.sasl.jaas.config: >-
    org.apache.kafka.common.security.plain.PlainLoginModule required user_carol="c" user_alice="x";
  listener.name.other.sasl.enabled.mechanisms: SCRAM-SHA-512
  listener.name.client.oauthbearer.sasl.jaas.config: >-
    org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required
    unsecuredValidatorRequiredScope="a b" unsecuredValidatorAllowableClockSkewMs="5";
security: {users: {alice: alice-secret}}
"""
    )
    client = found["CLIENT"]
    assert client.max_reauth_ms == {"PLAIN": 7_000, "OAUTHBEARER": 8_000}
    assert client.passwords == {"alice": "alice-secret", "carol": "c"}
    assert client.failure_delay_ms == 7
    assert client.max_receive_bytes == 524_288
    tokens = client.validate_token.__self__  # type: ignore[attr-defined]  # a bound method
    assert tokens == UnsecuredTokens(required_scopes=("a", "b"), clock_skew_ms=5)
    assert found["OTHER"].mechanisms == ("SCRAM-SHA-512",)
    assert found["OTHER"].max_reauth_ms == {"SCRAM-SHA-512": 9_000}


def test_configs__of_logins_have_an_effect() -> None:
    text = "config: {sasl.enabled.mechanisms: PLAIN, sasl.kerberos.service.name: kafka}"
    assert Topology.parse(HEAD + text).without_effect == ("sasl.kerberos.service.name",)


def test_problems__every_one_with_its_place() -> None:
    wrong = """
config: {sasl.enabled.mechanisms: [PLAIN, GSSAPI]}
security:
  user: {}
  users:
    alice: ""
    bob: {password: b, mechanisms: [SCRAM-SHA-1]}
    carol: {mechanisms: PLAIN}
    dave: [1]
"""
    assert problems(HEAD + wrong) == [
        "topology.yaml:7:35 config.sasl.enabled.mechanisms: Kerberos (GSSAPI) is not simulated: use"
        " PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER",
        "topology.yaml:9:3 security.user: no such key of security; did you mean users?",
        "topology.yaml:11:12 security.users.alice: a password is printable text, not empty",
        "topology.yaml:12:37 security.users.bob.mechanisms[0]: SCRAM-SHA-1: no such mechanism; did"
        " you mean SCRAM-SHA-512?",
        "topology.yaml:13:12 security.users.carol.password: missing",
        "topology.yaml:14:11 security.users.dave: this is a list; a password is text",
    ]


def test_problems__users_who_cannot_log_in() -> None:
    (problem,) = problems("brokers: 1\nsecurity: {users: {alice: a}}")
    assert "no listener lets users log in; add one such as" in problem
    (problem,) = problems(
        f"{HEAD}config: {{sasl.enabled.mechanisms: PLAIN}}\n"
        "security: {users: {alice: {password: a, mechanisms: [SCRAM-SHA-256]}}}"
    )
    assert "SCRAM-SHA-256 is not enabled: sasl.enabled.mechanisms has PLAIN" in problem


def test_secrets__are_left_out_of_what_is_written_down() -> None:
    jaas = "org.apache.kafka.common.security.plain.PlainLoginModule required user_carol='hush';"
    topology = Topology.parse(
        f"""{HEAD}
config:
  num.partitions: 3
  sasl.enabled.mechanisms: PLAIN
  listener.name.client.plain.sasl.jaas.config: "{jaas}"
security: {{users: {{alice: hush}}}}
"""
    )
    shown = topology.without_secrets()
    assert "hush" not in str(to_builtins(shown))
    assert shown.config == {"num.partitions": "3", "sasl.enabled.mechanisms": "PLAIN"}
    assert shown.security.users[0].name == "alice"


def test_secrets__are_in_no_representation() -> None:
    topology = Topology.parse(HEAD + "security: {users: {alice: hush}}")
    assert "hush" not in repr(topology)
    (problem,) = problems(HEAD + "security: {users: {alice: {password: [hush]}}}")
    assert "hush" not in problem
