"""A client's properties, as Kafka's tools take them with --command-config, for proxy and conform.

Owns: reading the security settings from the properties, and every problem with them.  Never: shows
a password.  Kafka: CommonClientConfigs, SaslConfigs, SslConfigs, ConfigDef.

Without `sasl.mechanism` and a login module the proxy does not log in, and clients' own logins pass.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kcluster.cli.errors import CommandError
from kcluster.config.files.problems import nearest
from kcluster.config.kafka.jaas import MODULES, parse_jaas
from kcluster.config.kafka.tls import NAME_CHECK, TLS_DEFAULTS
from kcluster.drivers.tls.optional import needs_extra
from kcluster.importing.properties import pairs
from kcluster.importing.tool_output import ToolText
from kcluster.principals import SecurityProtocol
from kcluster.proxy.upstream import UpstreamSecurity
from kcluster.security.client_access import ClientAccess
from kcluster.security.sasl.mechanisms import OAUTHBEARER

PROTOCOL: Final = "security.protocol"
MECHANISM: Final = "sasl.mechanism"
JAAS: Final = "sasl.jaas.config"
_KNOWN: Final = (PROTOCOL, MECHANISM, JAAS, NAME_CHECK, *TLS_DEFAULTS)
_SECURITY: Final = ("security.", "sasl.", "ssl.")
_SUBJECT: Final = "unsecuredLoginStringClaim_sub"


def read_command_config(path: Path) -> UpstreamSecurity:
    """How a file of properties connects; CommandError with every problem."""
    try:
        text = path.read_text("utf-8", errors="replace")
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}", 2) from None
    file = ToolText(str(path), text)
    places: dict[str, int] = {}
    values: dict[str, str] = {}
    for line, name, value in pairs(file):
        places[name], values[name] = line, value
        if name in _KNOWN:
            continue
        meant = nearest(name, _KNOWN)
        if meant or name.startswith(_SECURITY):
            hint = f"; did you mean {meant}?" if meant else ""
            file.wrong(line, 1, f"{name} has no effect here{hint}")
    security = _security(file, places, values)
    if file.problems or security is None:
        raise CommandError("\n".join(str(problem) for problem in file.problems), 2)
    return security


def _security(
    file: ToolText, places: dict[str, int], values: dict[str, str]
) -> UpstreamSecurity | None:
    name = values.get(PROTOCOL, SecurityProtocol.PLAINTEXT.name).upper()
    if name not in SecurityProtocol.__members__:
        known = ", ".join(SecurityProtocol.__members__)
        file.wrong(places[PROTOCOL], 1, f"{PROTOCOL}={name}: there are {known}")
        return None
    protocol = SecurityProtocol[name]
    login = _login(file, places, values, protocol)
    context = None
    if protocol.has_tls:
        try:
            from kcluster.cli.work.command_tls import context_of
        except ModuleNotFoundError as error:
            file.wrong(places[PROTOCOL], 1, needs_extra(error))
            return None
        context = context_of(file, places, values, protocol)
    return UpstreamSecurity(context, login)


def _login(
    file: ToolText, places: dict[str, int], values: dict[str, str], protocol: SecurityProtocol
) -> ClientAccess | None:
    if not protocol.has_sasl or JAAS not in values:
        return None  # clients log in themselves
    mechanism = values.get(MECHANISM, "GSSAPI")
    if mechanism not in MODULES:
        known = ", ".join(MODULES)
        line = places.get(MECHANISM, places[JAAS])
        file.wrong(line, 1, f"{MECHANISM}={mechanism}: there are {known}")
        return None
    try:
        module = parse_jaas(values[JAAS])
    except ValueError as error:
        file.wrong(places[JAAS], 1, f"{JAAS} {error}")
        return None
    if module.name != MODULES[mechanism]:
        file.wrong(places[JAAS], 1, f"{JAAS}: {mechanism} needs {MODULES[mechanism]}")
        return None
    user = module.options.get(_SUBJECT if mechanism == OAUTHBEARER else "username")
    password = module.options.get("password", "")
    if user is None:
        lacks = _SUBJECT if mechanism == OAUTHBEARER else "username"
        file.wrong(places[JAAS], 1, f"{JAAS} has no {lacks}")
        return None
    return ClientAccess(protocol=protocol, mechanism=mechanism, user=user, password=password)
