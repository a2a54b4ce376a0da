"""Broken cores that one short story shows: each is found by its name, and the sound core is not."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from kcluster.broker.coordinator.classic_group import ClassicGroup
from kcluster.broker.coordinator.log_shard import LogShard
from kcluster.broker.coordinator.share_state import state as share_state
from kcluster.broker.coordinator.share_state.share_states import ShareStates
from kcluster.broker.coordinator.share_state.state import StateBatch
from kcluster.broker.handlers.data import list_offsets
from kcluster.broker.publisher import MetadataPublisher
from kcluster.broker.replication.isr import IsrChanges
from kcluster.broker.share import share_partition
from kcluster.broker.share.in_flight import ACQUIRED
from kcluster.broker.share.share_partitions import SharePartitions
from kcluster.broker.share.window import InFlightWindow
from kcluster.controller.membership.liveness import BrokerState, Sessions
from kcluster.controller.membership.membership import Membership
from kcluster.controller.partitions import elections
from kcluster.controller.partitions.alter_partition import IsrProposals
from kcluster.controller.partitions.partitions import Partitions
from kcluster.controller.partitions.reassigning import Assignment, Completed
from kcluster.partition.disk import Disk
from kcluster.partition.log import compaction
from kcluster.partition.replica import FollowerProgress, Replica
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.batches import DELETE_HORIZON_BIT
from kcluster.protocol.records.records import read_records
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.phases import RunResult
from kcluster.scenario.play.running import run_scenario

pytestmark = pytest.mark.pure_python  # a class of the extension cannot be broken on purpose


def run(text: str) -> RunResult:
    return run_scenario(Scenario.parse(text), "virtual")


def names(result: RunResult) -> set[str]:
    return {violation.name for violation in result.verdict.violations}


UNCLEAN = "unclean.leader.election.enable"
ALL_DOWN_AND_THE_OLDEST_RETURNS = """\
topology:
  brokers: 3
  topics: {orders: {assignment: [[1, 2, 3]], config: {min.insync.replicas: 2}}}
workload: {producers: {topic: orders, rate: 20/s}}
duration: 60s
steps:
  - {at: 5s, kill: 3}
  - {at: 20s, kill: "1, 2"}
  - {at: 35s, start: 3}
"""
"""Broker 3 has neither what 1 and 2 committed without it, nor a place in the ELR."""


def test_unclean_election__of_a_topic_that_forbids_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(ALL_DOWN_AND_THE_OLDEST_RETURNS).passed
    monkeypatch.setattr(Partitions, "unclean_allowed", lambda *_: True)
    result = run(ALL_DOWN_AND_THE_OLDEST_RETURNS)
    assert {"unclean-forbidden", "committed-lost"} <= names(result)
    assert {(found.name, found.allowed) for found in result.verdict.anomalies} == {
        ("lost-write", "")
    }
    first = next(one for one in result.verdict.violations if one.name == "unclean-forbidden")
    chain = [link.text for link in first.chain]
    assert "broker 3 fenced: no heartbeat for 9000 ms" in chain
    assert any("leader none -> 3" in text for text in chain)
    assert f"  {first.chain[0].at_ms - result.began_ms:>+8} ms  {chain[0]}" in result.verdict.lines(
        verbose=True
    )


@pytest.mark.parametrize(
    "allow",
    [
        f"topics: {{orders: {{assignment: [[1, 2, 3]], config: {{{UNCLEAN}: true}}}}}}",
        f"topics: {{orders: {{assignment: [[1, 2, 3]]}}}}\n  config: {{{UNCLEAN}: true}}",
    ],
    ids=["topic", "cluster"],
)
def test_unclean_election__that_a_setting_allows(allow: str) -> None:
    head, tail = ALL_DOWN_AND_THE_OLDEST_RETURNS.split("  topics:")
    result = run(f"{head}  {allow}\n{tail[tail.index('workload') :]}")
    assert names(result) == set()
    assert {found.allowed for found in result.verdict.anomalies} == {f"{UNCLEAN}=true"}


def test_unclean_election__that_was_allowed_when_it_took_place() -> None:
    switched = """\
  - {at: 34s, set_config: {config: {unclean.leader.election.enable: true}, topics: orders}, for: 5s}
  - {at: 35s, start: 3}
