"""Mutations of the controller: elections, eligible leader replicas, fencing.

Owns: these mutations.  Never: applies one.  Kafka: the issues and KIPs that they name.
"""

from __future__ import annotations

from typing import Final

from tools.mutants.mutation import Edit, mutation

_ELECTIONS: Final = "controller/partitions/elections.py"
_IMAGE: Final = "metadata/image.py"
_LIVENESS: Final = "controller/membership/liveness.py"
_MEMBERSHIP: Final = "controller/membership/membership.py"
_PARTITIONS: Final = "controller/partitions/partitions.py"
_REPLICA: Final = "partition/replica.py"

_UNCLEAN: Final = "    if mode is ElectionMode.UNCLEAN:\n        for broker in replicas:"

MUTATIONS: Final = (
    mutation(
        "kip966_no_elr",
        "before KIP-966: no ELR, the last ISR member leads again, and the high watermark advances"
        " below min.insync.replicas",
        Edit(_IMAGE, "return ELR_VERSION in self.features", "return False"),
        Edit(
            _REPLICA,
            "        if len(self.isr) < self.min_isr:\n            return False\n        maximal",
            "        maximal",
        ),
        on="power",
        expects="committed-lost lost-write committed-differs",
    ),
    mutation(
        "preferred_outside_isr",
        "a preferred election takes a replica that is outside of the ISR",
        Edit(
            _ELECTIONS,
            "replicas[0] in eligible and is_active(replicas[0])",
            "is_active(replicas[0])",
        ),
        on="data",
        expects="leader-not-in-isr unclean-unasked lost-write committed-lost",
    ),
    mutation(
        "unclean_though_off",
        "a partition without ISR and ELR gets an unclean leader, though that is not allowed",
        Edit(
            _ELECTIONS,
            _UNCLEAN,
            "    if not eligible or mode is ElectionMode.UNCLEAN:\n        for broker in replicas:",
        ),
        on="power",
        expects="unclean-forbidden unclean-unasked committed-lost lost-write",
    ),
    mutation(
        "unclean_any_offline",
        "an unclean leader is elected when no member of ISR or ELR is alive, though not allowed",
        Edit(_ELECTIONS, _UNCLEAN, "    if True:\n        for broker in replicas:"),
        on="data",
        expects="unclean-forbidden unclean-unasked committed-lost lost-write",
    ),
    mutation(
        "unclean_told_clean",
        "the same, and the election is recorded as a clean one",
        Edit(_ELECTIONS, _UNCLEAN, "    if True:\n        for broker in replicas:"),
        Edit(
            _ELECTIONS,
            "return _Choice(broker, ElectionKind.UNCLEAN)",
            "return _Choice(broker, ElectionKind.IN_SYNC)",
        ),
        on="data",
        expects="leader-not-in-isr unclean-unasked committed-lost lost-write",
    ),
    mutation(
        "elr_keeps_unclean_restart",
        "KIP-966: a broker that lost its power stays in the ELR",
        Edit(
            _ELECTIONS,
            "    excluded = (*target, *newcomers, unclean_shutdown)\n",
            "    excluded = (*target, *newcomers)\n",
        ),
        on="power",
        expects="committed-lost lost-write committed-differs",
    ),
    mutation(
        "elr_only_from_isr",
        "KIP-966: a replica leaves the ELR as soon as another one follows it into it",
        Edit(
            _ELECTIONS,
            "dict.fromkeys((*partition.elr, *partition.isr))",
            "dict.fromkeys(partition.isr)",
        ),
        on="power",
        expects="stuck-offline unclean-forbidden watermark-stalled",
    ),
    mutation(
        "elr_overlaps_isr",
        "KIP-966: a replica that leads again stays in the ELR",
        Edit(
            _ELECTIONS,
            "            new_elr = tuple(broker for broker in new_elr if broker != leader)\n",
            "",
        ),
        on="data power",
        expects="elr-overlaps-isr",
    ),
    mutation(
        "elr_survives_min_isr",
        "KIP-966: the ELR stays although the ISR has min.insync.replicas again",
        Edit(
            _ELECTIONS,
            "    if not elr_enabled or len(target) >= min_isr:\n",
            "    if not elr_enabled or len(target) > min_isr:\n",
        ),
        on="data power",
        expects="committed-lost lost-write committed-differs truncated-committed",
    ),
    mutation(
        "unclean_restart_counts_as_clean",
        "KIP-966: a broker's power loss is taken for a clean stop, so it stays eligible",
        Edit(
            _MEMBERSHIP,
            "        clean = existing is not None and existing.epoch"
            " == request.previous_broker_epoch\n",
            "        clean = existing is not None\n",
        ),
        on="power",
        expects="committed-lost lost-write committed-differs",
    ),
    mutation(
        "restart_stays_in_isr",
        "a broker that registers again keeps its places in ISRs",
        Edit(
            _MEMBERSHIP,
            "        records = self._partitions.on_broker_restarted(restarted, cause)\n",
            "        records: list[MetadataRecord] = []\n        assert restarted is not None\n",
        ),
        on="power data",
        expects="fenced-in-isr committed-lost lost-write committed-differs not-at-rest"
        " watermark-above-isr",
    ),
    mutation(
        "fence_keeps_isr",
        "a fenced broker keeps its places in ISRs if it leads nothing",
        Edit(
            _MEMBERSHIP,
            "        partitions = self._partitions.in_sync_on(broker_id)\n"
            "        records = self._partitions.on_broker_leaving(reason, cause, partitions)\n"
            "        self._metadata.commit([*records, change])\n",
            "        partitions = self._partitions.in_sync_on(broker_id)\n"
            "        if not self._partitions.led_by(broker_id):\n"
            "            partitions = []\n"
            "        records = self._partitions.on_broker_leaving(reason, cause, partitions)\n"
            "        self._metadata.commit([*records, change])\n",
        ),
        on="data",
        expects="fenced-in-isr",
    ),
    mutation(
        "unfenced_elects_nobody",
        "KAFKA-13944 in kind: a broker that comes back is not considered for leaderless partitions",
        Edit(
            _PARTITIONS,
            "return self._change_all(self.index.leaderless, reason, cause, joining=reason.broker)",
            "return self._change_all((), reason, cause, joining=reason.broker)",
        ),
        on="data power",
        expects="stuck-offline watermark-stalled",
    ),
    mutation(
        "shutdown_too_early",
        "a broker may shut down before others have learnt of its successors",
        Edit(
            _LIVENESS,
            "                moved = lowest is None or session.controlled_shutdown_offset <= lowest\n",
            "                moved = lowest is None or session.controlled_shutdown_offset > -1\n",
        ),
        on="data",
        equivalent="a client meets a closed connection instead of NOT_LEADER_OR_FOLLOWER, and asks"
        " again; no promise is about it",
    ),
    mutation(
        "unfenced_before_caught_up",
        "KAFKA-14391 in kind: a broker is unfenced before it has read its own registration",
        Edit(
            _LIVENESS,
            "                caught_up = session.metadata_offset >= session.registration_offset\n",
            "                caught_up = session.metadata_offset >= 0\n",
        ),
        on="outlived data controller",
        expects="unfenced-behind fenced-in-isr not-at-rest joined-lacking committed-lost",
    ),
    mutation(
        "epoch_unchanged_on_leader_change",
        "a leader that the controller replaces by the preferred one keeps the leader epoch",
        Edit(
            _ELECTIONS,
            "        leader, leader_epoch, kind = choice.leader, leader_epoch + 1, choice.kind\n",
            "        bump = choice.kind is not ElectionKind.PREFERRED\n"
            "        leader, leader_epoch, kind = choice.leader, leader_epoch + bump, choice.kind\n",
        ),
        on="data",
        expects="two-leaders committed-differs lost-write truncated-committed crash"
        " leader-truncated",
    ),
    mutation(
        "recovering_leader_is_forgotten",
        "KIP-966: the last leader of a partition is not remembered when its ELR is empty",
        Edit(
            _ELECTIONS,
            "    return partition.last_known_elr or (partition.leader,)\n",
            "    return partition.last_known_elr\n",
        ),
        on="power",
        expects="stuck-offline watermark-stalled",
    ),
    mutation(
        "failover_forgets_sessions",
        "a new active controller starts no sessions for unfenced brokers, so"
        " one that died with the last controller is never fenced",
        Edit(
            _MEMBERSHIP,
            "            if not registration.fenced:\n"
            "                session.last_contact_ms = now_ms\n",
            "",
        ),
        on="moves",
        expects="silent-unfenced",
    ),
    mutation(
        "metadata_takes_isr_back",
        "KAFKA-13790 in kind: late metadata replaces the newer ISR of an AlterPartition's answer",
        Edit(
            "broker/publisher.py",
            "        elif new.partition_epoch < replica.registration.partition_epoch:\n"
            "            # The leader knows a later ISR by the answer to its AlterPartition.  Kafka:\n"
            "            # Partition.makeLeader.\n"
            "            return\n",
            "",
        ),
        on="flapping",
        expects="epoch-back",
    ),
    mutation(
        "shutdown_waits_for_fenced",
        "a controlled shutdown waits for fenced brokers' metadata, too",
        Edit(
            _LIVENESS,
            "                if session.state is BrokerState.UNFENCED\n",
            "                if session.state is not BrokerState.CONTROLLED_SHUTDOWN\n",
        ),
        on="resized moves data",
        expects="shutdown-held-back",
    ),
    mutation(
        "elr_outlives_min_isr",
        "KIP-966: the ELR stays when min.insync.replicas is changed",
        Edit(
            _ELECTIONS,
            "        partition, elr=(), last_known_elr=(), partition_epoch=",
            "        partition, last_known_elr=(), partition_epoch=",
        ),
        on="cleaned",
        expects="elr-needless",
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
        on="late_heartbeats",
        expects="stale-heartbeat",
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
        expects="last-known-outdated",
    ),
    mutation(
        "last_known_before_eligible",
        "KIP-966: the last known leader is elected although eligible replicas may come back",
        Edit(_ELECTIONS, "        and not eligible\n        and len", "        and len"),
        on="power controller",
        expects="last-known-outdated",
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
        expects="not-at-rest",
    ),
    mutation(
        "registers_during_session",
        "KIP-631: a broker may register while the session of its last life is valid",
        Edit(
            "controller/membership/membership.py",
            "        if not same and existing is not None and self.sessions.is_valid(broker_id, now_ms):\n",
            "        if not same and existing is not None and self.sessions.is_valid(broker_id, now_ms) and existing.fenced:\n",
        ),
        on="data",
        expects="registered-early",
    ),
    mutation(
        "unregistered_keeps_partitions",
        "KIP-631 in kind: a broker that is unregistered keeps its leaderships and places in ISRs",
        Edit(
            "controller/membership/membership.py",
            "        records = self._partitions.on_broker_leaving(reason, cause, partitions)\n"
            "        self.sessions.remove(broker_id)",
            "        records = self._partitions.on_broker_leaving(reason, cause, partitions[:0])\n"
            "        self.sessions.remove(broker_id)",
        ),
        on="reordered",
        expects="fenced-in-isr leader-not-in-isr",
    ),
    mutation(
        "reordered_replicas_not_balanced",
        "a reassignment that only changes the order of the replicas is not noticed by the automatic"
        " election of preferred leaders",
        Edit(
            "controller/partitions/partition_index.py",
            "            or old.leader != new.leader\n"
            "            or old.replicas[0] != new.replicas[0]\n",
            "            or old.leader != new.leader\n",
        ),
        on="reordered",
        expects="preferred-overdue",
    ),
    mutation(
        "fenced_in_new_isr",
        "KIP-841 in kind: the first ISR of a new partition has its fenced replicas, too",
        Edit(
            "controller/topics/new_partitions.py",
            "active = {broker.broker_id for broker in brokers if not broker.fenced}",
            "active = {broker.broker_id for broker in brokers}",
        ),
        on="growing admin patterns",
        expects="fenced-in-isr eligible-newcomer",
    ),
    mutation(
        "elr_of_last_leaver",
        "KIP-966 in kind: when a member leaves an ISR below min.insync.replicas, the replicas that"
        " were eligible before it are forgotten",
        Edit(
            "controller/partitions/elections.py",
            "    candidates = dict.fromkeys((*partition.elr, *partition.isr))\n",
            "    candidates = dict.fromkeys(partition.isr or partition.elr)\n",
        ),
        on="power controller new_disks",
        expects="lost-write stuck-offline",
    ),
    mutation(
        "move_ends_with_lagging_replica",
        "KIP-455 in kind: a reassignment that removes more replicas than it adds does not wait until"
        " the remaining ones are in the ISR",
        Edit(
            "controller/partitions/reassigning.py",
            "    needed = staying if len(adding) < len(leaving) else adding\n",
            "    needed = adding\n",
        ),
        on="moves resized travels",
        expects="reassigned-early",
    ),
    mutation(
        "silent_after_failover",
        "KIP-631 in kind: a new controller starts a broker's session with its first heartbeat, so a"
        " broker that is dead by then never expires",
        Edit(
            "controller/membership/membership.py",
            "            if not registration.fenced:\n"
            "                session.last_contact_ms = now_ms\n",
            "",
        ),
        on="replaced_controller",
        expects="silent-unfenced",
    ),
    mutation(
        "stopped_without_fence",
        "KIP-631 in kind: a broker that may shut down at once, because it leads nothing, is not"
        " fenced when it does",
        Edit(
            "controller/membership/membership.py",
            "                if not registration.fenced:\n                    cause",
            "                if (\n"
            "                    not registration.fenced\n"
            "                    and session.state is BrokerState.CONTROLLED_SHUTDOWN\n"
            "                ):\n"
            "                    cause",
        ),
        on="replaced_controller new_disks",
        expects="stopped-unfenced",
    ),
)
