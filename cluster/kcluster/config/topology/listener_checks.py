"""Checks the listeners of brokers: from a tree (tree.py) to ListenerSpecs.

Owns: both ways to write them, `listeners:` and Kafka's configs; the protocol that a name implies.
Never: raises (a listener with a problem is left out), compares ports (broker_checks.py does).
Kafka: KafkaConfig.listeners, effectiveAdvertisedListeners, listenerSecurityProtocolMap.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct, structs

from kcluster.config.files.fields import read_fields
from kcluster.config.files.problems import join, nearest, show
from kcluster.config.files.reading import TreeReader, kind
from kcluster.config.files.tree import Items, Map, Node, Scalar
from kcluster.config.topology.keys import ListenerKeys
from kcluster.config.topology.specs import MAX_PORT, ListenerSpec, split_address
from kcluster.config.topology.values import EVERYWHERE
from kcluster.principals import DEFAULT_LISTENER, SecurityProtocol

PROTOCOLS: Final = tuple(SecurityProtocol.__members__)
KAFKA_NAMES: Final = ("listeners", "advertised.listeners", "listener.security.protocol.map")
"""Kafka's configs of listeners, which a topology may set, too."""

_NAME: Final = re.compile(r"[A-Za-z0-9_]+([.-][A-Za-z0-9_]+)*")
_CONTROLLER: Final = "CONTROLLER"
_URL: Final = re.compile(r"(?P<name>[^:/]+)://(?P<host>\[[^]]*\]|[^:]*):(?P<port>[0-9]{1,5})")


class KafkaListeners(Struct, frozen=True):
    """The listeners in Kafka's configs, and the configs without them.  `node`: where they stand in
    the file."""

    rest: Node | None
    listeners: tuple[ListenerSpec, ...] = ()
    node: Node | None = None


def check_listeners(
    reading: TreeReader, node: Node | None, path: str, brokers: int = 1
) -> tuple[ListenerSpec, ...]:
    """The listeners of a mapping by name.  `brokers`: the number of brokers that have them; the
    ports of each follow those of the broker before it."""
    if node is None:
        return ()
    if not isinstance(node, Map):
        reading.wrong(node, path, f"{kind(node)}; listeners are a mapping like {{CLIENT: {{}}}}")
        return ()
    found: dict[str, ListenerSpec] = {}
    for written, entry in node.entries.items():
        at, name = join(path, written), written.upper()
        problem = _name_problem(name)
        if problem is None and name in found:
            problem = f"{name} is given twice; Kafka writes listeners' names in upper case"
        if problem is not None:
            reading.wrong(entry, at, problem)
            continue
        values = read_fields(reading, entry.value, at, ListenerKeys, "key of a listener")
        protocol = values.get("protocol") or (name if name in PROTOCOLS else None)
        if protocol is None:
            if "protocol" not in values:
                text = f"{written}: its `protocol` is missing, one of {', '.join(PROTOCOLS)}"
                reading.wrong(entry, join(at, "protocol"), text)
            continue
        port = values.get("port") or 0
        if port + brokers - 1 > MAX_PORT:
            text = f"{port}: the ports of all {brokers} brokers must be below {MAX_PORT + 1}"
            reading.wrong(entry, join(at, "port"), text)
        found[name] = ListenerSpec(name, SecurityProtocol[protocol], port, values.get("advertised"))
    if not found and not node.entries:
        reading.wrong(node, path, "empty; a broker has at least one listener")
    return tuple(found.values())


def of_broker(listeners: tuple[ListenerSpec, ...], nth: int) -> tuple[ListenerSpec, ...]:
    """The listeners that all brokers have, with the ports of the broker number `nth`, from 0."""
    return tuple(
        structs.replace(listener, port=listener.port + nth if listener.port else 0)
        for listener in listeners
    )


def _name_problem(name: str) -> str | None:
    if name == _CONTROLLER:
        return f"{_CONTROLLER} is the controller's, to which clients do not connect"
    if not _NAME.fullmatch(name):
        return f"{show(name)} is not a name of a listener, such as CLIENT or SASL_SSL"
    return None


# ------------------------------------------------------------------------------- Kafka's configs