"""
    result = run(ALL_DOWN_AND_THE_OLDEST_RETURNS.replace("  - {at: 35s, start: 3}\n", switched))
    assert names(result) == set()
    assert {found.allowed for found in result.verdict.anomalies} == {f"{UNCLEAN}=true"}


def test_unclean_election__that_the_operator_requested() -> None:
    result = run(
        ALL_DOWN_AND_THE_OLDEST_RETURNS
        + "  - {at: 40s, elect: {partition: orders-0, unclean: true}}\n"
    )
    assert names(result) == set()
    (lost,) = result.verdict.anomalies
    assert lost.allowed == "an unclean election requested by the operator"
    assert any("acked by broker 1 (acks=all, ISR [1, 2])" in link.text for link in lost.chain)


ONE_STOPS = """\
topology:
  brokers: 3
  topics: {orders: {assignment: [[1, 2, 3]], config: {min.insync.replicas: 2}}}
workload: {producers: {topic: orders, rate: 20/s}}
duration: 60s
steps: [{at: 5s, stop: 3, for: 20s}]
"""


def test_watermark__that_waits_for_a_broker_that_cannot_join(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """KAFKA-15021: a replica that is shutting down, or fenced, was waited for."""
    assert run(ONE_STOPS).passed

    def about_to_join(self: Replica, follower: FollowerProgress, end: int, now_ms: int) -> Any:
        return not self._is_lagging(follower, end, now_ms)

    monkeypatch.setattr(Replica, "_about_to_join", about_to_join)
    result = run(ONE_STOPS)
    assert names(result) == {"watermark-stalled"}
    (window,) = result.verdict.windows
    assert window.duration_ms > 5_000


def test_run__that_does_not_come_to_rest_names_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A leader that takes no answer to an AlterPartition asks for no second change of the ISR."""
    monkeypatch.setattr(IsrChanges, "_on_answer", lambda *_: None)
    twice = "steps: [{at: 5s, every: 20s, times: 2, stop: 3, for: 5s}]"
    result = run(ONE_STOPS.replace("steps: [{at: 5s, stop: 3, for: 20s}]", twice))
    missing = [line for line in result.failures if line.startswith("it did not come to rest: ")]
    assert "orders-0: broker 3 is not in the ISR [1, 2]" in missing[0]
    assert missing[0].endswith("the leader's proposal of the ISR [1, 2, 3] has not been decided")


MOVED = """\
topology:
  brokers: 4
  topics: {orders: {assignment: [[1, 2, 3]], config: {min.insync.replicas: 2}}}
workload: {producers: {topic: orders, rate: 20/s}}
duration: 20s
steps:
  - {at: 5s, isolate: {nodes: 4, others: "1, 2, 3"}, for: 5s}
  - {at: 6s, reassign: {partition: orders-0, to: [2, 3, 4]}}
"""


def test_reassignment__that_leaves_a_log_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(MOVED).passed
    monkeypatch.setattr(Disk, "remove", lambda *_: False)
    assert names(run(MOVED)) == {"log-left"}


