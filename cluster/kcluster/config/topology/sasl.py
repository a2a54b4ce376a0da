"""What the SASL listeners of a topology ask of their clients.

Owns: the choice of a config's value for a listener and mechanism, the default mechanisms, the users
of each mechanism.  Never: checks a value (config/kafka/jaas.py and user_checks.py do).
Kafka: KafkaConfig.valuesWithPrefixOverride, SaslChannelBuilder, JaasContext.loadServerContext.

DIFFERS: without sasl.enabled.mechanisms a listener has PLAIN and SCRAM; Kafka's default is GSSAPI,
which is not simulated.  The mechanisms of a listener need no sasl.jaas.config, if the topology has
users.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kcluster.config.files.key_sets import KEY_SET, read_key_set
from kcluster.config.kafka.catalog import broker_catalog, listener_prefix
from kcluster.config.kafka.jaas import USER_PREFIX, VALIDATOR_PREFIX, parse_jaas
from kcluster.config.kafka.values import ConfigError, Value, parse_value
from kcluster.config.topology.specs import ListenerSpec, UserSpec
from kcluster.extras import how_to_install
from kcluster.security.sasl.mechanisms import OAUTHBEARER, PASSWORD_MECHANISMS, PLAIN, SCRAM_CODES
from kcluster.security.sasl.oauthbearer import TokenRules, UnsecuredTokens, Validator
from kcluster.security.sasl.settings import SaslSettings
from kcluster.security.tokens import TokenSettings

_JAAS: Final = "sasl.jaas.config"
_MECHANISMS: Final = "sasl.enabled.mechanisms"
_MAX_REAUTH: Final = "connections.max.reauth.ms"


def sasl_settings(
    listeners: Iterable[ListenerSpec], texts: Mapping[str, str], users: Iterable[UserSpec]
) -> dict[str, SaslSettings]:
    """The settings of a broker's SASL listeners by name.  `texts`: the broker's configs."""
    return {
        listener.name: _settings(listener.name, texts, tuple(users))
        for listener in listeners
        if listener.protocol.has_sasl
    }


def enabled_mechanisms(
    listeners: Iterable[ListenerSpec], texts: Mapping[str, str]
) -> tuple[str, ...]:
    """The mechanisms of a broker's SASL listeners together."""
    names = [each.name for each in listeners if each.protocol.has_sasl]
    return tuple(dict.fromkeys(one for name in names for one in _mechanisms(name, texts)))


def jaas_passwords(listener: str, texts: Mapping[str, str]) -> dict[str, str]:
    """The passwords of PLAIN in a listener's sasl.jaas.config, by user."""
    return _options(listener, PLAIN, texts, USER_PREFIX)


def token_settings(texts: Mapping[str, str]) -> TokenSettings | None:
    """The settings of delegation tokens in a broker's configs; None without a secret key."""
    secret = texts.get("delegation.token.secret.key", "").strip()
    if not secret:
        return None
    max_lifetime_ms, expiry_ms, check_interval_ms = (
        _number(f"delegation.token.{name}.ms", "", texts)
        for name in ("max.lifetime", "expiry.time", "expiry.check.interval")
    )
    return TokenSettings(secret.encode(), max_lifetime_ms, expiry_ms, check_interval_ms)


def scram_users(users: Iterable[UserSpec], mechanisms: Iterable[str]) -> list[tuple[UserSpec, str]]:
    """The users for whom a new cluster has SCRAM credentials, with the mechanism of each."""
    enabled = [one for one in SCRAM_CODES if one in mechanisms]
    return [(user, one) for user in users for one in enabled if user.logs_in_by(one)]


def _settings(listener: str, texts: Mapping[str, str], users: tuple[UserSpec, ...]) -> SaslSettings:
    mechanisms = _mechanisms(listener, texts)
    passwords = jaas_passwords(listener, texts)
    passwords |= {user.name: user.password for user in users if user.logs_in_by(PLAIN)}
    max_reauth_ms = {one: _number(_MAX_REAUTH, listener, texts, one) for one in mechanisms}
    return SaslSettings(
        mechanisms,
        passwords,
        max_reauth_ms,
        _number("sasl.server.max.receive.size", listener, texts),
        _number("connection.failed.authentication.delay.ms", listener, texts),
        _validator(listener, texts),
    )


