"""Mutations of metadata on its way to brokers, and of what brokers do with it.

Owns: these mutations.  Never: applies one.  Kafka: the issues and KIPs that they name.
"""

from __future__ import annotations

from typing import Final

from tools.mutants.mutation import Edit, mutation

_FETCHER: Final = "broker/replication/fetcher.py"
_ISR: Final = "broker/replication/isr.py"
_PUBLISHER: Final = "broker/publisher.py"
_REPLICA: Final = "partition/replica.py"
_LOG_SHARD: Final = "broker/coordinator/log_shard.py"

MUTATIONS: Final = (
    mutation(
        "new_epoch_does_not_refetch",
        "KAFKA-9835 in kind: a follower whose leader stays in a new epoch goes on with the old one",
        Edit(
            _PUBLISHER,
            "        if changed:\n            self._fetchers.put(replica)\n",
            "        if changed and not (\n"
            "            replica.registration.leader == old.leader and not was_leader\n"
            "        ):\n"
            "            self._fetchers.put(replica)\n",
        ),
        Edit(
            _PUBLISHER,
            "        was_leader = replica.is_leader\n        changed = replica.follow(new)\n",
            "        was_leader, old = replica.is_leader, replica.registration\n"
            "        changed = replica.follow(new)\n",
        ),
        on="data moves",
        expects="not-at-rest watermark-stalled crash",
    ),
    mutation(
        "resigned_coordinator_stays",
        "KAFKA-5152 in kind: a broker goes on as coordinator after it has lost the partition",
        Edit(
            _PUBLISHER,
            "            self._share_partitions.on_resigned(replica.topic_id, replica.partition)\n"
            "            if replica.topic in self._coordinators:\n"
            "                self._coordinators[replica.topic].on_resigned("
            "replica.partition, now_ms)\n\n"
            "    def _remove_topic",
            "            self._share_partitions.on_resigned(replica.topic_id, replica.partition)\n\n"
            "    def _remove_topic",
        ),
        on="groups transactions",
        expects="coordinator-differs crash committed-offset-back no-reply owned-twice unsettled-group"
        " transaction-overdue hanging-transaction",
    ),
    mutation(
        "share_leader_stays",
        "KIP-932: a broker goes on as leader of share partitions after it has lost the partition",
        Edit(
            _PUBLISHER,
            "            self._share_partitions.on_resigned(replica.topic_id, replica.partition)\n"
            "            if replica.topic in self._coordinators:\n"
            "                self._coordinators[replica.topic].on_resigned("
            "replica.partition, now_ms)\n\n"
            "    def _remove_topic",
            "            if replica.topic in self._coordinators:\n"
            "                self._coordinators[replica.topic].on_resigned("
            "replica.partition, now_ms)\n\n"
            "    def _remove_topic",
        ),
        on="share share_moves",
        expects="stale-share-leader delivered-after-ack accepted-twice delivered-too-often"
        " passed-over crash",
    ),
    mutation(
        "waiting_acks_not_failed",
        "requests that wait for acks are not answered when the leader resigns",
        Edit(
            _REPLICA,
            "        if not self.is_leader:\n"
            "            return ErrorCode.NOT_LEADER_OR_FOLLOWER\n"
            "        if self.high_watermark < required_offset:\n",
            "        if not self.is_leader:\n"
            "            return None\n"
            "        if self.high_watermark < required_offset:\n",
        ),
        on="data",
        equivalent="the request is answered when it times out, REQUEST_TIMED_OUT",
    ),
    mutation(
        "isr_retry_forgotten",
        "KAFKA-12158 in kind: a proposal of the ISR that had no answer is not sent again",
        Edit(
            _ISR,
            "        if response is None or response.error_code != ErrorCode.NONE:\n"
            "            self._retry(under_way, now_ms)\n"
            "            return\n",
            "        if response is None or response.error_code != ErrorCode.NONE:\n"
            "            return\n",
        ),
        on="data controller",
        expects="not-at-rest watermark-stalled",
    ),
    mutation(
        "ineligible_stays_pending",
        "KAFKA-15021 in kind: a proposal that was refused as ineligible stays pending",
        Edit(_ISR, "            replica.drop_proposal(proposal)\n", ""),
        on="data controller",
        expects="not-at-rest watermark-stalled",
    ),
    mutation(
        "answer_commits_old_leader",
        "an answer about the ISR of an earlier leader epoch is taken",
        Edit(
            _ISR,
            "        if answer.leader_epoch != registration.leader_epoch:\n            return\n",
            "",
        ),
        on="data",
        equivalent="a new leader epoch has a new partition epoch, which voids the proposal",
    ),
    mutation(
        "no_backoff_after_error",
        "KAFKA-7019 in kind: a follower that is refused asks again at once, without a pause",
        Edit(
            _FETCHER,
            "        until_ms = now_ms + self._view.config.replica_fetch_backoff_ms\n"
            '        self._timers.set(("fetcher", self._leader, key), until_ms, name_again)\n',
            '        self._timers.set(("fetcher", self._leader, key), now_ms, name_again)\n',
        ),
        on="data",
        expects="livelock crash",
    ),
    mutation(
        "log_start_not_followed",
        "KAFKA-8764 in kind: a follower behind its leader's log start waits for the lost records",
        Edit(
            _FETCHER,
            "        if leader_start > replica.log.log_end_offset:\n"
            "            replica.truncate_fully_and_start_at(leader_start)\n",
            "        if leader_start > replica.log.log_end_offset:\n",
        ),
        on="retention",
        expects="not-at-rest watermark-stalled livelock",
    ),
    mutation(
        "truncates_to_leader_end",
        "KAFKA-7415 in kind: a follower that is longer than its leader only cuts off the surplus",
        Edit(
            _FETCHER,
            "            to_offset = min(end_offset, diverging.end_offset, log.log_end_offset)\n",
            "            to_offset = min(diverging.end_offset, log.log_end_offset)\n",
        ),
        Edit(
            _FETCHER,
            "            to_offset = min(end_offset, log.log_end_offset)\n",
            "            to_offset = min(diverging.end_offset, log.log_end_offset)\n",
        ),
        on="data",
        equivalent="the next fetch shows the divergence that is left, until the logs agree",
    ),
    mutation(
        "load_stops_at_gap",
        "KAFKA-10134 in kind: a coordinator loads its log only up to the first batch of another"
        " leader epoch",
        Edit(
            _LOG_SHARD,
            "            for batch in batches:\n                self.replay(batch)\n",
            "            for batch in batches:\n"
            "                if batch.leader_epoch >= batches[0].leader_epoch + 2:\n"
            "                    break\n"
            "                self.replay(batch)\n",
        ),
        on="groups transactions",
        expects="committed-offset-back unsettled-group owned-twice transaction-overdue"
        " hanging-transaction processed-twice torn-transaction crash",
    ),
    mutation(
        "dynamic_min_isr_unseen",
        "the controller does not see a dynamic min.insync.replicas of the cluster",
        Edit(
            "controller/partitions/partitions.py",
            "self._metadata.cluster_config.min_insync_replicas if own",
            "self._metadata.config.min_insync_replicas if own",
        ),
        on="settings",
        expects="config-differs",
    ),
    mutation(
        "topic_deleted_in_one_delta_stays",
        "a topic that changes and is deleted in one fetch of metadata stays in a broker's image",
        Edit("metadata/delta.py", "                    self._topics.pop(name, None)\n", ""),
        on="settings",
        expects="metadata-differs",
    ),
    mutation(
        "recreated_topic_keeps_configs",
        "a broker keeps the configs of a deleted topic for the next topic of that name",
        Edit(_PUBLISHER, "        self._topic_configs.pop(name, None)\n", ""),
        on="settings",
        expects="config-differs",
    ),
    mutation(
        "broker_defaults_cached",
        "a changed default of the brokers does not reach the topics without a value of their own",
        Edit(_PUBLISHER, "            self._topic_configs.clear()\n", ""),
        on="settings",
        expects="config-differs",
    ),
    mutation(
        "cursor_forgets_start",
        "KIP-966: the third page of a topic's description begins where the second one did",
        Edit(
            "broker/handlers/metadata/describe_topic_partitions.py",
            "            response.next_cursor = _cursor(name, start + remaining)\n",
            "            response.next_cursor = _cursor(name, remaining)\n",
        ),
        on="settings",
        expects="answer-differs",
    ),
    mutation(
        "fenced_brokers_in_metadata",
        "Metadata lists fenced brokers, to which no client can connect",
        Edit(
            "broker/handlers/metadata/metadata.py",
            "            if not (broker := image.brokers[broker_id]).fenced\n",
            "            if (broker := image.brokers[broker_id]) is not None\n",
        ),
        on="data",
        expects="answer-differs",
    ),
    mutation(
        "throttled_client_not_muted",
        "KIP-219: a client over its quota learns of its throttle time, but is not muted",
        Edit(
            "broker/quotas/client_quotas.py",
            "        self._muted_until_ms[request.connection_id] = now_ms + mute_ms\n",
            "",
        ),
        on="quotas",
        expects="throttle-ignored",
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
        "quota_change_unseen",
        "KIP-546 in kind: a changed or removed quota does not reach clients that the broker has"
        " already looked up",
        Edit(
            "broker/quotas/client_quotas.py",
            "        self._limits.clear()\n        self._connection_rates = None",
            "        self._connection_rates = None",
        ),
        on="quotas",
        expects="quota-differs",
    ),
    mutation(
        "changed_quota_unnoticed",
        "KIP-546 in kind: the limits of clients that were seen already are not looked up again when"
        " quotas change",
        Edit(
            "broker/quotas/client_quotas.py",
            "            self._forget_usage()\n        self._limits.clear()\n",
            "            self._forget_usage()\n",
        ),
        on="quotas settings",
        expects="quota-differs",
    ),
    mutation(
        "default_not_applied_to_old_topics",
        "KIP-226 in kind: a change of a broker's dynamic configs reaches new replicas only, not"
        " those that exist",
        Edit(
            "broker/publisher.py",
            "            for replica in self._replicas.all():\n"
            "                replica.configure(self._topic_config(replica.topic))\n",
            "",
        ),
        on="settings replaced_controller",
        expects="config-differs",
    ),
)
