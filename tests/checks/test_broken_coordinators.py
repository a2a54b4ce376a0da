"""Coordinators with a bug put back: the check of that name finds it, and the sound core is clean.

Most are Kafka's own, by their numbers; the scenario is the incident that plays the trigger.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from kcluster.broker.coordinator.consumer import heartbeat
from kcluster.broker.coordinator.consumer.reconcile import reconcile
from kcluster.broker.coordinator.coordinator import GroupCoordinator
from kcluster.broker.coordinator.log_shard import LogShard
from kcluster.broker.coordinator.offsets import OffsetStore
from kcluster.broker.coordinator.shard import GroupShard
from kcluster.broker.coordinator.share_state.share_states import ShareStates
from kcluster.broker.coordinator.transactions import transaction as t
from kcluster.broker.coordinator.transactions.markers import MarkerSender
from kcluster.broker.coordinator.transactions.transaction_shard import TransactionShard
from kcluster.broker.share import window
from kcluster.broker.share.acquisition import _Acquisition
from kcluster.broker.share.in_flight import AVAILABLE, AcknowledgeType
from kcluster.partition import producers
from kcluster.partition.replica import Replica
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.markers import Marker
from kcluster.protocol.records.records import read_records
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play import virtual
from kcluster.scenario.play.running import run_scenario

pytestmark = pytest.mark.pure_python  # a class of the extension cannot be broken on purpose

INCIDENTS = Path(__file__).parents[2] / "scenarios" / "incidents"
Patch = Callable[[pytest.MonkeyPatch], None]


def read_committed_reads_all(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Replica, "last_stable_offset", property(lambda self: self.high_watermark))


def batches_are_not_verified(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-14402: a late batch opens a transaction that nobody ends."""
    patch.setattr(t, "verify", lambda *_: ErrorCode.NONE)