def test_reassignment__that_ends_before_the_new_replica_is_in_sync(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def at_once(assignment: Assignment, isr: tuple[int, ...]) -> Completed | None:
        stay = tuple(one for one in assignment.replicas if one not in assignment.removing)
        return Completed(stay, tuple(one for one in isr if one in stay))

    moves = MOVED.replace("[2, 3, 4]", "[4, 2, 3]")
    assert run(moves).passed
    monkeypatch.setattr(
        elections,
        "completed",
        lambda assignment, isr: at_once(assignment, isr) if assignment.in_progress else None,
    )
    assert "reassigned-early" in names(run(moves))


LATE = """\
topology:
  brokers: 3
  topics: {orders: {assignment: [[1, 2, 3]], config: {min.insync.replicas: 2}}}
  config:
    broker.session.timeout.ms: 600
    broker.heartbeat.interval.ms: 150
    replica.lag.time.max.ms: 500
    controller.quorum.request.timeout.ms: 8000
workload: {producers: {topic: orders, rate: 20/s}}
duration: 12s
steps:
  - {at: 2s, pause: 3, for: 900ms}
  - {at: 2700ms, node_rule: {api: AlterPartition, from: 1, delay: 3s}, for: 4s}
  - {at: 4s, restart: {brokers: 3, how: kill, down: 50ms}}
"""
"""Broker 3 is dead and back while the proposal that it joins the ISR is on its way."""


def test_proposal__that_is_older_than_the_life_of_the_broker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run(LATE).passed

    def is_ineligible(self: IsrProposals, state: Any) -> bool:
        registration = self._image.brokers.get(state.broker_id)
        return registration is None or not registration.is_active

    monkeypatch.setattr(IsrProposals, "_is_ineligible", is_ineligible)
    assert names(run(LATE)) == {"isr-outdated"}


SHARED_TRANSACTIONS = """\
topology:
  brokers: 3
  topics: {orders: {partitions: 1, replication_factor: 3}}
workload:
  producers: {topic: orders, rate: 20/s, start: 1s, transactions: {every: 4, abort: 50%}}
  consumers: {topics: orders, group: packing, share: true}
duration: 4s
steps:
  - {at: 100ms, set_config: {groups: packing, config: {share.isolation.level: read_committed}}}
"""


def test_share_group__with_read_committed_gets_aborted_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run(SHARED_TRANSACTIONS).passed
    monkeypatch.setattr(share_partition, "without_aborted", lambda _, acquired, *__: acquired)
    assert names(run(SHARED_TRANSACTIONS)) == {"read-aborted"}


SHARED = """\
topology: {brokers: 3, topics: {orders: {assignment: [[1, 2, 3]]}}}
workload:
  producers: {topic: orders, rate: 20/s, start: 1s}
  consumers: {topics: orders, group: packing, share: true}
duration: 10s
steps:
  - {at: 5s, move: {partition: orders-0, to: 2}}
  - {at: 7s, move: {partition: orders-0, to: 1}}
"""


def test_share_group__whose_leader_goes_on_from_its_last_leadership(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Broker 1 delivers again what the group has accepted from broker 2, until a write of its state
    is refused."""
    assert run(SHARED).passed
    monkeypatch.setattr(SharePartitions, "on_resigned", lambda *_: None)
    assert names(run(SHARED)) == {"stale-share-leader"}


LATE_WRITE = """\
topology:
  brokers: 3
  topics: {orders: {assignment: [[1, 2, 3]]}}
  config: {request.timeout.ms: 500, share.coordinator.state.topic.num.partitions: 1}
workload:
  producers: {topic: orders, rate: 10/s, stop: 11s}
  consumers:
    - topics: orders
      name: packer
      group: packing
      members: 2
      share: true
      release: 50%
      config: {max.poll.records: 3}
duration: 17s
steps:
  - {at: 1s, move: {partition: __share_group_state-0, to: 2}}
  - {at: 10s, node_rule: {api: WriteShareGroupState, from: 1, to: 2, delay: 3s, times: 1}}
  - {at: 10300ms, move: {partition: __share_group_state-0, to: 3}}
  - {at: 12s, move: {partition: __share_group_state-0, to: 2}}
  - {at: 14s, move: {partition: orders-0, to: 3}}
"""
"""A write of the state is sent again to coordinator 3, and later ones after it; it arrives at
coordinator 2 when that has the state back."""
ONE_MEMBER_HOLDS = LATE_WRITE.replace(
    "  - {at: 10s,", "  - {at: 9500ms, isolate: {nodes: packer-2}, for: 8s}\n  - {at: 10s,"
)
"""Its records keep the start offset from moving past those that the late write is about."""


def test_share_state__start_offset_that_a_late_write_moves_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run(LATE_WRITE).passed
    sound = ShareStates._changed

    def changed(self: ShareStates, partition: Any, entry: Any, *rest: Any) -> Any:
        record = sound(self, partition, entry, *rest)
        return structs.replace(record, start_offset=rest[1])

    monkeypatch.setattr(ShareStates, "_changed", changed)
    result = run(LATE_WRITE)
    assert names(result) == {"share-state-back"}
    assert [one.topic for one in result.verdict.violations] == ["__share_group_state", ""]
    assert "delivered-after-ack" in result.verdict.counts()


def test_share_state__progress_that_a_late_write_takes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run(ONE_MEMBER_HOLDS).passed

    def put(batches: list[StateBatch], new: StateBatch) -> None:
        kept = [new]
        for old in batches:
            if old.first_offset < new.first_offset:
                end = min(old.last_offset, new.first_offset - 1)
                kept.append(old.part(old.first_offset, end))
            if old.last_offset > new.last_offset:
                begin = max(old.first_offset, new.last_offset + 1)
                kept.append(old.part(begin, old.last_offset))
        batches[:] = sorted(kept)

    monkeypatch.setattr(share_state, "_put", put)
    result = run(ONE_MEMBER_HOLDS)
    assert names(result) == {"coordinator-differs", "share-state-back"}
    assert "delivered-after-ack" in result.verdict.counts()


NOT_STORED = """\
topology:
  brokers: 3
  topics: {orders: {assignment: [[1, 2, 3]]}}
  config:
    request.timeout.ms: 1500
    share.coordinator.state.topic.num.partitions: 1
    group.share.min.record.lock.duration.ms: 1000
    group.share.record.lock.duration.ms: 4000
workload:
  producers: {topic: orders, rate: 10/s, stop: 8100ms}
  consumers: {topics: orders, group: packing, share: true, release: 50%}
duration: 12s
steps:
  - {at: 1s, move: {partition: __share_group_state-0, to: 2}}
  - {at: 7900ms, node_rule: {from: 1, topic: __cluster_metadata, delay: 2s}, for: 2s}
  - {at: 8s, move: {partition: __share_group_state-0, to: 3}}
"""
"""Leader 1 asks the last coordinator five times, in 750 ms, and gives up."""


def test_share_group__whose_releases_count_though_they_were_not_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run(NOT_STORED).passed
    sound = InFlightWindow.complete

    def complete(self: InFlightWindow, transition: Any, is_stored: bool, *rest: Any) -> bool:
        before = [(run, run.state) for run in transition.runs]
        is_moved = sound(self, transition, is_stored, *rest)
        for run, state in before:
            if run.state is ACQUIRED:
                run.state = state
        return is_moved

    monkeypatch.setattr(InFlightWindow, "complete", complete)
    result = run(NOT_STORED)
    assert names(result) == set()
    assert set(result.verdict.counts()) == {"passed-over"}


PAUSED_IN_A_TRANSACTION = """\
topology:
  brokers: 3
  profile: fast
  topics: {orders: {assignment: [[1, 2, 3]]}, bills: {assignment: [[2, 3, 1]]}}
workload:
  producers: {topic: orders, rate: 50/s}
  processors:
    - topic: orders
      to: bills
      name: first
      group: billing
      timeout: 10s
      version: 1
      producer_config: {max.block.ms: 10000}
    - {topic: orders, to: bills, name: second, group: billing, timeout: 10s, start: 500ms}
duration: 2500ms
steps:
  - {at: 900ms, slow: {nodes: first, latency: 20ms}, for: 1500ms}
  - {at: 950ms, pause: client first, for: 900ms}
"""
"""The first processor has a transaction open, and is paused for longer than its session.  It goes
on where it was, with its offsets, and the second one has processed the same orders."""


def test_group__that_takes_the_offsets_of_a_processor_it_has_removed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run(PAUSED_IN_A_TRANSACTION).passed
    sound = ClassicGroup.admit_commit

    def admit_commit(self: ClassicGroup, committer: Any, now_ms: int) -> ErrorCode:
        error = sound(self, committer, now_ms)
        return ErrorCode.NONE if committer.is_in_transaction else error

    monkeypatch.setattr(ClassicGroup, "admit_commit", admit_commit)
    result = run(PAUSED_IN_A_TRANSACTION)
    assert names(result) == {"stale-commit"}
    assert set(result.verdict.counts()) == {"processed-twice"}


COMMITS_REFUSED = """\
topology:
  brokers: 3
  profile: fast
  topics:
    orders: {assignment: [[3]]}
    __consumer_offsets: {assignment: [[1, 2]], config: {min.insync.replicas: 2}}
workload:
  producers: {topic: orders, rate: 50/s}
  consumers:
    - {topics: orders, name: early, group: billing, commit: after_poll, stop: 2s}
    - {topics: orders, name: other, group: audit, commit: after_poll}
duration: 4s
steps: [{at: 1500ms, stop: 2, for: 1500ms}]
"""
"""The last commits of one group are refused, for want of replicas; those of the other go on."""


def test_coordinator__that_applies_a_write_that_its_log_has_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run(COMMITS_REFUSED).passed
    sound = LogShard._on_append

    def on_append(self: LogShard[Any], write: Any, error: ErrorCode, now_ms: int) -> None:
        writes = self._writes
        sound(self, write, error, now_ms)
        if write.is_refused:
            self._writes = writes

    monkeypatch.setattr(LogShard, "_on_append", on_append)
    result = run(COMMITS_REFUSED)
    assert names(result) == {"coordinator-differs"}
    (found,) = result.verdict.violations
    assert "of group billing" in found.text


QUIET = """\
topology:
  brokers: 3
  topics:
    table:
      assignment: [[1, 2]]
      config: {cleanup.policy: compact, segment.ms: 200, min.cleanable.dirty.ratio: 0.01}
  config: {log.cleaner.backoff.ms: 100}
workload:
  producers:
    - {topic: table, name: quiet, rate: 10/s, keys: 1, stop: 1s, in_flight: 1}
    - {topic: table, name: brisk, rate: 20/s, keys: 1}
  consumers: {partitions: table-0, name: reader}
duration: 6s
steps:
  - {at: 850ms, rule: {api: Produce, client: quiet, drop: reply}, for: 3s}
  - {at: 2500ms, reassign: {partition: table-0, to: [3]}}
"""
"""A producer waits for the answer to its last record, until another one has overwritten that, the
log has been cleaned, and a broker leads that has copied what was left.  Then it sends again."""


def test_compaction__that_drops_the_last_batch_of_a_producer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def places(result: RunResult) -> list[int]:
        reads = result.ledger.reads
        return [one.offset for one in reads if one.value and one.value.startswith(b"quiet:9")]

    result = run(QUIET)
    assert result.passed
    assert len(places(result)) == 1
    sound = compaction._clean_batch

    def clean_batch(batch: Any, work: Any) -> Any:
        left = sound(batch, work)
        return left if left is not None and (left.is_control or left.record_count) else None

    monkeypatch.setattr(compaction, "_clean_batch", clean_batch)
    result = run(QUIET)
    assert names(result) == {"sequence-compacted"}
    assert len(places(result)) == 2, "nobody knows the batch that is sent again"


NEW_LEADER = """\
topology: {brokers: 3, profile: fast, topics: {orders: {assignment: [[1, 2, 3]]}}}
workload:
  producers: {topic: orders, rate: 100/s}
  consumers: {partitions: orders-0, name: newest, reset: latest, start: 1900ms}
duration: 3s
steps:
  - {at: 1200ms, slow: {nodes: 1, others: 2, latency: 20ms, one_way: true}, for: 325ms}
  - {at: 1525ms, kill: 1}
  - {at: 1525ms, isolate: {nodes: 2, others: 3}, for: 1s}
"""
"""Broker 2 did not get the last high watermark of broker 1, and cannot have one of its own."""


def test_leader__that_lists_an_end_below_what_is_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    """KIP-207: a consumer that asks for the end must not get one that lies before its records."""
    assert run(NEW_LEADER).passed
    monkeypatch.setattr(list_offsets, "_watermark_is_of_this_epoch", lambda _: True)
    result = run(NEW_LEADER)
    assert names(result) == {"listed-too-low"}
    (found,) = result.verdict.violations
    assert found.text.startswith("listed end ")


TOMBSTONES = """\
topology:
  brokers: 1
  topics:
    table:
      assignment: [[1]]
      config:
        cleanup.policy: compact
        segment.ms: 200
        min.cleanable.dirty.ratio: 0.01
        delete.retention.ms: 1000
  config: {log.cleaner.backoff.ms: 300}
workload: {producers: {topic: table, rate: 20/s, keys: 50, tombstones: 50%}}
duration: 4s
"""


def test_compaction__that_keeps_tombstones_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """KAFKA-8522: each cleaning began the time again after which a tombstone goes."""
    assert run(TOMBSTONES).passed
    sound = compaction._clean_batch

    def clean_batch(batch: Any, work: Any) -> Any:
        left = sound(batch, work)
        if left is None or not left.attributes & DELETE_HORIZON_BIT:
            return left
        return compaction._rebuild(left, read_records(left), work.tombstone_ms)

    monkeypatch.setattr(compaction, "_clean_batch", clean_batch)
    result = run(TOMBSTONES)
    assert names(result) == {"batch-altered"}
    assert "another delete horizon" in result.verdict.violations[0].text


ONE_IS_ENOUGH = """\
topology:
  brokers: 3
  profile: fast
  topics: {orders: {assignment: [[1, 2, 3]], config: {min.insync.replicas: 2}}}
workload: {producers: {topic: orders, rate: 20/s}}
duration: 5s
steps:
  - {at: 1s, stop: "2, 3", for: 3s}
  - {at: 2s, set_config: {topics: orders, config: {min.insync.replicas: 1}}}
"""
"""From the second step on, broker 1 commits records that 2 and 3 do not have."""


def test_elr__that_outlives_a_change_of_min_isr(monkeypatch: pytest.MonkeyPatch) -> None:
    """KIP-966: with another min.insync.replicas, who was eligible may lack committed records."""
    assert run(ONE_IS_ENOUGH).passed
    monkeypatch.setattr(elections, "clear_elr", lambda _: None)
    result = run(ONE_IS_ENOUGH)
    assert names(result) == {"elr-needless"}
    assert "are in the ELR, though enough are in the ISR: [1]" in result.verdict.violations[0].text


ONE_IS_DEAD = """\
topology: {brokers: 3, profile: fast, topics: {orders: {assignment: [[1, 2, 3]]}}}
workload: {producers: {topic: orders, rate: 20/s}}
duration: 5s
steps: [{at: 1s, kill: 3}, {at: 3s, stop: 1, for: 1s}]
"""


SHUT_DOWN_FOR_ANOTHER_CONTROLLER = """\
topology:
  brokers: 5
  topics: {orders: {assignment: [[1, 2, 3], [3, 4, 5]], config: {min.insync.replicas: 2}}}
  config: {broker.session.timeout.ms: 1000, broker.heartbeat.interval.ms: 200}
workload: {producers: {topic: orders, rate: 5/s}}
duration: 4s
steps:
  - {at: 1s, kill: 3, for: 5s}
  - {at: 1s, stop: 1, for: 5s}
  - {at: 2s, kill: controller, for: 1s}
  - {at: 3s, stop: 4, for: 5s}
"""
"""Broker 1 waits for broker 3, which is dead, and gives up before the next controller is active."""


def test_shutdown__that_a_new_controller_was_not_asked_for() -> None:
    assert run(SHUT_DOWN_FOR_ANOTHER_CONTROLLER).passed


def test_shutdown__that_waits_for_a_dead_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(ONE_IS_DEAD).passed

    def lowest_active_offset(self: Sessions) -> int:
        alive = (one for one in self.all() if one.state is not BrokerState.CONTROLLED_SHUTDOWN)
        return min(session.metadata_offset for session in alive)

    monkeypatch.setattr(Sessions, "lowest_active_offset", lowest_active_offset)
    result = run(ONE_IS_DEAD)
    (found,) = result.verdict.violations
    assert found.name == "shutdown-held-back"
    assert found.text.startswith("it may not shut down, though it leads nothing")


METADATA_IS_LATE = """\
topology:
  brokers: 3
  topics: {orders: {assignment: [[1, 2, 3]]}}
  config: {replica.lag.time.max.ms: 500, controller.quorum.request.timeout.ms: 8000}
workload: {producers: {topic: orders, rate: 20/s}}
duration: 8s
steps:
  - {at: 2s, isolate: {nodes: 1, others: 3}, for: 1500ms}
  - {at: 2s, node_rule: {topic: __cluster_metadata, from: 1, of: reply, delay: 10s}, for: 4s}
"""
"""Broker 3 leaves the ISR and comes back, and then its leader gets the metadata without it."""


def test_leader__that_takes_back_an_isr_it_was_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """KAFKA-13790 in kind: the answer to AlterPartition overtakes the metadata."""
    assert run(METADATA_IS_LATE).passed
    sound = MetadataPublisher._adopt

    def adopt(self: Any, topic: str, new: Any, cause: Any, now_ms: int) -> None:
        replica = self._replicas.get(new.topic_id, new.partition)
        if replica is not None and new.leader == replica.broker_id:
            self._lead(replica, new, now_ms)
        else:
            sound(self, topic, new, cause, now_ms)

    monkeypatch.setattr(MetadataPublisher, "_adopt", adopt)
    result = run(METADATA_IS_LATE)
    assert names(result) == {"epoch-back"}


BOTH_DIE = """\
topology: {brokers: 3, profile: fast, topics: {orders: {assignment: [[1, 2, 3]]}}}
workload: {producers: {topic: orders, rate: 20/s}}
duration: 6s
steps:
  - {at: 1s, kill: 3, for: 4s}
  - {at: 1010ms, kill: controller, for: 100ms}
"""


def test_broker__that_died_with_the_controller_and_is_never_fenced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run(BOTH_DIE).passed
    sound = Membership.take_over

    def take_over(self: Membership, now_ms: int) -> None:
        sound(self, now_ms)
        for session in self.sessions.all():
            session.last_contact_ms = None

    monkeypatch.setattr(Membership, "take_over", take_over)
    result = run(BOTH_DIE)
    assert names(result) == {"silent-unfenced"}
    assert result.verdict.violations[0].text.endswith(" ms, and it is not fenced")
