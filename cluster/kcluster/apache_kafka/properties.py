"""The server.properties of each node of a real Kafka, from a topology.

Owns: which config each key of a topology becomes.  Never: reads a file, chooses a port.
Kafka: config/broker.properties, config/controller.properties.

The same file means the same here as on a simulated cluster: the time constants of its profile, and
the defaults that differ from Kafka's (default.replication.factor), are written out.

A topology's TLS, logins and ACLs concern its clients alone, as on a simulated cluster: with any of
them, brokers have one more listener for each other.  With ACLs, brokers and controllers log in with
each other as INNER_USER, a super user.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kcluster.config.kafka.broker import BROKER_CONFIGS, BrokerConfig, replication_defaults
from kcluster.config.kafka.values import ConfigDef, Value
from kcluster.config.topology.config_checks import simulated
from kcluster.config.topology.model import Topology
from kcluster.config.topology.sasl import jaas_passwords, sasl_settings
from kcluster.config.topology.specs import BrokerSpec
from kcluster.principals import SecurityProtocol

CONTROLLER_LISTENER: Final = "KCLUSTER_CONTROLLER"
INNER_LISTENER: Final = "KCLUSTER_INNER"
"""The listener of a broker for other brokers, which no client uses."""
INNER_USER: Final = "kcluster-inner"
KEYSTORE: Final = "keystore.pem"
TRUSTSTORE: Final = "truststore.pem"
"""The files with a broker's certificate and the CA, in its directory, where they are made here."""
SLOWEST_DIVISOR: Final = 10
"""The most by which a profile divides the times of Kafka here."""
LOG_DIRS: Final = "log.dirs"
DECIDED: Final = frozenset(
    {
        *("process.roles", "node.id", "broker.id", "broker.rack", "early.start.listeners"),
        *("listeners", "advertised.listeners", "listener.security.protocol.map"),
        *("controller.listener.names", "controller.quorum.voters"),
        *("controller.quorum.bootstrap.servers", "controller.quorum.auto.join.enable"),
        *("inter.broker.listener.name", "security.inter.broker.protocol"),
        *("sasl.mechanism.controller.protocol", "sasl.mechanism.inter.broker.protocol"),
        *(LOG_DIRS, "log.dir", "metadata.log.dir"),
    }
)
"""Configs that follow from other keys of a topology; values in its `config` have no effect, as on a
simulated cluster."""
_NOT_ASCII: Final = re.compile(r"[^\x00-\x7e]+")
"""Java reads a file of properties as Latin-1."""
_SUPER_USERS: Final = "super.users"
_PLAIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"


class ListenerAddress(Struct, frozen=True):
    """Where one listener of a node binds, and the address that it tells clients."""

    name: str
    protocol: SecurityProtocol
    host: str
    port: int
    advertised: tuple[str, int] | None = None
    """None: the address at which it listens."""

    @property
    def at(self) -> str:
        return _address(self.host, self.port)

    @property
    def told_host(self) -> str:
        """The host for clients."""
        return self.host if self.advertised is None else self.advertised[0]

    @property
    def told(self) -> str:
        """`host:port`, for clients."""
        return self.at if self.advertised is None else _address(*self.advertised)


class NodeAddresses(Struct, frozen=True):
    """The addresses of one node.  `listeners`: those of a broker for clients, in the order of the
    topology; `inner`: its listener for other brokers, if that is another; `controller`: (host,
    port) of a controller."""

    listeners: tuple[ListenerAddress, ...] = ()
    inner: ListenerAddress | None = None
    controller: tuple[str, int] | None = None

    @property
    def ports(self) -> tuple[int, ...]:
        """The ports of its listeners for clients."""
        return tuple(one.port for one in self.listeners)


def with_real_times(topology: Topology) -> Topology:
    """The topology for simulated brokers that have the times of a real Kafka's: written out as
    configs, under the profile `kafka`."""
    config = topology.broker_config(topology.brokers[0].id)
    texts = {
        name: text
        for name, text in _texts(config, topology.config).items()
        if BROKER_CONFIGS[name].scaled
    }
    return replace(topology, profile="kafka", config={**texts, **topology.config})


def needs_inner_listener(topology: Topology) -> bool:
    """Whether brokers need a listener for each other: a client's one would ask them for a login or
    a certificate, or ACLs would take them for anonymous clients."""
    return topology.has_tls or topology.has_sasl or topology.security.authorization.is_enabled


