"""Mutations of transactions: their coordinator, its log, its markers, offsets in transactions.

Owns: these mutations.  Never: applies one.  Kafka: the issues and KIPs that they name.
"""

from __future__ import annotations

from typing import Final

from tools.mutants.mutation import Edit, mutation

_COORDINATOR: Final = "broker/coordinator/transactions/coordinator.py"
_LOG: Final = "broker/coordinator/transactions/transaction_log.py"
_LOG_SHARD: Final = "broker/coordinator/log_shard.py"
_MARKERS: Final = "broker/coordinator/transactions/markers.py"
_OFFSETS: Final = "broker/coordinator/offsets.py"
_SHARD: Final = "broker/coordinator/transactions/transaction_shard.py"
_GROUP_SHARD: Final = "broker/coordinator/shard.py"
_TRANSACTION: Final = "broker/coordinator/transactions/transaction.py"

_UNGUARDED: Final = Edit(
    "broker/coordinator/coordinator.py",
    "        if guard is not None and (\n"
    "            replica is None or not _may_append(replica.log.producers, producer, guard)\n"
    "        ):\n",
    "        if guard is not None and replica is None:\n",
)
"""Offsets are appended whatever has become of their verification."""

MUTATIONS: Final = (
    mutation(
        "markers_not_resumed",
        "KAFKA-6042 in kind: a new coordinator does not send the markers of decided transactions",
        Edit(
            _SHARD,
            "            if transaction.is_prepared:\n"
            "                self._markers.start(transaction, self.coordinator_epoch, now_ms)\n\n"
            "    def forget",
            "            assert transaction is not None\n\n    def forget",
        ),
        on="transactions",
        expects="transaction-overdue stuck-transaction hanging-transaction",
    ),
    mutation(
        "marker_retry_forgotten",
        "markers whose request had no answer are not sent again",
        Edit(
            _MARKERS,
            "        elif sending.left - sending.in_flight:\n"
            "            self._retry(sending, now_ms)\n",
            "        elif body is not None and sending.left - sending.in_flight:\n"
            "            self._retry(sending, now_ms)\n",
        ),
        on="transactions",
        expects="transaction-overdue stuck-transaction hanging-transaction not-at-rest",
    ),
    mutation(
        "marker_error_is_success",
        "a marker that its leader has refused counts as written",
        Edit(
            _MARKERS,
            "                    if error is ErrorCode.NONE:\n",
            "                    if error not in _DROPS_ALL:\n",
        ),
        on="transactions",
        expects="hanging-transaction torn-transaction swapped-transaction lost-write",
    ),
    mutation(
        "marker_to_unknown_leader_dropped",
        "KAFKA-5251 in kind: a partition without a leader gets no marker",
        Edit(
            _MARKERS,
            "                has_unknown = True\n            else",
            "                sending.left.discard(partition)\n            else",
        ),
        on="transactions",
        expects="hanging-transaction torn-transaction transaction-overdue",
    ),
    mutation(
        "marker_of_wrong_epoch",
        "markers carry the epoch that the coordinator had when it was elected first",
        Edit(
            _MARKERS,
            "            coordinator_epoch=sending.coordinator_epoch,\n",
            "            coordinator_epoch=0,\n",
        ),
        on="transactions late_markers",
        expects="marker-undecided hanging-transaction transaction-overdue stuck-transaction not-at-rest",
    ),
    mutation(
        "decision_before_commit",
        "KAFKA-5132 in kind: markers are sent before the decision is committed",
        Edit(
            _SHARD,
            "        self.pending[record.transactional_id] = record\n",
            "        self.pending[record.transactional_id] = record\n"
            "        decided = record.transaction\n"
            "        if decided is not None and decided.is_prepared:\n"
            "            self._markers.start(decided, self.coordinator_epoch, now_ms)\n",
        ),
        on="transactions",
        expects="marker-undecided swapped-transaction torn-transaction aborted-read hanging-transaction lost-write",
    ),
    mutation(
        "answer_before_commit",
        "EndTxn is answered when the decision is in the log, not when it is committed",
        Edit(
            _COORDINATOR,
            "            shard.write(self._result(shard, change, decision), on_answer, now_ms)\n",
            "            result = self._result(shard, change, decision)\n"
            "            shard.write(result, ignore_answer, now_ms)\n"
            "            on_answer(result.response, now_ms)\n",
        ),
        on="transactions",
        expects="ended-otherwise swapped-transaction torn-transaction lost-write aborted-read hanging-transaction",
    ),
    mutation(
        "timeout_ignores_pending",
        "KAFKA-6975 in kind: a timed out transaction is aborted while its commit is written",
        Edit(
            _COORDINATOR,
            "        if change.transactional_id in shard.pending:\n",
            "        if change.transactional_id in shard.pending and change.abort_reason is None:\n",
        ),
        on="transactions",
        expects="crash swapped-transaction torn-transaction",
    ),
    mutation(
        "overdue_not_aborted",
        "KIP-98: transactions that have timed out are not aborted",
        Edit(
            _COORDINATOR,
            "                if t.is_timed_out(transaction, now_ms):\n",
            "                if t.is_timed_out(transaction, now_ms) and not transaction.partitions:\n",
        ),
        on="transactions",
        expects="transaction-overdue hanging-transaction not-at-rest",
    ),
    mutation(
        "init_does_not_abort",
        "KIP-98: a new producer of a transactional id takes over the open transaction",
        Edit(
            _TRANSACTION,
            "    if known.state is ONGOING:\n"
            "        return fence(known, server_version, new_producer_id, now_ms)\n",
            "",
        ),
        on="transactions",
        expects="hanging-transaction torn-transaction swapped-transaction transaction-overdue",
    ),
    mutation(
        "init_keeps_epoch",
        "KIP-98: a new producer of a transactional id gets the epoch of the old one",
        Edit(
            _TRANSACTION,
            "        return replace(started, producer_epoch=epoch + 1,"
            " last_producer_epoch=NO_PRODUCER_EPOCH)\n",
            "        return replace(started, last_producer_epoch=NO_PRODUCER_EPOCH)\n",
        ),
        on="transactions",
        expects="torn-transaction swapped-transaction aborted-read lost-write duplicate"
        " nonmonotonic-send",
    ),
    mutation(
        "commit_of_aborted_acked",
        "KAFKA-9144 in kind: a repeated commit of a transaction that was aborted is confirmed",
        Edit(
            _TRANSACTION,
            "    if is_bumped or is_overflown:\n"
            "        same = known.is_commit == is_commit\n"
            "        return RetriedRequest(known.next_identity)"
            " if same else ErrorCode.INVALID_TXN_STATE\n",
            "    if is_bumped or is_overflown:\n"
            "        return RetriedRequest(known.next_identity)\n",
        ),
        on="transactions",
        expects="ended-otherwise swapped-transaction torn-transaction lost-write",
    ),
    mutation(
        "commit_of_aborted_acked_v1",
        "the same for clients with transactions of version 1",
        Edit(
            _TRANSACTION,
            "    if known.state is EMPTY or known.is_commit != is_commit:\n",
            "    if known.state is EMPTY:\n",
        ),
        on="late_markers",
        expects="ended-otherwise swapped-transaction torn-transaction lost-write",
    ),
    mutation(
        "fenced_producer_ends",
        "KIP-98: the end of a transaction is taken from a fenced producer of version 1",
        Edit(
            _TRANSACTION,
            "    if known.producer_epoch != producer.producer_epoch:\n"
            "        return ErrorCode.PRODUCER_FENCED\n"
            "    return ErrorCode.NONE\n",
            "    if known.producer_epoch < producer.producer_epoch:\n"
            "        return ErrorCode.PRODUCER_FENCED\n"
            "    return ErrorCode.NONE\n",
        ),
        on="transactions",
        expects="torn-transaction swapped-transaction aborted-read lost-write hanging-transaction"
        " duplicate",
    ),
    mutation(
        "fence_without_bump",
        "KAFKA-8803 in kind: the abort of an overdue transaction does not bump the epoch",
        Edit(
            _TRANSACTION,
            "    if server_version >= FIRST_OF_V2:\n"
            "        return _prepare_v2(known, False, server_version, new_producer_id, now_ms)\n"
            "    return replace(\n"
            "        _prepare(known, False, 0, now_ms),\n"
            "        producer_epoch=min(_MAX_EPOCH, known.producer_epoch + 1),\n",
            "    return replace(\n"
            "        _prepare(known, False, 0, now_ms),\n"
            "        producer_epoch=known.producer_epoch,\n",
        ),
        on="transactions",
        expects="torn-transaction swapped-transaction aborted-read hanging-transaction lost-write"
        " fenced-alone",
    ),
    mutation(
        "bump_on_every_try",
        "KAFKA-10813 in kind: a repeated InitProducerId gets one more epoch, so that the producer"
        " is fenced by itself",
        Edit(
            _TRANSACTION,
            "        return started  # the producer asks again, because the answer was lost\n",
            "        return ErrorCode.PRODUCER_FENCED\n",
        ),
        on="late_markers",
        expects="fenced-alone",
    ),
    mutation(
        "partitions_lost_in_log",
        "KAFKA-9274 in kind: the log of transactions keeps only one partition of each topic",
        Edit(
            _LOG,
            "            for partition in topic.partition_ids\n        ),",
            "            for partition in topic.partition_ids[:1]\n        ),",
        ),
        on="transactions late_answers",
        expects="coordinator-differs hanging-transaction torn-transaction transaction-overdue",
    ),
    mutation(
        "start_time_lost_in_log",
        "a new coordinator counts the timeout of a transaction from its last change for ever",
        Edit(
            _LOG,
            "        start_ms=value.transaction_start_timestamp_ms,\n",
            "        start_ms=value.transaction_last_update_timestamp_ms + 3_600_000,\n",
        ),
        on="transactions",
        expects="coordinator-differs transaction-overdue hanging-transaction not-at-rest",
    ),
    mutation(
        "concurrent_not_refused",
        "KAFKA-5415 in kind: partitions are added while the markers of the last transaction are"
        " on their way",
        Edit(
            _TRANSACTION,
            "    if known.is_prepared:\n"
            "        return ErrorCode.CONCURRENT_TRANSACTIONS\n"
            "    if known.state is ONGOING and partitions <= known.partitions:\n",
            "    if known.state is ONGOING and partitions <= known.partitions:\n",
        ),
        on="transactions",
        expects="coordinator-differs batch-unverified torn-transaction hanging-transaction swapped-transaction transaction-overdue"
        " aborted-read stuck-transaction",
    ),
    mutation(
        "aborted_offsets_applied",
        "the offsets of an aborted transaction are applied",
        Edit(_OFFSETS, "if record is not None and is_commit]", "if record is not None]"),
        on="transactions",
        expects="coordinator-differs never-processed committed-offset-back lost-write",
    ),
    mutation(
        "pending_offsets_lost_on_load",
        "KAFKA-5231 in kind: a new coordinator forgets the offsets of open transactions",
        Edit(
            _GROUP_SHARD,
            "            if batch.is_transactional:\n"
            "                self._apply_pending(batch.producer_id, record)\n",
            "            if batch.is_transactional:\n                continue\n",
        ),
        on="transactions",
        expects="coordinator-differs processed-twice committed-offset-back",
    ),
    mutation(
        "kafka17507_answered_at_append",
        "KAFKA-17507: the group coordinator answers a marker before it is committed and its"
        " offsets are applied",
        Edit(
            _GROUP_SHARD,
            "        self.append_batch(batch, apply, settled, now_ms)\n\n    def _apply_pending(",
            "        if self.append_batch(batch, apply, ignore_outcome, now_ms):\n"
            "            settled(ErrorCode.NONE, now_ms)\n"
            "        else:\n"
            "            settled(ErrorCode.NOT_COORDINATOR, now_ms)\n\n    def _apply_pending(",
        ),
        on="transactions late_answers",
        expects="marker-before-commit",
    ),
    mutation(
        "completion_not_retried",
        "CompleteCommit is not written again after a refused write",
        Edit(
            _SHARD,
            "                self._markers.complete_later(prepared, at_ms)\n                return\n",
            "                return\n",
        ),
        on="late_verifications",
        expects="transaction-overdue stuck-transaction",
    ),
    mutation(
        "txn_offsets_after_marker",
        "KIP-890: offsets of a transaction are appended after the marker that ended it",
        _UNGUARDED,
        on="late_verifications",
        expects="batch-unverified",
    ),
    mutation(
        "zombie_offsets_appended",
        "the same, and the epoch of a producer that commits offsets is not checked",
        _UNGUARDED,
        Edit(
            "partition/log/log.py",
            "        if batch.producer_epoch >= known_epoch:\n            return None\n",
            "        if batch.producer_epoch >= known_epoch or batch.base_sequence < 0:\n"
            "            return None\n",
        ),
        on="late_verifications",
        expects="producer-epoch-back batch-unverified",
    ),
    mutation(
        "offsets_not_unstable",
        "KIP-447: offsets that an open transaction may change are read as if they were stable",
        Edit(
            _OFFSETS,
            "        return frozenset((topic, index) for group, topic, index in keys"
            " if group == group_id)\n",
            "        return frozenset((topic, index) for group, topic, index in keys"
            " if group != group_id)\n",
        ),
        on="late_answers",
        expects="unstable-offset processed-twice committed-offset-back",
    ),
    mutation(
        "stale_txn_member_commits",
        "KIP-447: offsets of a processor that has left its group are taken",
        Edit(
            "broker/coordinator/classic_group.py",
            "        error = self.roster.check_member(committer.member_id, committer.instance_id,"
            " generation)\n"
            "        if error is not ErrorCode.NONE:\n"
            "            return error\n",
            "        error = self.roster.check_member(committer.member_id, committer.instance_id,"
            " generation)\n"
            "        if committer.is_in_transaction:\n"
            "            return ErrorCode.NONE\n"
            "        if error is not ErrorCode.NONE:\n"
            "            return error\n",
        ),
        on="late_answers",
        expects="stale-commit processed-twice committed-offset-back never-processed",
    ),
    mutation(
        "refused_write_applied",
        "a coordinator's write that its log has refused takes effect later",
        Edit(
            _LOG_SHARD,
            "        if error not in _MAY_BE_IN_LOG:\n"
            "            write.is_refused = True\n"
            "            self._writes = deque(other for other in self._writes"
            " if other is not write)\n",
            "        if error not in _MAY_BE_IN_LOG:\n            write.is_refused = True\n",
        ),
        on="late_answers",
        expects="coordinator-differs crash torn-transaction committed-offset-back hanging-transaction not-at-rest"
        " no-reply transaction-overdue livelock",
    ),
    mutation(
        "start_time_of_last_transaction",
        "a transaction keeps the start time of the producer's first one, and is aborted too early",
        Edit(
            _TRANSACTION,
            "        partitions=known.partitions | partitions,\n"
            "        start_ms=known.start_ms if known.state is ONGOING else now_ms,\n",
            "        partitions=known.partitions | partitions,\n"
            "        start_ms=known.start_ms if known.start_ms != NO_TIME else now_ms,\n",
        ),
        on="long_transactions",
        expects="fenced-alone transaction-overdue",
    ),
    mutation(
        "markers_resumed_too_early",
        "a new coordinator sends the markers of decisions in its log that are not committed",
        Edit(
            _SHARD,
            "        self.when_loaded(self._resume_markers, now_ms)\n",
            "        self._resume_markers(now_ms)\n",
        ),
        on="transactions late_answers",
        expects="marker-undecided",
    ),
    mutation(
        "timed_out_write_dropped",
        "a coordinator's write that was late never takes effect, though its log has it",
        Edit(_LOG_SHARD, "        if error not in _MAY_BE_IN_LOG:\n", "        if error:\n"),
        on="late_answers",
        expects="coordinator-differs transaction-overdue hanging-transaction committed-offset-back stuck-transaction"
        " torn-transaction swapped-transaction processed-twice",
    ),
    mutation(
        "timeout_since_last_partition",
        "the timeout of a transaction counts from its last change, not from its start",
        Edit(
            _TRANSACTION,
            "known.start_ms + known.timeout_ms < now_ms",
            "known.last_update_ms + known.timeout_ms < now_ms",
        ),
        on="long_transactions",
        expects="transaction-overdue",
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
        on="late_answers long_transactions",
        expects="producer-refused",
    ),
    mutation(
        "kip890_empty_abort_refused",
        "KIP-890 in kind: the abort of a transaction of which only the client knows is refused",
        Edit(
            _TRANSACTION,
            "    if state is not ONGOING and is_commit:\n",
            "    if state is not ONGOING:\n",
        ),
        on="late_answers long_transactions",
        expects="producer-refused",
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
        on="restarting",
        expects="hanging-transaction transaction-overdue not-at-rest",
    ),
    mutation(
        "deleted_topic_blocks_completion",
        "KAFKA-5415 in kind: markers for a deleted topic are waited for, for ever",
        Edit(
            _MARKERS,
            "                sending.left.discard(partition)  # the topic was deleted\n",
            "                has_unknown = True\n",
        ),
        on="long_transactions",
        expects="transaction-overdue stuck-transaction",
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
        on="outside",
        expects="coordinator-differs",
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
        "init_keeps_timeout",
        "KIP-98: a producer that takes over a transactional id keeps the transaction timeout of the"
        " producer before it",
        Edit(
            "broker/coordinator/transactions/transaction.py",
            "        state=EMPTY,\n        timeout_ms=timeout_ms,\n        partitions=frozenset(),",
            "        state=EMPTY,\n        partitions=frozenset(),",
        ),
        on="inherited",
        expects="timeout-outdated",
    ),
    mutation(
        "pending_offsets_expire",
        "KIP-211, KIP-447: an offset expires although an open transaction is about to replace it,"
        " and the tombstone takes the transaction's offset, too",
        Edit(
            "broker/coordinator/offsets.py",
            "                    since_ms is None\n"
            "                    or self.is_pending(group.group_id, topic, partition)\n",
            "                    since_ms is None\n",
        ),
        on="pending_offsets",
        expects="pending-expired",
    ),
    mutation(
        "verification_error_reaches_producer",
        "KIP-890 in kind: a Produce whose transaction could not be verified because the coordinator"
        " has moved is answered NOT_COORDINATOR, which producers do not retry",
        Edit(
            "broker/handlers/transactions/verification.py",
            "    ErrorCode.COORDINATOR_NOT_AVAILABLE,\n    ErrorCode.NOT_COORDINATOR,\n)",
            "    ErrorCode.COORDINATOR_NOT_AVAILABLE,\n)",
        ),
        on="inherited",
        expects="error-unexpected",
    ),
    mutation(
        "decided_transaction_expires",
        "KIP-98: a transactional id expires although its transaction is decided and lacks a marker,"
        " which then never comes",
        Edit(
            "broker/coordinator/transactions/transaction.py",
            "is_idle = known.state is not ONGOING and not known.is_prepared",
            "is_idle = known.state is not ONGOING",
        ),
        on="inherited",
        expects="transaction-forgotten",
    ),
    mutation(
        "open_transactions_unsorted",
        "after a truncation the open transactions are in the order of their producers, so that the"
        " last stable offset passes the oldest of them",
        Edit(
            "partition/producers.py",
            "for first_offset, producer_id in sorted(ongoing)}",
            "for first_offset, producer_id in ongoing}",
        ),
        on="flushed",
        expects="stable-above-open aborted-read",
    ),
    mutation(
        "timed_out_write_forgotten",
        "in kind: a coordinator's write that timed out counts as refused, although it is in the log"
        " and may be committed later",
        Edit(
            "broker/coordinator/log_shard.py",
            "(ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)",
            "(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,)",
        ),
        on="late_answers late_markers",
        expects="coordinator-differs transaction-overdue",
    ),
    mutation(
        "markers_for_deleted_topic",
        "KIP-98 in kind: the sender of markers waits for the leader of a partition whose topic was"
        " deleted",
        Edit(
            "broker/coordinator/transactions/markers.py",
            "                sending.left.discard(partition)  # the topic was deleted\n",
            "                has_unknown = True\n",
        ),
        on="long_transactions admin",
        expects="transaction-overdue",
    ),
    mutation(
        "empty_abort_keeps_epoch",
        "KIP-890 in kind: the abort of a transaction that never reached the coordinator is answered"
        " without a new epoch",
        Edit(
            "broker/coordinator/transactions/transaction.py",
            "    if state is not ONGOING and is_commit:\n"
            "        return ErrorCode.INVALID_TXN_STATE\n",
            "    if state is not ONGOING:\n"
            "        if is_commit:\n"
            "            return ErrorCode.INVALID_TXN_STATE\n"
            "        return RetriedRequest(known.next_identity)\n",
        ),
        on="verification takeovers late_verifications",
        expects="ended-otherwise coordinator-differs",
    ),
)
