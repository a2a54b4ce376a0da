"""Checks the network of a topology: from a tree (tree.py) to a NetworkSpec.

Owns: the rules that a link has two existing ends, and is given once.  Never: raises; a link with a
problem is left out.
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Sequence

from kcluster.config.files.fields import read_fields
from kcluster.config.files.problems import join
from kcluster.config.files.reading import TreeReader, kind
from kcluster.config.files.tree import Items, Map, Node
from kcluster.config.topology.keys import ID, LinkKeys, NetworkKeys
from kcluster.config.topology.specs import LinkSpec, NetworkSpec
from kcluster.config.topology.topic_checks import no_broker


def check_network(reading: TreeReader, node: Node | None, ids: Sequence[int]) -> NetworkSpec:
    values = read_fields(reading, node, "network", NetworkKeys, "key of the network")
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
    return NetworkSpec(values.get("default_latency") or 0, tuple(links.values()))


def _link(reading: TreeReader, node: Node, path: str, ids: Sequence[int]) -> LinkSpec | None:
    if not isinstance(node, Map):
        shape = "{between: [1, 2], latency_ms: 40}"
        reading.wrong(node, path, f"{kind(node)}; a link is a mapping like {shape}")
        return None
    values = read_fields(reading, node, path, LinkKeys, "key of a link")
    written, latency_ms = values.get("between"), values.get("latency")
    between = join(path, "between")
    ends = reading.items(written, between, "two broker ids")
    numbers = [ID.read(reading, end, join(between, place)) for place, end in enumerate(ends)]
    if isinstance(written, Items) and len(ends) != 2:
        reading.wrong(written, between, f"{len(ends)} ids; a link has two ends")
        return None
    known = [number for number in numbers if number is not None]
    for place, (end, number) in enumerate(zip(ends, numbers, strict=True)):
        if number is not None and ids and number not in ids:
            reading.wrong(end, join(between, place), no_broker(number, ids))
    if len(known) != 2 or latency_ms is None or written is None:
        return None
    if known[0] == known[1]:
        reading.wrong(written, between, f"broker {known[0]} needs no link to itself")
        return None
    return LinkSpec((known[0], known[1]), latency_ms)