def inner_protocol(topology: Topology) -> SecurityProtocol:
    """How brokers and controllers speak to each other."""
    if topology.security.authorization.is_enabled:
        return SecurityProtocol.SASL_PLAINTEXT
    return SecurityProtocol.PLAINTEXT


def server_properties(
    topology: Topology,
    node_id: int,
    addresses: Mapping[int, NodeAddresses],
    directory: PurePath,
    inner_password: str,
) -> dict[str, str]:
    """The properties of one node, whose data is below `directory`.  `inner_password`: INNER_USER's,
    which all nodes of a cluster share."""
    own = addresses[node_id]
    spec = next((one for one in topology.brokers if one.id == node_id), None)
    configs = _configs_of_controller(topology) if spec is None else _configs_of(topology, spec)
    folders = [text.strip() for text in configs.get(LOG_DIRS, "").split(",") if text.strip()]
    properties = {name: text for name, text in configs.items() if name not in DECIDED}
    if spec is not None and topology.has_tls and topology.makes_certificates(node_id):
        properties |= _stores(spec, configs, directory)
    properties |= _identity(own, spec, node_id, addresses)
    protocol = inner_protocol(topology)
    properties |= _listeners(own, protocol)
    if protocol.has_sasl:
        properties |= _inner_logins(properties, inner_password)
    properties[LOG_DIRS] = ",".join(map(str, log_directories(directory, folders)))
    return properties


def _identity(
    own: NodeAddresses,
    spec: BrokerSpec | None,
    node_id: int,
    addresses: Mapping[int, NodeAddresses],
) -> dict[str, str]:
    """Who a node is, and the controller that it belongs to."""
    voters = (
        f"{id_}@{_address(*one.controller)}"
        for id_, one in addresses.items()
        if one.controller is not None
    )
    found = {
        "process.roles": "broker" if own.controller is None else "controller",
        "node.id": str(node_id),
        "controller.quorum.voters": ",".join(voters),
        "controller.listener.names": CONTROLLER_LISTENER,
    }
    if spec is not None and spec.rack is not None:
        found["broker.rack"] = spec.rack
    return found


def _listeners(own: NodeAddresses, inner: SecurityProtocol) -> dict[str, str]:
    """The listeners of a node, with their addresses and protocols."""
    protocols = {CONTROLLER_LISTENER: inner}
    if own.controller is not None:
        found = {"listeners": f"{CONTROLLER_LISTENER}://{_address(*own.controller)}"}
    else:
        listeners = [*own.listeners, *([own.inner] if own.inner is not None else [])]
        protocols |= {one.name: one.protocol for one in listeners}
        found = {
            "listeners": ",".join(f"{one.name}://{one.at}" for one in listeners),
            "advertised.listeners": ",".join(f"{one.name}://{one.told}" for one in listeners),
            "inter.broker.listener.name": (own.inner or listeners[0]).name,
        }
    mapped = ",".join(f"{name}:{protocol.name}" for name, protocol in protocols.items())
    return found | {"listener.security.protocol.map": mapped}


def log_directories(directory: PurePath, named: Iterable[str]) -> list[PurePath]:
    """The directories of a node's logs: all below its own, also those that a topology names."""
    below = [directory / "logs" / name.lstrip("/").replace("..", "_") for name in named]
    return below or [directory / "logs"]


def write_properties(properties: Mapping[str, str]) -> str:
    """The text of a file of properties, as java.util.Properties reads it."""
    return "".join(
        f"{_escaped(name, ' :=#!')}={_escaped(text)}\n" for name, text in properties.items()
    )


