"""Broken leaders and coordinators of share groups that one short story shows, as in
test_broken_cores.py."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kcluster.broker.coordinator.share.assignor import assign_simply
from kcluster.broker.coordinator.share.group import ShareGroup
from kcluster.broker.coordinator.share.state_partitions import StatePartitions
from kcluster.broker.coordinator.share_state import share_states
from kcluster.broker.coordinator.share_state.share_state_shard import ShareStateShard
from kcluster.broker.coordinator.share_state.state import SharePartition, StateBatch, combine
from kcluster.broker.handlers.share import share_fetch
from kcluster.broker.share import acquisition
from kcluster.broker.share.acquisition import Acquirer
from kcluster.broker.share.in_flight import AVAILABLE, InFlightRun
from kcluster.broker.share.sessions import ShareSession, ShareSessions
from kcluster.broker.share.share_partition import ShareLeader
from kcluster.broker.share.window import AcknowledgeOutcome, InFlightWindow
from kcluster.protocol.errors import ErrorCode
from tests.invariants.test_broken_cores import names, run

pytestmark = pytest.mark.pure_python  # a class of the extension cannot be broken on purpose

HEARTBEATS = """\
  config: {group.share.min.heartbeat.interval.ms: 500, group.share.heartbeat.interval.ms: 500}
"""
MEMBER_IS_CUT_OFF = """\
topology:
  brokers: 3
  topics: {orders: {assignment: [[1, 2, 3]]}}
  config: {group.share.min.record.lock.duration.ms: 1000, group.share.record.lock.duration.ms: 1000}
workload:
  producers: {topic: orders, rate: 20/s, stop: 4s}
  consumers: {topics: orders, name: packer, group: packing, share: true}
duration: 8s
steps:
  - {at: 3500ms, isolate: {nodes: packer}, for: 4s}
"""


def test_lock__that_nobody_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(MEMBER_IS_CUT_OFF).passed
    monkeypatch.setattr(ShareLeader, "_await_locks", lambda *_: None)
    assert names(run(MEMBER_IS_CUT_OFF)) == {"lock-overdue"}


SHARED = f"""\
topology:
  brokers: 3
  topics: {{orders: {{assignment: [[1, 2, 3], [1, 2, 3]]}}}}
{HEARTBEATS}
workload:
  producers: {{topic: orders, rate: 20/s, start: 1s}}
  consumers:
    - {{topics: orders, name: packer, group: packing, share: true}}
    - {{topics: orders, name: guest, group: packing, share: true, start: 8s}}
duration: 13s
"""


def test_lock__that_is_forgotten_before_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(SHARED).passed
    refusal = AcknowledgeOutcome(ErrorCode.INVALID_RECORD_STATE, "")
    monkeypatch.setattr(InFlightWindow, "acknowledge", lambda *_: refusal)
    assert "lock-lost" in names(run(SHARED))


def test_session__that_keeps_what_its_member_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first member gives a partition up when the second one joins."""
    monkeypatch.setattr(ShareSession, "forget", lambda *_: None)
    assert names(run(SHARED)) == {"share-unasked"}


LATE_MEMBER = """\
topology: {brokers: 3, topics: {orders: {assignment: [[1, 2, 3], [1, 2, 3]]}}}
workload:
  producers: {topic: orders, rate: 100/s, stop: 3s}
  consumers:
    topics: orders
    group: packing
    share: true
    start: 2s
    config: {max.poll.records: 5}
duration: 7s
steps:
  - {at: 100ms, set_config: {groups: packing, config: {share.auto.offset.reset: earliest}}}
"""


def test_fetch__whose_partitions_get_all_of_its_limit_each(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(LATE_MEMBER).passed

    def acquirer(member_id: str, max_records: int, *rest: Any) -> Acquirer:
        return Acquirer(member_id, max(max_records, 5), *rest)

    monkeypatch.setattr(share_fetch, "Acquirer", acquirer)
    assert names(run(LATE_MEMBER)) == {"share-over-limit"}


FOLLOWERS_ARE_SLOW = f"""\
topology:
  brokers: 3
  topics: {{orders: {{assignment: [[1, 2, 3]]}}}}
{HEARTBEATS}
workload:
  producers: {{topic: orders, rate: 20/s, acks: "1"}}
  consumers: {{topics: orders, group: packing, share: true, start: 2s}}
duration: 7s
steps:
  - {{at: 1s, slow: {{nodes: 1, others: [2, 3], latency: 400ms}}, for: 5s}}
"""


def test_group__that_begins_above_the_high_watermark(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(FOLLOWERS_ARE_SLOW).passed
    monkeypatch.setattr(
        ShareLeader, "_choose_start_offset", lambda self, _: self.replica.log.log_end_offset
    )
    assert names(run(FOLLOWERS_ARE_SLOW)) == {"share-start-uncommitted"}


def test_member__that_gets_no_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second member of a group shares a partition if there is only one."""
    one_partition = SHARED.replace("[[1, 2, 3], [1, 2, 3]]", "[[1, 2, 3]]")
    assert run(one_partition).passed

    def assign(members: Any, assignable: Any) -> Any:
        first = dict(list(members.items())[:1])
        return {member: {} for member in members} | assign_simply(first, assignable)

    monkeypatch.setattr(f"{ShareGroup.__module__}.assign_simply", assign)
    assert names(run(one_partition)) == {"share-idle"}


def test_group__that_initializes_no_share_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ShareGroup, "initialize_states", lambda *_: None)
    monkeypatch.setattr(StatePartitions, "missing", lambda *_: {})
    result = run(SHARED)
    assert names(result) == set()
    assert "unsettled-group" in result.verdict.counts()


SNAPSHOTS = f"""\
topology:
  brokers: 3
  topics: {{orders: {{assignment: [[1, 2, 3], [1, 2, 3]]}}}}
{HEARTBEATS.replace("}", ",").rstrip()}
    share.coordinator.state.topic.num.partitions: 1,
    share.coordinator.state.topic.prune.interval.ms: 500,
    share.coordinator.snapshot.update.records.per.snapshot: 3}}
