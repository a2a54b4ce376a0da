"""Mutations of compaction and of moving partitions.

Owns: these mutations.  Never: applies one.  Kafka: the issues and KIPs that they name.
"""

from __future__ import annotations

from typing import Final

from tools.mutants.mutation import Edit, mutation

_COMPACTION: Final = "partition/log/compaction.py"
_ELECTIONS: Final = "controller/partitions/elections.py"
_LOG: Final = "partition/log/log.py"
_REASSIGNING: Final = "controller/partitions/reassigning.py"

MUTATIONS: Final = (
    mutation(
        "compacts_open_transactions",
        "KAFKA-4586 in kind: records above the last stable offset are cleaned",
        Edit(
            _COMPACTION,
            "        stable = producers.last_stable_offset(high_watermark)\n",
            "        stable = log.log_end_offset\n",
        ),
        on="compaction",
        expects="newest-compacted lost-write torn-transaction committed-differs",
    ),
    mutation(
        "compacts_uncommitted",
        "KAFKA-4669 in kind: records above the high watermark are cleaned",
        Edit(
            _COMPACTION,
            "    producers, stable = log.producer_table, high_watermark\n"
            "    if producers is not None:\n"
            "        stable = producers.last_stable_offset(high_watermark)\n",
            "    stable = log.log_end_offset\n",
        ),
        on="compaction",
        expects="newest-compacted lost-write committed-differs",
    ),
    mutation(
        "aborted_record_hides_older",
        "KAFKA-5211 in kind: a record of an aborted transaction makes an older one of its key go",
        Edit(
            _COMPACTION,
            "            if aborted and _is_aborted(batch, aborted):\n                continue\n",
            "",
        ),
        on="compaction",
        expects="newest-compacted lost-write",
    ),
    mutation(
        "aborted_range_open_ended",
        "a producer's records after an aborted transaction are taken for aborted, too",
        Edit(
            _COMPACTION,
            "        and one.first_offset <= batch.base_offset <= one.last_offset\n",
            "        and one.first_offset <= batch.base_offset\n",
        ),
        on="compaction",
        expects="newest-compacted lost-write torn-transaction",
    ),
    mutation(
        "newest_is_dropped",
        "KAFKA-8335 in kind: the newest record of a key is dropped, if it is the first of its batch",
        Edit(
            _COMPACTION,
            "    return record.offset >= work.newest.get(record.key, -1)\n",
            "    return record.offset > work.newest.get(record.key, -1) or record.offset % 7 > 0\n",
        ),
        on="compaction",
        expects="newest-compacted lost-write committed-differs",
    ),
    mutation(
        "empty_batch_of_producer_dropped",
        "KAFKA-5037 in kind: the last batch of a producer goes, and with it its sequence",
        Edit(
            _COMPACTION,
            "            batch.producer_id >= 0 and work.last_offsets.get(batch.producer_id)"
            " == batch.last_offset\n",
            "            batch.producer_id < 0 and work.last_offsets.get(batch.producer_id)"
            " == batch.last_offset\n",
        ),
        on="compaction",
        expects="sequence-compacted producers-differ duplicate lost-write",
    ),
    mutation(
        "dirty_part_only_from_newest",
        "KAFKA-6834 in kind: after a truncation the cleaner starts where it had ended before",
        Edit(_LOG, "        self.first_dirty_offset = min(self.first_dirty_offset, offset)\n", ""),
        on="cleaned compaction",
        expects="cleaned-above-end newest-compacted older-kept crash",
    ),
    mutation(
        "markers_compacted",
        "KAFKA-6161 in kind: markers are dropped with the records of their transaction",
        Edit(
            _COMPACTION,
            "    if batch.is_control:\n        return batch\n",
            "    if batch.is_control:\n        return None\n",
        ),
        on="compaction",
        expects="producers-differ hanging-transaction torn-transaction crash newest-compacted"
        " lost-write aborted-read",
    ),
    mutation(
        "rebuilt_batch_has_no_epoch",
        "KAFKA-8185 in kind: a batch that was cleaned loses its leader epoch",
        Edit(
            _COMPACTION, "        leader_epoch=batch.leader_epoch,\n", "        leader_epoch=0,\n"
        ),
        on="compaction",
        expects="batch-altered epochs-differ committed-differs crash committed-lost",
    ),
    mutation(
        "rebuilt_batch_is_plain",
        "KAFKA-5247 in kind: a batch that was cleaned is no longer one of a transaction",
        Edit(
            _COMPACTION,
            "        transactional=batch.is_transactional,\n",
            "        transactional=False,\n",
        ),
        on="compaction",
        expects="batch-altered producers-differ aborted-read torn-transaction",
    ),
    mutation(
        "tombstones_go_at_once",
        "KIP-534: a tombstone goes with the first cleaning that sees it",
        Edit(
            _COMPACTION,
            "    tombstones_go = horizon_ms is not None and horizon_ms <= work.now_ms\n",
            "    tombstones_go = True\n",
        ),
        on="compaction",
        expects="newest-compacted",
    ),
    mutation(
        "tombstones_go_too_early",
        "KAFKA-8522 in kind: the delete horizon of a tombstone forgets delete.retention.ms",
        Edit(
            _COMPACTION,
            "            tombstone_ms=min(now_ms + config.delete_retention_ms, INT64_MAX),\n",
            "            tombstone_ms=now_ms,\n",
        ),
        on="compaction",
        expects="newest-compacted",
    ),
    mutation(
        "tombstone_deletes_nothing",
        "a tombstone does not count as the newest record of its key",
        Edit(
            _COMPACTION,
            "                if record.key is not None:\n"
            "                    newest[record.key] = record.offset\n",
            "                if record.key is not None and record.value is not None:\n"
            "                    newest[record.key] = record.offset\n",
        ),
        on="compaction",
        expects="older-kept newest-compacted",
    ),
    mutation(
        "older_records_stay",
        "a key's records are all kept if the newest one is in another segment",
        Edit(
            _COMPACTION,
            "    return record.offset >= work.newest.get(record.key, -1)\n",
            "    return record.offset >= work.newest.get(record.key, -1) - 20\n",
        ),
        on="compaction",
        expects="older-kept",
    ),
    mutation(
        "merged_segment_forgets_time",
        "two cleaned segments that become one keep the largest timestamp of the first only",
        Edit(
            _COMPACTION,
            "            last.max_timestamp = max(last.max_timestamp, segment.max_timestamp)\n",
            "",
        ),
        on="compaction cleaned compaction_lag",
        expects="segment-differs",
    ),
    mutation(
        "compaction_lag_of_first_record",
        "KIP-58: min.compaction.lag.ms counts from a segment's first record, not from its last",
        Edit(
            _COMPACTION,
            "next_base > first_dirty and segment.largest_timestamp > now_ms - lag_ms:\n",
            "next_base > first_dirty and segment.created_ms > now_ms - lag_ms:\n",
        ),
        on="compaction_lag",
        expects="cleaned-too-young",
    ),
    # ------------------------------------------------------------------- moving partitions
    mutation(
        "reassigned_too_early",
        "KIP-455: a reassignment ends when one of the added replicas is in sync",
        Edit(
            _REASSIGNING,
            "    if any(broker not in in_sync for broker in (*adding, *needed)):\n",
            "    if not any(broker in in_sync for broker in (*adding, *needed)):\n",
        ),
        on="compaction moves",
        expects="reassigned-early committed-lost lost-write isr-not-replicas joined-lacking",
    ),
    mutation(
        "reassigned_without_sync",
        "KIP-455: a reassignment ends when the new replicas are known, whether in sync or not",
        Edit(
            _REASSIGNING,
            "    if any(broker not in in_sync for broker in (*adding, *needed)):\n"
            "        return None\n",
            "",
        ),
        on="compaction moves",
        expects="reassigned-early committed-lost lost-write not-at-rest watermark-stalled"
        " isr-not-replicas",
    ),
    mutation(
        "kafka8522_tombstones_stay",
        "KAFKA-8522: each cleaning that sees a tombstone starts its delete.retention.ms again",
        Edit(
            _COMPACTION,
            "    if horizon_ms is None and any(record.value is None for record in retained):\n",
            "    if any(record.value is None for record in retained):\n",
        ),
        on="compaction",
        expects="batch-altered",
    ),
    mutation(
        "removed_stay_in_isr",
        "KIP-455: a replica that a reassignment removes stays in the ISR",
        Edit(
            _ELECTIONS,
            "        target, assigned = done.isr, Assignment(done.replicas)\n",
            "        assigned = Assignment(done.replicas)\n",
        ),
        on="compaction moves",
        expects="isr-not-replicas",
    ),
    mutation(
        "removed_keep_epoch",
        "KAFKA-14190 in kind: the leader epoch is not bumped when replicas are removed",
        Edit(
            _ELECTIONS,
            "    elif any(broker not in replicas for broker in partition.replicas):\n"
            "        leader_epoch += 1  # removed replicas must stop fetching as replicas\n",
            "",
        ),
        on="compaction moves",
        equivalent="a replica that is not assigned any more gets UNKNOWN_LEADER_EPOCH, and its"
        " broker removes it with the same metadata",
    ),
    mutation(
        "newcomer_stays_eligible",
        "KIP-966: a former replica that is added again is eligible with an empty log",
        Edit(
            _ELECTIONS,
            "    excluded = (*target, *newcomers, unclean_shutdown)\n",
            "    excluded = (*target, unclean_shutdown)\n    assert newcomers is not None\n",
        ),
        on="resized moves compaction",
        expects="eligible-newcomer committed-lost lost-write committed-differs",
    ),
    mutation(
        "new_replica_keeps_old_log",
        "KAFKA-13599 in kind: the log of a replica that was removed is still there when it returns",
        Edit(
            "broker/publisher.py",
            "        self._disk.remove(*replica.key)\n        self._replicas.touch(replica)\n",
            "        self._replicas.touch(replica)\n",
        ),
        on="moves",
        expects="log-left committed-differs lost-write truncated-committed",
    ),
    mutation(
        "cancelled_keeps_added",
        "KIP-455: a cancelled reassignment keeps the replicas that it has added in the ISR",
        Edit(
            _REASSIGNING,
            "    isr = tuple(broker for broker in partition.isr if broker not in adding)\n",
            "    isr = partition.isr\n",
        ),
        on="moves",
        expects="isr-not-replicas",
    ),
    mutation(
        "fewer_replicas_needs_no_sync",
        "KIP-455: a reassignment to fewer replicas ends before the remaining ones are in sync",
        Edit(
            _REASSIGNING,
            "    needed = staying if len(adding) < len(leaving) else adding\n",
            "    needed = adding\n",
        ),
        on="resized moves",
        expects="reassigned-early",
    ),
    mutation(
        "unclean_cancel_allowed",
        "KIP-455: a reassignment whose original replicas are all out of sync may be cancelled",
        Edit(
            "controller/partitions/reassignments.py",
            "        if not back.clean and not self._partitions.unclean_allowed(topic):\n",
            "        if not back.isr and not self._partitions.unclean_allowed(topic):\n",
        ),
        on="cancelled",
        expects="unclean-forbidden",
    ),
    mutation(
        "replaced_disk_is_clean",
        "KIP-966: a broker with a replaced disk registers as if it had stopped cleanly",
        Edit(
            "partition/disk.py",
            "        self._preferred.clear()\n"
            "        self.broker_epoch = -1\n"
            "        self.clean_shutdown = False\n",
            "        self._preferred.clear()\n",
        ),
        on="new_disks",
        expects="committed-lost lost-write",
    ),
    mutation(
        "batch_before_watermark_dropped",
        "an empty batch that ends at the high watermark is dropped by compaction, so nobody learns of the offsets in it",
        Edit(
            "partition/log/compaction.py",
            "        ends_at_high_watermark = batch.last_offset + 1 == work.high_watermark\n",
            "        ends_at_high_watermark = False\n",
        ),
        on="cleaned_ends",
        expects="end-compacted",
    ),
    mutation(
        "max_compaction_lag_of_newest",
        "KIP-354: max.compaction.lag.ms counts from the newest dirty record, so a log that is written to is never due",
        Edit("partition/log/compaction.py", "    oldest = min(\n", "    oldest = max(\n"),
        on="compaction_lag",
        expects="compaction-overdue",
    ),
    mutation(
        "rebuilt_batch_has_no_sequence",
        "a batch that was cleaned loses the producer's sequence",
        Edit("partition/log/compaction.py", "        base_sequence=batch.base_sequence,\n", ""),
        on="compaction",
        expects="batch-altered",
    ),
    mutation(
        "min_isr_of_old_replicas",
        "min.insync.replicas stays capped by the number of replicas before a reassignment",
        Edit(
            "partition/replica.py",
            "        self.isr = registration.isr\n        self.min_isr = min(self.config.min_insync_replicas, len(registration.replicas))\n",
            "        self.isr = registration.isr\n",
        ),
        on="resized",
        expects="refused-in-sync watermark-below-min-isr",
    ),
    mutation(
        "session_keeps_removed_replica",
        "KIP-227: a fetch session goes on with a replica that was removed, though the broker has a new one of the same partition",
        Edit(
            "broker/handlers/data/fetch.py",
            "        if known is not None and known.role is not NO_ROLE:\n",
            "        if known is not None:\n",
        ),
        on="returns",
        expects="not-at-rest",
    ),
    mutation(
        "removed_coordinator_stays",
        "a broker whose replica of a coordinator's partition is removed keeps the groups and transactions, and goes on with them when it leads again",
        Edit(
            "broker/publisher.py",
            "        if was_leader:\n            self._share_partitions.on_resigned(replica.topic_id, replica.partition)\n            if replica.topic in self._coordinators:\n                self._coordinators[replica.topic].on_resigned(replica.partition, now_ms)\n\n    def remove_strays",
            "        if was_leader:\n            self._share_partitions.on_resigned(replica.topic_id, replica.partition)\n\n    def remove_strays",
        ),
        on="travels",
        expects="coordinator-differs producer-refused",
    ),
    mutation(
        "cleaned_past_stable_offset",
        "KIP-98 in kind: the cleaner goes up to the high watermark, past the first record of an open"
        " transaction",
        Edit(
            "partition/log/compaction.py",
            "        if next_base > stable:\n",
            "        if next_base > high_watermark:\n",
        ),
        on="compaction cleaned_ends share_committed",
        expects="cleaned-unstable newest-compacted",
    ),
)
