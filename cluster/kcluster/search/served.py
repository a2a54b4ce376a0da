"""What all brokers of a topology let their clients do: the kinds of groups that they serve, and the
sessions of classic members.

Owns: these two answers.  Never: draws a client (drawn.py).
Kafka: the features group.version, streams.version and share.version (KIP-1022); its broker configs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kcluster.config.topology.model import Topology
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.features import (
    GROUP_VERSION,
    METADATA_VERSION,
    SHARE_VERSION,
    STREAMS_VERSION,
    initial_levels,
    metadata_version_of,
)

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
STREAMS: Final = "streams"
SHARE: Final = "share"
_NEED: Final = {
    CONSUMER: (GROUP_VERSION, ApiKey.CONSUMER_GROUP_HEARTBEAT),
    STREAMS: (STREAMS_VERSION, ApiKey.STREAMS_GROUP_HEARTBEAT),
    SHARE: (SHARE_VERSION, ApiKey.SHARE_GROUP_HEARTBEAT),
}
"""A kind of group: the feature that must be on, and the API that brokers must list."""


def served_kinds(topology: Topology) -> Iterator[str]:
    """The kinds of groups that every broker serves in a new cluster."""
    releases = [topology.release_of(broker.id) for broker in topology.brokers]
    chosen = {METADATA_VERSION: metadata_version_of(releases), **topology.features}
    levels = initial_levels(chosen)
    configs = [topology.broker_config(broker.id) for broker in topology.brokers]
    yield CLASSIC
    for kind, (feature, api) in _NEED.items():
        is_known = levels[feature] > 0 and all(int(api) in one.listed for one in releases)
        is_named = all(kind in one.group_coordinator_rebalance_protocols for one in configs)
        if is_known and (is_named or kind == SHARE):  # share groups need not be named
            yield kind


def session_bounds_ms(topology: Topology) -> tuple[int, int]:
    """The shortest and the longest session that every broker lets a member of a classic group
    have."""
    configs = [topology.broker_config(broker.id) for broker in topology.brokers]
    return (
        max(config.group_min_session_timeout_ms for config in configs),
        min(config.group_max_session_timeout_ms for config in configs),
    )
