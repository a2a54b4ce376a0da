"""The values of a topic's config that every append needs, read once.

Owns: these values.  Never: checks anything with them (validation.py, segment.py and log.py do).
Kafka: LogConfig, as UnifiedLog keeps one.

In compiled code a read of a TopicConfig's field takes 25 ns, a read of a field here 2 ns
(docs/decisions/003).
"""

from __future__ import annotations

from typing import Final, final

from kcluster.config.kafka.definitions import TopicConfig
from kcluster.protocol.records import compression

PRODUCERS_CODEC: Final = -1
_CODECS: Final = {
    **compression.CODEC_IDS,
    "uncompressed": compression.NONE,
    "producer": PRODUCERS_CODEC,
}
"""Codec ids by the value of compression.type."""

_NO_FLUSH: Final = 1 << 61
"""A number of records that is never reached, and fits into a machine word; the default of
flush.messages does not."""


@final
class AppendRules:
    """The values of a topic's config that every append needs.  `codec`: the codec in which the
    topic stores batches, -1 for the producer's; `needs_keys`: the topic is compacted;
    `max_record_bytes`: the limit of a record in a compressed batch; `is_create_time`: timestamps
    are the producer's, and are checked."""

    __slots__ = (
        "codec", "config", "flush_messages", "is_create_time", "max_message_bytes",
        "max_record_bytes", "max_segment_bytes", "needs_keys", "segment_ms",
        "timestamp_after_max_ms", "timestamp_before_max_ms",
    )  # fmt: skip

    def __init__(self, config: TopicConfig) -> None:
        self.config = config
        self.flush_messages = min(config.flush_messages, _NO_FLUSH)
        self.max_message_bytes = config.max_message_bytes
        self.max_record_bytes = config.max_decompressed_message_bytes
        self.max_segment_bytes = config.max_segment_bytes
        self.segment_ms = config.segment_ms
        self.timestamp_after_max_ms = config.message_timestamp_after_max_ms
        self.timestamp_before_max_ms = config.message_timestamp_before_max_ms
        self.needs_keys = "compact" in config.cleanup_policy
        self.is_create_time = config.message_timestamp_type == "CreateTime"
        self.codec = _CODECS[config.compression_type]


def rules_of(config: TopicConfig, known: AppendRules | None) -> AppendRules:
    """The rules of `config`; `known` itself if it was read from this config."""
    if known is not None and known.config is config:
        return known
    return AppendRules(config)
