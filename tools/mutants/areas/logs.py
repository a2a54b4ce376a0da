"""Mutations of logs: tables of producers, indexes of transactions, retention.

Owns: these mutations.  Never: applies one.  Kafka: the issues and KIPs that they name.
"""

from __future__ import annotations

from typing import Final

from tools.mutants.mutation import Edit, mutation

_LOG: Final = "partition/log/log.py"
_PRODUCERS: Final = "partition/producers.py"
_READING: Final = "broker/serving/reading.py"
_REPLICA: Final = "partition/replica.py"

MUTATIONS: Final = (
    mutation(
        "producers_not_rebuilt",
        "the table of producers is not rebuilt when a log is truncated",
        Edit(
            _LOG,
            "            replay_from = self.producer_table.rewind(offset)\n"
            "            start = self.log_start_offset if replay_from is None else replay_from\n"
            "            for batch in self.batches_from(start):\n"
            "                if batch.producer_id >= 0:\n"
            "                    self.producer_table.update(batch)\n",
            "            pass\n",
        ),
        on="data",
        expects="producers-differ lost-write inconsistent-offsets",
    ),
    mutation(
        "producers_not_on_followers",
        "followers keep no table of producers, so that a new leader has none",
        Edit(
            _LOG,
            "            self._append(batch, now_ms, rules)\n"
            "            if batch.producer_id >= 0:\n"
            "                self.producers.update(batch)\n",
            "            self._append(batch, now_ms, rules)\n",
        ),
        on="data",
        expects="producers-differ duplicate",
    ),
    mutation(
        "producers_stale_snapshot",
        "a truncation goes back to a snapshot of producers that is too new",
        Edit(
            _PRODUCERS,
            "        while self._snapshots and self._snapshots[-1][0] > end_offset:\n",
            "        while self._snapshots and self._snapshots[-1][0] > end_offset + 500:\n",
        ),
        on="segments",
        expects="producers-differ lost-write duplicate",
    ),
    mutation(
        "sequence_wraps_wrong",
        "KAFKA-5793 in kind: a producer that repeats its second last batch is out of order",
        Edit(_PRODUCERS, "state.batches[1 - BATCHES_KEPT :]", "state.batches[:0]"),
        on="pipelined",
        expects="producers-differ lost-write nonmonotonic-send aborted-read duplicate",
    ),
    mutation(
        "duplicate_appended",
        "a batch that is sent again is appended again, if another one came in between",
        Edit(
            _PRODUCERS,
            "                    return known\n",
            "                    return known if known is state.batches[-1] else None\n",
        ),
        on="pipelined",
        expects="duplicate nonmonotonic-send producers-differ",
    ),
    mutation(
        "stale_epoch_accepted",
        "KIP-98: a batch of an older producer epoch is appended",
        Edit(
            _PRODUCERS,
            "    elif epoch < known_epoch:\n"
            "        return SequenceRefusal(\n"
            "            ErrorCode.INVALID_PRODUCER_EPOCH,\n"
            '            f"producer {batch.producer_id} has epoch {epoch},'
            ' but {known_epoch} was seen",\n'
            "        )\n",
            "    elif epoch < known_epoch:\n        pass\n",
        ),
        on="late_answers",
        expects="producer-epoch-back torn-transaction hanging-transaction aborted-read swapped-transaction"
        " processed-twice",
    ),
    mutation(
        "aborted_cut_by_log_start",
        "a log start inside of an aborted transaction takes it out of the index of aborted ones",
        Edit(
            _PRODUCERS,
            "if one.last_offset >= start_offset]",
            "if one.first_offset >= start_offset]",
        ),
        on="segments",
        expects="transactions-differ aborted-read",
    ),
    mutation(
        "aborted_index_truncated",
        "a truncation forgets the aborted transactions before the last snapshot",
        Edit(
            _PRODUCERS,
            "        self.aborted = [aborted for aborted in self.aborted"
            " if aborted.last_offset < offset]\n",
            "        self.aborted = []\n",
        ),
        on="transactions segments",
        expects="transactions-differ aborted-read torn-transaction",
    ),
    mutation(
        "ongoing_lost_on_rewind",
        "a truncation forgets that transactions are open, so that their records can be read",
        Edit(
            _PRODUCERS,
            "        self._ongoing = {producer_id: first_offset"
            " for first_offset, producer_id in sorted(ongoing)}\n",
            "        self._ongoing = {}\n",
        ),
        on="transactions segments",
        expects="transactions-differ aborted-read torn-transaction crash",
    ),
    mutation(
        "lso_ignores_unreplicated",
        "the last stable offset passes a transaction whose marker is not replicated yet",
        Edit(
            _PRODUCERS,
            "            self._unreplicated.append((first_offset, batch.last_offset))\n",
            "",
        ),
        on="transactions",
        equivalent="read_committed also ends at the high watermark, which is below such a marker",
    ),
    mutation(
        "lso_is_high_watermark",
        "KIP-98: the last stable offset is the high watermark, so that open transactions are read",
        Edit(
            _READING,
            "    if is_committed and producers is not None and producers.has_unstable:\n"
            "        end_offset = stable_offset\n",
            "",
        ),
        on="transactions",
        expects="aborted-read torn-transaction read-uncommitted",
    ),
    mutation(
        "aborted_range_too_short",
        "a fetch is told only of the aborted transactions whose marker it reads, too",
        Edit(
            _PRODUCERS,
            "            if aborted.first_offset < end_offset:\n",
            "            if aborted.last_offset < end_offset:\n",
        ),
        on="transactions",
        expects="aborted-read torn-transaction",
    ),
    mutation(
        "aborted_search_ends_early",
        "KAFKA-7021 in kind: the search in the index of aborted transactions ends one too early",
        Edit(
            _PRODUCERS,
            "            if aborted.last_stable_offset >= end_offset:\n                break\n",
            "            break\n",
        ),
        on="transactions",
        expects="aborted-read torn-transaction",
    ),
    mutation(
        "marker_of_old_coordinator",
        "KAFKA-5155 in kind: a marker of a deposed coordinator is appended",
        Edit(
            _PRODUCERS,
            "    if coordinator_epoch < state.coordinator_epoch:\n",
            "    if coordinator_epoch < -1:\n",
        ),
        on="late_markers",
        expects="coordinator-epoch-back torn-transaction swapped-transaction aborted-read producers-differ",
    ),
    mutation(
        "marker_of_v2_needs_no_epoch",
        "KIP-890: a late marker of the last transaction ends the next one",
        Edit(
            _PRODUCERS,
            "        is_valid = producer_epoch > known_epoch or is_repeated\n",
            "        is_valid = producer_epoch >= known_epoch\n",
        ),
        on="late_markers",
        expects="marker-of-last torn-transaction swapped-transaction aborted-read lost-write",
    ),
    mutation(
        "expired_with_open_transaction",
        "a silent producer expires although its transaction is open, which holds the last stable"
        " offset back for ever",
        Edit(
            _PRODUCERS,
            "            if state.transaction_first_offset is None\n"
            "            and now_ms - state.last_timestamp >= expiration_ms\n",
            "            if now_ms - state.last_timestamp >= expiration_ms\n",
        ),
        on="verification",
        expects="hanging-transaction transaction-overdue unseen transactions-differ",
    ),
    mutation(
        "verification_survives_marker",
        "KIP-890: a batch is appended after the marker that ended its transaction",
        Edit(
            _PRODUCERS,
            "        self.states[producer_id] = end_transaction(state, batch, marker)\n"
            "        self._verifications.pop(producer_id, None)\n",
            "        self.states[producer_id] = end_transaction(state, batch, marker)\n",
        ),
        on="late_markers",
        expects="batch-unverified hanging-transaction torn-transaction aborted-read",
    ),
    mutation(
        "no_verification",
        "KIP-890: the first batch of a transaction is appended without a question to the"
        " coordinator",
        Edit(
            "broker/handlers/data/produce.py",
            "        if not self.is_checked:\n            return True\n",
            "        return True\n",
        ),
        Edit(
            "broker/handlers/data/produce.py",
            "    if outcome.has_many_producers or not outcome.verified:\n",
            "    if outcome.has_many_producers or not outcome.verified or not is_v2:\n",
        ),
        on="transactions verification",
        expects="batch-unverified hanging-transaction torn-transaction aborted-read swapped-transaction",
    ),
    mutation(
        "retention_past_hw",
        "retention deletes segments above the high watermark",
        Edit(
            "partition/log/retention.py",
            "        if high_watermark < end_offset or not due(segment, next_base):\n",
            "        if not due(segment, next_base):\n",
        ),
        on="retention",
        expects="watermark-below-start lost-write committed-lost",
    ),
    mutation(
        "deletes_uncommitted_records",
        "KIP-107: a DeleteRecords up to the high watermark deletes up to the log end",
        Edit(
            "broker/handlers/data/delete_records.py",
            "            target = replica.high_watermark if offset == HIGH_WATERMARK else offset\n"
            "            if not 0 <= target <= replica.high_watermark:\n",
            "            target = replica.log.log_end_offset if offset == HIGH_WATERMARK else offset\n"
            "            if not 0 <= target <= replica.log.log_end_offset:\n",
        ),
        on="admin",
        expects="watermark-above-isr watermark-below-start truncated-committed committed-lost lost-write",
    ),
    mutation(
        "acks_below_min_isr",
        "acks=all is taken by a leader whose ISR is below min.insync.replicas",
        Edit(
            _REPLICA,
            "        if acks == -1 and len(self.isr) < self.min_isr:\n"
            "            return Appended(ErrorCode.NOT_ENOUGH_REPLICAS)\n",
            "",
        ),
        Edit(
            _REPLICA,
            "        if len(self.isr) < self.min_isr:\n            return False\n        maximal",
            "        maximal",
        ),
        Edit(
            _REPLICA,
            "        if len(self.maximal_isr) < self.min_isr:\n"
            "            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND\n",
            "",
        ),
        on="power data",
        expects="lost-write committed-lost committed-differs",
    ),
    mutation(
        "latest_ignores_isolation",
        "KIP-98: the latest offset for read_committed is the high watermark",
        Edit(
            "broker/handlers/data/list_offsets.py",
            "        return -1, end, replica.leader_epoch\n",
            "        end = replica.high_watermark if is_consumer else end\n"
            "        return -1, end, replica.leader_epoch\n",
        ),
        on="transactions",
        expects="answer-differs",
    ),
    mutation(
        "time_index_not_truncated",
        "a segment keeps the greatest timestamp of truncated records",
        Edit(
            "partition/log/segment.py",
            "        self.max_timestamp = max((batch.max_timestamp for batch in batches), "
            "default=NO_TIMESTAMP)\n",
            "",
        ),
        on="segments data",
        expects="times-differ answer-differs",
    ),
    mutation(
        "low_watermark_waits_for_dead",
        "KIP-107: DeleteRecords waits for replicas on fenced brokers",
        Edit(
            _REPLICA,
            "            if broker is not None and not broker.fenced:\n",
            "            if broker is not None:\n",
        ),
        on="settings",
        expects="deletion-held-back",
    ),
    mutation(
        "low_watermark_not_woken",
        "KIP-107: a follower's new log start does not complete DeleteRecords",
        Edit(
            _REPLICA,
            "            return self.advance_high_watermark(now_ms) or start_moved\n"
            "        return start_moved\n",
            "            return self.advance_high_watermark(now_ms)\n        return False\n",
        ),
        on="settings",
        expects="deletion-held-back",
    ),
    mutation(
        "retention_change_not_noticed",
        "a changed retention takes effect only when a replica changes for another reason",
        Edit(
            _REPLICA,
            '        """Put a changed topic config into force."""\n'
            "        self.changed[self] = None\n",
            '        """Put a changed topic config into force."""\n',
        ),
        on="settings",
        expects="retention-overdue",
    ),
    mutation(
        "only_last_batch_remembered",
        "KAFKA-5494: of a producer's last five batches only the newest is known as a duplicate",
        Edit(
            "partition/producers.py",
            "            for known in state.batches:\n",
            "            for known in state.batches[-1:]:\n",
        ),
        on="pipelined data",
        expects="duplicate nonmonotonic-send lost-write",
    ),
    mutation(
        "marker_keeps_batches",
        "KIP-890 in kind: the batches of a producer's last epoch are not forgotten at its marker, "
        "so that a batch sent again is taken for one of the last transaction",
        Edit(
            _PRODUCERS, "        state.batches if same_epoch else (),\n", "        state.batches,\n"
        ),
        on="transactions pipelined late_answers",
        expects="inconsistent-offsets",
    ),
    mutation(
        "next_epoch_unverified",
        "KIP-890: while a transaction is open in a partition, batches of the producer's next epoch "
        "are not verified",
        Edit(
            _PRODUCERS,
            "        if producer_id in self._ongoing and state.producer_epoch == producer_epoch:\n"
            "            return None\n",
            "        if producer_id in self._ongoing and state.producer_epoch <= producer_epoch:\n"
            "            return None\n",
        ),
        on="transactions verification late_markers",
        expects="batch-unverified transaction-overdue stuck-transaction",
    ),
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
        "compact_delete_never_expires",
        "KIP-71: retention is not applied to a topic that is compacted, too",
        Edit(
            "partition/log/retention.py",
            '    if "delete" in config.cleanup_policy:',
            '    if "compact" not in config.cleanup_policy:',
        ),
        on="retention",
        expects="retention-overdue",
    ),
    mutation(
        "segment_rolls_by_newest",
        "KIP-33 in kind: segment.ms counts from a segment's newest record, not from its first, so"
        " a log that is written to never rolls, and is neither deleted nor compacted",
        Edit(
            "partition/log/segment.py",
            "first_timestamp = batches[0].max_timestamp",
            "first_timestamp = self.max_timestamp",
        ),
        on="segments",
        expects="segment-overdue",
    ),
    mutation(
        "flush_messages_one_short",
        "flush.messages is off by one: with 1, the newest record is never flushed at once",
        Edit(
            "partition/log/log.py",
            "self.log_end_offset - self.flushed_offset >= rules.flush_messages",
            "self.log_end_offset - self.flushed_offset > rules.flush_messages",
        ),
        on="flushed",
        expects="flush-overdue",
    ),
    mutation(
        "time_lookup_past_watermark",
        "KIP-98, KIP-734: a look-up by time finds records above the high watermark, and above the"
        " last stable offset",
        Edit(
            "broker/handlers/data/list_offsets.py",
            "return NOWHERE if record is None or record[1] >= end else record",
            "return NOWHERE if record is None else record",
        ),
        on="transactions",
        expects="answer-differs",
    ),
    mutation(
        "producers_survive_full_truncation",
        "KIP-98 in kind: a log that is truncated fully keeps the states of its producers",
        Edit(
            "partition/log/log.py",
            "        if self.producer_table is not None:\n"
            "            self.producer_table.clear()\n",
            "",
        ),
        on="power segments controller",
        expects="producers-differ transactions-differ",
    ),
    mutation(
        "aborted_pruned_by_first_offset",
        "KIP-98 in kind: the index of aborted transactions is pruned by their first offsets, not by"
        " those of their markers",
        Edit(
            "partition/producers.py",
            "            self.aborted = [one for one in self.aborted if one.last_offset >= start_offset]",
            "            self.aborted = [one for one in self.aborted if one.first_offset >= start_offset]",
        ),
        on="replaced_controller segments admin",
        expects="transactions-differ aborted-read",
    ),
    mutation(
        "segment_time_not_rebuilt",
        "KIP-33 in kind: the greatest timestamp of a segment is not computed again when it has been"
        " cleaned or truncated",
        Edit(
            "partition/log/segment.py",
            "        self.max_timestamp = max((batch.max_timestamp for batch in batches), default=NO_TIMESTAMP)\n",
            "        if not batches:\n            self.max_timestamp = NO_TIMESTAMP\n",
        ),
        on="cleaned compaction",
        expects="times-differ segment-differs",
    ),
)
