"""Fresh mutations of share groups, compaction, and partitions that move.

Owns: these mutations.  Never: applies one.  Kafka: the issues and KIPs that they name.
"""

from __future__ import annotations

from typing import Final

from tools.mutants.mutation import Edit, mutation

_ACQUISITION: Final = "broker/share/acquisition.py"
_COMPACTION: Final = "partition/log/compaction.py"
_FETCH: Final = "broker/handlers/share/share_fetch.py"
_GROUP: Final = "broker/coordinator/share/group.py"
_LEADER: Final = "broker/share/share_partition.py"
_STATES: Final = "broker/coordinator/share_state/share_states.py"
_STATE_SHARD: Final = "broker/coordinator/share_state/share_state_shard.py"
_WINDOW: Final = "broker/share/window.py"

MUTATIONS: Final = (
    mutation(
        "lock_timer_not_restarted",
        "KIP-932: an acquisition lock's timer is not started again after it has fired",
        Edit(
            _LEADER,
            "        self._await_locks(self.window.next_deadline_ms)\n        if expired:\n",
            "        if expired:\n",
        ),
        on="share_admin",
    ),
    mutation(
        "split_lock_has_no_deadline",
        "KIP-932: the second part of a batch that is split has no end of its lock",
        Edit(
            "broker/share/in_flight.py",
            "            self.member_id,\n            self.lock_deadline_ms,\n        )\n"
            "        self.last_offset = offset - 1\n",
            "            self.member_id,\n        )\n        self.last_offset = offset - 1\n",
        ),
        on="share_admin",
    ),
    mutation(
        "start_moves_past_gap",
        "KAFKA-18494 in kind: the start offset moves past a gap that may have undelivered records",
        Edit(
            _WINDOW,
            "            if self.may_have_gaps:\n"
            "                next_offset = min(next_offset, self.gap_start_offset)\n",
            "",
        ),
        on="share_admin",
    ),
    mutation(
        "following_write_replaced",
        "KIP-932: of the state writes that wait for an answer only the newest is sent",
        Edit(
            "broker/coordinator/share_state/remote_persister.py",
            "            new.batches = before.batches + new.batches\n",
            "",
        ),
        on="share_writes share share_moves",
    ),
    mutation(
        "reset_keeps_batches",
        "KIP-932: share offsets that were altered keep the records' old states",
        Edit(
            _STATES,
            "            batches=(),\n            create_timestamp_ms=now_ms,\n",
            "            batches=() if entry is None else entry.state.batches,\n"
            "            create_timestamp_ms=now_ms,\n",
        ),
        on="share",
    ),
    mutation(
        "pruned_to_newest_snapshot",
        "KIP-932: a share coordinator prunes its log up to the newest snapshot, not the oldest",
        Edit(
            _STATE_SHARD,
            "        self._redundant_before = min(self._snapshots.values())\n",
            "        self._redundant_before = max(self._snapshots.values())\n",
        ),
        on="share_admin",
    ),
    mutation(
        "cold_snapshot_drops_batches",
        "KIP-932: a snapshot of a cold share partition has its start offset, but not its batches",
        Edit(
            _STATE_SHARD,
            "replace(state, snapshot_epoch=state.snapshot_epoch + 1, write_timestamp_ms=now_ms),\n",
            "replace(state, snapshot_epoch=state.snapshot_epoch + 1, write_timestamp_ms=now_ms,"
            " batches=()),\n",
        ),
        on="share_admin",
    ),
    mutation(
        "share_session_forgets_nothing",
        "KIP-932: a share session keeps the partitions that its member has given up",
        Edit(
            "broker/share/sessions.py",
            "        self.partitions.pop(key, None)\n        self.unanswered.pop(key, None)\n",
            "        self.unanswered.pop(key, None)\n",
        ),
        on="share_admin",
    ),
    mutation(
        "dropped_with_any_session",
        "KIP-932: a share partition is dropped when any session of its group ends, not the last",
        Edit(
            "broker/node.py",
            "            if not self.share_sessions.has_group(session.group_id):\n"
            "                self.share_partitions.remove_group(session.group_id)\n",
            "            self.share_partitions.remove_group(session.group_id)\n",
        ),
        on="share_admin",
    ),
    mutation(
        "max_records_per_partition",
        "KIP-1206 in kind: max_records limits each partition of a share fetch, not all together",
        Edit(
            _FETCH,
            "            left -= sum(some.last_offset - some.first_offset + 1 for some in acquired)\n",
            "",
        ),
        on="share_admin",
    ),
    mutation(
        "record_locks_per_fetch",
        "KIP-932: share.partition.max.record.locks does not limit what one fetch acquires",
        Edit(
            _ACQUISITION,
            "    max_records = min(acquirer.max_records,"
            " limits.record_locks - window.in_flight_records)\n",
            "    max_records = acquirer.max_records\n",
        ),
        on="share_admin",
    ),
    mutation(
        "share_configs_cached",
        "KIP-932: a share-partition leader goes on with the group configs that it read first",
        Edit(
            "broker/share/configs.py",
            "            self._known_at = image_offset\n            self._known = {}\n",
            "            self._known_at = image_offset\n",
        ),
        on="share_admin",
    ),
    mutation(
        "share_latest_is_log_end",
        "KIP-932: a share group that begins at the latest offset begins above the high watermark",
        Edit(
            _LEADER,
            "            return replica.high_watermark\n        try:\n",
            "            return log.log_end_offset\n        try:\n",
        ),
        on="share_admin",
    ),
    mutation(
        "kafka19204_initialize_not_retried",
        "KAFKA-19204 in kind: a lost request to initialize share partitions is not sent again",
        Edit(
            _GROUP,
            "        return states.missing(self.broker.image, names, retries)\n",
            "        return states.missing(self.broker.image, names, retries=False)\n",
        ),
        on="share_admin",
    ),
    mutation(
        "grown_partitions_unassigned",
        "KIP-932: new partitions of a share group's topic are initialized, but not assigned",
        Edit(
            _GROUP,
            "            and assigned.get(topic_id, set()) != one.partitions\n",
            "            and not assigned.get(topic_id)\n",
        ),
        on="share_admin",
    ),
    mutation(
        "sharing_rounded_down",
        "KIP-932: members beyond the number of partitions get none, instead of sharing one",
        Edit(
            "broker/coordinator/share/assignor.py",
            "    sharing = ceil(len(members) / len(partitions)) if partitions else 0\n",
            "    sharing = max(1, len(members) // len(partitions)) if partitions else 0\n",
        ),
        on="share_admin",
    ),
    # ------------------------------------------------------------------------- compaction
    mutation(
        "merged_segment_forgets_time",
        "two cleaned segments that become one keep the largest timestamp of the first only",
        Edit(
            _COMPACTION,
            "            last.max_timestamp = max(last.max_timestamp, segment.max_timestamp)\n",
            "",
        ),
        on="compaction cleaned compaction_lag",
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
    ),
    # ------------------------------------------------- partitions that move, topics, disks
    mutation(
        "fewer_replicas_needs_no_sync",
        "KIP-455: a reassignment to fewer replicas ends before the remaining ones are in sync",
        Edit(
            "controller/partitions/reassigning.py",
            "    needed = staying if len(adding) < len(leaving) else adding\n",
            "    needed = adding\n",
        ),
        on="resized moves",
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
    ),
    mutation(
        "recreated_topic_has_old_configs",
        "the configs of a deleted topic apply to the next topic of its name",
        Edit(
            "metadata/image.py",
            "                del self.topics[name]\n"
            "                self.configs.pop((TOPIC_RESOURCE, name), None)\n",
            "                del self.topics[name]\n",
        ),
        on="admin",
    ),
    mutation(
        "topic_config_cached_past_deletion",
        "a broker goes on with the configs of a deleted topic for the next topic of its name",
        Edit(
            "broker/publisher.py",
            "                self._remove_replica(replica, now_ms)\n"
            "        self._topic_configs.pop(name, None)\n",
            "                self._remove_replica(replica, now_ms)\n",
        ),
        on="admin",
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
        on="power moves",
    ),
    mutation(
        "append_forgets_default",
        "KIP-339: an APPEND to a list config that is not set forgets the default's items",
        Edit(
            "controller/configs/alter_configs.py",
            '            text = describe(definition, config) or ""\n',
            '            text = ""\n',
        ),
        on="admin",
    ),
)
