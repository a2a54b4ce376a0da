"""The periodic cleaning of one log: retention, then compaction if the topic is compacted.

Owns: the order of the two.  Never: what goes (retention.py, compaction.py).
Kafka: LogManager.cleanupLogs, LogCleaner.
"""

from __future__ import annotations

from kcluster.config.kafka.definitions import TopicConfig
from kcluster.partition.log.compaction import compact
from kcluster.partition.log.log import Log
from kcluster.partition.log.retention import expire


def clean(log: Log, now_ms: int, config: TopicConfig, high_watermark: int) -> int:
    """Delete what retention.ms, retention.bytes and the log start allow, then compact; return how
    many offsets the log start moved by."""
    if not log.segments:
        return 0
    moved = expire(log, now_ms, config, high_watermark)
    if "compact" in config.cleanup_policy:
        compact(log, now_ms, config, high_watermark)
    return moved
