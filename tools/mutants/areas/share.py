"""Mutations of share groups: share partitions at their leaders, their stored states.

Owns: these mutations.  Never: applies one.  Kafka: the issues and KIPs that they name.
"""

from __future__ import annotations

from typing import Final

from tools.mutants.mutation import Edit, mutation

_ACQUISITION: Final = "broker/share/acquisition.py"
_LEADER: Final = "broker/share/share_partition.py"
_STATE: Final = "broker/coordinator/share_state/state.py"
_STATES: Final = "broker/coordinator/share_state/share_states.py"
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
        expects="passed-over delivered-after-ack crash",
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
        expects="passed-over",
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
        expects="passed-over delivered-after-ack accepted-twice",
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
        expects="delivered-after-ack accepted-twice delivered-too-often",
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
        expects="delivered-after-ack accepted-twice passed-over delivered-too-often",
    ),
)
