"""Checks a topology's features, and that the releases of its brokers have its configs and levels.

Owns: these checks; which features and levels a new cluster may have.  Never: reads a config's value
(config_checks.py does); raises: a feature with a problem is left out.
Kafka: kafka-storage format --feature, Formatter.

A broker logs a config of a later release as unknown, and ignores it; a controller refuses such a
config of a topic.  A broker that does not know a feature level in force cannot register.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kcluster.config.eras import FIXES
from kcluster.config.files.fields import OneOf
from kcluster.config.files.problems import join, unknown
from kcluster.config.files.reading import TreeReader
from kcluster.config.files.tree import Items, Map, Node
from kcluster.config.kafka.catalog import broker_catalog
from kcluster.config.kafka.spelling import config_name
from kcluster.config.kafka.topic import TOPIC_CONFIGS
from kcluster.config.kafka.values import ConfigDef
from kcluster.protocol.features import (
    ELR_VERSION,
    FEATURES,
    FIRST_TO_FORMAT,
    initial_levels,
    missing_dependency,
    supported,
)
from kcluster.protocol.releases import Release


def check_releases(
    reading: TreeReader,
    top: Mapping[str, Node],
    features: Mapping[str, int],
    releases: Sequence[Release],
) -> None:
    """Check the releases.  `features`: the levels that `top` sets; `releases`: those of the
    brokers, in their order.  A config that is set for all brokers, or for a topic, needs one broker
    whose release has it: the controller is of the newest release."""
    newest = max(releases, key=lambda release: release.number)
    _check_features(reading, top.get("features"), features, releases)
    _check(reading, top.get("config"), "config", broker_catalog(), newest)
    brokers = top.get("brokers")
    if isinstance(brokers, Items):
        for index, (broker, release) in enumerate(zip(brokers.items, releases, strict=True)):
            own = broker.entries.get("config") if isinstance(broker, Map) else None
            if own is not None:
                _check(reading, own.value, f"brokers[{index}].config", broker_catalog(), release)
    topics = top.get("topics")
    for name, entry in topics.entries.items() if isinstance(topics, Map) else ():
        if isinstance(entry.value, Map):
            path = join("topics", name)
            _check(reading, entry.value, path, TOPIC_CONFIGS, newest)
            own = entry.value.entries.get("config")
            if own is not None:
                _check(reading, own.value, join(path, "config"), TOPIC_CONFIGS, newest)


def _check_features(
    reading: TreeReader, node: Node | None, levels: Mapping[str, int], releases: Sequence[Release]
) -> None:
    """Report each feature level that the oldest broker does not know."""
    formatting = [one for one in releases if one.number >= FIRST_TO_FORMAT]
    if not isinstance(node, Map) or not formatting:
        return
    oldest = min(formatting, key=lambda release: release.number)
    known = supported(oldest)
    for written, entry in node.entries.items():
        name = written.replace("_", ".")
        _, highest = known.get(name, (0, 0))
        if levels.get(name, 0) > highest:
            has = f"knows levels up to {highest}" if highest else "does not have this feature"
            text = f"a broker of {oldest.name} {has}"
            reading.wrong(entry.value, join("features", written), text)


def _check(
    reading: TreeReader,
    node: Node | None,
    path: str,
    definitions: Mapping[str, ConfigDef],
    release: Release,
) -> None:
    for written, entry in node.entries.items() if isinstance(node, Map) else ():
        definition = definitions.get(config_name(written, definitions))
        if definition is None or definition.is_in(release.number):
            continue
        since = ".".join(map(str, definition.spec.since))
        reading.wrong(
            entry,
            join(path, written),
            f"{definition.name} came with Kafka {since}; the release here is {release.name}",
        )


ERA: Final = OneOf("era", tuple(FIXES))


def check_eras(reading: TreeReader, node: Node | None) -> tuple[str, ...]:
    """The names of the eras in the file: one, or a list."""
    if node is None:
        return ()
    items = node.items if isinstance(node, Items) else (node,)
    names: dict[str, None] = {}
    for index, item in enumerate(items):
        path = f"era[{index}]" if isinstance(node, Items) else "era"
        name = ERA.read(reading, item, path)
        if name is not None:
            names[name] = None
    return tuple(names)


def check_features(
    reading: TreeReader, node: Node | None, config: Mapping[str, str]
) -> dict[str, int]:
    """The levels in the file; underscores may stand for dots.  `config`: the configs of all
    brokers; one of these configs is a feature, too."""
    levels: dict[str, int] = {}
    if not isinstance(node, Map):
        reading.entries(node, "features", tuple(FEATURES), "feature")
        return levels
    values: dict[str, Node] = {}
    for written, entry in node.entries.items():
        name, at = written.replace("_", "."), join("features", written)
        feature = FEATURES.get(name)
        if feature is None:
            reading.wrong(entry, at, unknown("feature", written, FEATURES))
        elif name in values:
            reading.wrong(entry, at, f"{name} is given twice")
        elif name == ELR_VERSION and name in config:
            reading.wrong(entry, at, "given in `config` too; leave it out there")
        else:
            values[name] = entry.value
            known = f": {name} has levels {feature.lowest} to {feature.highest}"
            level = reading.integer(entry.value, at, feature.lowest, feature.highest, known)
            if level is not None:
                levels[name] = level
    resulting = initial_levels(levels)
    for name, level in list(levels.items()):
        needed = missing_dependency(name, resulting)
        if needed is not None:
            above = f"level {level} needs {needed[0]} {needed[1]} or above"
            reading.wrong(values[name], join("features", name), above)
    return levels
