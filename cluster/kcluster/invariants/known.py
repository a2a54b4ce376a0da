"""What the processes of a cluster know by their metadata: names of topics, configs in force.

Owns: these look-ups, at the process that counts for a rule.  Never: checks anything.  They are
functions, not methods of the watch: an object of the watch that kept such a method would make a
reference cycle, and a run's record would wait for the garbage collector.  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kcluster.contract import CONTROLLER_ID
from kcluster.metadata.image import MetadataImage
from kcluster.metadata.records import BROKER_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE
from kcluster.runtime.process import Process

_LOCK_MS: Final = "share.record.lock.duration.ms"


def topic_name(processes: Mapping[int, Process], topic_id: bytes) -> str:
    """The name of a topic, as the controller knows it; "" if there is none."""
    node = processes[CONTROLLER_ID].last_controller
    return "" if node is None else node.image.topic_names.get(topic_id, "")


def lock_ms(processes: Mapping[int, Process], broker: int, group: str) -> int | None:
    """The duration of a share group's locks by a broker's metadata; None if no process has run."""
    node = processes[broker].last_broker
    if node is None:
        return None
    config = node.config
    own = node.image.configs.get((GROUP_RESOURCE, group), {}).get(_LOCK_MS)
    if own is None:
        return config.group_share_record_lock_duration_ms
    least_ms = config.group_share_min_record_lock_duration_ms
    return min(max(int(own), least_ms), config.group_share_max_record_lock_duration_ms)


def max_deliveries(
    processes: Mapping[int, Process], reconfigured: Mapping[str, None], broker: int, group: str
) -> int | None:
    """How often a record of a share group may be delivered, by a broker's metadata; None if the
    group is `reconfigured`, since a record may have been acquired under an earlier limit."""
    node = processes[broker].last_broker
    if node is None or group in reconfigured:
        return None
    return node.config.group_share_delivery_count_limit


def config_in_force(image: MetadataImage, topic: str, name: str) -> str | None:
    """A topic's value of a config: its own, else the cluster's default; None: it is not set."""
    for resource in ((TOPIC_RESOURCE, topic), (BROKER_RESOURCE, "")):
        value = image.configs.get(resource, {}).get(name)
        if value is not None:
            return value
    return None
