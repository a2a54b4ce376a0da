"""Shorter times for a topology, so that more happens in a run: deaths are noticed within two or
three seconds, and one coordinator has all groups, one all transactions.

Owns: the configs, and where they leave a topology as it is.  Never: draws a workload (drawn.py).
Kafka: the names of its broker configs; no promise of Kafka depends on their values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from kcluster.config.topology.keys import DEFAULT_PROFILE
from kcluster.config.topology.model import Topology

_OF_BROKERS: Final = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "400"}
_OF_CLASSIC_GROUPS: Final = {
    "group.min.session.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
}
_OF_CONSUMER_GROUPS: Final = {
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "2500",
    "group.consumer.min.heartbeat.interval.ms": "300",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.assignment.interval.ms": "0",
}
_OF_SHARE_GROUPS: Final = {
    "group.share.min.session.timeout.ms": "1000",
    "group.share.session.timeout.ms": "3000",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "1000",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.record.lock.duration.ms": "2000",
    "share.coordinator.state.topic.num.partitions": "1",
}
_OF_STREAMS_GROUPS: Final = {
    "group.streams.min.session.timeout.ms": "1000",
    "group.streams.session.timeout.ms": "2000",
    "group.streams.min.heartbeat.interval.ms": "300",
    "group.streams.heartbeat.interval.ms": "500",
    "group.streams.initial.rebalance.delay.ms": "100",
}
_OF_TRANSACTIONS: Final = {
    "transaction.state.log.num.partitions": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}
_FAMILIES: Final[tuple[Mapping[str, str], ...]] = (
    *(_OF_BROKERS, _OF_CLASSIC_GROUPS, _OF_CONSUMER_GROUPS),
    *(_OF_SHARE_GROUPS, _OF_STREAMS_GROUPS, _OF_TRANSACTIONS),
)
"""Configs that belong together: Kafka compares some of a family with each other."""


def hurried(topology: Topology) -> Topology:
    """A topology with shorter times.  A family of configs of which it sets one stays as it is; so
    does a topology of another profile than Kafka's own times, or of an older release, which may not
    know the configs."""
    releases = (topology.kafka_version, *(broker.kafka_version for broker in topology.brokers))
    if topology.profile != DEFAULT_PROFILE or any(releases):
        return topology
    own = {*topology.config, *(name for broker in topology.brokers for name in broker.config)}
    shorter = {
        name: value
        for family in _FAMILIES
        if not own & family.keys()
        for name, value in family.items()
    }
    return replace(topology, config={**topology.config, **shorter})