def _mechanisms(listener: str, texts: Mapping[str, str]) -> tuple[str, ...]:
    if _text(_MECHANISMS, listener, texts) is None:
        return PASSWORD_MECHANISMS
    value = _value(_MECHANISMS, listener, texts)
    assert isinstance(value, tuple), value
    return value


def _options(
    listener: str, mechanism: str, texts: Mapping[str, str], prefix: str
) -> dict[str, str]:
    """The options of a mechanism's login module that begin with a prefix, without it."""
    text = texts.get(f"{listener_prefix(listener)}{mechanism.lower()}.{_JAAS}")
    return {} if text is None else parse_jaas(text).beginning(prefix)


def key_set_problem(url: str) -> str | None:
    """The reason why no keys can be read from a URL; None if they can."""
    try:
        _signed_tokens(url, TokenRules())
    except ValueError as error:
        return str(error)
    return None


def _signed_tokens(url: str, rules: TokenRules) -> Validator:
    """The validation of tokens that a key of this URL has signed; ValueError if there is none."""
    key_set = read_key_set(url)
    try:
        from kcluster.security.sasl.signed_tokens import SignedTokens  # an extra
    except ModuleNotFoundError:
        raise ValueError(f"signed tokens need {how_to_install('security')}") from None
    return SignedTokens(key_set, rules).validate


def _validator(listener: str, texts: Mapping[str, str]) -> Validator:
    """Validates the tokens of a listener: signed ones if it has keys, else unsecured ones."""
    url = _text(KEY_SET, listener, texts, OAUTHBEARER)
    if url is None:
        options = _options(listener, OAUTHBEARER, texts, VALIDATOR_PREFIX)
        return _unsecured_tokens(options).validate

    def text(name: str) -> str:
        value = _value(f"sasl.oauthbearer.{name}", listener, texts, OAUTHBEARER)
        return value if isinstance(value, str) else ""

    audiences = _value("sasl.oauthbearer.expected.audience", listener, texts, OAUTHBEARER)
    skew_s = _number("sasl.oauthbearer.clock.skew.seconds", listener, texts, OAUTHBEARER)
    rules = TokenRules(
        audiences if isinstance(audiences, tuple) else (),
        text("expected.issuer") or None,
        text("scope.claim.name"),
        text("sub.claim.name"),
        skew_s * 1_000,
    )
    return _signed_tokens(url, rules)


def _unsecured_tokens(options: Mapping[str, str]) -> UnsecuredTokens:
    defaults = UnsecuredTokens()
    return UnsecuredTokens(
        options.get("PrincipalClaimName", "").strip() or defaults.principal_claim,
        options.get("ScopeClaimName", "").strip() or defaults.scope_claim,
        tuple(options.get("RequiredScope", "").split()),
        int(options.get("AllowableClockSkewMs", "").strip() or 0),
    )


def _number(name: str, listener: str, texts: Mapping[str, str], mechanism: str = "") -> int:
    value = _value(name, listener, texts, mechanism)
    assert isinstance(value, int), value
    return value


def _value(name: str, listener: str, texts: Mapping[str, str], mechanism: str = "") -> Value:
    definition = broker_catalog()[name]
    text = _text(name, listener, texts, mechanism)
    if text is None:
        return definition.default
    value = parse_value(definition, text)
    assert not isinstance(value, ConfigError), "checked when the topology was read"
    return value


def _text(name: str, listener: str, texts: Mapping[str, str], mechanism: str = "") -> str | None:
    """The text of a config: the listener's for this mechanism, the listener's, or the broker's."""
    prefix = listener_prefix(listener)
    of_mechanism = f"{prefix}{mechanism.lower()}.{name}" if mechanism else ""
    for key in (of_mechanism, f"{prefix}{name}", name):
        if key in texts:
            return texts[key]
    return None
