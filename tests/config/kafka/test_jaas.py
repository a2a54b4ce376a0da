"""sasl.jaas.config, as production files have it."""

from __future__ import annotations

import pytest

from kcluster.config.kafka.catalog import broker_catalog, listener_config
from kcluster.config.kafka.jaas import NO_KERBEROS, PLAIN_MODULE, SCRAM_MODULE, parse_jaas
from kcluster.config.kafka.values import ConfigError, parse_value

JAAS = broker_catalog()["sasl.jaas.config"]


def test_jaas__users_of_a_production_file() -> None:
    module = parse_jaas(
        f"""{PLAIN_MODULE} required  // the brokers' own login follows
            username="admin" password='admin "secret"' /* and
            the clients' */ user_admin="admin-secret" user_a.b="x\\"y\\\\z\\t\\101" user_bare=b;
        """
    )
    assert module.name == PLAIN_MODULE
    assert module.options["password"] == 'admin "secret"'
    assert module.beginning("user_") == {"admin": "admin-secret", "a.b": 'x"y\\z\tA', "bare": "b"}
    assert "secret" not in repr(module)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "names no login module"),
        ("required", "must begin with the class of a login module"),
        (f"{PLAIN_MODULE};", f"{PLAIN_MODULE} must be followed by `required`"),
        (f"{PLAIN_MODULE} required", "must end with a semicolon"),
        (f'{PLAIN_MODULE} required user_a="x"', "must end with a semicolon"),
        (
            f"{PLAIN_MODULE} required user_a=123;",
            'the option user_a must have a value in quotes: user_a="..."',
        ),
        (
            f'{PLAIN_MODULE} required user_a "x";',
            'the option user_a must have a value in quotes: user_a="..."',
        ),
        (f"{SCRAM_MODULE} required; {SCRAM_MODULE} required;", "must name one login module only"),
        ("com.example.Own required;", "com.example.Own is not simulated"),
        ("com.sun.security.auth.module.Krb5LoginModule required;", NO_KERBEROS),
    ],
)
def test_jaas__reasons_of_refusal(text: str, reason: str) -> None:
    refused = parse_value(JAAS, text)
    assert isinstance(refused, ConfigError)
    assert reason in str(refused)


def test_jaas__a_secret_is_in_no_message() -> None:
    refused = parse_value(JAAS, f'{PLAIN_MODULE} required user_a="hush" user_b;')
    assert isinstance(refused, ConfigError)
    assert "hush" not in str(refused)


def test_mechanisms__kerberos_is_refused_in_one_line() -> None:
    mechanisms = broker_catalog()["sasl.enabled.mechanisms"]
    assert str(parse_value(mechanisms, "PLAIN,GSSAPI")) == NO_KERBEROS
    assert "SCRAM-SHA-1 is no SASL mechanism" in str(parse_value(mechanisms, "SCRAM-SHA-1"))
    assert parse_value(mechanisms, "PLAIN,SCRAM-SHA-512") == ("PLAIN", "SCRAM-SHA-512")


def test_names__of_a_listener_and_of_its_mechanism() -> None:
    prefix = "listener.name.client"
    assert listener_config(f"{prefix}.plain.sasl.jaas.config") == "sasl.jaas.config"
    assert listener_config(f"{prefix}.scram-sha-256.sasl.jaas.config") == "sasl.jaas.config"
    assert listener_config(f"{prefix}.sasl.enabled.mechanisms") == "sasl.enabled.mechanisms"
    assert listener_config(f"{prefix}.plain") == "plain"
