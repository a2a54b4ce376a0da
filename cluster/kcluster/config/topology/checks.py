"""Checks a topology: from a tree (tree.py) to a Topology.

Owns: the keys of a topology and its network; the parts are checked by broker_checks.py,
topic_checks.py and config_checks.py.  Never: raises; a part with a problem is left out, and the
rest is still checked.
Kafka: KafkaConfig's validation of listeners and ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kcluster.config.files.problems import Problem, join, show, unknown
from kcluster.config.files.reading import TreeReader, is_null, kind
from kcluster.config.files.tree import Items, Map, Node
from kcluster.config.kafka.broker import PROFILES, BrokerConfig, replication_defaults
from kcluster.config.topology.broker_checks import (
    EVERYWHERE,
    check_advertised,
    check_brokers,
    host_problem,
    read_version,
)
from kcluster.config.topology.config_checks import read_broker_configs
from kcluster.config.topology.model import LinkSpec, NetworkSpec, Topology
from kcluster.config.topology.topic_checks import check_topics, no_broker

MAX_LATENCY_MS: Final = 3_600_000

TOPOLOGY_KEYS: Final = (
    "name", "host", "profile", "config", "brokers", "base_port", "topics", "network",
    "kafka_version",
)  # fmt: skip
NETWORK_KEYS: Final = ("default_latency_ms", "links")
LINK_KEYS: Final = ("between", "latency_ms")


def check_topology(root: Node, source: str) -> tuple[Topology | None, list[Problem]]:
    """The topology, None if there is any problem; and the problems."""
    reading = TreeReader(source)
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
    brokers = check_brokers(reading, top, root, profile, config)
    if host in EVERYWHERE:
        check_advertised(reading, top["host"], host, brokers.specs)
    by_default = BrokerConfig.resolve(
        profile, replication_defaults(brokers.count), {} if cluster_config is None else config
    )
    topics = check_topics(reading, top.get("topics"), brokers, by_default)
    network = _network(reading, top.get("network"), brokers.known_ids)
    name = reading.text(top.get("name"), "name") or "kcluster"
    version = read_version(reading, top.get("kafka_version"), "kafka_version")
    if reading.problems:
        return None, reading.problems
    topology = Topology(
        brokers.specs, topics, name, host, profile, config, network, version, source, reading.places
    )
    return topology, []


def _profile(reading: TreeReader, node: Node | None) -> str:
    profile = reading.text(node, "profile")
    if profile is None or profile in PROFILES:
        return profile or "kafka"
    assert node is not None
    reading.wrong(node, "profile", f"{show(profile)}: {unknown('profile', profile, PROFILES)}")
    return "kafka"


def _host(reading: TreeReader, node: Node | None) -> str:
    host = reading.text(node, "host")
    if host is None:
        return "127.0.0.1"
    problem = host_problem(host)
    if problem is not None:
        assert node is not None
        reading.wrong(node, "host", problem)
    return host


# ---------------------------------------------------------------------------------- network


def _network(reading: TreeReader, node: Node | None, ids: Sequence[int]) -> NetworkSpec:
    values = reading.entries(node, "network", NETWORK_KEYS, "key of the network")
    default_ms = reading.milliseconds(
        values.get("default_latency_ms"), "network.default_latency_ms", MAX_LATENCY_MS
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


def _link(reading: TreeReader, node: Node, path: str, ids: Sequence[int]) -> LinkSpec | None:
    if not isinstance(node, Map):
        shape = "{between: [1, 2], latency_ms: 40}"
        reading.wrong(node, path, f"{kind(node)}; a link is a mapping like {shape}")
        return None
    values = reading.entries(node, path, LINK_KEYS, "key of a link")
    for key in LINK_KEYS:
        if key not in values:
            reading.wrong(node, join(path, key), "missing")
    latency_ms = reading.milliseconds(
        values.get("latency_ms"), join(path, "latency_ms"), MAX_LATENCY_MS
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
