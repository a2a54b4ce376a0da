"""Fresh mutations of the data plane and the control plane, written without a look at the rules.

Owns: these mutations, until they are measured and move to their areas.  Never: applies one.  Kafka:
the issues and KIPs that they name.
"""

from __future__ import annotations

from typing import Final

from tools.mutants.mutation import Edit, mutation

_REPLICA: Final = "partition/replica.py"
_PUBLISHER: Final = "broker/publisher.py"
_ELECTIONS: Final = "controller/partitions/elections.py"
_FETCH: Final = "broker/handlers/data/fetch.py"

MUTATIONS: Final = (
    mutation(
        "progress_of_diverging_follower",
        "KIP-595: a fetch that is answered with a divergence counts as the follower's progress",
        Edit(
            _FETCH,
            "if record_progress and not read.is_urgent:",
            "if record_progress and not read.error:",
        ),
        on="data outlived segments",
    ),
    mutation(
        "shrink_not_looked_again",
        "the check of a trailing member is not repeated until the replica changes",
        Edit(
            "broker/replication/maintenance.py",
            "        self._isr.propose_shrink(replica, now_ms)\n        return now_ms\n",
            "        self._isr.propose_shrink(replica, now_ms)\n        return NEVER_MS\n",
        ),
        on="flapping data",
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
        on="flapping data",
    ),
    mutation(
        "min_isr_by_proposal",
        "KIP-966: an ISR that is only proposed counts for min.insync.replicas",
        Edit(
            _REPLICA,
            "        if len(self.isr) < self.min_isr:\n            return False\n",
            "        if len(self.maximal_isr) < self.min_isr:\n            return False\n",
        ),
        on="flapping controller data",
    ),
    mutation(
        "budget_starves_partition",
        "KIP-227: a partition whose records had no room in an answer is not read again until it "
        "moves",
        Edit(
            _FETCH,
            "if budget > 0 and not is_held_back and not self._rack:",
            "if not is_held_back and not self._rack:",
        ),
        on="data followers",
    ),
    mutation(
        "throttled_client_not_muted",
        "KIP-219: a client over its quota learns of its throttle time, but is not muted",
        Edit(
            "broker/quotas/client_quotas.py",
            "        self._muted_until_ms[request.connection_id] = now_ms + mute_ms\n",
            "",
        ),
        on="data admin",
    ),
    mutation(
        "heartbeat_of_earlier_life",
        "KIP-631: a heartbeat of a broker's earlier life is taken for one of its present life",
        Edit(
            "controller/membership/membership.py",
            "        if registration is None or registration.epoch != request.broker_epoch:\n"
            "            return m.BrokerHeartbeatResponse",
            "        if registration is None or registration.epoch < request.broker_epoch:\n"
            "            return m.BrokerHeartbeatResponse",
        ),
        on="outlived controller",
    ),
    mutation(
        "last_known_survives_election",
        "KIP-966: the last known leader is not forgotten when another one is elected",
        Edit(
            _ELECTIONS,
            "    if leader != NO_LEADER:\n        return ()\n",
            "    if leader != NO_LEADER:\n        return partition.last_known_elr\n",
        ),
        on="power controller",
    ),
    mutation(
        "last_known_before_eligible",
        "KIP-966: the last known leader is elected although eligible replicas may come back",
        Edit(_ELECTIONS, "        and not eligible\n        and len", "        and len"),
        on="power controller",
    ),
    mutation(
        "dynamic_min_isr_unseen",
        "the controller does not see a dynamic min.insync.replicas of the cluster",
        Edit(
            "controller/partitions/partitions.py",
            "self._metadata.cluster_config.min_insync_replicas if own",
            "self._metadata.config.min_insync_replicas if own",
        ),
        on="controller admin power",
    ),
    mutation(
        "topic_deleted_in_one_delta_stays",
        "a topic that changes and is deleted in one fetch of metadata stays in a broker's image",
        Edit(
            "metadata/delta.py",
            "                    self._topics.pop(name, None)\n",
            "",
        ),
        on="admin",
    ),
    mutation(
        "recreated_topic_keeps_configs",
        "a broker keeps the configs of a deleted topic for the next topic of that name",
        Edit(_PUBLISHER, "        self._topic_configs.pop(name, None)\n", ""),
        on="admin",
    ),
    mutation(
        "broker_defaults_cached",
        "a changed default of the brokers does not reach the topics without a value of their own",
        Edit(_PUBLISHER, "            self._topic_configs.clear()\n", ""),
        on="admin controller",
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
        on="transactions verification",
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
        on="segments data retention",
    ),
    mutation(
        "low_watermark_waits_for_dead",
        "KIP-107: DeleteRecords waits for replicas on fenced brokers",
        Edit(
            _REPLICA,
            "            if broker is not None and not broker.fenced:\n",
            "            if broker is not None:\n",
        ),
        on="admin retention",
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
        on="admin retention",
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
        on="admin retention",
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
    ),
    mutation(
        "lost_heartbeat_is_last",
        "a broker sends no more heartbeats after one without an answer",
        Edit(
            "broker/lifecycle.py",
            "        self._heartbeat_under_way = False\n"
            "        if self.state is LifecycleState.STOPPED or response is None:\n"
            "            return\n",
            "        if self.state is LifecycleState.STOPPED or response is None:\n"
            "            return\n"
            "        self._heartbeat_under_way = False\n",
        ),
        on="data controller",
    ),
    mutation(
        "cursor_forgets_start",
        "KIP-966: the third page of a topic's description begins where the second one did",
        Edit(
            "broker/handlers/metadata/describe_topic_partitions.py",
            "            response.next_cursor = _cursor(name, start + remaining)\n",
            "            response.next_cursor = _cursor(name, remaining)\n",
        ),
        on="admin",
    ),
    mutation(
        "fenced_brokers_in_metadata",
        "Metadata lists fenced brokers, to which no client can connect",
        Edit(
            "broker/handlers/metadata/metadata.py",
            "            if not (broker := image.brokers[broker_id]).fenced\n",
            "            if (broker := image.brokers[broker_id]) is not None\n",
        ),
        on="admin data",
    ),
)
