"""The features of a 4.3.1 cluster: their names and levels.

Owns: this table.  Never: knows which level is in force (MetadataImage.features does).
Kafka: Feature, MetadataVersion, SupportedVersionRange; KIP-584, KIP-1022.
"""

from __future__ import annotations

from typing import Final, NamedTuple

METADATA_VERSION: Final = "metadata.version"
ELR_VERSION: Final = "eligible.leader.replicas.version"
KRAFT_VERSION: Final = "kraft.version"
TRANSACTION_VERSION: Final = "transaction.version"


class FeatureLevels(NamedTuple):
    """Levels of one feature."""

    lowest: int
    highest: int
    initial: int
    """What a newly formatted cluster has; 0: the feature is off, and is not listed."""


FEATURES: Final = {
    "group.version": FeatureLevels(0, 1, 1),
    KRAFT_VERSION: FeatureLevels(0, 1, 0),
    METADATA_VERSION: FeatureLevels(7, 30, 30),
    "share.version": FeatureLevels(0, 1, 1),
    "streams.version": FeatureLevels(0, 1, 1),
    TRANSACTION_VERSION: FeatureLevels(0, 2, 2),
    ELR_VERSION: FeatureLevels(0, 1, 1),
}
"""In the order in which a 4.3.1 broker lists them."""
