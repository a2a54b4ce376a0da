"""Fresh mutations of transactions and groups, written before anybody had looked whether they show.

Owns: these mutations.  Never: applies one.  Kafka: the issues and KIPs that they name.
"""

from __future__ import annotations

from typing import Final

from tools.mutants.mutation import Edit, mutation

_CLASSIC: Final = "broker/coordinator/classic_group.py"
_CLASSIC_MEMBERS: Final = "broker/coordinator/classic_members.py"
_CONSUMER: Final = "broker/coordinator/consumer/group.py"
_GROUP_SHARD: Final = "broker/coordinator/shard.py"
_LOG_SHARD: Final = "broker/coordinator/log_shard.py"
_MARKERS: Final = "broker/coordinator/transactions/markers.py"
_MODERN: Final = "broker/coordinator/modern/group.py"
_OFFSETS: Final = "broker/coordinator/offsets.py"
_PRODUCERS: Final = "partition/producers.py"
_STREAMS: Final = "broker/coordinator/streams/group.py"
_TRANSACTION: Final = "broker/coordinator/transactions/transaction.py"

MUTATIONS: Final = (
    mutation(
        "timeout_since_last_partition",
        "the timeout of a transaction counts from its last change, not from its start",
        Edit(
            _TRANSACTION,
            "known.start_ms + known.timeout_ms < now_ms",
            "known.last_update_ms + known.timeout_ms < now_ms",
        ),
        on="transactions late_answers outlived",
    ),
    mutation(
        "kip890_repeated_end_refused",
        "KIP-890 in kind: an EndTxn that is sent again, because its answer was lost, is taken for "
        "the end of a transaction that is not open",
        Edit(
            _TRANSACTION,
            "    if is_bumped or is_overflown:\n        same",
            "    if is_overflown:\n        same",
        ),
        on="transactions late_answers",
    ),
    mutation(
        "kip890_empty_abort_refused",
        "KIP-890 in kind: the abort of a transaction of which only the client knows is refused",
        Edit(
            _TRANSACTION,
            "    if state is not ONGOING and is_commit:\n",
            "    if state is not ONGOING:\n",
        ),
        on="transactions late_answers",
    ),
    mutation(
        "marker_for_unknown_partition_written",
        "a marker counts as written if the leader does not know the partition yet",
        Edit(
            _MARKERS,
            "                    if error is ErrorCode.NONE:\n",
            "                    if error in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):"
            "\n",
        ),
        on="transactions late_markers flapping",
    ),
    mutation(
        "deleted_topic_blocks_completion",
        "KAFKA-5415 in kind: markers for a deleted topic are waited for, for ever",
        Edit(
            _MARKERS,
            "                sending.left.discard(partition)  # the topic was deleted\n",
            "                has_unknown = True\n",
        ),
        on="transactions late_markers admin",
    ),
    mutation(
        "marker_keeps_batches",
        "KIP-890 in kind: the batches of a producer's last epoch are not forgotten at its marker, "
        "so that a batch sent again is taken for one of the last transaction",
        Edit(
            _PRODUCERS, "        state.batches if same_epoch else (),\n", "        state.batches,\n"
        ),
        on="transactions pipelined late_answers",
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
    ),
    mutation(
        "leader_epoch_not_committed",
        "KIP-320: the leader epoch of a committed offset is not stored",
        Edit(
            _OFFSETS,
            "        leader_epoch=commit.committed_leader_epoch,\n",
            "        leader_epoch=-1,\n",
        ),
        on="groups commits",
    ),
    mutation(
        "pending_beats_later_commit",
        "KIP-447: offsets of a transaction take effect though the group has committed later ones "
        "outside of it",
        Edit(
            _OFFSETS,
            "            if record.key in offsets:\n                offsets[record.key] = None\n",
            "            if record.committed is None and record.key in offsets:\n"
            "                offsets[record.key] = None\n",
        ),
        on="transactions commits groups",
    ),
    mutation(
        "deleted_group_keeps_offsets",
        "DeleteGroups deletes the group, but not its offsets",
        Edit(
            _GROUP_SHARD,
            "        records = [*self.offsets.tombstones(group.group_id), *group.tombstones()]\n",
            "        records = group.tombstones()\n",
        ),
        on="admin groups commits",
    ),
    mutation(
        "regex_subscription_not_counted",
        "KIP-848 in kind: offsets of topics to which members subscribe by a regular expression "
        "expire",
        Edit(
            _CONSUMER,
            "        return any(topic in one.topics for one in self.regexes.values())\n",
            "        return False\n",
        ),
        on="expiry groups admin",
    ),
    mutation(
        "static_member_back_while_syncing",
        "KIP-345 in kind: a static member that is back while the leader assigns takes its old "
        "place without a rebalance",
        Edit(
            _CLASSIC,
            "        if self.state is not STABLE:\n            self._note_replaced",
            "        if self.state is PREPARING_REBALANCE:\n            self._note_replaced",
        ),
        on="groups late_members flapping",
    ),
    mutation(
        "subscription_change_ignored_while_syncing",
        "a member that joins with other topics while the leader assigns is answered as if it had "
        "repeated its request",
        Edit(_CLASSIC, "        if (completing and same) or (", "        if completing or ("),
        on="groups late_members flapping",
    ),
    mutation(
        "leader_joins_without_rebalance",
        "a leader that joins again, because the topics have changed, is answered without a "
        "rebalance",
        Edit(
            _CLASSIC,
            "(self.state is STABLE and same and not is_leader)",
            "(self.state is STABLE and same)",
        ),
        on="groups resized",
    ),
    mutation(
        "static_members_lost_on_load",
        "KIP-345 in kind: a new coordinator does not know that members are static",
        Edit(
            _CLASSIC_MEMBERS,
            "            instance_id=saved.group_instance_id,\n",
            "            instance_id=None,\n",
        ),
        on="groups flapping",
    ),
    mutation(
        "group_max_size_exceeded",
        "group.max.size: one more member than that may join a stable group",
        Edit(
            _CLASSIC,
            "        return member is not None or len(self.roster.members) < max_size\n",
            "        return member is not None or len(self.roster.members) <= max_size\n",
        ),
        on="groups refused_groups evictions late_members",
    ),
    mutation(
        "new_partitions_unnoticed",
        "KIP-848: once a group has looked at its topics' metadata, it does not look again",
        Edit(
            _MODERN,
            "        return offset == self.broker.image.offset and epoch <= self.epoch\n",
            "        return offset <= self.broker.image.offset and epoch <= self.epoch\n",
        ),
        on="resized groups",
    ),
    mutation(
        "revocation_timer_lost_on_load",
        "KIP-848: a new coordinator does not limit the time of members that must revoke",
        Edit(
            _MODERN,
            "            self.start_session(member_id, now_ms)\n"
            "            self.watch_rebalance(member, now_ms)\n",
            "            assert member is not None\n"
            "            self.start_session(member_id, now_ms)\n",
        ),
        on="groups late_members flapping",
    ),
    mutation(
        "stale_member_reads_offsets",
        "KIP-848: OffsetFetch is answered whatever member epoch it names",
        Edit(
            _CONSUMER,
            "        return ErrorCode.NONE if epoch == member.epoch else _stale(member)\n",
            "        return ErrorCode.NONE if epoch <= member.epoch else _stale(member)\n",
        ),
        on="groups late_members commits",
    ),
    mutation(
        "answer_without_records_at_once",
        "a decision without records is answered though earlier ones are not committed yet",
        Edit(
            _LOG_SHARD,
            "        if not decision.records:\n            self.after_writes(settled, now_ms)\n",
            "        if not decision.records:\n            settled(ErrorCode.NONE, now_ms)\n",
        ),
        on="groups flapping share streams",
    ),
    mutation(
        "load_ends_at_watermark",
        "KAFKA-9807 in kind: a new coordinator loads up to its watermark, which lags",
        Edit(
            _LOG_SHARD,
            "        while offset < log.log_end_offset:\n"
            "            batches = log.read(offset, self.load_bytes, log.log_end_offset, True)\n",
            "        while offset < replica.high_watermark:\n"
            "            batches = log.read(offset, self.load_bytes, replica.high_watermark, True)\n",
        ),
        on="groups transactions flapping commits",
    ),
    mutation(
        "classic_member_not_told",
        "KIP-848: a classic member of a consumer group is not told that the partition which it "
        "waits for is free",
        Edit(
            "broker/coordinator/consumer/classic_side.py",
            "        return not any(group.is_taken(*one) for one in awaited)\n",
            "        return not awaited\n",
        ),
        on="groups late_members",
    ),
    mutation(
        "streams_commit_of_earlier_tenure",
        "KIP-1071, KIP-1251: a commit with an older epoch counts though the member got the task "
        "only after that epoch",
        Edit(
            _STREAMS,
            "        is_fenced = since is None or committer.generation < since\n",
            "        is_fenced = since is None\n",
        ),
        on="streams",
    ),
    mutation(
        "offsets_outlive_topic",
        "the offsets of a deleted topic stay",
        Edit(
            _GROUP_SHARD,
            "        if tombstones:\n            self.append(tombstones, ignore_outcome, now_ms)\n",
            "        assert all(one.committed is None for one in tombstones)\n",
        ),
        on="admin groups commits",
    ),
)
