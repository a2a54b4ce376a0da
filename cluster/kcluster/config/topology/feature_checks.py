"""Checks the features of a topology: from a tree (tree.py) to levels by name.

Owns: the features and levels that a new cluster may have.  Never: raises; a feature with a problem
is left out.  Kafka: kafka-storage format --feature, Formatter.
"""

from __future__ import annotations

from collections.abc import Mapping

from kcluster.config.files.problems import join, unknown
from kcluster.config.files.reading import TreeReader
from kcluster.config.files.tree import Map, Node
from kcluster.protocol.features import ELR_VERSION, FEATURES, initial_levels, missing_dependency


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