workload:
  producers: {{topic: orders, rate: 20/s, start: 1s}}
  consumers:
    topics: orders
    name: packer
    group: packing
    members: 2
    share: true
    release: 50%
    config: {{max.poll.records: 2}}
duration: 11s
steps:
  - {{at: 500ms, move: {{partition: orders-0, to: 2}}}}
  - {{at: 8s, isolate: {{nodes: packer-2}}, for: 4s}}
"""
"""The records that one member holds keep those of the other one in the state."""


def test_state__whose_last_snapshot_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The coordinator deletes what is before the newest snapshot of all, in place of the oldest."""
    assert run(SNAPSHOTS).passed
    sound = ShareStateShard._note_snapshot

    def note_snapshot(
        self: ShareStateShard, partition: SharePartition, offset: int, is_deleted: bool
    ) -> None:
        sound(self, partition, offset, is_deleted)
        self._redundant_before = offset

    monkeypatch.setattr(ShareStateShard, "_note_snapshot", note_snapshot)
    assert "share-state-pruned" in names(run(SNAPSHOTS))


def test_state__whose_snapshot_has_only_the_last_change(monkeypatch: pytest.MonkeyPatch) -> None:
    def combine_nothing(_: Any, new: Any, start_offset: int) -> tuple[StateBatch, ...]:
        return combine((), new, start_offset)

    monkeypatch.setattr(share_states, "combine", combine_nothing)
    assert "share-state-back" in names(run(SNAPSHOTS))


ONE_LEAVES = f"""\
topology:
  brokers: 3
  topics: {{orders: {{assignment: [[1, 2, 3]]}}}}
{HEARTBEATS}
workload:
  producers: {{topic: orders, rate: 40/s, start: 1s, linger: 200ms}}
  consumers:
    - topics: orders
      name: packer
      group: packing
      share: true
      config: {{share.acknowledgement.mode: explicit}}
    - {{topics: orders, name: guest, group: packing, share: true, stop: 9s}}
duration: 11s
steps:
  - {{at: 1s, slow: {{nodes: packer, latency: 50ms}}, for: 9s}}
"""


def test_lock__that_goes_with_the_connection_of_another_member(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run(ONE_LEAVES).passed
    monkeypatch.setattr(ShareSessions, "has_group", lambda *_: False)
    assert "lock-lost" in names(run(ONE_LEAVES))


TOO_MANY = """\
topology:
  brokers: 3
  topics: {orders: {assignment: [[1, 2, 3]]}}
  config: {group.share.partition.max.record.locks: 100}
workload:
  producers: {topic: orders, rate: 60/s, stop: 12s}
  consumers:
    topics: orders
    name: packer
    group: packing
    members: 2
    share: true
    config: {max.poll.records: 40}
duration: 13s
steps:
  - {at: 8s, isolate: {nodes: packer-1}, for: 4s}
"""
"""One member holds its records for all the time, so the start offset stays before them."""


def test_lock__of_more_records_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(TOO_MANY).passed

    def acquire(window: Any, acquirer: Any, limits: Any, *rest: Any) -> Any:
        return acquisition.acquire(window, acquirer, replace(limits, record_locks=9_000), *rest)

    monkeypatch.setattr(f"{ShareLeader.__module__}.acquire", acquire)
    monkeypatch.setattr(InFlightWindow, "can_acquire", lambda *_: True)
    assert names(run(TOO_MANY)) == {"share-over-locks"}


def test_start_offset__that_passes_what_a_member_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_settled(run: InFlightRun) -> bool:
        return run.state is not AVAILABLE and run.transition is None

    monkeypatch.setattr(InFlightRun, "is_settled", property(is_settled))
    assert "share-passed-over" in names(run(SNAPSHOTS))


OFTEN = """\
topology:
  brokers: 3
  topics: {orders: {assignment: [[1, 2, 3]]}}
  config: {group.share.delivery.count.limit: 2}
workload:
  producers: {topic: orders, rate: 10/s, start: 2s, stop: 4s}
  consumers: {topics: orders, name: packer, group: packing, share: true, release: 70%}
duration: 7s
checks: {allowed_anomalies: passed-over}
"""


def test_record__that_is_delivered_more_often_than_it_may_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run(OFTEN).passed
    monkeypatch.setattr(InFlightWindow, "_state_for", lambda _window, _run, state, _limits: state)
    assert "share-over-deliveries" in names(run(OFTEN))


def test_session__that_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    find = ShareSessions.find

    def find_at_first(
        sessions: ShareSessions, group: str, member: str, epoch: int
    ) -> ShareSession | ErrorCode:
        if epoch == 4:
            return ErrorCode.SHARE_SESSION_NOT_FOUND
        return find(sessions, group, member, epoch)

    monkeypatch.setattr(ShareSessions, "find", find_at_first)
    assert "share-session-lost" in names(run(OFTEN))


def test_leader__that_counts_too_many_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(InFlightWindow, "delivery_complete_count", 1_000)
    assert "share-overcounted" in names(run(OFTEN))
