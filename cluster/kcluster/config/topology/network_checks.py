"""Checks the network of a topology: from a tree (tree.py) to a NetworkSpec.

Owns: the keys for latencies and links.  Never: raises; a link with a problem is left
out.
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kcluster.config.files.problems import join
from kcluster.config.files.reading import TreeReader, kind
from kcluster.config.files.tree import Items, Map, Node
from kcluster.config.topology.keys import LINK, NETWORK, keys_of
from kcluster.config.topology.specs import LinkSpec, NetworkSpec
from kcluster.config.topology.topic_checks import no_broker

MAX_LATENCY_MS: Final = 3_600_000

NETWORK_KEYS: Final = keys_of(NETWORK)
LINK_KEYS: Final = keys_of(LINK)


def check_network(reading: TreeReader, node: Node | None, ids: Sequence[int]) -> NetworkSpec:
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
