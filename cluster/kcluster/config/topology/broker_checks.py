"""Checks the brokers of a topology: from a tree (tree.py) to BrokerSpecs.

Owns: the check that no two brokers share an id, a port or an address.
Never: raises; a broker with a problem is left out.
Kafka: KafkaConfig's validation of listeners, advertised listeners and ids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from kcluster.config.files.fields import read_fields
from kcluster.config.files.problems import join, show
from kcluster.config.files.reading import TreeReader, kind
from kcluster.config.files.tree import Items, Map, Node, Scalar
from kcluster.config.topology.config_checks import read_broker_configs
from kcluster.config.topology.keys import MAX_BROKERS, BrokerKeys
from kcluster.config.topology.listener_checks import (
    address_of,
    check_listeners,
    of_broker,
    take_kafka_listeners,
)
from kcluster.config.topology.specs import MAX_PORT, BrokerSpec, ListenerSpec
from kcluster.contract import CONTROLLER_ID

TWICE: Final = "the listeners stand beside the configs, too; write them once"


class Brokers(Struct, frozen=True):
    """The brokers of a topology that have no problems."""

    specs: tuple[BrokerSpec, ...] = ()
    count: int = 0
    """The number of brokers in the topology, including brokers with problems."""
    complete: bool = False
    """Whether all ids could be read, so that any other id is wrong."""

    @property
    def known_ids(self) -> tuple[int, ...]:
        """All ids; empty if a broker could not be read, because any id may then be right."""
        return tuple(spec.id for spec in self.specs) if self.complete else ()


class BrokerDefaults(Struct, frozen=True):
    """The values of brokers that do not set their own."""

    profile: str
    config: dict[str, str]
    listeners: tuple[ListenerSpec, ...] = ()


def broker_count(node: Node | None) -> int:
    """The number of brokers, 1 if it cannot be read."""
    if isinstance(node, Items):
        return max(1, len(node.items))
    text = node.text if isinstance(node, Scalar) else None
    return int(text) if text is not None and text.isdecimal() and len(text) <= 4 else 1


def check_brokers(
    reading: TreeReader, top: Mapping[str, Node], defaults: BrokerDefaults
) -> Brokers:
    """The brokers of a topology."""
    node, base_port = top.get("brokers"), top.get("base_port")
    if node is None:
        return Brokers()
    if base_port is not None and defaults.listeners:
        reading.wrong(
            base_port, "base_port", "cannot be combined with listeners, which have their own ports"
        )
    if isinstance(node, Scalar):
        specs = _numbered_brokers(reading, node, base_port, defaults.listeners)
        _report_taken_ports(reading, node, specs)
        return Brokers(tuple(specs), len(specs), True)
    if base_port is not None:
        reading.wrong(
            base_port, "base_port", "works with a number of brokers; in a list, each has its `port`"
        )
    items = reading.items(node, "brokers", "brokers, or their number")
    if isinstance(node, Items) and not 1 <= len(items) <= MAX_BROKERS:
        reading.wrong(node, "brokers", f"{len(items)} brokers; there must be 1 to {MAX_BROKERS}")
        return Brokers()
    read = [_broker(reading, item, index, defaults) for index, item in enumerate(items)]
    specs = _distinct(reading, items, read)
    return Brokers(tuple(specs), len(items), len(specs) == len(items))


def _distinct(
    reading: TreeReader, items: Sequence[Node], read: Sequence[BrokerSpec | None]
) -> list[BrokerSpec]:
    specs = []
    ids: dict[int, int] = {}
    ports: dict[int, int] = {}
    addresses: dict[tuple[str, int], int] = {}
    for index, (item, spec) in enumerate(zip(items, read, strict=True)):
        if spec is None:
            continue
        path = f"brokers[{index}]"
        if spec.id in ids:
            _same(reading, item, path, "id", f"{spec.id} is already brokers[{ids[spec.id]}]'s")
            continue
        ids[spec.id] = index
        for listener in spec.all_listeners:
            at = join(path, f"listeners.{listener.name}") if spec.listeners else path
            if listener.port in ports:
                text = _taken(listener.port, ports[listener.port])
                _same(reading, item, at, "port", text)
            if listener.port:
                ports.setdefault(listener.port, spec.id)
            address = address_of(listener)
            if address is not None and address in addresses:
                conflict = f"{show(listener.advertised)} is already broker {addresses[address]}'s"
                text = f"{conflict}; clients need two"
                _same(reading, item, at, "advertised", text)
            if address is not None and address[1]:
                addresses.setdefault(address, spec.id)
        specs.append(spec)
    return specs


def _taken(port: int, broker_id: int) -> str:
    return f"{port} is already broker {broker_id}'s; set another or leave it out for a free one"


def _report_taken_ports(reading: TreeReader, node: Node, specs: Sequence[BrokerSpec]) -> None:
    """Report the first port that two listeners of numbered brokers share."""
    ports: dict[int, int] = {}
    for spec in specs:
        for listener in spec.all_listeners:
            if listener.port in ports:
                path = f"listeners.{listener.name}.port"
                reading.wrong(node, path, _taken(listener.port, ports[listener.port]))
                return
            if listener.port:
                ports[listener.port] = spec.id


def _same(reading: TreeReader, item: Node, path: str, key: str, text: str) -> None:
    entry = item.entries.get(key) if isinstance(item, Map) else None
    reading.wrong(item if entry is None else entry.value, f"{path}.{key}", text)


def _numbered_brokers(
    reading: TreeReader, node: Scalar, base: Node | None, listeners: tuple[ListenerSpec, ...]
) -> list[BrokerSpec]:
    advice = ", the number of brokers (or a list of them)"
    count = reading.integer(node, "brokers", 1, MAX_BROKERS, advice) or 0
    highest = MAX_PORT - max(0, count - 1)
    advice = f", so that all {count} ports are below {MAX_PORT + 1}" if count > 1 else ""
    base_port = reading.integer(base, "base_port", 0, highest, advice) or 0
    return [
        BrokerSpec(
            number,
            base_port + number - 1 if base_port else 0,
            listeners=of_broker(listeners, number - 1),
        )
        for number in range(1, count + 1)
    ]


def _broker(
    reading: TreeReader, node: Node, index: int, defaults: BrokerDefaults
) -> BrokerSpec | None:
    path = f"brokers[{index}]"
    if not isinstance(node, Map):
        reading.wrong(node, path, f"{kind(node)}; a broker is a mapping like {{id: 1, port: 9092}}")
        return None
    values = read_fields(reading, node, path, BrokerKeys, "key of a broker")
    of_kafka = take_kafka_listeners(reading, values.get("config"), join(path, "config"))
    own, _ = read_broker_configs(
        reading, of_kafka.rest, join(path, "config"), defaults.profile, defaults.config
    )
    listeners = check_listeners(reading, values.get("listeners"), join(path, "listeners"))
    if listeners and of_kafka.node is not None:
        reading.wrong(of_kafka.node, join(path, "config.listeners"), TWICE)
    listeners = listeners or of_kafka.listeners or of_broker(defaults.listeners, index)
    for key in ("port", "advertised"):
        if listeners and values.get(key) is not None:
            _same(
                reading, node, path, key, "cannot be combined with listeners, which have their own"
            )
    broker_id = values.get("id", index + 1)
    if broker_id == CONTROLLER_ID:
        _same(reading, node, path, "id", f"{CONTROLLER_ID} is the controller's")
        return None
    if broker_id is None:
        return None
    return BrokerSpec(
        broker_id,
        values.get("port") or 0,
        values.get("rack"),
        values.get("advertised"),
        own,
        values.get("kafka_version"),
        listeners,
    )


def check_advertised(
    reading: TreeReader, node: Node, host: str, brokers: Sequence[BrokerSpec]
) -> None:
    """Report each broker without an advertised address, if all brokers bind to an address like
    0.0.0.0."""
    silent = [
        str(spec.id)
        for spec in brokers
        if any(listener.advertised is None for listener in spec.all_listeners)
    ]
    if silent:
        who = f"broker {silent[0]}" if len(silent) == 1 else f"brokers {', '.join(silent[:5])}"
        more = ", ..." if len(silent) > 5 else ""
        advice = f"give {who}{more} an `advertised` address"
        reading.wrong(node, "host", f"clients cannot connect to {host}: {advice}")
