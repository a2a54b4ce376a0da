"""Mutations of streams groups.

Owns: these mutations.  Never: applies one.  Kafka: the issues and KIPs that they name.
"""

from __future__ import annotations

from typing import Final

from tools.mutants.mutation import Edit, mutation

_GROUP: Final = "broker/coordinator/streams/group.py"
_HEARTBEAT: Final = "broker/coordinator/streams/heartbeat.py"
_MEMBER: Final = "broker/coordinator/streams/member.py"
_RECONCILIATION: Final = "broker/coordinator/streams/reconciliation.py"

MUTATIONS: Final = (
    mutation(
        "task_given_before_revoked",
        "KIP-1071: an active task is given to a member while another one has it",
        Edit(
            _RECONCILIATION,
            "            if holders.active(task) is None\n"
            "            and (task in own.standby or not holders.has_copy(process_id, task))\n",
            "            if task in own.standby or not holders.has_copy(process_id, task)\n",
        ),
        on="streams",
        expects="owned-twice",
    ),
    mutation(
        "tasks_revoked_without_report",
        "KIP-1071: a heartbeat without a list of tasks counts as if all were given back",
        Edit(
            _RECONCILIATION,
            "            if owned is None or progress.pending_revocation.intersects(owned):\n",
            "            if owned is not None and progress.pending_revocation.intersects(owned):\n",
        ),
        on="streams",
        expects="owned-twice",
    ),
    mutation(
        "pending_tasks_not_held",
        "KIP-1071: a task that a member must give back counts as free",
        Edit(
            _MEMBER,
            "                _with_epochs(value.active_tasks_pending_revocation, epoch),\n",
            "                {},\n",
        ),
        on="streams",
        expects="owned-twice",
    ),
    mutation(
        "waiting_member_is_stable",
        "KIP-1071: a member that waits for another one's task counts as reconciled",
        Edit(
            _RECONCILIATION,
            "    state = StreamsMemberState.STABLE if is_complete"
            " else StreamsMemberState.UNRELEASED_TASKS\n",
            "    state = StreamsMemberState.STABLE\n",
        ),
        on="streams",
        expects="unsettled-group",
    ),
    mutation(
        "holder_survives_member",
        "KIP-1071: the tasks of a member that was removed stay taken",
        Edit(
            _GROUP,
            "            self.holders.remove(held, member.process_id)\n",
            "            self.holders.add(held, member.process_id)\n",
        ),
        on="streams",
        expects="unsettled-group",
    ),
    mutation(
        "any_older_epoch_repeats",
        "KIP-1071: a heartbeat of the epoch before counts, whatever tasks the member has",
        Edit(
            _HEARTBEAT,
            "        return owned is not None and member.progress.assigned.contains(owned)\n",
            "        return True\n",
        ),
        on="streams",
        equivalent="a member gives its tasks back before its epoch grows: with the epoch before, it"
        " has none that it must not have",
    ),
    mutation(
        "commit_of_task_given_away",
        "KIP-1071: offsets of a task that was given to another member are taken",
        Edit(
            _GROUP,
            "        is_fenced = since is None or committer.generation < since\n",
            "        is_fenced = since is not None and committer.generation < since\n",
        ),
        on="streams",
        expects="committed-offset-back stale-commit processed-twice",
    ),
    mutation(
        "removed_streams_member_commits",
        "KIP-1071: offsets of a member that was removed are taken",
        Edit(
            _GROUP,
            "        member = self.members.get(committer.member_id)\n"
            "        if member is None:\n"
            "            return ErrorCode.UNKNOWN_MEMBER_ID\n"
            "        if not committer",
            "        member = self.members.get(committer.member_id)\n"
            "        if member is None:\n"
            "            return ErrorCode.NONE\n"
            "        if not committer",
        ),
        on="streams",
        expects="committed-offset-back stale-commit processed-twice",
    ),
    mutation(
        "streams_commit_of_earlier_tenure",
        "KIP-1071, KIP-1251: a commit with an older epoch counts though the member got the task "
        "only after that epoch",
        Edit(
            _GROUP,
            "        is_fenced = since is None or committer.generation < since\n",
            "        is_fenced = since is None\n",
        ),
        on="tenures",
        expects="stale-commit",
    ),
)
