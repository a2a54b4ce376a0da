"""The values of a topic's config that every append needs, read once.

Owns: these values.  Never: checks anything with them (validation.py, segment.py and log.py do).
Kafka: LogConfig, as UnifiedLog keeps one.

Reading a field of a TopicConfig costs compiled code 25 ns, one of these 2: docs/decisions/003.
"""

from __future__ import annotations

from typing import Final, final

from kcluster.config.kafka.definitions import TopicConfig

BEFORE_UNLIMITED: Final = 2**63 - 1
"""Default of message.timestamp.before.max.ms."""

_NO_FLUSH: Final = 1 << 61
"""As large as never, but still a machine word, unlike the default of flush.messages."""


@final
class AppendRules:
    """`takes_as_sent`: the config requires neither opening records nor rewriting batches."""

    __slots__ = (
        "config", "flush_messages", "max_message_bytes", "max_segment_bytes", "segment_ms",
        "takes_as_sent", "timestamp_after_max_ms",
    )  # fmt: skip

    def __init__(self, config: TopicConfig) -> None:
        self.config = config
        self.flush_messages = min(config.flush_messages, _NO_FLUSH)
        self.max_message_bytes = config.max_message_bytes
        self.max_segment_bytes = config.max_segment_bytes
        self.segment_ms = config.segment_ms
        self.timestamp_after_max_ms = min(config.message_timestamp_after_max_ms, _NO_FLUSH)
        self.takes_as_sent = (
            "compact" not in config.cleanup_policy
            and config.compression_type == "producer"
            and config.message_timestamp_type == "CreateTime"
            and config.message_timestamp_before_max_ms == BEFORE_UNLIMITED
        )


def rules_of(config: TopicConfig, known: AppendRules | None) -> AppendRules:
    """The rules of `config`; `known` itself if it has them already."""
    if known is not None and known.config is config:
        return known
    return AppendRules(config)
