"""Mutations of replication: truncation, high watermark, ISR, fetching.

Owns: these mutations.  Never: applies one.  Kafka: the issues and KIPs that they name.
"""

from __future__ import annotations

from typing import Final

from tools.mutants.mutation import Edit, mutation

_EPOCHS: Final = "partition/epochs.py"
_FETCHER: Final = "broker/replication/fetcher.py"
_ISR: Final = "broker/replication/isr.py"
_LOG: Final = "partition/log/log.py"
_READING: Final = "broker/serving/reading.py"
_REPLICA: Final = "partition/replica.py"
_SESSIONS: Final = "broker/serving/sessions.py"
_FETCHERS: Final = "broker/replication/fetchers.py"
_PROPOSALS: Final = "controller/partitions/alter_partition.py"

_NOT_LEADER: Final = (
    "        if not self.is_leader:\n"
    "            return ErrorCode.NOT_LEADER_OR_FOLLOWER\n"
    "        if self.high_watermark < required_offset:\n"
)

MUTATIONS: Final = (
    mutation(
        "kip101_truncate_to_hw",
        "KIP-101: a follower truncates to its own high watermark, without a look at epochs",
        Edit(
            _FETCHERS,
            "        fetcher.follow(replica)\n",
            "        fetcher.follow(replica)\n"
            "        fetcher._truncate_to(replica, replica.high_watermark, replica.high_watermark)\n",
        ),
        Edit(
            _READING,
            "        diverging = _divergence(replica, wanted)\n",
            "        diverging = None\n",
        ),
        on="data",
        expects="truncated-committed committed-lost lost-write committed-differs",
    ),
    mutation(
        "kip279_unknown_epoch",
        "KIP-279: a leader that never had an epoch gives the end of an earlier one as that epoch's",
        Edit(
            _EPOCHS,
            "return (self._epochs[higher - 1] if higher else epoch), end_offset",
            "return epoch, end_offset",
        ),
        on="data",
        expects="committed-differs committed-lost",
    ),
    mutation(
        "kafka7164_missed_epoch",
        "KAFKA-7164: a new leader does not put its epoch into its epoch cache",
        Edit(
            _REPLICA,
            "        log.epochs.assign(registration.leader_epoch, log.log_end_offset)\n",
            "",
        ),
        on="data",
        expects="epochs-differ livelock committed-differs crash",
    ),
    mutation(
        "epochs_not_truncated",
        "the epoch cache keeps the epochs of truncated records",
        Edit(_LOG, "        self.epochs.truncate_from_end(offset)\n        if", "        if"),
        on="data",
        equivalent="the fetch after the truncation, at the log end, removes those epochs",
    ),
    mutation(
        "kip320_no_fencing",
        "KIP-320: a fetch of an older or newer leader epoch is answered",
        Edit(
            _REPLICA,
            "        if current_leader_epoch == self.leader_epoch or current_leader_epoch == -1:\n"
            "            return NO_ERROR\n",
            "        return NO_ERROR\n",
        ),
        on="data",
        expects="livelock committed-differs lost-write crash truncated-committed",
    ),
    mutation(
        "kip841_fenced_joins",
        "KIP-841: leader and controller let a fenced or leaving replica into the ISR",
        Edit(_PROPOSALS, "            or not registration.is_active\n", ""),
        Edit(
            _REPLICA,
            "broker is not None and broker.is_active and follower.broker_epoch",
            "broker is not None and follower.broker_epoch",
        ),
        on="data",
        expects="fenced-in-isr",
    ),
    mutation(
        "kip841_controller_only",
        "KIP-841: the controller alone lets a fenced or leaving replica into the ISR",
        Edit(_PROPOSALS, "            or not registration.is_active\n", ""),
        on="data controller",
        expects="fenced-in-isr",
    ),
    mutation(
        "kip903_any_epoch",
        "KIP-903: a replica joins the ISR by the fetches of its process before a restart",
        Edit(
            _PROPOSALS,
            "            or state.broker_epoch not in (_ANY_EPOCH, registration.epoch)\n",
            "",
        ),
        Edit(
            _REPLICA,
            "broker is not None and broker.is_active and"
            " follower.broker_epoch in (-1, broker.epoch)",
            "broker is not None and broker.is_active",
        ),
        on="outlived power controller",
        expects="isr-outdated committed-lost lost-write joined-lacking truncated-committed"
        " watermark-above-isr",
    ),
    mutation(
        "kip966_hw_below_min_isr",
        "KIP-966: the high watermark advances although the ISR is below min.insync.replicas",
        Edit(
            _REPLICA,
            "        if len(self.isr) < self.min_isr:\n            return False\n        maximal",
            "        maximal",
        ),
        on="data power",
        expects="committed-lost committed-differs lost-write",
    ),
    mutation(
        "kafka15021_hw_waits_ineligible",
        "KAFKA-15021: the high watermark waits for a caught-up replica that may not join the ISR",
        Edit(
            _REPLICA,
            "return self._is_eligible(follower) and not self._is_lagging(follower, end, now_ms)",
            "return not self._is_lagging(follower, end, now_ms)",
        ),
        on="data",
        expects="watermark-stalled",
    ),
    mutation(
        "hw_forgets_pending_shrink",
        "KIP-497: a member whose removal is only proposed no longer holds the high watermark back",
        Edit(
            _REPLICA,
            "return self.isr if proposal is None else proposal.maximal_isr",
            "return self.isr if proposal is None else proposal.isr",
        ),
        on="data controller",
        expects="watermark-above-isr committed-lost lost-write",
    ),
    mutation(
        "hw_counts_non_isr",
        "any min.insync.replicas replicas move the high watermark, whether in the ISR or not",
        Edit(
            _REPLICA,
            "        maximal_isr = self.maximal_isr\n"
            "        new = end = self.log.log_end_offset\n"
            "        for follower in self.followers.values():\n"
            "            if follower.log_end_offset < new and (\n"
            "                follower.broker_id in maximal_isr"
            " or self._about_to_join(follower, end, now_ms)\n"
            "            ):\n"
            "                new = follower.log_end_offset\n",
            "        ends = [each.log_end_offset for each in self.followers.values()]\n"
            "        ends = sorted([self.log.log_end_offset, *ends], reverse=True)\n"
            "        new = ends[min(len(ends), max(len(self.isr) - 1, self.min_isr, 1)) - 1]\n",
        ),
        on="data",
        expects="watermark-above-isr lost-write committed-lost",
    ),
    mutation(
        "stale_follower_progress",
        "a leader keeps what it knew of its followers when it led last",
        Edit(
            _REPLICA,
            "        self.followers = {}\n        self._keep_followers(now_ms)\n",
            "        self._keep_followers(now_ms)\n",
        ),
        Edit(
            _REPLICA,
            "        self.is_leader = False\n        self.followers = {}\n        return changed",
            "        self.is_leader = False\n        return changed",
        ),
        on="data",
        expects="progress-outdated truncated-committed watermark-above-isr committed-differs"
        " committed-lost",
    ),
    mutation(
        "hw_is_log_end_on_restart",
        "a restarted broker takes its log end for the high watermark, not the checkpoint",
        Edit(
            _REPLICA,
            "log.log_start_offset, min(log.high_watermark_checkpoint, log.log_end_offset)",
            "log.log_start_offset, log.log_end_offset",
        ),
        on="data",
        expects="committed-differs truncated-committed committed-lost",
    ),
    mutation(
        "kafka20634_ack_by_ex_leader",
        "KAFKA-20634: a deposed leader acks when its high watermark passes what it has truncated",
        Edit(_REPLICA, _NOT_LEADER, "        if self.high_watermark < required_offset:\n"),
        on="data",
        expects="lost-write ack-before-commit",
    ),
    mutation(
        "isr_joins_below_hw",
        "a follower joins the ISR without all records below the high watermark",
        Edit(
            _REPLICA,
            "        if follower.log_end_offset"
            " < max(self.high_watermark, self.leader_epoch_start_offset):\n"
            "            return None\n",
            "",
        ),
        on="data",
        expects="joined-lacking truncated-committed committed-lost watermark-above-isr",
    ),
    mutation(
        "kafka7128_epoch_start",
        "KAFKA-7128: a follower at the high watermark joins, though below the epoch's start",
        Edit(
            _REPLICA,
            "max(self.high_watermark, self.leader_epoch_start_offset)",
            "self.high_watermark",
        ),
        on="data controller",
        expects="joined-lacking truncated-committed committed-lost",
    ),
    mutation(
        "kafka17754_stale_append",
        "KAFKA-17754: a follower appends what it fetched in an earlier leader epoch",
        Edit(_FETCHER, "            and asked.leader_epoch == replica.leader_epoch\n", ""),
        Edit(
            _LOG,
            "            if batch.leader_epoch > leader_epoch_hint >= 0:\n                return\n",
            "",
        ),
        on="data",
        equivalent="one fetcher per leader: when the leader changes, the answer under way is"
        " dropped with its fetcher",
    ),
    mutation(
        "hw_below_start_delete",
        "a follower's log start moves past its high watermark when records are deleted",
        Edit(
            _REPLICA,
            "        log.advance_log_start_offset(offset)\n"
            "        self.high_watermark = max(self.high_watermark, offset)",
            "        log.advance_log_start_offset(offset)",
        ),
        Edit(
            _FETCHER,
            "replica.advance_log_start(min(log_start_offset, replica.high_watermark))",
            "replica.advance_log_start(min(log_start_offset, replica.log.log_end_offset))",
        ),
        on="retention",
        equivalent="what is deleted is always below a high watermark: a leader refuses any other"
        " target (delete_records.py), and a follower takes over its leader's high watermark, which"
        " is at or above the leader's log start, before that log start (fetcher.py, _append)",
    ),
    mutation(
        "kafka9491_full_truncation_hw",
        "KAFKA-9491: the high watermark stays when the whole log is dropped",
        Edit(
            _REPLICA,
            "        self.log.truncate_fully_and_start_at(offset)\n"
            "        self.high_watermark = offset",
            "        self.log.truncate_fully_and_start_at(offset)",
        ),
        on="retention power",
        expects="watermark-below-start watermark-above-end",
    ),
    mutation(
        "fetcher_forgets_partition",
        "a fetcher does not fetch a partition again after an error",
        Edit(
            _FETCHER,
            "            if key in self._replicas:\n"
            "                self.put(self._replicas[key])\n"
            "                self.send(now_ms)\n",
            "            self.send(now_ms)\n",
        ),
        on="data",
        expects="not-at-rest watermark-stalled",
    ),
    mutation(
        "session_survives_lost_answer",
        "KIP-227: a fetch session goes on after a lost answer, and its epoch is not checked",
        Edit(
            _FETCHER,
            "            if not self._is_unanswered:\n                self._restart_session()\n",
            "",
        ),
        Edit(
            _SESSIONS,
            "        if session.epoch != epoch:\n"
            "            return ErrorCode.INVALID_FETCH_SESSION_EPOCH\n",
            "",
        ),
        on="data",
        expects="crash livelock committed-differs not-at-rest",
    ),
    mutation(
        "kip497_partition_epoch",
        "KIP-497: the controller accepts a proposal of an older partition epoch",
        Edit(
            _PROPOSALS,
            "    if proposal.partition_epoch < partition.partition_epoch:\n"
            "        return ErrorCode.INVALID_UPDATE_VERSION\n",
            "",
        ),
        on="outlived data controller",
        expects="isr-outdated fenced-in-isr joined-lacking committed-lost lost-write",
    ),
    mutation(
        "commit_isr_stale",
        "KIP-497: a late answer about the ISR replaces newer metadata",
        Edit(
            _REPLICA,
            "        if registration.partition_epoch <= self.registration.partition_epoch:\n"
            "            return False\n",
            "",
        ),
        Edit(
            _ISR,
            "        if answer.partition_epoch < registration.partition_epoch:\n"
            "            return\n",
            "",
        ),
        on="data",
        equivalent="newer metadata voids the proposal, and its answer is then not looked at",
    ),
    mutation(
        "kafka12686_pending_forever",
        "KAFKA-12686: a proposal that the controller has refused stays pending",
        Edit(
            _REPLICA,
            "        if registration.partition_epoch > self.registration.partition_epoch:\n"
            "            self.proposal = None\n",
            "",
        ),
        on="data",
        expects="not-at-rest watermark-stalled",
    ),
    mutation(
        "kafka10432_epoch_zero",
        "KAFKA-10432: the epoch cache of a follower leaves leader epoch 0 out",
        Edit(
            _LOG,
            "!= self.epochs.latest and batch.leader_epoch >= 0:",
            "!= self.epochs.latest and batch.leader_epoch > 0:",
        ),
        on="data",
        expects="epochs-differ livelock committed-differs crash",
    ),
    mutation(
        "duplicate_acked_at_once",
        "a batch that is sent again is acked at once, though its first append is not committed",
        Edit(
            "broker/handlers/data/produce.py",
            "            if acks == ACKS_ALL:\n                if delayed is None:",
            "            if acks == ACKS_ALL and not appended.duplicate:\n"
            "                if delayed is None:",
        ),
        on="data pipelined",
        expects="ack-before-commit lost-write",
    ),
    mutation(
        "controller_shrink_leaves_hw",
        "when metadata takes a dead follower out of the ISR, the high watermark is not advanced",
        Edit(
            _REPLICA,
            "            # A follower that the controller has removed from the ISR no longer holds the"
            " watermark\n            # back.\n            self.advance_high_watermark(now_ms)\n"
            "            return False\n",
            "            return False\n",
        ),
        on="data controller",
        expects="watermark-stalled",
    ),
    mutation(
        "isr_retry_overwrites_newer",
        "an ISR proposal that had no answer takes the place of a newer one in the queue",
        Edit(
            _ISR,
            "            self._waiting.setdefault(replica, proposal)\n",
            "            self._waiting[replica] = proposal\n",
        ),
        on="controller flapping",
        expects="not-at-rest",
    ),
    mutation(
        "kip392_reads_past_hw",
        "KIP-392: a follower serves consumers past its high watermark",
        Edit(
            _READING,
            "end_offset = log_end_offset if reader.is_follower else high_watermark",
            "end_offset = high_watermark\n"
            "    if reader.is_follower or not replica.is_leader:\n"
            "        end_offset = log_end_offset",
        ),
        on="followers",
        expects="read-uncommitted",
    ),
    mutation(
        "kip207_old_watermark_listed",
        "KIP-207: a new leader lists offsets before its high watermark has reached its epoch",
        Edit(
            "broker/handlers/data/list_offsets.py",
            "    return replica.high_watermark >= replica.leader_epoch_start_offset\n",
            "    return True\n",
        ),
        on="segments",
        expects="listed-too-low",
    ),
    mutation(
        "progress_of_diverging_follower",
        "KIP-595: a fetch that is answered with a divergence counts as the follower's progress",
        Edit(
            "broker/handlers/data/fetch.py",
            "if record_progress and not read.is_urgent:",
            "if record_progress and not read.error:",
        ),
        on="data outlived segments",
        expects="truncated-committed committed-differs committed-lost watermark-above-isr joined-lacking",
    ),
    mutation(
        "shrink_not_looked_again",
        "the check of a trailing member is not repeated until the replica changes",
        Edit(
            "broker/replication/maintenance.py",
            "        self._isr.propose_shrink(replica, now_ms)\n        return now_ms\n",
            "        self._isr.propose_shrink(replica, now_ms)\n        return NEVER_MS\n",
        ),
        on="settings flapping",
        expects="isr-laggard",
    ),
    mutation(
        "idle_follower_falls_behind",
        "KIP-227: a follower that an idle partition's session did not name is late at once",
        Edit(
            _REPLICA,
            "                if last_fetch_ms > follower.last_caught_up_ms:\n"
            "                    follower.last_caught_up_ms = last_fetch_ms\n",
            "                if last_fetch_ms < follower.last_caught_up_ms:\n"
            "                    follower.last_caught_up_ms = last_fetch_ms\n",
        ),
        on="settings flapping",
        expects="isr-hasty",
    ),
    mutation(
        "min_isr_by_proposal",
        "KIP-966: an ISR that is only proposed counts for min.insync.replicas",
        Edit(
            _REPLICA,
            "        if len(self.isr) < self.min_isr:\n            return False\n",
            "        if len(self.maximal_isr) < self.min_isr:\n            return False\n",
        ),
        on="flapping controller",
        expects="watermark-below-min-isr",
    ),
    mutation(
        "budget_starves_partition",
        "KIP-227: a partition whose records had no room in an answer is not read again until it "
        "moves",
        Edit(
            "broker/handlers/data/fetch.py",
            "fits = is_first or wanted.fetch_offset >= _readable_end(replica, reader)",
            "fits = True",
        ),
        on="portions",
        expects="not-at-rest",
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
        "redirected_outside_isr",
        "KIP-392: a consumer is sent to a follower in its rack that is not in the ISR, and whose"
        " watermark stands still",
        Edit(
            "broker/serving/nearest_replica.py",
            "        if follower.broker_id in replica.isr\n"
            "        and follower.log_start_offset <= wanted.fetch_offset",
            "        if follower.log_start_offset <= wanted.fetch_offset",
        ),
        on="followers",
        expects="redirected-outside",
    ),
    mutation(
        "log_start_with_records_only",
        "KIP-107 in kind: a follower takes the leader's log start over only together with records",
        Edit(
            "broker/replication/fetcher.py",
            "        if log_start_offset > replica.log.log_start_offset:\n",
            "        if batches and log_start_offset > replica.log.log_start_offset:\n",
        ),
        on="replaced_controller retention",
        expects="log-start-behind",
    ),
    mutation(
        "lost_alter_partition",
        "KIP-497 in kind: an AlterPartition without an answer is not sent again, and its proposals"
        " stay pending",
        Edit(
            "broker/replication/isr.py",
            "        if response is None or response.error_code != ErrorCode.NONE:\n",
            "        if response is None:\n"
            "            self._send(now_ms)\n"
            "            return\n"
            "        if response.error_code != ErrorCode.NONE:\n",
        ),
        on="replaced_controller controller",
        expects="not-at-rest isr-laggard",
    ),
    mutation(
        "duplicate_not_awaited",
        "KIP-98 in kind: acks=all for a batch that was appended before does not wait until it is"
        " committed",
        Edit(
            "broker/handlers/data/produce.py",
            "            if acks == ACKS_ALL:\n",
            "            if acks == ACKS_ALL and not appended.duplicate:\n",
        ),
        on="pipelined data",
        expects="ack-before-commit",
    ),
    mutation(
        "lagging_preferred_replica",
        "KIP-392 in kind: a follower outside of the ISR may be a consumer's preferred read replica",
        Edit(
            "broker/serving/nearest_replica.py",
            "        if follower.broker_id in replica.isr\n        and follower.log_start_offset",
            "        if follower.log_start_offset",
        ),
        on="followers",
        expects="redirected-outside",
    ),
)
