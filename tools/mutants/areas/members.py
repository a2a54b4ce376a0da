"""Mutations of groups: members that wait, groups that change their protocol, coordinators that
load.

Owns: these mutations.  Never: applies one.  Kafka: the issues and KIPs that they name.
"""

from __future__ import annotations

from typing import Final

from tools.mutants.mutation import Edit, mutation

MUTATIONS: Final = (
    mutation(
        "waiting_member_expires",
        "KIP-62: a member that waits for the answer to its JoinGroup or SyncGroup is expected to"
        " heartbeat meanwhile, and expires",
        Edit(
            "broker/coordinator/classic_group.py",
            "            self._extend_session(member, now_ms)\n            member.is_new = False\n",
            "            self._extend_session(member, now_ms)\n",
        ),
        on="waiting",
        expects="removed-waiting",
    ),
    mutation(
        "downgrade_without_rebalance",
        "KIP-848: a group that becomes classic, because its last member of the consumer protocol is"
        " gone, does not rebalance",
        Edit(
            "broker/coordinator/consumer/group.py",
            "return self.downgrade(rest, self.targets, self.epoch, reason, now_ms)",
            "return self.downgrade(rest, self.targets, self.epoch, None, now_ms)",
        ),
        on="downgrades",
        expects="partition-dropped",
    ),
    mutation(
        "recreated_topic_unnoticed",
        "KIP-1101 in kind: the hash of a topic's metadata does not include its id, so a group goes"
        " on with the partitions of a topic that was deleted and created again",
        Edit(
            "broker/coordinator/modern/topics.py",
            "return topic.topic_id, topic.name, len(topic.partitions), racks",
            "return topic.name, len(topic.partitions), racks",
        ),
        on="admin settings",
        expects="unsettled-group",
    ),
    mutation(
        "assignment_of_last_generation",
        "in kind: a classic group hands an assignment out that was stored after the next generation"
        " had begun",
        Edit(
            "broker/coordinator/classic_group.py",
            "            if not completing or self.roster.generation != generation:\n",
            "            if not completing:\n",
        ),
        on="waiting groups",
        expects="coordinator-differs assignment-differs",
    ),
    mutation(
        "fencing_not_retried",
        "KIP-848 in kind: the fencing of a member whose session has ended is not tried again when"
        " its write was refused",
        Edit(
            "broker/coordinator/modern/group.py",
            "        if member_id in self.members:\n"
            "            self.timers.start_session(member_id, now_ms + RETRY_MS, self.expire)\n",
            "",
        ),
        on="refused_groups",
        expects="unsettled-group",
    ),
    mutation(
        "loads_to_watermark",
        "in kind: a coordinator loads its partition up to its own high watermark, which lags after"
        " an election, not to the log end",
        Edit(
            "broker/coordinator/log_shard.py",
            "        while offset < log.log_end_offset:\n",
            "        while offset < replica.high_watermark:\n",
        ),
        on="commits evictions transactions",
        expects="coordinator-differs committed-offset-back",
    ),
    mutation(
        "offsets_visible_uncommitted",
        "in kind: OffsetFetch shows a commit as soon as it is written, before the in-sync replicas"
        " have it",
        Edit(
            "broker/coordinator/coordinator.py",
            "            shard.append(records, on_settled, now_ms)\n",
            "            shard.append(records, on_settled, now_ms, at_once=True)\n",
        ),
        on="commits",
        expects="coordinator-differs offset-unknown",
    ),
)