def a_commit_is_of_any_epoch(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-17754: a delayed EndTxn ends the next transaction."""
    sound = t.end

    def end(known: Any, producer: Any, is_commit: bool, *more: Any) -> Any:
        if known is not None and known.state is t.ONGOING:
            producer = t.ProducerIdentity(known.producer_id, known.producer_epoch)
        return sound(known, producer, is_commit, *more)

    patch.setattr(t, "end", end)


def commits_are_aborts(patch: pytest.MonkeyPatch) -> None:
    sound = t.end
    patch.setattr(t, "end", lambda known, who, _, *more: sound(known, who, False, *more))


def one_partition_gets_the_wrong_marker(patch: pytest.MonkeyPatch) -> None:
    sound = Replica.append_marker

    def append_marker(self: Replica, number: int, epoch: int, marker: Marker, *more: Any) -> Any:
        is_commit = marker.is_commit and self.partition != 1
        return sound(self, number, epoch, Marker(is_commit, marker.coordinator_epoch), *more)

    patch.setattr(Replica, "append_marker", append_marker)


def a_new_coordinator_sends_no_markers(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TransactionShard, "_resume_markers", lambda *_: None)


def a_repeated_marker_is_refused(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-19999: the coordinator's own retry is taken for a zombie's."""
    sound = producers.check_marker

    def check_marker(state: Any, epoch: int, coordinator_epoch: int, version: int) -> Any:
        if version >= producers.EPOCH_BUMP_SINCE and epoch <= state.producer_epoch:
            return producers.SequenceRefusal(ErrorCode.NOT_ENOUGH_REPLICAS, "strictly higher")
        return sound(state, epoch, coordinator_epoch, version)

    patch.setattr(producers, "check_marker", check_marker)
    patch.setattr("kcluster.partition.replica.check_marker", check_marker)


def a_late_answer_removes_the_next_markers(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-16352: entries are by transactional id, and the last one's end removes the next."""
    sound = MarkerSender.start

    def start(self: MarkerSender, transaction: Any, *more: Any) -> None:
        before = self._sendings.get(transaction.transactional_id)
        sound(self, transaction, *more)
        count = self.__dict__["starts"] = self.__dict__.get("starts", 0) + 1
        if before is None and count >= 5:
            self.stop(transaction.transactional_id)

    patch.setattr(MarkerSender, "start", start)


def markers_are_answered_before_they_take_effect(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-17507: the group's coordinator takes the marker in later than it is answered."""

    def end_transaction(self: Any, producer_id: int, marker: Marker) -> None:
        def late(_now_ms: int) -> None:
            for record in self.offsets.end_transaction(producer_id, marker.is_commit):
                self._apply_offset(record)

        now_ms = getattr(self, "marked_ms", 0)
        key = ("late marker", self.partition, producer_id, now_ms)
        self.broker.timers.set(key, now_ms + 12, late)

    patch.setattr(GroupShard, "_end_transaction", end_transaction)
    sound = GroupShard.append_marker

    def append_marker(self: Any, *args: Any) -> None:
        self.marked_ms = args[-1]
        sound(self, *args)

    patch.setattr(GroupShard, "append_marker", append_marker)


def a_commit_that_was_truncated_is_acked(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-20634: whoever waits when the leadership ends is answered with success."""
    sound = LogShard.unload

    def unload(self: Any, now_ms: int) -> None:
        for write in list(self._writes):
            self._settle(write, ErrorCode.NONE, now_ms)
        sound(self, now_ms)

    patch.setattr(LogShard, "unload", unload)


def a_pending_write_stops_the_unload(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-20115: two coordinators of one group; the old one answers from memory."""
    sound = GroupCoordinator.on_resigned

    def on_resigned(self: Any, partition: int, now_ms: int) -> None:
        shard = self.shards.get(partition)
        if shard is None or not shard._writes:
            sound(self, partition, now_ms)
        else:
            waiters = [one for write in shard._writes for one in write.waiters]
            shard._writes.clear()
            for waiter in waiters:
                waiter(ErrorCode.NONE, now_ms)
            shard.after_writes = lambda on_settled, at_ms: on_settled(ErrorCode.NONE, at_ms)

    patch.setattr(GroupCoordinator, "on_resigned", on_resigned)


def a_tombstone_alone_breaks_the_load(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-19862: the log is loaded in vain, again and again."""
    replay, shard_for = GroupShard.replay, GroupCoordinator.shard_for
    keys: dict[Any, set[bytes | None]] = {}
    broken: list[Any] = []

    def check(self: Any, batch: Any) -> None:
        seen = keys.setdefault(self, set())
        for record in () if batch.is_control else read_records(batch):
            if record.value is None and record.key not in seen:
                broken.append(self)
            seen.add(record.key)
        replay(self, batch)

    def find(self: Any, key: str) -> Any:
        shard = shard_for(self, key)
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if shard in broken else shard

    patch.setattr(GroupShard, "replay", check)
    patch.setattr(GroupCoordinator, "shard_for", find)


def holders_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-16147: a partition counts as free while its member has not revoked it."""
    sound = reconcile

    def broken(member: Any, to: Any) -> Any:
        return sound(member, structs.replace(to, is_taken=lambda *_: False))

    patch.setattr(heartbeat, "reconcile", broken)


def pending_offsets_are_not_waited_for(patch: pytest.MonkeyPatch) -> None:
    """Before KIP-447: whoever takes over begins with the offsets before an open transaction."""
    patch.setattr(OffsetStore, "unstable", lambda *_: frozenset())


def accepted_records_are_released(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(window._STATE_AFTER, AcknowledgeType.ACCEPT, AVAILABLE)


def writes_of_old_leaders_are_stored(patch: pytest.MonkeyPatch) -> None:
    """The share coordinator does not compare leader epochs."""
    sound = ShareStates.update

    def update(self: Any, partition: Any, state_epoch: int, leader_epoch: int, *more: Any) -> Any:
        entry = self.entries.get(partition)
        newest = leader_epoch if entry is None else max(leader_epoch, entry.leader_epoch)
        return sound(self, partition, state_epoch, newest, *more)

    patch.setattr(ShareStates, "update", update)


def gaps_count_as_acknowledged(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-18494: a new leader takes what was never stored for settled."""
    sound = window.InFlightWindow.load

    def load(state: Any, start_offset: int) -> Any:
        loaded = sound(state, start_offset)
        if loaded is not None:
            loaded.gap_start_offset = loaded.gap_end_offset = window.NO_GAP
            loaded.advance_start()
        return loaded

    patch.setattr(window.InFlightWindow, "load", load)


def an_acknowledgement_behind_the_start_moves_it(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-19859: the start offset goes to the end of the window, and what was in it is gone."""
    sound = window.InFlightWindow.advance_start

    def advance_start(self: Any) -> bool:
        moved = sound(self)
        if self.batches and self.start_offset > self.batches[0].first_offset:
            self.start_offset = self.end_offset = self.batches[-1].last_offset + 1
            self.batches = []
        return moved

    patch.setattr(window.InFlightWindow, "advance_start", advance_start)


def zombie_coordinators_are_not_fenced(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-9144: the leader has forgotten the coordinator's epoch, and takes an older marker."""
    sound = producers.check_marker

    def check_marker(state: Any, epoch: int, _coordinator_epoch: int, version: int) -> Any:
        return sound(state, epoch, 1 << 30, version)

    patch.setattr("kcluster.partition.replica.check_marker", check_marker)


def a_transaction_that_is_being_ended_fences_the_next(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-18575: a producer of version 2 that goes on at once is taken for a zombie."""
    sound = t.add_partitions

    def add_partitions(known: Any, *more: Any) -> Any:
        error = sound(known, *more)
        is_early = error is ErrorCode.CONCURRENT_TRANSACTIONS
        return ErrorCode.PRODUCER_FENCED if is_early else error

    patch.setattr(t, "add_partitions", add_partitions)


def delivery_counts_stand_still(patch: pytest.MonkeyPatch) -> None:
    sound = _Acquisition._take

    def take(self: Any, batch: Any, run: Any, *more: Any) -> Any:
        if run.delivery_count:
            run.delivery_count -= 1
        return sound(self, batch, run, *more)

    patch.setattr(_Acquisition, "_take", take)


BROKEN: tuple[tuple[Patch, str, str], ...] = (
    # (the bug, the incident, the anomaly; "": the incident's own checks find it)
    (read_committed_reads_all, "offsets_after_markers", "aborted-read"),
    (batches_are_not_verified, "hanging_transaction_prevented", "hanging-transaction"),
    (a_commit_is_of_any_epoch, "delayed_commit_v2", "aborted-read"),
    (commits_are_aborts, "markers_of_the_next_epoch", "swapped-transaction"),
    (one_partition_gets_the_wrong_marker, "markers_of_the_next_epoch", "torn-transaction"),
    (a_new_coordinator_sends_no_markers, "coordinator_dies_before_markers", "stuck-transaction"),
    (a_repeated_marker_is_refused, "repeated_marker", "stuck-transaction"),
    (a_late_answer_removes_the_next_markers, "markers_of_the_next_epoch", "stuck-transaction"),
    (a_commit_that_was_truncated_is_acked, "commit_on_a_truncated_log", "committed-offset-back"),
    (a_pending_write_stops_the_unload, "unload_with_a_pending_write", "owned-twice"),
    (a_tombstone_alone_breaks_the_load, "reload_of_a_compacted_log", "unsettled-group"),
    (holders_are_forgotten, "partition_of_two_members", "owned-twice"),
    (accepted_records_are_released, "share_group_failover", "delivered-after-ack"),
    (delivery_counts_stand_still, "share_group_failover", "delivered-too-often"),
    (writes_of_old_leaders_are_stored, "share_zombie_leader", "accepted-twice"),
    (gaps_count_as_acknowledged, "share_gap_after_failover", "passed-over"),
    (an_acknowledgement_behind_the_start_moves_it, "share_log_start_moves", "passed-over"),
    (zombie_coordinators_are_not_fenced, "zombie_coordinator", "aborted-read"),
    (a_transaction_that_is_being_ended_fences_the_next, "next_transaction_before_markers", ""),
    (pending_offsets_are_not_waited_for, "takeover_of_pending_offsets", "processed-twice"),
    (markers_are_answered_before_they_take_effect, "offsets_after_markers", "never-processed"),
)


@pytest.mark.timeout_s(180)
@pytest.mark.parametrize(("mutation", "incident", "name"), BROKEN)
def test_coordinators__a_bug_put_back_is_found_by_its_name(
    mutation: Patch, incident: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutation(monkeypatch)
    monkeypatch.setattr(virtual, "CALM_LIMIT_MS", 4_000)
    result = run_scenario(Scenario.load(INCIDENTS / f"{incident}.yaml"), "virtual")
    assert not result.passed
    assert not name or name in result.verdict.counts(), result.verdict.lines()[:20]


def test_coordinators__a_bug_is_not_taken_for_an_anomaly_that_a_setting_allows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = (INCIDENTS / "share_group_failover.yaml").read_text()
    scenario = Scenario.parse(
        text.replace("verdict: valid", "allowed_anomalies: delivered-too-often")
    )
    assert run_scenario(scenario, "virtual").passed
    delivery_counts_stand_still(monkeypatch)
    result = run_scenario(scenario, "virtual")
    assert [each.check for each in result.failed] == ["verdict"]
    assert "delivered-too-often that nothing allows" in result.failures[0]
