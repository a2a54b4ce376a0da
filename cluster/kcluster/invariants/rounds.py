"""The rules that are checked from time to time, on every node.

Owns: the looks at nodes, and which nodes have changed since the last look.  Never: decides what is
wrong (applied.py, answered.py, in_sync.py, deletions.py and others do), changes a node.  Kafka:
no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kcluster.broker.broker import Broker
from kcluster.broker.lifecycle import LifecycleState
from kcluster.broker.node_view import BrokerNodeView
from kcluster.contract import CONTROLLER_ID
from kcluster.controller.node_view import ControllerNodeView
from kcluster.deaths import ProcessState
from kcluster.invariants import answered, applied
from kcluster.invariants.deletions import Deletions
from kcluster.invariants.group_kinds import GroupKinds
from kcluster.invariants.in_sync import InSyncRules
from kcluster.invariants.invariants import Invariants
from kcluster.invariants.log_upkeep import LogUpkeep
from kcluster.invariants.preferred import PreferredLeaders
from kcluster.invariants.quotas import quota_differences
from kcluster.invariants.uncleaned import Uncleaned
from kcluster.invariants.violations import violation
from kcluster.partition.disk import Disk
from kcluster.partition.replica import Replica
from kcluster.runtime.dispatch import Dispatcher

OFFSETS_EVERY_MS: Final = 2_000
"""The time between two looks at what leaders answer about their logs."""

STALL_MS: Final = 1_500
"""A longer time between two looks shows that nodes had no time to run: a live cluster on a busy
machine.  Overdue work may then be done in the next step."""


class Rounds:
    """The looks at the nodes of one run."""

    def __init__(self, dispatcher: Dispatcher, invariants: Invariants) -> None:
        self._processes = dispatcher.processes
        self._invariants = invariants
        self._replayed = applied.ReplayedMetadata()
        self._compared: dict[int, tuple[int, int]] = {}
        """(life, metadata offset) of each node when it was last compared with the log."""
        self._in_sync = InSyncRules()
        self._deletions = Deletions()
        self._uncleaned = Uncleaned()
        self._upkeep = LogUpkeep()
        self._preferred = PreferredLeaders()
        self._group_kinds = GroupKinds()
        self._looked_ms = 0
        self._offsets_at_ms = OFFSETS_EVERY_MS

    def on_tick(self, node: BrokerNodeView, now_ms: int) -> None:
        """Check the ISRs that a broker has proposed in this step."""
        invariants, last_fetches = self._invariants, node.replicas.last_fetches
        for replica in node.replicas.all():
            if replica.proposal is not None:
                moves = invariants.partition(replica.topic, replica.key).moves
                for fact in self._in_sync.on_proposal(replica, moves, last_fetches, now_ms):
                    invariants.report_replica(now_ms, replica, "isr-hasty", fact)

    def on_fetch(self, replicas: Iterable[Replica], follower: int, now_ms: int) -> None:
        """Record a follower's fetch that a broker has handled in this step."""
        self._in_sync.on_fetch(replicas, follower, now_ms)

    def look(self, now_ms: int) -> None:
        """Look at every node; called between two steps."""
        if now_ms - self._looked_ms > STALL_MS:
            self._in_sync.forget_all()
            self._deletions, self._preferred = Deletions(), PreferredLeaders()
            self._uncleaned = Uncleaned()
        self._looked_ms = now_ms
        process = self._processes[CONTROLLER_ID]
        controller = process.last_controller
        if controller is None or not hasattr(controller, "log"):
            return
        self._replayed.follow(controller.log.records)
        if process.state is ProcessState.UP and self._is_new(
            CONTROLLER_ID, process.life, controller.image.offset
        ):
            self._report(
                now_ms, CONTROLLER_ID, applied.image_differences(controller.image, self._replayed)
            )
            self._report(
                now_ms, CONTROLLER_ID, applied.controller_differences(controller, self._replayed)
            )
        if process.state is ProcessState.UP:
            self._look_at_leaders(controller, process.life, now_ms)
        asks_offsets = now_ms >= self._offsets_at_ms
        if asks_offsets:
            self._offsets_at_ms = now_ms + OFFSETS_EVERY_MS
        for process in self._processes.values():
            node = process.broker
            if node is None or not isinstance(process.disk, Disk):
                continue
            if process.state is not ProcessState.UP:
                self._in_sync.forget(node.replicas.all())
                self._deletions.forget(node.replicas.all())
                self._uncleaned.forget(node.replicas.all())
                self._group_kinds.forget(node.node_id)
            else:
                self._look_at(node, process.life, now_ms, asks_offsets)

    def _look_at_leaders(self, controller: ControllerNodeView, life: int, now_ms: int) -> None:
        config = controller.config
        if config.auto_leader_rebalance_enable:
            interval_ms = config.leader_imbalance_check_interval_seconds * 1_000
            found = self._preferred.look(controller.image, life, interval_ms, now_ms)
            for topic, one, fact in found:
                observed = self._invariants.partition(topic, (one.topic_id, one.partition))
                found_late = violation("preferred-overdue", now_ms, observed, fact, -1)
                self._invariants.violations.append(found_late)

    def _look_at(self, node: BrokerNodeView, life: int, now_ms: int, asks_offsets: bool) -> None:
        invariants, deletions, replicas = self._invariants, self._deletions, node.replicas.all()
        if node.image.offset == self._replayed.offset and self._is_new(
            node.node_id, life, node.image.offset
        ):
            self._report(
                now_ms, node.node_id, applied.image_differences(node.image, self._replayed)
            )
            self._report(now_ms, node.node_id, applied.broker_differences(node, self._replayed))
            if isinstance(node, Broker):
                for different in answered.metadata_differences(node):
                    invariants.report_broker(now_ms, node.node_id, "answer-differs", different)
                    break
        for replica, laggard in self._in_sync.look(replicas, now_ms):
            invariants.report_replica(now_ms, replica, "isr-laggard", laggard)
        if node.state is LifecycleState.RUNNING:
            every_ms = node.config.log_retention_check_interval_ms
            backoff_ms = node.config.log_cleaner_backoff_ms
            for replica, dirty in self._uncleaned.look(replicas, backoff_ms, now_ms):
                invariants.report_replica(now_ms, replica, "compaction-overdue", dirty)
            for replica, kept in deletions.look_at_retention(replicas, every_ms, now_ms):
                invariants.report_replica(now_ms, replica, "retention-overdue", kept)
        for broken in self._group_kinds.look(node):
            invariants.report_promise(now_ms, broken, node.node_id)
        if quota := next(quota_differences(node), None):
            invariants.report_broker(now_ms, node.node_id, "quota-differs", quota)
        for replica, held in deletions.look_at_requests(node.node_id, replicas, node.image.brokers):
            invariants.report_replica(now_ms, replica, "deletion-held-back", held)
        for replica, behind in deletions.look_at_starts(replicas):
            invariants.report_replica(now_ms, replica, "log-start-behind", behind)
        for replica, name, fact in self._upkeep.look(replicas):
            invariants.report_replica(now_ms, replica, name, fact)
        if asks_offsets and isinstance(node, Broker):
            for replica in replicas:
                if replica.is_leader and not replica.log.is_blank:
                    for different in answered.log_differences(node, replica, now_ms):
                        invariants.report_replica(now_ms, replica, "answer-differs", different)
                        break

    def _is_new(self, node_id: int, life: int, offset: int) -> bool:
        """Whether a node has other metadata than when it was last compared."""
        if self._compared.get(node_id) == (life, offset):
            return False
        self._compared[node_id] = (life, offset)
        return True

    def _report(self, now_ms: int, node_id: int, found: Iterable[applied.Differing]) -> None:
        for name, fact in found:
            self._invariants.report_broker(now_ms, node_id, name, fact)
