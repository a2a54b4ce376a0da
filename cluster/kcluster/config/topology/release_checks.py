"""Checks that the brokers of a topology are of releases that have the topology's configs and levels
of features.

Owns: these checks.  Never: reads a config's value (config_checks.py does); raises.
Kafka: a broker logs a config of a later release as unknown, and ignores it; a controller refuses
one of a topic.  A broker that does not know a level in force cannot register.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kcluster.config.files.problems import join
from kcluster.config.files.reading import TreeReader
from kcluster.config.files.tree import Items, Map, Node
from kcluster.config.kafka.catalog import broker_catalog
from kcluster.config.kafka.spelling import config_name
from kcluster.config.kafka.topic import TOPIC_CONFIGS
from kcluster.config.kafka.values import ConfigDef
from kcluster.protocol.features import FIRST_TO_FORMAT, supported
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
