"""Broker configs that exist only while they are set: the rates of replication throttles.

Owns: their definitions.  Never: enforces them (kcluster.broker.quotas.replication_throttle does).
Kafka: QuotaConfig.brokerQuotaConfigs, DynamicConfig.Broker: they are not part of a broker's file,
and DescribeConfigs names them only if they are set.
"""

from __future__ import annotations

from typing import Final

from kcluster.config.kafka.values import ConfigDef, Spec

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
LOG_DIRS_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"
UNLIMITED: Final = 2**63 - 1

QUOTA_CONFIGS: Final[dict[str, ConfigDef]] = {
    name: ConfigDef(name, "broker", UNLIMITED, Spec("LONG", 0, dynamic="cluster-wide"))
    for name in (LEADER_RATE, FOLLOWER_RATE, LOG_DIRS_RATE)
}
"""The broker configs that are quotas, by name; in bytes per second."""
