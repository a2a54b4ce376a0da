"""Mutations of share groups: share partitions at their leaders, their stored states.

Owns: these mutations.  Never: applies one.  Kafka: the issues and KIPs that they name.
"""

from __future__ import annotations

from typing import Final

from tools.mutants.mutation import Edit, mutation

_ACQUISITION: Final = "broker/share/acquisition.py"
_FETCH: Final = "broker/handlers/share/share_fetch.py"
_GROUP: Final = "broker/coordinator/share/group.py"
_LEADER: Final = "broker/share/share_partition.py"
_STATE: Final = "broker/coordinator/share_state/state.py"
_STATES: Final = "broker/coordinator/share_state/share_states.py"
_STATE_SHARD: Final = "broker/coordinator/share_state/share_state_shard.py"
_WINDOW: Final = "broker/share/window.py"

MUTATIONS: Final = (
    mutation(
        "ack_not_stored",
        "KIP-932: an acceptance is answered before it is stored",
        Edit(
            _LEADER,
            "        self._write(transition.state_batches, written, now_ms)\n",
            "        done, on_done = on_done, _ignore\n"
            "        self._write(transition.state_batches, written, now_ms)\n"
            "        done(_NONE, now_ms)\n",
        ),
        on="share",
        expects="delivered-after-ack accepted-twice",
    ),
    mutation(
        "old_leader_writes",
        "KIP-932: the state of a share partition is taken from a deposed leader",
        Edit(
            _STATES,
            "            return invalid(WRITE_OF_UNINITIALIZED)\n"
            "        if NO_EPOCH != leader_epoch < entry.leader_epoch:\n"
            "            return _refusal(ErrorCode.FENCED_LEADER_EPOCH)\n",
            "            return invalid(WRITE_OF_UNINITIALIZED)\n",
        ),
        on="share share_moves",
        expects="passed-over delivered-after-ack accepted-twice delivered-too-often stale-share-write",
    ),
    mutation(
        "reader_does_not_fence",
        "KIP-932: a new leader that reads the state does not fence the old one",
        Edit(
            _STATES,
            "        if leader_epoch in (NO_EPOCH, entry.leader_epoch):\n",
            "        if leader_epoch >= NO_EPOCH:\n",
        ),
        on="share share_moves",
        expects="passed-over delivered-after-ack accepted-twice delivered-too-often stale-share-write",
    ),
    mutation(
        "progress_goes_back",
        "KAFKA-18494 in kind: an older state of a record replaces a newer one",
        Edit(
            _STATE,
            "        if old.progress > new.progress:\n",
            "        if old.progress > new.progress and old.delivery_count < 0:\n",
        ),
        on="share_writes",
        expects="delivered-after-ack accepted-twice passed-over delivered-too-often share-state-back"
        " coordinator-differs",
    ),
    mutation(
        "start_offset_goes_back",
        "writes that arrive out of order move the stored start offset back",
        Edit(
            _STATES,
            "            start_offset = max(start_offset, known.start_offset)\n",
            "            pass\n",
        ),
        on="share_writes",
        expects="delivered-after-ack accepted-twice passed-over share-state-back",
    ),
    mutation(
        "start_moves_past_acquired",
        "the start offset moves past a record that is still acquired",
        Edit(
            "broker/share/in_flight.py",
            "        return self.is_terminal and self.transition is None\n",
            "        return self.state is not AVAILABLE and self.transition is None\n",
        ),
        on="share",
        expects="share-passed-over passed-over delivered-after-ack crash",
    ),
    mutation(
        "released_is_archived",
        "KIP-932: a record that a member has released is not delivered again",
        Edit(
            _WINDOW,
            "    AcknowledgeType.RELEASE: AVAILABLE,\n",
            "    AcknowledgeType.RELEASE: ARCHIVED,\n",
        ),
        on="share",
        expects="passed-over",
    ),
    mutation(
        "expired_locks_not_returned",
        "KIP-932: records whose lock has ended are not delivered again",
        Edit(
            _WINDOW,
            "                self.has_available |= run.state is AVAILABLE\n",
            "                run.state = ARCHIVED\n",
        ),
        on="share",
        expects="passed-over",
    ),
    mutation(
        "lock_ends_in_transition",
        "KAFKA-17003 in kind: a lock ends while the acceptance of its record is being stored",
        Edit(
            _WINDOW,
            "                if run.state is not ACQUIRED or now_ms < run.lock_deadline_ms:\n",
            "                if run.is_settled or now_ms < run.lock_deadline_ms:\n",
        ),
        on="share",
        expects="delivered-after-ack accepted-twice delivered-too-often crash",
    ),
    mutation(
        "any_member_acknowledges",
        "KIP-932: a member may acknowledge records that another one has acquired",
        Edit(
            _WINDOW,
            "                if run.state is not ACQUIRED or run.member_id != member_id:\n",
            "                if run.state is not ACQUIRED:\n",
        ),
        on="share share_moves",
        expects="accepted-twice delivered-after-ack foreign-ack acquired-twice",
    ),
    mutation(
        "session_end_keeps_records",
        "KIP-932: the records of a member whose session has ended are held until their lock ends",
        Edit(
            _WINDOW,
            "                if run.state is ACQUIRED and run.member_id == member_id:\n",
            "                if run.state is ACQUIRED and not run.member_id:\n",
        ),
        on="share",
        equivalent="the lock of a record ends after share.record.lock.duration.ms anyway",
    ),
    mutation(
        "delivery_count_not_raised",
        "KIP-932: the count of deliveries does not grow",
        Edit(_ACQUISITION, "            part.delivery_count += 1\n", ""),
        on="share",
        expects="delivered-too-often",
    ),
    mutation(
        "count_lost_on_load",
        "KIP-932: a new leader starts the count of deliveries again",
        Edit(
            _WINDOW,
            "                RecordState(stored.delivery_state),\n"
            "                stored.delivery_count,\n",
            "                RecordState(stored.delivery_state),\n                0,\n",
        ),
        on="share",
        expects="delivered-too-often",
    ),
    mutation(
        "gaps_not_delivered",
        "KAFKA-18494: records between stored ones, that the last leader had delivered, are skipped",
        Edit(
            _WINDOW,
            "        return self.gap_start_offset != NO_GAP"
            " and self.gap_end_offset == self.end_offset\n",
            "        return False\n",
        ),
        on="share",
        expects="share-passed-over passed-over",
    ),
    mutation(
        "failed_store_not_undone",
        "a release that could not be stored leaves its records neither acquired nor available",
        Edit(
            _WINDOW,
            "                run.state = ACQUIRED\n"
            "                if now_ms < run.lock_deadline_ms:\n"
            "                    continue  # the member holds it again\n",
            "                if now_ms < run.lock_deadline_ms:\n                    continue\n",
        ),
        on="share_writes",
        expects="share-passed-over passed-over delivered-after-ack accepted-twice",
    ),
    mutation(
        "aborted_given_to_share_group",
        "KIP-932: a read_committed share group gets records of aborted transactions",
        Edit(
            _LEADER,
            "            if aborted:\n"
            "                acquired = without_aborted(window, acquired, fetched, aborted)\n",
            "",
        ),
        on="share_committed",
        expects="aborted-read read-aborted",
    ),
    mutation(
        "lost_state_write_succeeds",
        "KIP-932: a state write that failed in all its attempts counts as stored",
        Edit(
            "broker/coordinator/share_state/remote_persister.py",
            "            error = row if isinstance(row, ErrorCode) else ErrorCode.NONE\n"
            "            following",
            "            error = ErrorCode.NONE if row in _RETRIABLE else (\n"
            "                row if isinstance(row, ErrorCode) else ErrorCode.NONE\n"
            "            )\n"
            "            following",
        ),
        on="share_writes share_moves",
        expects="share-passed-over delivered-after-ack accepted-twice delivered-too-often",
    ),
    mutation(
        "combiner_drops_tail",
        "combining state batches loses the end of an older batch that the newer one covers in part",
        Edit(
            _STATE,
            "            pieces.append(old.part(new.last_offset + 1, old.last_offset))\n",
            "",
        ),
        on="share share_writes",
        expects="delivered-after-ack accepted-twice share-state-back",
    ),
    mutation(
        "snapshot_drops_batches",
        "a snapshot of a share partition's state has only the batches of its last update",
        Edit(
            _STATES,
            "            batches=combine(known.batches, batches, new_start),\n"
            "            create_timestamp_ms=now_ms,\n",
            "            batches=combine((), batches, new_start),\n"
            "            create_timestamp_ms=now_ms,\n",
        ),
        on="share share_committed",
        expects="share-state-back share-passed-over delivered-after-ack accepted-twice passed-over delivered-too-often",
    ),
    mutation(
        "lock_timer_not_restarted",
        "KIP-932: an acquisition lock's timer is not started again after it has fired",
        Edit(
            _LEADER,
            "        self._await_locks(self.window.next_deadline_ms)\n        if expired:\n",
            "        if expired:\n",
        ),
        on="share_admin",
        expects="lock-overdue",
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
        expects="lock-lost lock-overdue acquired-twice",
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
        on="share_gaps",
        expects="share-passed-over passed-over",
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
        expects="delivered-after-ack delivered-too-often accepted-twice share-passed-over",
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
        on="share_resets",
        expects="share-state-back share-state-kept",
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
        expects="share-state-pruned coordinator-differs",
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
        expects="share-state-back",
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
        expects="share-unasked",
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
        expects="lock-lost",
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
        expects="share-over-limit",
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
        expects="share-over-locks",
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
        expects="lock-differs",
    ),
    mutation(
        "share_latest_is_log_end",
        "KIP-932: a share group that begins at the latest offset begins above the high watermark",
        Edit(
            _LEADER,
            "            return replica.high_watermark\n        try:\n",
            "            return log.log_end_offset\n        try:\n",
        ),
        on="share_admin share_moves",
        expects="share-start-uncommitted",
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
        expects="unsettled-group",
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
        expects="unsettled-group",
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
        expects="share-idle",
    ),
    mutation(
        "renewal_not_applied",
        "KIP-1222: a renewed lock ends when it would have ended without",
        Edit(
            "broker/share/window.py",
            "                        run.lock_deadline_ms = now_ms + limits.lock_duration_ms\n",
            "                        continue\n",
        ),
        on="share_renewals",
        expects="lock-lost acquired-twice",
    ),
    mutation(
        "one_delivery_too_many",
        "KIP-932: a record is delivered once more than group.share.delivery.count.limit",
        Edit(
            "broker/share/window.py",
            "        if run.delivery_count >= limits.delivery_count:\n",
            "        if run.delivery_count > limits.delivery_count:\n",
        ),
        on="share_limited",
        expects="share-over-deliveries",
    ),
    mutation(
        "deleted_records_stay_available",
        "KAFKA-19859 in kind: records before a new log start stay available, so the start offset cannot pass them",
        Edit(
            "broker/share/window.py",
            "        self.archive(self.start_offset, log_start_offset - 1, AVAILABLE)\n",
            "",
        ),
        on="share_deleted",
        expects="share-over-locks",
    ),
    mutation(
        "settled_before_start_counted",
        "KIP-1226: the count of records that need no delivery includes those before the start offset",
        Edit(
            "broker/share/window.py",
            "            run.last_offset - max(run.first_offset, start) + 1\n",
            "            run.last_offset - run.first_offset + 1\n",
        ),
        on="share_cut",
        expects="share-overcounted",
    ),
    mutation(
        "pruned_before_commit",
        "KIP-932: a share coordinator prunes its log before the snapshot that allows it is committed",
        Edit(
            "broker/coordinator/share_state/share_state_shard.py",
            "        self.after_writes(committed, now_ms)\n",
            "        committed(ErrorCode.NONE, now_ms)\n",
        ),
        on="share_admin",
        expects="watermark-above-isr",
    ),
    mutation(
        "old_connection_ends_new_session",
        "KIP-932: when a connection closes, the member's session ends, though another connection has opened a new one",
        Edit(
            "broker/share/sessions.py",
            "        if self._sessions.get(key) is not session:\n",
            "        if key not in self._sessions:\n",
        ),
        on="share_limited",
        expects="share-session-lost",
    ),
    mutation(
        "gap_archives_next_record",
        "KIP-932: the first record after a gap that compaction left is archived with the gap",
        Edit(
            "broker/share/acquisition.py",
            "window.archive(fetch_offset, fetched[0].base_offset - 1, AVAILABLE)",
            "window.archive(fetch_offset, fetched[0].base_offset, AVAILABLE)",
        ),
        on="share_compacted",
        expects="share-passed-over",
    ),
    mutation(
        "altered_offsets_overwritten",
        "KIP-932: a state write of a leader that read before the offsets were altered is taken (the"
        " state epoch does not fence)",
        Edit(
            _STATES,
            "        if NO_EPOCH != state_epoch < entry.state_epoch:\n"
            "            return _refusal(ErrorCode.FENCED_STATE_EPOCH)\n"
            "        if not self._exists(partition):\n"
            "            return _refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)\n"
            "        record = self._changed(\n",
            "        if not self._exists(partition):\n"
            "            return _refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)\n"
            "        record = self._changed(\n",
        ),
        on="share_resets",
        expects="stale-share-write",
    ),
    mutation(
        "poison_record_takes_neighbours",
        "KIP-932 in kind: records before their last delivery are not delivered one by one, so that"
        " a bad record's neighbours are archived with it",
        Edit(
            _ACQUISITION,
            "is_last_delivery = limit > 2 and run.delivery_count == limit - 1",
            "is_last_delivery = limit > 2 and run.delivery_count == limit",
        ),
        on="share_limited",
        expects="share-last-together",
    ),
    mutation(
        "late_sharer_gets_nothing",
        "KIP-932: each member's share of the partitions is rounded up, so that earlier members keep"
        " all of them and a later one gets none",
        Edit(
            "broker/coordinator/share/assignor.py",
            "return [ceil(each * (index + 1)) - ceil(each * index) for index in range(members)]",
            "return [ceil(each) for _ in range(members)]",
        ),
        on="share_admin",
        expects="share-idle",
    ),
    mutation(
        "last_type_acknowledges_all",
        "KIP-932: of a batch with several types of acknowledgement, each type is applied to all"
        " records before it, too",
        Edit(
            "broker/share/window.py",
            "                yield first, offset, this\n                first = offset + 1\n",
            "                yield first, offset, this\n",
        ),
        on="share",
        expects="passed-over share-passed-over share-overcounted",
    ),
    mutation(
        "later_locks_not_awaited",
        "KIP-932 in kind: when the timer of the acquisition locks has fired it is not set for the"
        " locks that end later",
        Edit(
            "broker/share/share_partition.py",
            "        expired = self.window.expire_locks(self.limits, now_ms)\n"
            "        self._await_locks(self.window.next_deadline_ms)\n",
            "        expired = self.window.expire_locks(self.limits, now_ms)\n",
        ),
        on="share_moves share_renewals",
        expects="lock-overdue",
    ),
    mutation(
        "merged_write_unanswered",
        "KIP-932 in kind: of writes to the share coordinator that are sent together only the last"
        " one gets the outcome",
        Edit(
            "broker/coordinator/share_state/remote_persister.py",
            "            new.waiting = before.waiting + new.waiting\n",
            "",
        ),
        on="share_crowd share_writes",
        expects="no-reply not-at-rest passed-over",
    ),
    mutation(
        "share_fetch_outwaits_acknowledgements",
        "KIP-932 in kind: a parked ShareFetch whose records are there first is not told when its"
        " acknowledgements are stored",
        Edit(
            "broker/handlers/share/share_fetch.py",
            "        self._acknowledging.on_settled = self._on_acknowledged\n"
            "        if self._is_fetched:\n",
            "        if self._is_fetched:\n"
            "            self._acknowledging.on_settled = self._on_acknowledged\n",
        ),
        on="share_crowd share_moves",
        expects="no-reply",
    ),
)
