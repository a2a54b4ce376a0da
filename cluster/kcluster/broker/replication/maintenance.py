"""The periodic work on a broker's replicas, and the final work before a clean stop.

Owns: when ISRs are checked, watermarks checkpointed, segments deleted, logs compacted and flushed,
and producers forgotten.  Never: decides what is deleted (partition/log/retention.py) or compacted
(partition/log/compaction.py).
Kafka: LogManager's and ReplicaManager's scheduled tasks; LogCleaner's threads; Linux's write-back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kcluster.broker.ports import BrokerView
from kcluster.broker.replication.isr import IsrChanges
from kcluster.broker.replication.replicas import Replicas
from kcluster.partition.disk import Disk
from kcluster.partition.log.compaction import compact
from kcluster.partition.log.retention import expire
from kcluster.timers import Timers

WRITE_BACK_CHECK_MS: Final = 5_000
"""Linux looks for dirty pages to write every 5 s (dirty_writeback_centisecs)."""


class Maintenance:
    """The scheduled tasks of one broker."""

    def __init__(
        self, view: BrokerView, timers: Timers, replicas: Replicas, isr: IsrChanges, disk: Disk
    ) -> None:
        self._view = view
        self._disk = disk
        self._timers = timers
        self._replicas = replicas
        self._isr = isr

    def start(self, now_ms: int) -> None:
        """Schedule every task for the first time.  Intervals are read once, at the start, except
        the cleaner's."""
        config = self._view.config
        # Kafka checks twice per lag time, so that a lagging follower leaves within 1.5 of it.
        isr_check_ms = max(1, config.replica_lag_time_max_ms // 2)
        checkpoint_ms = config.replica_high_watermark_checkpoint_interval_ms
        retention_check_ms = config.log_retention_check_interval_ms
        producers_check_ms = config.producer_id_expiration_check_interval_ms
        flush_check_ms = config.log_flush_scheduler_interval_ms
        self._every(isr_check_ms, "isr", self._shrink_isrs, now_ms)
        self._every(checkpoint_ms, "checkpoint", self._checkpoint, now_ms)
        self._every(retention_check_ms, "retention", self._apply_retention, now_ms)
        if config.log_cleaner_enable:
            self._compact_due(now_ms)
        self._every(producers_check_ms, "producers", self._expire_producers, now_ms)
        self._every(flush_check_ms, "flush", self._flush_due, now_ms)
        write_back_ms = self._disk.write_back_ms
        if write_back_ms:
            check_ms = min(write_back_ms, WRITE_BACK_CHECK_MS)
            self._every(check_ms, "write back", self._disk.write_back, now_ms)

    def _every(self, interval_ms: int, name: str, task: Callable[[int], None], now_ms: int) -> None:
        def run(now_ms: int) -> None:
            task(now_ms)
            self._timers.set(("replicas", name), now_ms + interval_ms, run)

        self._timers.set(("replicas", name), now_ms + interval_ms, run)

    def _shrink_isrs(self, now_ms: int) -> None:
        for replica in self._replicas.all():
            if replica.followers:
                self._isr.propose_shrink(replica, now_ms)

    def _checkpoint(self, _now_ms: int) -> None:
        for replica in self._replicas.all():
            replica.log.high_watermark_checkpoint = replica.high_watermark

    def _apply_retention(self, now_ms: int) -> None:
        for replica in self._replicas.all():
            if expire(replica.log, now_ms, replica.config, replica.high_watermark):
                self._replicas.touch(replica)

    def _compact_due(self, now_ms: int) -> None:
        """Compact the logs that are due, and check again after log.cleaner.backoff.ms, a dynamic
        config."""
        for replica in self._replicas.all():
            if "compact" in replica.config.cleanup_policy:
                compact(replica.log, now_ms, replica.config, replica.high_watermark)
        backoff_ms = max(1, self._view.config.log_cleaner_backoff_ms)
        self._timers.set(("replicas", "cleaner"), now_ms + backoff_ms, self._compact_due)

    def _expire_producers(self, now_ms: int) -> None:
        expiration_ms = self._view.config.producer_id_expiration_ms
        for replica in self._replicas.all():
            producers = replica.log.producer_table
            if producers is not None:
                producers.remove_expired(now_ms, expiration_ms)

    def _flush_due(self, now_ms: int) -> None:
        for replica in self._replicas.all():
            replica.log.flush_if_due(now_ms, replica.config)

    def stop_cleanly(self) -> None:
        """Leave exact watermarks and flushed logs on the disk."""
        for replica in self._replicas.all():
            replica.log.high_watermark_checkpoint = replica.high_watermark
            replica.log.flush()
