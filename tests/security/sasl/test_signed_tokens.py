"""Signed tokens: the signature, the times, the audience and the issuer that Kafka asks for."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from jwt.algorithms import ECAlgorithm

from kcluster.config.files.problems import TopologyError
from kcluster.config.topology.model import Topology
from kcluster.config.topology.sasl import sasl_settings
from kcluster.security.sasl.exchange import LoginProblem
from kcluster.security.sasl.oauthbearer import InvalidToken, TokenRules, ValidToken, unsecured_token
from kcluster.security.sasl.signed_tokens import SignedTokens

NOW_S = 1_700_000_000
CLAIMS = {"sub": "alice", "iat": NOW_S, "exp": NOW_S + 60}
RULES = TokenRules(audiences=("kafka", "other"), issuer="https://issuer")
PLACE: dict[str, Any] = {"aud": ["kafka"], "iss": "https://issuer"}
KEY, OTHER_KEY = generate_private_key(SECP256R1()), generate_private_key(SECP256R1())
PUBLIC: dict[str, Any] = ECAlgorithm.to_jwk(KEY.public_key(), as_dict=True)
KEY_SET = json.dumps({"keys": [PUBLIC | {"kid": "one", "alg": "ES256"}]}).encode()


def signed(key: Any = KEY, key_id: str | None = "one", **claims: Any) -> str:
    headers = {} if key_id is None else {"kid": key_id}
    found = {name: value for name, value in (CLAIMS | claims).items() if value is not None}
    return jwt.encode(found, key, "ES256", headers)


def validate(token: str, rules: TokenRules = TokenRules(), at_s: float = NOW_S) -> object:
    return SignedTokens(KEY_SET, rules).validate(token, round(at_s * 1000))


def test_token__its_subject_until_it_expires() -> None:
    alice = ValidToken("alice", (NOW_S + 60) * 1000)
    assert validate(signed()) == alice
    assert validate(signed(key_id=None)) == alice
    assert validate(signed(scope=["a"], aud="anybody")) == alice
    assert validate(signed(**PLACE), RULES) == alice
    assert validate(signed(sub=None, name="alice"), TokenRules(subject_claim="name")) == alice
    assert validate(signed(), at_s=NOW_S + 89.9) == alice
    assert validate(signed(), at_s=NOW_S + 90) == InvalidToken(LoginProblem.EXPIRED_TOKEN)


@pytest.mark.parametrize(
    "token",
    [
        signed(OTHER_KEY, **PLACE),
        signed(key_id="two", **PLACE),
        signed(iss="https://issuer"),
        signed(iss="https://issuer", aud="x"),
        signed(aud="kafka"),
        signed(**PLACE, exp=None),
        signed(**PLACE, iat=None),
        signed(**PLACE, sub=" "),
        signed(**PLACE, sub=3),
        signed(**PLACE, scope=5),
        signed(**PLACE, nbf=NOW_S + 31),
        signed(**PLACE) + "x",
        signed(**PLACE)[:-90],
        unsecured_token("alice", NOW_S * 1000, 60_000),
        "",
        "a.b.c",
    ],
    ids=itertools.count(),
)
def test_token__refused_ones(token: str) -> None:
    assert validate(token, RULES) == InvalidToken()


@pytest.mark.parametrize("keys", [b"", b"[]", b"{}", b'{"keys": []}', b'{"keys": [{"kty": "x"}]}'])
def test_keys__a_set_without_a_usable_one(keys: bytes) -> None:
    with pytest.raises(ValueError, match="no set of keys"):
        SignedTokens(keys, TokenRules())


def topology(url: str) -> Topology:
    return Topology.of(
        brokers=1,
        listeners={"CLIENT": {"protocol": "SASL_PLAINTEXT"}},
        config={
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "listener.name.client.oauthbearer.sasl.server.callback.handler.class": (
                "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
            ),
            "sasl.oauthbearer.jwks.endpoint.url": url,
            "sasl.oauthbearer.expected.audience": "kafka,other",
            "sasl.oauthbearer.expected.issuer": "https://issuer",
        },
    )


def test_topology__the_keys_are_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "jwks.json"
    path.write_bytes(KEY_SET)
    found = topology(path.as_uri())
    assert found.without_effect == ()
    listeners = found.brokers[0].all_listeners
    settings = sasl_settings(listeners, found.config_texts(1), ())["CLIENT"]
    assert isinstance(settings.validate_token(signed(**PLACE), NOW_S * 1000), ValidToken)
    assert settings.validate_token(signed(), NOW_S * 1000) == InvalidToken()


def test_topology__problems_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "jwks.json"
    for url, reason in (
        ("https://issuer/keys", "must be a file, like file:///etc/kafka/jwks.json"),
        (path.as_uri(), "No such file or directory"),
        (tmp_path.as_uri(), "Is a directory"),
    ):
        with pytest.raises(TopologyError, match=reason):
            topology(url)
    path.write_text("{}")
    with pytest.raises(TopologyError, match="no set of keys"):
        topology(path.as_uri())
