"""Kafka's sasl.jaas.config: a login module and its options, in the form of JAAS.

Owns: the form, the login modules of the mechanisms, users of PLAIN among the options.  Never: shows
an option's value.
Kafka: JaasConfig, JaasContext, PlainServerCallbackHandler; the files of javax.security.auth.login.

    org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="alice-secret";
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from kcluster.config.kafka.values import ConfigDef, Value
from kcluster.security.sasl.mechanisms import OAUTHBEARER, PLAIN, SCRAM_CODES

_PACKAGE: Final = "org.apache.kafka.common.security"
PLAIN_MODULE: Final = f"{_PACKAGE}.plain.PlainLoginModule"
SCRAM_MODULE: Final = f"{_PACKAGE}.scram.ScramLoginModule"
OAUTHBEARER_MODULE: Final = f"{_PACKAGE}.oauthbearer.OAuthBearerLoginModule"
MODULES: Final = {
    PLAIN: PLAIN_MODULE,
    **dict.fromkeys(SCRAM_CODES, SCRAM_MODULE),
    OAUTHBEARER: OAUTHBEARER_MODULE,
}
"""The login module of each mechanism."""
CALLBACK_HANDLERS: Final = (
    f"{_PACKAGE}.oauthbearer.OAuthBearerValidatorCallbackHandler",
    f"{_PACKAGE}.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler",
)
"""The handlers of tokens: signed ones if the listener has keys (JWKS), else unsecured ones."""
USER_PREFIX: Final = "user_"
VALIDATOR_PREFIX: Final = "unsecuredValidator"
SKEW_OPTION: Final = f"{VALIDATOR_PREFIX}AllowableClockSkewMs"
NO_KERBEROS: Final = (
    "Kerberos (GSSAPI) is not simulated: use PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER"
)

_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_TOKEN: Final = re.compile(
    r"""\s+ | //[^\n]* | /\*.*?\*/
    | "(?P<double>(?:[^"\\\n]|\\.)*)" | '(?P<single>(?:[^'\\\n]|\\.)*)'
    | (?P<word>[A-Za-z_$\u00a0-\uffff][A-Za-z0-9_$.\u00a0-\uffff-]*)
    | (?P<number>[0-9.-]+)
    | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v"}


class LoginModule(Struct, frozen=True):
    """A login module with its options, which are in no repr."""

    name: str
    options: dict[str, str]

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def beginning(self, prefix: str) -> dict[str, str]:
        """The options whose names begin with a prefix, by the rest of the name."""
        return {
            name.removeprefix(prefix): value
            for name, value in self.options.items()
            if name.startswith(prefix)
        }


def parse_jaas(text: str) -> LoginModule:
    """The one login module of a sasl.jaas.config; ValueError with the reason if it is malformed."""
    tokens = list(_tokens(text))
    if not tokens:
        raise ValueError("names no login module")
    name = tokens[0][1]
    flag = tokens[1][1] if len(tokens) > 1 else ""
    if tokens[0][0] != "word" or "." not in name:
        raise ValueError("must begin with the class of a login module")
    if flag.lower() not in _FLAGS:
        raise ValueError(f"{name} must be followed by `required`")
    at = 2
    options: dict[str, str] = {}
    while at < len(tokens) and tokens[at] != ("other", ";"):
        key = tokens[at][1]
        is_pair = len(tokens) > at + 2 and tokens[at + 1] == ("other", "=")
        if not is_pair or tokens[at + 2][0] not in ("word", "text"):
            raise ValueError(f'the option {key} must have a value in quotes: {key}="..."')
        options[key] = tokens[at + 2][1]
        at += 3
    if at == len(tokens):
        raise ValueError("must end with a semicolon")
    if at + 1 < len(tokens):
        raise ValueError("must name one login module only")
    return LoginModule(name, options)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    for match in _TOKEN.finditer(text):
        kind, found = match.lastgroup, match[0]
        if kind in ("double", "single"):
            yield "text", _ESCAPE.sub(_unescape, found[1:-1])
        elif kind is not None:
            yield kind, found


def _unescape(match: re.Match[str]) -> str:
    written = match[1]
    if written[0] in "01234567":
        return chr(int(written, 8))
    return _ESCAPED.get(written, written)


def check_jaas(_definition: ConfigDef, value: Value) -> str | None:
    """The reason why a value of sasl.jaas.config is invalid, without its secrets; None if it is
    valid."""
    try:
        module = parse_jaas(str(value))
    except ValueError as error:
        return f"sasl.jaas.config {error}"
    if "Krb5" in module.name:
        return NO_KERBEROS
    if module.name not in MODULES.values():
        return (
            f"{module.name} is not simulated; there are PlainLoginModule, ScramLoginModule and"
            f" OAuthBearerLoginModule, in packages of {_PACKAGE}"
        )
    skew = module.options.get(SKEW_OPTION, "0").strip()
    if not skew.isdecimal():
        return f"{SKEW_OPTION} of sasl.jaas.config must be a number of milliseconds"
    return None


def check_callback_handler(_definition: ConfigDef, value: Value) -> str | None:
    """The reason why a value of sasl.server.callback.handler.class is invalid; None if it is
    valid."""
    if value in ("", *CALLBACK_HANDLERS):
        return None
    return f"{value}: there are no plug-ins; brokers have {', '.join(CALLBACK_HANDLERS)}"


def check_mechanisms(definition: ConfigDef, value: Value) -> str | None:
    """The reason why a value of sasl.enabled.mechanisms is invalid; None if it is valid."""
    assert isinstance(value, tuple), value
    for mechanism in value:
        if mechanism == "GSSAPI":
            return NO_KERBEROS
        if mechanism not in MODULES:
            return f"{mechanism} is no SASL mechanism; there are {', '.join(MODULES)}"
    return None if value else f"{definition.name} must name at least one mechanism"
