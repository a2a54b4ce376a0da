"""A group's own configs (resource type GROUP), over the broker's.

Owns: the value that a group obeys.  Never: checks an admin's change (config/kafka/group.py does).
Kafka: GroupConfigManager, GroupConfig.evaluate.
"""

from __future__ import annotations

from functools import partial

from kcluster.broker.coordinator.interface import CoordinatorBroker
from kcluster.config.kafka.group import (
    GROUP_CONFIGS,
    bounds_of,
    broker_default,
    broker_value,
    default_of,
)
from kcluster.config.kafka.values import ConfigError, Value, parse_value
from kcluster.metadata.records import GROUP_RESOURCE


def group_config(broker: CoordinatorBroker, group_id: str, name: str) -> Value:
    """The value of a config such as `consumer.session.timeout.ms` for a group: its own, within the
    broker's present bounds, or the broker's."""
    own = broker.image.configs.get((GROUP_RESOURCE, group_id))
    if own is None or name not in own:
        if broker_default(name) == name:  # no broker config gives it
            return GROUP_CONFIGS[name].default
        return default_of(partial(broker_value, broker.config), name)
    value = parse_value(GROUP_CONFIGS[name], own[name])
    assert not isinstance(value, ConfigError), value  # the controller has checked it
    low, high = bounds_of(partial(broker_value, broker.config), name)
    if isinstance(value, int) and not isinstance(value, bool):
        value = value if low is None else max(value, low)
        value = value if high is None else min(value, high)
    return value


def group_time_ms(broker: CoordinatorBroker, group_id: str, name: str) -> int:
    """The value of a group config that is a number, such as a time in ms."""
    value = group_config(broker, group_id, name)
    assert isinstance(value, int), (name, value)
    return value
