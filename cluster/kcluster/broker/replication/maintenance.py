"""The periodic work on a broker's replicas, and the final work before a clean stop.

Owns: the times at which ISRs are checked, watermarks checkpointed, segments deleted, logs compacted
and flushed, and producers forgotten.  Never: chooses records to delete (partition/log/retention.py)
or compact (partition/log/compaction.py).  Kafka: LogManager's and ReplicaManager's scheduled tasks;
LogCleaner's threads; Linux's write-back.

Kafka's tasks go through all replicas; these look only at replicas that may have become due since
the last run (backlog.py), with equal results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kcluster.broker.ports import BrokerView
from kcluster.broker.replication.backlog import Backlog
from kcluster.broker.replication.fetchers import Fetchers
from kcluster.broker.replication.isr import IsrChanges
from kcluster.broker.replication.replicas import Replicas
from kcluster.partition.disk import Disk
from kcluster.partition.log.compaction import compact, is_compactable
from kcluster.partition.log.retention import expire, next_expiry_ms
from kcluster.partition.replica import Replica
from kcluster.timers import NEVER_MS, Timers

WRITE_BACK_CHECK_MS: Final = 5_000
"""The interval at which Linux looks for dirty pages to write: 5 s (dirty_writeback_centisecs)."""

Check = Callable[[Replica, int], int]
"""Called with (replica, now_ms); returns the time of the next look if nothing changes: NEVER_MS for
none, a time that has passed for the next run."""


class Maintenance:
    """The scheduled tasks of one broker."""

    def __init__(
        self,
        view: BrokerView,
        timers: Timers,
        replicas: Replicas,
        fetchers: Fetchers,
        isr: IsrChanges,
        disk: Disk,
    ) -> None:
        self._view = view
        self._disk = disk
        self._timers = timers
        self._replicas = replicas
        self._fetchers = fetchers
        self._changed = replicas.read_changes()
        self._isr = isr
        self._of_roles: list[Backlog] = []
        """The backlogs of the tasks that must look at every replica that changes."""
        self._of_logs: list[Backlog] = []
        """The backlogs of the tasks that skip empty logs."""
        replicas.on_removed = self._forget

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
        of_roles, of_logs = self._of_roles, self._of_logs
        self._check_every(lambda: isr_check_ms, "isr", self._shrink_isr, of_roles, now_ms)
        self._check_every(lambda: checkpoint_ms, "checkpoint", _checkpoint, of_roles, now_ms)
        self._check_every(
            lambda: retention_check_ms, "retention", self._apply_retention, of_logs, now_ms
        )
        if config.log_cleaner_enable:
            self._check_every(self._cleaner_backoff_ms, "cleaner", _compact_if_due, of_logs, now_ms)
        self._check_every(
            lambda: producers_check_ms, "producers", self._expire_producers, of_logs, now_ms
        )
        self._check_every(lambda: flush_check_ms, "flush", _flush_if_due, of_logs, now_ms)
        if self._disk.write_back_ms:
            self._disk.find_unwritten()
            self._write_back_later(now_ms)

    def _check_every(
        self,
        interval_ms: Callable[[], int],
        name: str,
        check: Check,
        family: list[Backlog],
        now_ms: int,
    ) -> None:
        """Check the replicas of a new backlog, added to `family`, again and again."""
        backlog = Backlog()
        family.append(backlog)

        def run(now_ms: int) -> None:
            self._hand_out_changed()
            for replica in backlog.take(now_ms):
                backlog.look_again(replica, check(replica, now_ms))
            self._timers.set(("replicas", name), now_ms + interval_ms(), run)

        self._timers.set(("replicas", name), now_ms + interval_ms(), run)

    def _hand_out_changed(self) -> None:
        """Pass the changed replicas to all tasks that they may concern."""
        changed = self._changed.take()
        if not changed:
            return
        for backlog in self._of_roles:
            backlog.add(changed)
        written = [replica for replica in changed if not replica.log.is_blank]
        if written:
            for backlog in self._of_logs:
                backlog.add(written)
            if self._disk.write_back_ms:
                self._disk.add_unwritten(replica.log for replica in written)

    def _forget(self, replica: Replica) -> None:
        for backlog in (*self._of_roles, *self._of_logs):
            backlog.forget(replica)

    # ---------------------------------------------------------------------------- the tasks

    def _shrink_isr(self, replica: Replica, now_ms: int) -> int:
        if not replica.has_trailing_member():
            return NEVER_MS
        self._isr.propose_shrink(replica, now_ms)
        return now_ms

    def _apply_retention(self, replica: Replica, now_ms: int) -> int:
        log, config, high_watermark = replica.log, replica.config, replica.high_watermark
        if expire(log, now_ms, config, high_watermark):
            self._replicas.changed[replica] = None
            self._replicas.touch(replica)
            self._fetchers.tell_log_start(replica)
        return next_expiry_ms(log, now_ms, config)

    def _cleaner_backoff_ms(self) -> int:
        """log.cleaner.backoff.ms, a dynamic config."""
        return max(1, self._view.config.log_cleaner_backoff_ms)

    def _expire_producers(self, replica: Replica, now_ms: int) -> int:
        producers = replica.log.producer_table
        if producers is None:
            return NEVER_MS
        producers.remove_expired(now_ms, self._view.config.producer_id_expiration_ms)
        return now_ms if producers.states else NEVER_MS

    def _write_back_later(self, now_ms: int) -> None:
        check_ms = min(self._disk.write_back_ms, WRITE_BACK_CHECK_MS)
        self._timers.set(("replicas", "write back"), now_ms + check_ms, self._write_back)

    def _write_back(self, now_ms: int) -> None:
        self._hand_out_changed()
        self._disk.write_back(now_ms)
        self._write_back_later(now_ms)

    def stop_cleanly(self) -> None:
        """Leave exact watermarks and flushed logs on the disk."""
        for replica in self._replicas.all():
            _checkpoint(replica, 0)
            replica.log.flush()


def _checkpoint(replica: Replica, _now_ms: int) -> int:
    replica.log.high_watermark_checkpoint = replica.high_watermark
    return NEVER_MS


def _compact_if_due(replica: Replica, now_ms: int) -> int:
    log, config = replica.log, replica.config
    if "compact" not in config.cleanup_policy:
        return NEVER_MS
    compact(log, now_ms, config, replica.high_watermark)
    return now_ms if is_compactable(log) else NEVER_MS


def _flush_if_due(replica: Replica, now_ms: int) -> int:
    replica.log.flush_if_due(now_ms, replica.config)
    return now_ms if replica.log.has_unflushed else NEVER_MS
