"""A topology as written (tree.py) to a checked one (topology.py): brokers, network, the whole.

Owns: what a topology may say, topics and configs apart (topic_checks.py).
Never: raises; a part with a problem is left out, and the rest goes on being checked.
Kafka: KafkaConfig's validation of listeners and ids.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Final

from cluster.config.broker import PROFILES, BrokerConfig
from cluster.config.problems import Problem, join, show, unknown
from cluster.config.reading import Reading, is_null, kind
from cluster.config.topic_checks import check_topics, read_broker_configs
from cluster.config.topology import BrokerSpec, LinkSpec, NetworkSpec, Topology, split_address
from cluster.config.tree import Items, Map, Node, Scalar
from cluster.contract import CONTROLLER_ID

MAX_BROKERS: Final = 1_000
MAX_PORT: Final = 65_535
MAX_LATENCY_MS: Final = 3_600_000
EVERYWHERE: Final = ("0.0.0.0", "::")
"""Addresses to bind that nobody can connect to."""

TOPOLOGY_KEYS: Final = (
    "name", "host", "profile", "config", "brokers", "base_port", "topics", "network",
)  # fmt: skip
BROKER_KEYS: Final = ("id", "port", "rack", "advertised", "config")
NETWORK_KEYS: Final = ("default_latency_ms", "links")
LINK_KEYS: Final = ("between", "latency_ms")

_HOST_NAME: Final = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?")


def check_topology(root: Node, source: str) -> tuple[Topology | None, list[Problem]]:
    """The topology, None if there is any problem; and the problems."""
    reading = Reading(source)
    if is_null(root):
        reading.wrong(root, "", "empty; the least that works is `brokers: 3`")
        return None, reading.problems
    if not isinstance(root, Map):
        reading.wrong(root, "", f"{kind(root)}; a topology is a mapping with the key `brokers`")
        return None, reading.problems
    top = reading.entries(root, "", TOPOLOGY_KEYS, "key of a topology")
    profile = _profile(reading, top.get("profile"))
    host = _host(reading, top.get("host"))
    config, cluster_config = read_broker_configs(reading, top.get("config"), "config", profile, {})
    brokers = _brokers(reading, top, root, profile, config)
    if host in EVERYWHERE and top.get("host") is not None:
        _check_advertised(reading, top["host"], host, brokers)
    topics = check_topics(
        reading,
        top.get("topics"),
        tuple(spec.id for spec in brokers),
        cluster_config or BrokerConfig(),
    )
    network = _network(reading, top.get("network"), {spec.id for spec in brokers})
    name = reading.text(top.get("name"), "name") or "kcluster"
    if reading.problems:
        return None, reading.problems
    topology = Topology(
        tuple(brokers), topics, name, host, profile, config, network, source, reading.places
    )
    return topology, []


def _profile(reading: Reading, node: Node | None) -> str:
    profile = reading.text(node, "profile")
    if profile is None or profile in PROFILES:
        return profile or "kafka"
    assert node is not None
    reading.wrong(node, "profile", f"{show(profile)}: {unknown('profile', profile, PROFILES)}")
    return "kafka"


def _host(reading: Reading, node: Node | None) -> str:
    host = reading.text(node, "host")
    if host is None:
        return "127.0.0.1"
    problem = _host_problem(host)
    if problem is not None:
        assert node is not None
        reading.wrong(node, "host", problem)
    return host


def _host_problem(host: str) -> str | None:
    if "//" in host:
        return f"{show(host)}: the name or address alone, without a protocol"
    try:
        ipaddress.ip_address(host)
    except ValueError:
        if ":" in host:
            return f"{show(host)}: the name or address alone; ports are the brokers'"
        if not _HOST_NAME.fullmatch(host) or len(host) > 253 or _all_digits(host):
            return f"{show(host)} is neither a host name nor an IP address"
    return None


def _all_digits(host: str) -> bool:
    return host.replace(".", "").isdigit()


# ---------------------------------------------------------------------------------- brokers


def _brokers(
    reading: Reading, top: Mapping[str, Node], root: Map, profile: str, config: dict[str, str]
) -> list[BrokerSpec]:
    node, base_port = top.get("brokers"), top.get("base_port")
    if node is None:
        at = root.entries.get("brokers", root)
        reading.wrong(at, "brokers", "missing; a number (`brokers: 3`) or a list of brokers")
        return []
    if isinstance(node, Scalar):
        return _numbered_brokers(reading, node, base_port)
    if base_port is not None:
        reading.wrong(
            base_port, "base_port", "goes with a number of brokers; in a list each has its `port`"
        )
    items = reading.items(node, "brokers", "brokers, or their number")
    if isinstance(node, Items) and not 1 <= len(items) <= MAX_BROKERS:
        reading.wrong(node, "brokers", f"{len(items)} brokers; there must be 1 to {MAX_BROKERS}")
        return []
    ids: dict[int, int] = {}
    ports: dict[int, int] = {}
    advertised: dict[tuple[str, int], int] = {}
    specs = []
    for index, item in enumerate(items):
        spec = _broker(reading, item, index, profile, config)
        if spec is None:
            continue
        path = f"brokers[{index}]"
        if spec.id in ids:
            _same(reading, item, path, "id", f"{spec.id} is already brokers[{ids[spec.id]}]'s id")
            continue
        ids[spec.id] = index
        if spec.port:
            taken = f"{spec.port} is already broker {ports.get(spec.port)}'s"
            if spec.port in ports:
                advice = "set another or leave it out for a free one"
                _same(reading, item, path, "port", f"{taken}; {advice}")
            ports.setdefault(spec.port, spec.id)
        address = spec.advertised_address("", spec.port)
        if spec.advertised is not None and address[1]:
            if address in advertised:
                taken = f"{show(spec.advertised)} is already broker {advertised[address]}'s"
                _same(reading, item, path, "advertised", f"{taken}; clients need two")
            advertised.setdefault(address, spec.id)
        specs.append(spec)
    return specs


def _same(reading: Reading, item: Node, path: str, key: str, text: str) -> None:
    entry = item.entries.get(key) if isinstance(item, Map) else None
    reading.wrong(item if entry is None else entry.value, f"{path}.{key}", text)


def _numbered_brokers(reading: Reading, node: Scalar, base: Node | None) -> list[BrokerSpec]:
    advice = ", the number of brokers (or a list of them)"
    count = reading.integer(node, "brokers", 1, MAX_BROKERS, advice) or 0
    highest = MAX_PORT - max(0, count - 1)
    advice = f", so that all {count} ports are below {MAX_PORT + 1}" if count > 1 else ""
    base_port = reading.integer(base, "base_port", 0, highest, advice) or 0
    return [
        BrokerSpec(number, base_port + number - 1 if base_port else 0)
        for number in range(1, count + 1)
    ]


def _broker(
    reading: Reading, node: Node, index: int, profile: str, config: dict[str, str]
) -> BrokerSpec | None:
    path = f"brokers[{index}]"
    if not isinstance(node, Map):
        reading.wrong(node, path, f"{kind(node)}; a broker is a mapping like {{id: 1, port: 9092}}")
        return None
    values = reading.entries(node, path, BROKER_KEYS, "key of a broker")
    broker_id: int | None = index + 1
    if "id" in values:
        broker_id = reading.integer(values["id"], join(path, "id"), 0, 2**31 - 1)
        if broker_id == CONTROLLER_ID:
            reading.wrong(values["id"], join(path, "id"), f"{CONTROLLER_ID} is the controller's")
    port = reading.integer(values.get("port"), join(path, "port"), 0, MAX_PORT)
    rack = reading.text(values.get("rack"), join(path, "rack"))
    advertised = _advertised(reading, values.get("advertised"), join(path, "advertised"))
    own, _ = read_broker_configs(
        reading, values.get("config"), join(path, "config"), profile, config
    )
    if broker_id is None:
        return None
    return BrokerSpec(broker_id, port or 0, rack, advertised, own)


def _advertised(reading: Reading, node: Node | None, path: str) -> str | None:
    advertised = reading.text(node, path)
    if advertised is None:
        return None
    assert node is not None
    try:
        host, _ = split_address(advertised)
    except ValueError:
        reading.wrong(node, path, f'{show(advertised)} is not an address like "localhost:9092"')
        return None
    problem = _host_problem(host)
    if host in EVERYWHERE:
        problem = f"{show(host)}: clients cannot connect to it; name this machine as they see it"
    if problem is not None:
        reading.wrong(node, path, problem)
        return None
    return advertised


def _check_advertised(reading: Reading, node: Node, host: str, brokers: list[BrokerSpec]) -> None:
    silent = [str(spec.id) for spec in brokers if spec.advertised is None]
    if silent:
        who = f"broker {silent[0]}" if len(silent) == 1 else f"brokers {', '.join(silent[:5])}"
        more = ", ..." if len(silent) > 5 else ""
        reading.wrong(
            node,
            "host",
            f"clients cannot connect to {host}: give {who}{more} an `advertised` address",
        )


# ---------------------------------------------------------------------------------- network


def _network(reading: Reading, node: Node | None, ids: set[int]) -> NetworkSpec:
    values = reading.entries(node, "network", NETWORK_KEYS, "key of the network")
    default_ms = reading.integer(
        values.get("default_latency_ms"), "network.default_latency_ms", 0, MAX_LATENCY_MS
    )
    links: dict[tuple[int, int], LinkSpec] = {}
    for index, item in enumerate(reading.items(values.get("links"), "network.links", "links")):
        path = f"network.links[{index}]"
        link = _link(reading, item, path, ids)
        if link is None:
            continue
        pair = (min(link.between), max(link.between))
        if pair in links:
            reading.wrong(item, path, f"the link of {pair[0]} and {pair[1]} is given twice")
        links.setdefault(pair, link)
    return NetworkSpec(default_ms or 0, tuple(links.values()))


def _link(reading: Reading, node: Node, path: str, ids: set[int]) -> LinkSpec | None:
    if not isinstance(node, Map):
        shape = "{between: [1, 2], latency_ms: 40}"
        reading.wrong(node, path, f"{kind(node)}; a link is a mapping like {shape}")
        return None
    values = reading.entries(node, path, LINK_KEYS, "key of a link")
    for key in LINK_KEYS:
        if key not in values:
            reading.wrong(node, join(path, key), "missing")
    latency_ms = reading.integer(
        values.get("latency_ms"), join(path, "latency_ms"), 0, MAX_LATENCY_MS
    )
    between = join(path, "between")
    ends = reading.items(values.get("between"), between, "two broker ids")
    numbers = [
        reading.integer(end, join(between, place), 0, 2**31 - 1) for place, end in enumerate(ends)
    ]
    if isinstance(values.get("between"), Items) and len(ends) != 2:
        reading.wrong(values["between"], between, f"{len(ends)} ids; a link has two ends")
        return None
    known = [number for number in numbers if number is not None]
    for place, (end, number) in enumerate(zip(ends, numbers, strict=True)):
        if number is not None and ids and number not in ids:
            reading.wrong(end, join(between, place), no_broker(number, ids))
    if len(known) != 2 or latency_ms is None:
        return None
    if known[0] == known[1]:
        reading.wrong(values["between"], between, f"broker {known[0]} needs no link to itself")
        return None
    return LinkSpec((known[0], known[1]), latency_ms)


def no_broker(number: int, ids: set[int]) -> str:
    """The message for an id that no broker has."""
    there = ", ".join(map(str, sorted(ids)[:10])) + (", ..." if len(ids) > 10 else "")
    return f"there is no broker {number}; there are {there}"
