"""Broken cores that one short story shows: each is found by its name, and the sound core is not."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.broker.coordinator.transactions.coordinator import TransactionCoordinator
from kcluster.broker.coordinator.transactions.markers import MarkerSender
from kcluster.broker.replication.isr import IsrChanges
from kcluster.broker.share import share_partition
from kcluster.broker.share.share_partitions import SharePartitions
from kcluster.controller.partitions import elections
from kcluster.controller.partitions.alter_partition import IsrProposals
from kcluster.controller.partitions.partitions import Partitions
from kcluster.controller.partitions.reassigning import Assignment, Completed
from kcluster.partition.disk import Disk
from kcluster.partition.replica import FollowerProgress, Replica
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
    (first, *_) = result.verdict.violations
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


TRANSACTIONS = """\
topology: {brokers: 3, profile: fast, topics: {orders: {assignment: [[1, 2, 3]]}}}
workload:
  producers:
    - {topic: orders, name: shop, rate: 50/s, stop: 5s, transactions: {every: 10, timeout: 500ms}}
duration: 6s
steps: [{at: 470ms, isolate: {nodes: shop}, for: 3500ms}]
"""


def test_transactions__that_nobody_aborts_are_found_though_they_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The producer is away for longer than its timeout; it ends the transaction when it is back."""
    assert run(TRANSACTIONS).passed
    monkeypatch.setattr(TransactionCoordinator, "_abort_timed_out", lambda *_: None)
    result = run(TRANSACTIONS)
    assert names(result) == {"transaction-overdue"}
    (found, *_) = result.verdict.violations
    assert "open beyond its timeout" in found.text
    assert found.at_ms - result.began_ms < 3_000
    assert result.verdict.counts() == {}


def test_transactions__whose_markers_come_late_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The coordinator forgets the markers of a transaction, until another one is elected."""
    start = MarkerSender.start

    def forgetful(self: MarkerSender, *args: Any) -> None:
        start(self, *args)
        if args[-1] < 4_000:
            self.stop_all()

    steps = "steps: [{at: 5s, stop: transaction_coordinator(shop), for: 500ms}]"
    text = TRANSACTIONS.replace(TRANSACTIONS[TRANSACTIONS.index("steps:") :], steps)
    assert run(text).passed
    monkeypatch.setattr(MarkerSender, "start", forgetful)
    result = run(text)
    assert names(result) == {"transaction-overdue"}
    (found, *_) = result.verdict.violations
    assert "decided, without its markers, for" in found.text
    assert "stuck-transaction" not in result.verdict.counts()


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
