"""Mutations written without a look at the rules (a blind round)."""

from __future__ import annotations

from typing import Final

from tools.mutants.mutation import Edit, mutation

MUTATIONS: Final = (
    # ---------------------------------------------------------------- data plane, controller
    mutation(
        "retention_bytes_one_more",
        "retention by size deletes one segment more, down to less than retention.bytes",
        Edit(
            "partition/log/retention.py",
            "        if excess < segment.size_bytes:\n",
            "        if excess <= 0:\n",
        ),
        on="sized",
        expects="retention-hasty",
    ),
    mutation(
        "time_lookup_before_log_start",
        "KIP-107: a look-up by time finds records that DeleteRecords has deleted",
        Edit(
            "partition/log/lookup.py",
            "if batch.max_timestamp < timestamp_ms or batch.last_offset < log_start_offset:",
            "if batch.max_timestamp < timestamp_ms:",
        ),
        Edit(
            "partition/log/lookup.py",
            "if record.timestamp >= timestamp_ms and record.offset >= log_start_offset:",
            "if record.timestamp >= timestamp_ms:",
        ),
        on="sized admin settings",
        expects="answer-differs",
    ),
    mutation(
        "newest_time_of_newest_segment",
        "KAFKA-16310 in kind: the greatest timestamp is looked for in the newest segment only",
        Edit(
            "partition/log/lookup.py",
            "newest = max(filled, key=lambda segment: segment.max_timestamp)",
            "newest = filled[-1]",
        ),
        on="sized",
        expects="answer-differs",
    ),
    mutation(
        "fetch_limit_per_partition",
        "KIP-74: the first batch of each partition is returned, whatever max.bytes is",
        Edit(
            "broker/handlers/data/fetch.py",
            "            is_first = not collected.size_bytes\n",
            "            is_first = True\n",
        ),
        on="portions",
        expects="fetch-over-limit",
    ),
    mutation(
        "rewound_table_not_copied",
        "a truncated table of producers and its snapshot are one dict, so a second truncation goes back to later states",
        Edit(
            "partition/producers.py",
            "        self.states = dict(states)\n",
            "        self.states = states\n",
        ),
        on="seesaw",
        expects="producers-differ",
    ),
    mutation(
        "epoch_of_log_start_forgotten",
        "KAFKA-8241 in kind: when records are deleted, the epoch in which the log now starts is forgotten",
        Edit(
            "partition/epochs.py",
            "self._set(self._epochs[index - 1 :], (start_offset, *self._starts[index:]))",
            "self._set(self._epochs[index:], self._starts[index:])",
        ),
        on="retention",
        expects="answer-differs epochs-differ",
    ),
    mutation(
        "producer_ids_repeat_after_failover",
        "KIP-730: the next producer id is kept in the controller's memory, so the next controller gives the same ids again",
        Edit(
            "controller/membership/producer_ids.py",
            "        self._metadata = metadata\n",
            "        self._metadata = metadata\n        self._next = 0\n",
        ),
        Edit(
            "controller/membership/producer_ids.py",
            "        start = image.next_producer_id\n",
            "        start = self._next\n",
        ),
        Edit(
            "controller/membership/producer_ids.py",
            "        end = start + PRODUCER_ID_BLOCK_SIZE\n",
            "        self._next = end = start + PRODUCER_ID_BLOCK_SIZE\n",
        ),
        on="newcomers",
        expects="producer-id-twice",
    ),
    mutation(
        "unsent_answer_counts",
        "KIP-219: an answer that was above the quota and not sent counts as if it had been",
        Edit(
            "broker/quotas/client_quotas.py",
            "        if api_key != ApiKey.PRODUCE and size_bytes:\n            self._use(CONSUMER_RATE, request, -size_bytes, now_ms)\n",
            "",
        ),
        on="quotas",
        expects="not-at-rest",
    ),
    mutation(
        "resigned_leader_confirms_deletion",
        "KIP-107: a leader that has resigned confirms DeleteRecords by its own log start",
        Edit(
            "broker/handlers/data/delete_records.py",
            "            if not replica.is_leader:\n",
            "            if replica.registration.leader < 0:\n",
        ),
        on="settings",
        expects="deletion-undone",
    ),
    mutation(
        "new_epoch_any_sequence",
        "KIP-360: a producer may begin a new epoch with any sequence",
        Edit(
            "partition/producers.py",
            "    elif first_sequence != 0 and known_epoch != NO_PRODUCER_EPOCH:\n",
            "    elif first_sequence < 0 and known_epoch != NO_PRODUCER_EPOCH:\n",
        ),
        on="pipelined",
        expects="sequence-gap",
    ),
    mutation(
        "never_quite_caught_up",
        "KIP-16 in kind: a follower counts as caught up only if it fetches from the log end, not if it has what was there at its last fetch",
        Edit(
            "partition/replica.py",
            "            follower.last_caught_up_ms = max(follower.last_caught_up_ms, follower.last_fetch_ms)\n",
            "            pass\n",
        ),
        on="slow_links",
        expects="isr-hasty",
    ),
    mutation(
        "registers_during_session",
        "KIP-631: a broker may register while the session of its last life is valid",
        Edit(
            "controller/membership/membership.py",
            "        if not same and existing is not None and self.sessions.is_valid(broker_id, now_ms):\n",
            "        if not same and existing is not None and self.sessions.is_valid(broker_id, now_ms) and existing.fenced:\n",
        ),
        on="data",
        expects="registered-early",
    ),
    # ---------------------------------------------------------------- transactions and groups
    mutation(
        "verified_without_partition",
        "KIP-890: any open transaction of a producer verifies a batch, whatever its partitions",
        Edit(
            "broker/coordinator/transactions/transaction.py",
            "    is_part = known.state is ONGOING and partition in known.partitions\n",
            "    is_part = known.state is ONGOING\n",
        ),
        on="takeovers verification",
        expects="verified-otherwise batch-unverified",
    ),
    mutation(
        "partitions_of_last_transaction_stay",
        "a transaction begins with the partitions of the last one, which get its marker, too",
        Edit(
            "broker/coordinator/transactions/transaction.py",
            "        next_producer_id=NO_PRODUCER_ID,\n        partitions=frozenset(),\n        last_update_ms=now_ms,\n",
            "        next_producer_id=NO_PRODUCER_ID,\n        last_update_ms=now_ms,\n",
        ),
        on="transactions",
        equivalent="the partitions of a transaction go when it is complete, so the next one begins"
        " without any",
    ),
    mutation(
        "recovering_zombie_is_welcome",
        "KIP-360: a producer of any older epoch may go on with a new epoch, and fences the newer one",
        Edit(
            "broker/coordinator/transactions/transaction.py",
            "        return started  # the producer asks again, because the answer was lost\n    return ErrorCode.PRODUCER_FENCED\n",
            "        return started  # the producer asks again, because the answer was lost\n    return replace(started, producer_epoch=epoch + 1, last_producer_epoch=epoch)\n",
        ),
        on="takeovers",
        expects="zombie-served",
    ),
    mutation(
        "client_version_lost_in_log",
        "KIP-890: the log of transactions does not say which protocol the client speaks",
        Edit(
            "broker/coordinator/transactions/transaction_log.py",
            "        client_transaction_version=transaction.client_version,\n",
            "",
        ),
        on="transactions",
        expects="coordinator-differs",
    ),
    mutation(
        "shortest_rebalance_timeout",
        "KIP-62: the join phase lasts for the shortest rebalance timeout of a member, not the longest",
        Edit(
            "broker/coordinator/classic_members.py",
            "return max((one.rebalance_timeout_ms for one in self.members.values()), default=0)",
            "return min((one.rebalance_timeout_ms for one in self.members.values()), default=0)",
        ),
        on="patience",
        expects="removed-early",
    ),
    mutation(
        "commit_is_no_heartbeat",
        "a commit does not extend the session of a classic member",
        Edit(
            "broker/coordinator/classic_group.py",
            "        self._extend_session(self.roster.members[committer.member_id], now_ms)\n        return ErrorCode.NONE\n",
            "        return ErrorCode.NONE\n",
        ),
        on="patience",
        expects="removed-early",
    ),
    mutation(
        "late_assignment_of_last_generation",
        "an assignment whose write was slow is given to the members of the next generation",
        Edit(
            "broker/coordinator/classic_group.py",
            "            if not completing or self.roster.generation != generation:\n",
            "            if not completing:\n",
        ),
        on="groups late_members",
        expects="coordinator-differs told-uncommitted",
    ),
    mutation(
        "kept_partition_gets_new_epoch",
        "KIP-1251: a member that keeps a partition has it only since its newest epoch",
        Edit(
            "broker/coordinator/consumer/reconcile.py",
            "        kept = {one: since for one, since in current.items() if one in target}\n",
            "        kept = {one: to.target_epoch for one in current if one in target}\n",
        ),
        on="late_members groups",
        expects="commit-refused",
    ),
    mutation(
        "regex_resolved_once",
        "KIP-848: topics that are created later do not match a member's regular expression",
        Edit(
            "broker/coordinator/consumer/group.py",
            "        return seen is None or any(one not in seen for one in self.broker.image.topic_names)\n",
            "        return seen is None\n",
        ),
        on="patterns",
        expects="topic-unmatched",
    ),
    mutation(
        "revocation_timer_survives",
        "KAFKA-17219 in kind: the time to give partitions up does not end when they are given up",
        Edit(
            "broker/coordinator/modern/group.py",
            "        if timeout_ms is None:\n            self.end_rebalance_timeout(member.member_id)\n        else:\n",
            "        if timeout_ms is not None:\n",
        ),
        Edit(
            "broker/coordinator/modern/group.py",
            "            if member is None or member.epoch != member_epoch:\n",
            "            if member is None:\n",
        ),
        on="patience groups",
        expects="removed-early",
    ),
    mutation(
        "standby_beside_active",
        "KIP-1071: a process gets the standby of a task that it has active",
        Edit(
            "broker/coordinator/streams/reconciliation.py",
            "            and (task in own.active or holders.active(task) != process_id)\n",
            "",
        ),
        on="streams",
    ),
    mutation(
        "shutdown_request_survives",
        "KIP-1071: an application that was shut down is told so when it starts again",
        Edit(
            "broker/coordinator/streams/group.py",
            "        if not self.members:\n            self.shutdown_requested_by = None\n",
            "",
        ),
        on="streams",
    ),
    # ---------------------------------------------------------------- share, compaction, moves
    mutation(
        "renewal_not_applied",
        "KIP-1222: a renewed lock ends when it would have ended without",
        Edit(
            "broker/share/window.py",
            "                        run.lock_deadline_ms = now_ms + limits.lock_duration_ms\n",
            "                        continue\n",
        ),
        on="share_admin",
        expects="acquired-twice",
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
)
