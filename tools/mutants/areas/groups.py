"""Mutations of classic and consumer groups, and of their offsets.

Owns: these mutations.  Never: applies one.  Kafka: the issues and KIPs that they name.
"""

from __future__ import annotations

from typing import Final

from tools.mutants.mutation import Edit, mutation

_CLASSIC: Final = "broker/coordinator/classic_group.py"
_CONSUMER: Final = "broker/coordinator/consumer/group.py"
_COORDINATOR: Final = "broker/coordinator/coordinator.py"
_HEARTBEAT: Final = "broker/coordinator/modern/heartbeat.py"
_LOG_SHARD: Final = "broker/coordinator/log_shard.py"
_MEMBER: Final = "broker/coordinator/consumer/member.py"
_MODERN: Final = "broker/coordinator/modern/group.py"
_OFFSETS: Final = "broker/coordinator/offsets.py"
_RECONCILE: Final = "broker/coordinator/consumer/reconcile.py"
_REPLICA: Final = "partition/replica.py"
_ROSTER: Final = "broker/coordinator/classic_members.py"
_SHARD: Final = "broker/coordinator/shard.py"

MUTATIONS: Final = (
    mutation(
        "offsets_before_hw",
        "KAFKA-14792 in kind: a new coordinator answers before what it has loaded is committed,"
        " from below the high watermark only",
        Edit(
            _LOG_SHARD,
            "        if replica.high_watermark < self._loaded_end_offset:\n"
            "            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS\n",
            "",
        ),
        Edit(
            _LOG_SHARD,
            "        while offset < log.log_end_offset:\n"
            "            batches = log.read(offset, self.load_bytes, log.log_end_offset, True)\n",
            "        while offset < replica.high_watermark:\n"
            "            batches = log.read(offset, self.load_bytes, replica.high_watermark, True)\n",
        ),
        on="groups transactions",
        expects="coordinator-differs committed-offset-back processed-twice unsettled-group transaction-overdue"
        " hanging-transaction owned-twice crash",
    ),
    mutation(
        "kafka20634_offsets_only",
        "KAFKA-20634: a deposed coordinator acks commits that its log has lost",
        Edit(
            _REPLICA,
            "        if not self.is_leader:\n"
            "            return ErrorCode.NOT_LEADER_OR_FOLLOWER\n"
            "        if self.high_watermark < required_offset:\n",
            '        if not self.is_leader and self.topic != "__consumer_offsets":\n'
            "            return ErrorCode.NOT_LEADER_OR_FOLLOWER\n"
            "        if self.high_watermark < required_offset:\n",
        ),
        Edit(
            _LOG_SHARD,
            "        writes = list(self._writes)\n        self._writes.clear()\n",
            "        writes: list[_Write] = []\n",
        ),
        Edit(_LOG_SHARD, "        self.active = False\n", ""),
        on="groups commits",
        expects="committed-offset-back",
    ),
    mutation(
        "commit_answered_at_append",
        "a commit is answered when it is in the coordinator's log, not when it is committed",
        Edit(
            _SHARD,
            "    def put_back(self, group_id: str, group: Group | None) -> None:\n",
            "    def append_batch(\n"
            "        self, batch, apply, on_settled, now_ms, at_once=False\n"
            "    ):\n"
            "        def later(error: ErrorCode, at_ms: int) -> None: ...\n\n"
            "        done = super().append_batch(batch, apply, later, now_ms, at_once)\n"
            "        on_settled(\n"
            "            ErrorCode.NONE if done else ErrorCode.COORDINATOR_NOT_AVAILABLE, now_ms\n"
            "        )\n"
            "        return done\n\n"
            "    def put_back(self, group_id: str, group: Group | None) -> None:\n",
        ),
        on="groups commits",
        expects="told-uncommitted committed-offset-back owned-twice processed-twice crash",
    ),
    mutation(
        "stale_generation_commits",
        "KAFKA-4437 in kind: a commit of an older generation is taken",
        Edit(
            _ROSTER,
            "        if error is ErrorCode.NONE and generation != self.generation:\n",
            "        if error is ErrorCode.NONE and generation > self.generation:\n",
        ),
        on="groups late_members",
        expects="committed-offset-back owned-twice unsettled-group stale-commit stale-member",
    ),
    mutation(
        "unknown_member_commits",
        "KAFKA-8104 in kind: a commit of a member that was removed is taken",
        Edit(
            _CLASSIC,
            "        error = self.roster.check_member(committer.member_id, committer.instance_id,"
            " generation)\n"
            "        if error is not ErrorCode.NONE:\n"
            "            return error\n",
            "        error = self.roster.check_member(committer.member_id, committer.instance_id,"
            " generation)\n"
            "        if error is ErrorCode.UNKNOWN_MEMBER_ID:\n"
            "            return ErrorCode.NONE\n"
            "        if error is not ErrorCode.NONE:\n"
            "            return error\n",
        ),
        on="groups",
        expects="committed-offset-back stale-commit",
    ),
    mutation(
        "generation_not_bumped",
        "KAFKA-9752 in kind: a rebalance after a lost leader has the generation of the last one",
        Edit(
            _ROSTER,
            "        self.generation += 1\n",
            "        self.generation += self.leader in self.members\n",
        ),
        on="groups",
        equivalent="the leader is chosen before the generation is, so it is always a member",
    ),
    mutation(
        "generation_lost_on_load",
        "KAFKA-5172 in kind: a new coordinator begins with the generation before",
        Edit(
            _ROSTER,
            "            generation=value.generation,\n            protocol_type=value.protocol_type or None,\n",
            "            generation=max(0, value.generation - 1),\n"
            "            protocol_type=value.protocol_type or None,\n",
        ),
        on="groups",
        expects="generation-back assignment-differs owned-twice",
    ),
    mutation(
        "late_members_stay",
        "KIP-62: members that did not join in time keep their place in the generation",
        Edit(
            _CLASSIC,
            "            self._note_left(member_id, Departure.NOT_JOINED)\n"
            "            self._remove(member_id)\n",
            "            pass\n",
        ),
        on="groups",
        expects="unsettled-group owned-twice livelock not-at-rest crash",
    ),
    mutation(
        "session_not_restored",
        "KAFKA-10793 in kind: a new coordinator starts no sessions, so dead members stay for ever",
        Edit(
            _CLASSIC,
            "        for member in list(self.roster.members.values()):\n"
            "            self._extend_session(member, now_ms)\n"
            "        size",
            "        size",
        ),
        on="groups evictions",
        expects="unsettled-group",
    ),
    mutation(
        "heartbeat_hides_rebalance",
        "KAFKA-3949 in kind: a member is not told of a rebalance while others join",
        Edit(
            _CLASSIC,
            "        self._extend_session(self.roster.members[body.member_id], now_ms)\n"
            "        if self.state is PREPARING_REBALANCE:\n"
            "            return ErrorCode.REBALANCE_IN_PROGRESS\n",
            "        self._extend_session(self.roster.members[body.member_id], now_ms)\n",
        ),
        on="groups",
        expects="unsettled-group owned-twice",
    ),
    mutation(
        "sync_of_old_assignment",
        "KAFKA-5154 in kind: a SyncGroup in the middle of a rebalance gets the old assignment",
        Edit(
            _CLASSIC,
            "        if self.state is STABLE:\n"
            "            self._broker.reply(request, self.roster.sync_answer(member))\n"
            "            return\n",
            "        if self.state is STABLE or member.assignment:\n"
            "            self._broker.reply(request, self.roster.sync_answer(member))\n"
            "            return\n",
        ),
        on="groups",
        expects="owned-twice unsettled-group",
    ),
    mutation(
        "static_twin_not_fenced",
        "KIP-345: of two members with one group.instance.id the older one is not fenced",
        Edit(
            _ROSTER,
            "            if owner != member_id:\n                return ErrorCode.FENCED_INSTANCE_ID\n",
            "",
        ),
        Edit(
            _ROSTER,
            "        member = self.members.pop(old_member_id)\n",
            "        member = self.members[old_member_id]\n",
        ),
        on="groups",
        expects="owned-twice unsettled-group crash livelock",
    ),
    mutation(
        "pending_sync_never_expires",
        "KAFKA-12984: a member that joined but did not sync holds the group up",
        Edit(
            _CLASSIC,
            "        if is_over or not silent:\n            return\n",
            "        if is_over or silent:\n            return\n",
        ),
        on="groups late_members",
        expects="unsettled-group not-at-rest late-member",
    ),
    mutation(
        "leave_without_rebalance",
        "a member that leaves does not make the group rebalance, if another one leads it",
        Edit(
            _CLASSIC,
            "            if self.state in (STABLE, COMPLETING_REBALANCE):\n"
            "                self._prepare(MembersLeft(tuple(departures)), now_ms)\n",
            "            if self.state is COMPLETING_REBALANCE:\n"
            "                self._prepare(MembersLeft(tuple(departures)), now_ms)\n",
        ),
        on="groups",
        expects="unsettled-group",
    ),
    mutation(
        "offsets_expire_in_use",
        "KAFKA-4682: offsets of a group with members expire",
        Edit(_OFFSETS, "                    or group.is_subscribed_to(topic)\n", ""),
        on="expiry",
        expects="committed-offset-back",
    ),
    mutation(
        "tombstone_of_group_in_use",
        "KAFKA-13418 in kind: a group whose offsets have expired is deleted with its members",
        Edit(
            _SHARD,
            "            if all_expired and group.is_unused:\n",
            "            if all_expired:\n",
        ),
        on="expiry late_members",
        expects="unsettled-group owned-twice crash generation-back lost-member",
    ),
    mutation(
        "parked_joins_outlive_coordinator",
        "KAFKA-8896 in kind: a coordinator that resigns does not answer the JoinGroups and"
        " SyncGroups that wait",
        Edit(
            _CLASSIC,
            "        for member in self.roster.members.values():\n"
            "            member_id = member.member_id\n"
            "            self.roster.answer_both(self._broker, member, member_id,"
            " ErrorCode.NOT_COORDINATOR)\n"
            "        self.abandon()\n",
            "        self.abandon()\n",
        ),
        Edit(
            _CLASSIC,
            "        for member in self.roster.members.values():\n            # A consumer group",
            "        for member in () if self.state is DEAD else self.roster.members.values():\n"
            "            # A consumer group",
        ),
        on="groups late_members",
        expects="no-reply",
    ),
    mutation(
        "kip211_since_lost_on_load",
        "KAFKA-8069 in kind: a new coordinator does not know since when a group is empty, and its"
        " offsets expire at once",
        Edit(_CLASSIC, "        self.state_since_ms = value.current_state_timestamp\n", ""),
        on="expiry",
        expects="committed-offset-back",
    ),
    # ------------------------------------------------------------------- KIP-848
    mutation(
        "given_before_revoked",
        "KIP-848: a partition is given to a member before another one has revoked it",
        Edit(
            _RECONCILE,
            "ready = [one for one in gained if one in own or not to.is_taken(topic_id, one)]",
            "ready = gained",
        ),
        on="groups",
        expects="owned-twice",
    ),
    mutation(
        "revoked_without_report",
        "KIP-848: a heartbeat without a list of partitions counts as if all were revoked",
        Edit(
            _RECONCILE,
            "    if owned is None:\n        return True\n    return any",
            "    if owned is None:\n        return False\n    return any",
        ),
        on="groups",
        expects="owned-twice",
    ),
    mutation(
        "revoking_forgotten_on_load",
        "KIP-848: a new coordinator forgets which partitions must still be revoked",
        Edit(
            _MEMBER,
            "            revoking=_restored(value.partitions_pending_revocation,"
            " value.member_epoch),\n",
            "            revoking=NONE_ASSIGNED,\n",
        ),
        on="groups",
        expects="owned-twice unsettled-group",
    ),
    mutation(
        "owner_survives_member",
        "KIP-848: partitions of a member that was removed stay taken",
        Edit(
            _CONSUMER,
            "            if self._owners.get(partition) == member.member_id:\n",
            "            if self._owners.get(partition) != member.member_id:\n",
        ),
        on="groups",
        expects="unsettled-group crash",
    ),
    mutation(
        "member_epoch_unchecked",
        "KIP-848: a heartbeat with an old member epoch is answered",
        Edit(
            _HEARTBEAT,
            "        return fenced_epoch(epoch, member.epoch, member.previous_epoch)\n",
            "        return member\n",
        ),
        on="groups late_members",
        expects="owned-twice unsettled-group stale-member",
    ),
    mutation(
        "previous_epoch_unchecked",
        "KAFKA-17503 in kind: a heartbeat of the epoch before counts, whatever the member owns",
        Edit(
            _HEARTBEAT,
            "        if epoch < member.epoch and epoch == member.previous_epoch"
            " and self.repeats(member):\n",
            "        if epoch < member.epoch and epoch == member.previous_epoch:\n",
        ),
        on="groups late_members",
        expects="owned-twice unsettled-group stale-member",
    ),
    mutation(
        "target_epoch_lost_on_load",
        "KIP-848: a new coordinator takes the target of the group's epoch for computed",
        Edit(
            _MODERN,
            "                self.target_epoch = value.assignment_epoch\n",
            "                self.target_epoch = max(value.assignment_epoch, self.epoch)\n",
        ),
        on="groups",
        equivalent="a target is always written with the group's epoch of that moment, so no record of"
        " a later epoch stands before it in the log",
    ),
    mutation(
        "no_sessions_after_load",
        "KIP-848: a new coordinator starts no sessions, so dead members keep their partitions",
        Edit(
            _MODERN,
            "        for member_id, member in self.members.items():\n"
            "            self.start_session(member_id, now_ms)\n"
            "            self.watch_rebalance(member, now_ms)\n",
            "        for member in self.members.values():\n"
            "            self.watch_rebalance(member, now_ms)\n",
        ),
        on="groups evictions",
        expects="unsettled-group",
    ),
    mutation(
        "unrevoked_never_fenced",
        "KIP-848: a member that gives nothing up is not fenced after its rebalance timeout",
        Edit(_MODERN, "            self.remove(member, Departure.NOT_REVOKED, at_ms)\n", ""),
        on="groups late_members",
        expects="unsettled-group livelock late-member",
    ),
    mutation(
        "removal_keeps_epoch",
        "KIP-848: the departure of a member does not bump the group epoch",
        Edit(
            _MODERN,
            "        records.append(self.epoch_record(self.epoch + 1, self.hash_without(leavers)))\n",
            "        records.append(self.epoch_record(self.epoch, self.hash_without(leavers)))\n",
        ),
        on="groups",
        expects="unsettled-group",
    ),
    mutation(
        "kip1251_any_older_epoch",
        "KIP-1251: a commit with an older member epoch is taken for a partition that was given"
        " away",
        Edit(
            _CONSUMER,
            "        return _stale(member) if is_older else ErrorCode.NONE\n",
            "        return _stale(member) if is_older and since is not None else ErrorCode.NONE\n",
        ),
        on="groups commits late_members",
        expects="committed-offset-back stale-commit",
    ),
    mutation(
        "full_heartbeat_not_answered",
        "KIP-848: a full heartbeat, after a lost answer, is not answered with the assignment",
        Edit(
            "broker/coordinator/consumer/heartbeat.py",
            "if self.joins or is_full or before.assigned",
            "if self.joins or before.assigned",
        ),
        on="groups late_members",
        expects="unsettled-group never-processed",
    ),
    mutation(
        "static_member_away_is_replaced",
        "KIP-848: a static member that is still there is replaced by one of the same instance id",
        Edit(
            _MEMBER,
            "        return self.is_classic or self.epoch == LEAVE_STATIC_EPOCH\n",
            "        return True\n",
        ),
        on="groups late_members",
        expects="owned-twice lost-member",
    ),
    mutation(
        "kafka10284_static_not_stored",
        "KAFKA-10284: the new id of a static member that is back is not stored, so the next"
        " coordinator fences it",
        Edit(
            _CLASSIC,
            "        assignment = {one.member_id: one.assignment for one in"
            " roster.members.values()}\n"
            "        self._store(assignment, stored, now_ms)\n",
            "        stored(ErrorCode.NONE, now_ms)\n",
        ),
        on="groups late_members",
        expects="lost-member",
    ),
    mutation(
        "static_leave_ends_session",
        "KIP-848: the session of a static member that is away ends, so if it never comes back,"
        " nobody gets its partitions",
        Edit(
            _HEARTBEAT,
            "        return CoordinatorResult([group.current_record(member.away())], answer)\n",
            "        return CoordinatorResult(\n"
            "            [group.current_record(member.away())],\n"
            "            answer,\n"
            "            lambda _at_ms: group.timers.end_session(member.member_id),\n"
            "        )\n",
        ),
        on="evictions",
        expects="unsettled-group",
    ),
    mutation(
        "fencing_not_repeated",
        "KIP-848: a fencing whose write was refused is never repeated, so a dead member keeps its"
        " partitions or tasks",
        Edit(
            _MODERN,
            "        if member_id in self.members:\n"
            "            self.timers.start_session(member_id, now_ms + RETRY_MS, self.expire)\n",
            "",
        ),
        on="refused_groups",
        expects="unsettled-group",
    ),
    mutation(
        "leader_epoch_not_committed",
        "KIP-320: the leader epoch of a committed offset is not stored",
        Edit(
            _OFFSETS,
            "        leader_epoch=commit.committed_leader_epoch,\n",
            "        leader_epoch=-1,\n",
        ),
        on="commits groups",
        expects="offset-unknown",
    ),
    mutation(
        "deleted_group_keeps_offsets",
        "DeleteGroups deletes the group, but not its offsets",
        Edit(
            _SHARD,
            "        records = [*self._tombstones(of_group=group.group_id), *group.tombstones()]\n",
            "        records = group.tombstones()\n",
        ),
        on="groups_admin",
        expects="offset-unknown",
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
        on="patterns",
        expects="committed-offset-back",
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
        on="returning",
        expects="rebalance-missing coordinator-differs",
    ),
    mutation(
        "subscription_change_ignored_while_syncing",
        "a member that joins with other topics while the leader assigns is answered as if it had "
        "repeated its request",
        Edit(_CLASSIC, "        if (completing and same) or (", "        if completing or ("),
        on="late_members groups",
        expects="rebalance-missing",
    ),
    mutation(
        "static_members_lost_on_load",
        "KIP-345 in kind: a new coordinator does not know that members are static",
        Edit(
            _ROSTER,
            "            instance_id=saved.group_instance_id,\n",
            "            instance_id=None,\n",
        ),
        on="returning groups",
        expects="coordinator-differs lost-member",
    ),
    mutation(
        "new_partitions_unnoticed",
        "KIP-848: once a group has looked at its topics' metadata, it does not look again",
        Edit(
            _MODERN,
            "        return offset == self.broker.image.offset and epoch <= self.epoch\n",
            "        return offset <= self.broker.image.offset and epoch <= self.epoch\n",
        ),
        on="growing",
        expects="unsettled-group",
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
        on="unrevoked",
        expects="late-member",
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
        expects="stale-member",
    ),
    mutation(
        "answer_without_records_at_once",
        "a decision without records is answered though earlier ones are not committed yet",
        Edit(
            _LOG_SHARD,
            "        if not decision.records:\n            self.after_writes(settled, now_ms)\n",
            "        if not decision.records:\n            settled(ErrorCode.NONE, now_ms)\n",
        ),
        on="upgrades",
        expects="told-uncommitted",
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
        expects="coordinator-differs committed-offset-back",
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
        on="upgrades",
        expects="unsettled-group",
    ),
    mutation(
        "offsets_outlive_topic",
        "the offsets of a deleted topic stay",
        Edit(
            _SHARD,
            "        if tombstones:\n            self.append(tombstones, ignore_outcome, now_ms)\n",
            "        assert all(one.committed is None for one in tombstones)\n",
        ),
        on="admin",
        expects="offset-left",
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
)