def _escaped(text: str, also: str = "") -> str:
    plain = text.replace("\\", "\\\\")
    for character, written in (("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        plain = plain.replace(character, written)
    plain = "".join(f"\\{each}" if each in also else each for each in plain)
    if plain.startswith((" ", "#", "!")):
        plain = f"\\{plain}"
    return _NOT_ASCII.sub(_utf_16, plain)


def _utf_16(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


# -------------------------------------------------------------------------------- configs


def _configs_of(topology: Topology, spec: BrokerSpec) -> dict[str, str]:
    written = topology.config_texts(spec.id)
    configs = _texts(topology.broker_config(spec.id), written)
    configs |= topology.texts_without_effect(spec.id)
    return configs | _logins(topology, spec, configs)


def _stores(spec: BrokerSpec, configs: Mapping[str, str], folder: PurePath) -> dict[str, str]:
    """The made certificate of each listener with TLS."""
    found: dict[str, str] = {}
    for listener in spec.all_listeners:
        prefix = f"listener.name.{listener.name.lower()}.ssl."
        for store, name in (("keystore", KEYSTORE), ("truststore", TRUSTSTORE)):
            own = (f"{prefix}{store}", f"ssl.{store}")
            if listener.protocol.has_tls and not any(one.startswith(own) for one in configs):
                found |= {
                    f"{prefix}{store}.type": "PEM",
                    f"{prefix}{store}.location": str(folder / name),
                }
    return found


def _configs_of_controller(topology: Topology) -> dict[str, str]:
    """The configs of all brokers, as far as they are no listener's."""
    factors = replication_defaults(len(topology.brokers))
    config = BrokerConfig.resolve(topology.profile, factors, simulated(topology.config))
    others = {
        name: text
        for name, text in topology.config.items()
        if name not in BROKER_CONFIGS and not name.startswith(("listener.name.", "ssl.", "sasl."))
    }
    return _texts(config, topology.config) | others


def real_config(topology: Topology, broker_id: int) -> BrokerConfig:
    """The effective configs of a broker, with the times that it has here."""
    written = topology.config_texts(broker_id)
    return _with_possible_times(topology.broker_config(broker_id), written)


def _with_possible_times(config: BrokerConfig, written: Mapping[str, str]) -> BrokerConfig:
    values = {
        definition.field: _possible(definition, getattr(config, definition.field), written)
        for definition in BROKER_CONFIGS.values()
        if not definition.feature
    }
    return replace(config, **values)


def _texts(config: BrokerConfig, written: Mapping[str, str]) -> dict[str, str]:
    """The configs that differ from Kafka's defaults, as text.  `written`: those of the topology."""
    possible = _with_possible_times(config, written)
    values = {
        name: getattr(possible, definition.field)
        for name, definition in BROKER_CONFIGS.items()
        if not definition.feature
    }
    return {
        name: _text(value)
        for name, value in values.items()
        if value is not None and value != BROKER_CONFIGS[name].default
    }


def _possible(definition: ConfigDef, value: Value, written: Mapping[str, str]) -> Value:
    """A time that a JVM can keep.

    DIFFERS: `fast` divides Kafka's times by 100 on a simulated cluster, here by 10 at most.  With a
    session of 90 ms, the controller would fence brokers whose JVMs wait for a core.  What the file
    sets is kept, and so are lower bounds for clients' values.
    """
    name, default = definition.name, definition.default
    session = name.replace("heartbeat.interval", "session.timeout")
    if not definition.scaled or ".min." in name or name in written or session in written:
        return value
    if not isinstance(value, int) or not isinstance(default, int):
        return value
    return max(value, default // SLOWEST_DIVISOR)


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)


# --------------------------------------------------------------------------------- logins


def _inner_logins(properties: Mapping[str, str], password: str) -> dict[str, str]:
    """How the nodes log in with each other, and are super users."""
    login = (
        f'{_PLAIN} required username="{INNER_USER}" password="{password}"'
        f' user_{INNER_USER}="{password}";'
    )
    logins = {
        f"listener.name.{name.lower()}.{config}": text
        for name in (CONTROLLER_LISTENER, INNER_LISTENER)
        for config, text in (
            ("sasl.enabled.mechanisms", "PLAIN"),
            ("plain.sasl.jaas.config", login),
        )
    }
    users = filter(None, properties.get(_SUPER_USERS, "").split(";"))
    return logins | {
        "sasl.mechanism.controller.protocol": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        _SUPER_USERS: ";".join([*users, f"User:{INNER_USER}"]),
    }


def _logins(topology: Topology, spec: BrokerSpec, configs: Mapping[str, str]) -> dict[str, str]:
    """The mechanisms of each SASL listener, and the users of PLAIN."""
    settings = sasl_settings(spec.all_listeners, configs, topology.security.users)
    made: dict[str, str] = {}
    for listener, one in settings.items():
        prefix = f"listener.name.{listener.lower()}."
        made[f"{prefix}sasl.enabled.mechanisms"] = ",".join(one.mechanisms)
        for mechanism in one.mechanisms:
            name = f"{prefix}{mechanism.lower()}.sasl.jaas.config"
            if mechanism == "PLAIN":
                known = jaas_passwords(listener, configs)
                if one.passwords != known or name not in configs:
                    made[name] = _plain_users(one.passwords)
            elif mechanism.startswith("SCRAM") and name not in configs:
                made[name] = f"{_SCRAM} required;"
    return made


def _plain_users(passwords: Mapping[str, str]) -> str:
    users = "".join(f" user_{user}={_quoted(text)}" for user, text in passwords.items())
    return f"{_PLAIN} required{users};"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
