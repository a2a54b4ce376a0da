"""What a share group's configs say about its share partitions.

Owns: their values, from the group's own configs or else the broker's.  Never: checks them
(config/kafka/group.py does).
Kafka: ShareGroupConfigProvider, ShareGroupAutoOffsetResetStrategy, GroupConfig.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Final

from kcluster.broker.ports import BrokerView
from kcluster.broker.share.window import ShareLimits
from kcluster.config.kafka.group import GroupConfig, broker_value
from kcluster.metadata.records import GROUP_RESOURCE

LATEST: Final = "latest"
EARLIEST: Final = "earliest"
READ_COMMITTED: Final = "read_committed"
_PART: Final = re.compile(r"\+?([0-9]+)(?:[.,]([0-9]*))?([DHMS])")
_UNIT_MS: Final = {"D": 86_400_000, "H": 3_600_000, "M": 60_000, "S": 1_000}


def group_config_of(view: BrokerView, group_id: str) -> GroupConfig:
    """The configs in force for a group."""
    own = view.image.configs.get((GROUP_RESOURCE, group_id), {})
    return GroupConfig.resolve(partial(broker_value, view.config), own)


def share_limits(view: BrokerView, group_id: str) -> ShareLimits:
    """What the group may do with records in flight."""
    config = group_config_of(view, group_id)
    return ShareLimits(
        delivery_count=config.share_delivery_count_limit,
        record_locks=config.share_partition_max_record_locks,
        lock_duration_ms=config.share_record_lock_duration_ms,
        is_renewal_enabled=config.share_renew_acknowledge_enable,
    )


def is_read_committed(view: BrokerView, group_id: str) -> bool:
    """Whether records of open and aborted transactions are kept from the group."""
    return group_config_of(view, group_id).share_isolation_level == READ_COMMITTED


def reset_duration_ms(reset: str) -> int:
    """Of `by_duration:` and an ISO 8601 duration, as in `by_duration:PT1H30M`."""
    return sum(
        int(number) * _UNIT_MS[unit] + (int(fraction.ljust(3, "0")[:3]) if fraction else 0)
        for number, fraction, unit in _PART.findall(reset.upper().partition(":")[2])
    )
