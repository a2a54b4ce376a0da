"""The configs of a share group that concern its share partitions.

Owns: their values, from the group's own configs or else the broker's.  Never: checks them
(config/kafka/group.py does).
Kafka: ShareGroupConfigProvider, ShareGroupAutoOffsetResetStrategy, GroupConfig; KIP-1191.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Final, final

from msgspec import Struct

from kcluster.broker.coordinator.interface import CoordinatorBroker
from kcluster.broker.coordinator.modern.configs import group_config, group_time_ms
from kcluster.broker.share.window import ShareLimits
from kcluster.config.kafka.definitions import TOPIC_CONFIGS
from kcluster.config.kafka.values import parse_value
from kcluster.metadata.image import MetadataImage
from kcluster.protocol.features import SHARE_VERSION

LATEST: Final = "latest"
EARLIEST: Final = "earliest"
READ_COMMITTED: Final = "read_committed"
DEAD_LETTERS_ENABLED: Final = "errors.deadletterqueue.group.enable"
"""The config of a topic that share groups may use as their dead letter queue (KIP-1191)."""
DEAD_LETTERS_SINCE: Final = 2
"""The first level of share.version with dead letter queues."""
_PART: Final = re.compile(r"\+?([0-9]+)(?:[.,]([0-9]*))?([DHMS])")
_UNIT_MS: Final = {"D": 86_400_000, "H": 3_600_000, "M": 60_000, "S": 1_000}


class ShareSettings(Struct, frozen=True):
    """The configs of one group that the group's share partitions obey."""

    limits: ShareLimits
    reset: str
    """share.auto.offset.reset: latest, earliest, or by_duration: and a duration."""
    is_read_committed: bool
    """Whether the group does not get records of open and aborted transactions."""
    dead_letter_topic: str
    """errors.deadletterqueue.topic.name; empty: the group has no dead letter queue."""
    copies_dead_letters: bool
    """Whether a dead letter has the record's key and value, besides the headers."""


@final
class ShareConfigs:
    """The settings of the groups that fetch here, as the metadata has them now."""

    def __init__(self, broker: CoordinatorBroker) -> None:
        self._broker = broker
        self._known: dict[str, ShareSettings] = {}
        self._known_at = -1
        """The metadata offset at which the settings were read."""

    def of(self, group_id: str) -> ShareSettings:
        """The settings in force for a group."""
        image_offset = self._broker.image.offset
        if self._known_at != image_offset:
            self._known_at = image_offset
            self._known = {}
        settings = self._known.get(group_id)
        if settings is None:
            settings = self._known[group_id] = self._read(group_id)
        return settings

    def _read(self, group_id: str) -> ShareSettings:
        value_of = partial(group_config, self._broker, group_id)
        number_of = partial(group_time_ms, self._broker, group_id)
        topic = str(value_of("errors.deadletterqueue.topic.name"))
        share_version = self._broker.image.features.get(SHARE_VERSION, 0)
        limits = ShareLimits(
            delivery_count=number_of("share.delivery.count.limit"),
            record_locks=number_of("share.partition.max.record.locks"),
            lock_duration_ms=number_of("share.record.lock.duration.ms"),
            is_renewal_enabled=bool(value_of("share.renew.acknowledge.enable")),
            has_dead_letters=bool(topic) and share_version >= DEAD_LETTERS_SINCE,
        )
        return ShareSettings(
            limits=limits,
            reset=str(value_of("share.auto.offset.reset")),
            is_read_committed=value_of("share.isolation.level") == READ_COMMITTED,
            dead_letter_topic=topic,
            copies_dead_letters=bool(value_of("errors.deadletterqueue.copy.record.enable")),
        )


def is_dead_letter_queue(image: MetadataImage, topic: str) -> bool:
    """Whether share groups may use a topic as their dead letter queue, which brokers write."""
    own = image.topic_configs(topic).get(DEAD_LETTERS_ENABLED)
    return own is not None and parse_value(TOPIC_CONFIGS[DEAD_LETTERS_ENABLED], own) is True


def reset_duration_ms(reset: str) -> int:
    """The duration in ms in a value such as `by_duration:PT1H30M` (ISO 8601)."""
    return sum(
        int(number) * _UNIT_MS[unit] + (int(fraction.ljust(3, "0")[:3]) if fraction else 0)
        for number, fraction, unit in _PART.findall(reset.upper().partition(":")[2])
    )
