"""The features of a 4.4.0 cluster: their names and levels, and their dependencies.

Owns: these tables, and the features and levels that older releases know.  Never: knows a cluster's
finalized level (MetadataImage.features does).  Kafka: Feature, MetadataVersion, TransactionVersion,
GroupVersion, …; KIP-584, KIP-1022.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from kcluster.protocol.codec.schema import Versions
from kcluster.protocol.releases import Release, latest

METADATA_VERSION: Final = "metadata.version"
ELR_VERSION: Final = "eligible.leader.replicas.version"
GROUP_VERSION: Final = "group.version"
KRAFT_VERSION: Final = "kraft.version"
SHARE_VERSION: Final = "share.version"
STREAMS_VERSION: Final = "streams.version"
TRANSACTION_VERSION: Final = "transaction.version"


class FeatureLevels(NamedTuple):
    """The levels of one feature."""

    lowest: int
    highest: int
    defaults_since: tuple[int, ...]
    """The first metadata.version with which a new cluster starts with level 1, 2, …."""

    def initial(self, metadata_version: int) -> int:
        """The level of a newly formatted cluster; 0: the feature is off, and is not listed."""
        return sum(metadata_version >= since for since in self.defaults_since)


FEATURES: Final = {
    GROUP_VERSION: FeatureLevels(0, 1, (22,)),
    KRAFT_VERSION: FeatureLevels(0, 1, ()),
    METADATA_VERSION: FeatureLevels(7, 33, ()),
    SHARE_VERSION: FeatureLevels(0, 2, (28, 31)),
    STREAMS_VERSION: FeatureLevels(0, 1, (29,)),
    TRANSACTION_VERSION: FeatureLevels(0, 2, (24, 24)),
    ELR_VERSION: FeatureLevels(0, 1, (26,)),
}
"""All features, in the order in which a 4.4.0 broker lists them."""

NEEDED: Final = {(ELR_VERSION, 1): (METADATA_VERSION, 23)}
"""(feature, level) -> the feature and its level that this level requires."""

_CHANGED_METADATA: Final = frozenset({7, 8, 11, 13, 14, 15, 17, 23, 30, 32, 33})
"""The levels of metadata.version that brought new records.  Kafka:
MetadataVersion.didMetadataChange."""


_SINCE: Final = {
    METADATA_VERSION: (3, 3), KRAFT_VERSION: (3, 9), TRANSACTION_VERSION: (4, 0),
    GROUP_VERSION: (4, 0), ELR_VERSION: (4, 0), SHARE_VERSION: (4, 1), STREAMS_VERSION: (4, 2),
}  # fmt: skip
"""The first release that has a feature."""
_LEVEL_SINCE: Final = {(SHARE_VERSION, 2): (4, 4)}
"""(feature, level) -> the first release with that level, for features whose older releases stop
lower."""

FIRST_TO_FORMAT: Final = (4, 0)
"""The first release that determines a new cluster's levels: with brokers of this release or later
ones, the cluster begins at their levels.  Older brokers list only the levels that they know
(api_versions.py), but obey all."""


def supported(release: Release) -> dict[str, Versions]:
    """The features that a broker of `release` knows: name -> lowest and highest level."""
    found: dict[str, Versions] = {}
    for name, (low, high, _) in FEATURES.items():
        if release.number < _SINCE.get(name, latest().number):
            continue
        if name == METADATA_VERSION:
            found[name] = (low if release.number >= (4, 0) else 1), release.metadata_version
            continue
        while release.number < _LEVEL_SINCE.get((name, high), release.number):
            high -= 1
        found[name] = low, high
    return found


def metadata_version_of(releases: Iterable[Release]) -> int:
    """The metadata.version of a new cluster of these brokers: the highest version that the oldest
    broker knows."""
    known = [one.metadata_version for one in releases if one.number >= FIRST_TO_FORMAT]
    return min(known, default=FEATURES[METADATA_VERSION].highest)


def initial_levels(chosen: Mapping[str, int]) -> dict[str, int]:
    """The level of every feature in a newly formatted cluster, with the levels `chosen` by the
    user."""
    metadata_version = chosen.get(METADATA_VERSION, FEATURES[METADATA_VERSION].highest)
    levels = {name: feature.initial(metadata_version) for name, feature in FEATURES.items()}
    return {**levels, METADATA_VERSION: metadata_version, **chosen}


def missing_dependency(name: str, levels: Mapping[str, int]) -> tuple[str, int] | None:
    """The (feature, level) that feature `name` requires at its level, but that `levels` does not
    have; None if every requirement is met."""
    needed = NEEDED.get((name, levels[name]))
    return None if needed is None or levels.get(needed[0], 0) >= needed[1] else needed


def loses_metadata(current: int, lower: int) -> bool:
    """Whether metadata.version cannot go down: levels from `lower` to `current` have records that
    `lower` does not know."""
    return any(lower < level <= current for level in _CHANGED_METADATA)