def take_kafka_listeners(reading: TreeReader, node: Node | None, path: str) -> KafkaListeners:
    """The listeners that stand in a mapping of broker configs under Kafka's names."""
    if not isinstance(node, Map):
        return KafkaListeners(node)
    written: dict[str, str] = {}
    for key in node.entries:
        name = key.replace("_", ".")
        if name in KAFKA_NAMES:
            written[name] = key
    if not written:
        return KafkaListeners(node)
    kept = {key: entry for key, entry in node.entries.items() if key not in written.values()}
    rest = Map(kept, node.line, node.column)
    texts = {name: _Text(reading, node, path, key) for name, key in written.items()}
    if texts.keys() == {"listener.security.protocol.map"}:
        _protocols(*texts.values())
        return KafkaListeners(rest)
    first = next(iter(texts.values()))
    return KafkaListeners(rest, _parsed(texts), first.node)


class _Text:
    """One of Kafka's configs of listeners: its items, and where it stands."""

    def __init__(self, reading: TreeReader, node: Map, path: str, key: str) -> None:
        self._reading = reading
        self.node = node.entries[key].value
        self._path = join(path, key)

    @property
    def items(self) -> list[str]:
        """The items of the list, whether it is text or a list of YAML."""
        if isinstance(self.node, Items):
            texts = [item.text for item in self.node.items if isinstance(item, Scalar)]
            return [text.strip() for text in texts if text]
        text = self.node.text if isinstance(self.node, Scalar) else None
        return [item.strip() for item in (text or "").split(",") if item.strip()]

    def wrong(self, text: str) -> None:
        """Record a problem here."""
        self._reading.wrong(self.node, self._path, text)

    def addresses(self) -> dict[str, tuple[str, int]]:
        """The host and port of each listener, by name."""
        found: dict[str, tuple[str, int]] = {}
        for item in self.items:
            match = _URL.fullmatch(item)
            if match is None or int(match["port"]) > MAX_PORT:
                self.wrong(f"{show(item)} is not a listener like CLIENT://:9092")
                continue
            name = match["name"].upper()
            problem = _name_problem(name)
            if name in found:
                problem = f"{name} is given twice"
            if problem is not None:
                self.wrong(problem)
                continue
            found[name] = match["host"].strip("[]"), int(match["port"])
        return found


def _parsed(texts: Mapping[str, _Text]) -> tuple[ListenerSpec, ...]:
    protocols: dict[str, SecurityProtocol | None] = {
        name: SecurityProtocol[name] for name in PROTOCOLS
    }
    if "listener.security.protocol.map" in texts:
        protocols |= _protocols(texts["listener.security.protocol.map"])
    bound = texts["listeners"].addresses() if "listeners" in texts else {DEFAULT_LISTENER: ("", 0)}
    advertised = (
        texts["advertised.listeners"].addresses() if "advertised.listeners" in texts else {}
    )
    for name in advertised:
        if name not in bound:
            texts["advertised.listeners"].wrong(f"{name} is not one of `listeners`")
    found = []
    for name, (_host, port) in bound.items():
        if name not in protocols:
            advice = f"listener.security.protocol.map: {name}:SASL_SSL"
            texts["listeners"].wrong(f"the protocol of {name} is missing, as in {advice}")
        host, known_port = advertised.get(name, ("", 0))
        if host in EVERYWHERE:
            texts["advertised.listeners"].wrong(f"clients cannot connect to {host}")
        protocol = protocols.get(name)
        if protocol is None:
            continue
        shown = f"[{host}]" if ":" in host else host
        address = (f"{shown}:{known_port}" if known_port else shown) if host else None
        found.append(ListenerSpec(name, protocol, port, address))
    return tuple(found)


def _protocols(text: _Text) -> dict[str, SecurityProtocol | None]:
    """The protocols by listener; None where it is wrong, which is reported."""
    found: dict[str, SecurityProtocol | None] = {}
    for item in text.items:
        name, _, protocol = item.partition(":")
        if protocol.upper() not in PROTOCOLS:
            meant = nearest(protocol.upper(), PROTOCOLS) or ", ".join(PROTOCOLS)
            text.wrong(f"{show(item)}: no such protocol; did you mean {meant}?")
            found[name.upper()] = None
        elif name.upper() != _CONTROLLER:
            found[name.upper()] = SecurityProtocol[protocol.upper()]
    return found


def address_of(listener: ListenerSpec) -> tuple[str, int] | None:
    """The advertised host and port of a listener; None if it has none of its own."""
    if listener.advertised is None:
        return None
    host, port = split_address(listener.advertised)
    return host, port or listener.port
