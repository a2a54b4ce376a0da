"""A cluster at a moment of its past: what the rows until then add up to."""

from __future__ import annotations

from functools import cache

import pytest

from kcluster.cli.errors import CommandError
from kcluster.cli.moment_status import moment_ms, moment_values, status_values
from kcluster.cli.status_tables import notices
from kcluster.config.topology.model import Topology
from kcluster.deaths import DeathKind, ProcessState
from kcluster.operations.status import cluster_status
from kcluster.runs.build_record import record_of
from kcluster.runs.moment import ClusterMoment, PartitionMoment, moment_of, recorded_until
from kcluster.runs.record import RunInfo, RunRecord
from kcluster.testing.handles import VirtualCluster
from tests.runs.stage import unclean_run


def failover() -> tuple[VirtualCluster, dict[str, int]]:
    """A cluster with a producer, a consumer and a transaction, whose leader dies; and when."""
    topology = Topology.of(
        brokers=3,
        profile="fast",
        config={"auto.create.topics.enable": False},
        topics={"orders": {"replication_factor": 3, "assignment": [[1, 2, 3]]}},
    )
    cluster = VirtualCluster(topology, 1, "moment")
    cluster.producer("orders", name="shop", rate="50/s", count=400)
    cluster.producer("orders", name="pay", rate="50/s", count=50, transactions={"every": 10})
    cluster.consumer(topics="orders", name="billing", group="g")
    times = {}
    cluster.run_for(3_000)
    times["before"] = cluster.now_ms - 1
    cluster.do("isolate", nodes="1", others="3")
    cluster.kill(1)
    cluster.run_for(20)
    times["dead"] = cluster.now_ms - 1
    cluster.run_for(3_000)
    times["after"] = cluster.now_ms - 1
    cluster.start(1)
    cluster.run_for(6_000)
    return cluster, times


def record(cluster: VirtualCluster) -> RunRecord:
    verdict = cluster.verdict()
    return record_of(
        RunInfo("moment", "virtual", 1, 0, cluster.now_ms),
        cluster.recorder,
        cluster.ledger,
        verdict,
    )


@cache
def seen() -> tuple[VirtualCluster, dict[str, int], RunRecord]:
    """The failover with its record, for tests that only look."""
    cluster, times = failover()
    return cluster, times, record(cluster)


def test_moment__brokers_links_and_partitions_are_as_they_were() -> None:
    _, times, run = seen()
    before, dead, after = (moment_of(run, times[name]) for name in ("before", "dead", "after"))
    assert {one.state for one in before.brokers} == {ProcessState.UP}
    assert (dead.brokers[0].state, dead.brokers[0].how) == (ProcessState.DOWN, DeathKind.KILL)
    assert [one.brokers[0].fenced for one in (before, dead, after)] == [False, False, True]
    assert (before.cuts, after.cuts) == ((), ((1, 3), (3, 1)))
    assert [orders(one).leader for one in (before, dead, after)] == [1, 1, 2]
    assert [orders(one).isr for one in (before, after)] == [(1, 2, 3), (2, 3)]
    assert [log.standing for log in orders(after).logs][1:] == ["leader", "in sync"]
    leader = orders(after).logs[1]
    assert [epoch for epoch, _ in leader.epochs] == [0, 1]
    assert 0 < orders(before).logs[0].log_end_offset < leader.log_end_offset
    assert leader.last_stable_offset >= 0


def test_moment__clients_groups_and_transactions_are_as_they_were() -> None:
    _, times, run = seen()
    before, after = (moment_of(run, times[name]) for name in ("before", "after"))
    shop = {
        name: next(x for x in one.clients if x.name == "shop")
        for name, one in (("before", before), ("after", after))
    }
    assert [(x.leader, x.leader_epoch) for x in shop["before"].beliefs] == [(1, 0)]
    assert [(x.leader, x.leader_epoch) for x in shop["after"].beliefs] == [(2, 1)]
    assert shop["after"].last is not None
    assert (shop["after"].last.api, shop["after"].last.broker) == ("Produce", 2)
    (group,) = before.groups
    assert (group.group, group.state, group.members[0].client) == ("g", "Stable", "billing")
    (transaction,) = before.transactions
    assert transaction.transactional_id == "pay"
    joined_ms = min(row.at_ms for row in run.groups)
    assert moment_of(run, joined_ms).groups[0].state == "PreparingRebalance"
    assert moment_of(run, joined_ms - 1).groups == ()


def test_moment__the_present_is_what_the_status_says() -> None:
    cluster, _, run = seen()
    moment = moment_of(run, cluster.now_ms)
    status = cluster_status(cluster.plan, cluster.dispatcher)
    shown = {f"{x.topic}-{x.partition}": x for x in moment.partitions}
    for one in status.partitions:
        mine = shown[f"{one.topic}-{one.partition}"]
        assert (mine.leader, mine.leader_epoch) == (one.leader, one.leader_epoch)
        assert (mine.isr, mine.elr, mine.replicas) == (one.isr, one.elr, one.replicas)
        values = {log.broker: log for log in mine.logs}
        if one.log_end_offset:
            assert values[mine.leader or 0].log_end_offset == one.log_end_offset
    assert [(x.id, str(x.state), x.fenced) for x in moment.brokers] == [
        (x.id, x.state, x.fenced) for x in status.brokers
    ]
    assert moment.cuts == status.cuts


def test_moment__the_rows_of_a_running_cluster_give_the_same() -> None:
    cluster, times, whole = seen()
    for at_ms in times.values():
        part = recorded_until(cluster.recorder, at_ms)
        assert len(part.moves) < len(whole.moves) / 10
        assert moment_of(part, at_ms) == moment_of(whole, at_ms)


def test_moment__a_topic_that_was_deleted_is_not_shown() -> None:
    cluster, _ = failover()
    at_ms = cluster.now_ms
    cluster.do("delete_topic", name="orders")
    cluster.run_for(1_000)
    run = record(cluster)
    assert any(x.topic == "orders" for x in moment_of(run, at_ms - 1).partitions)
    assert not any(x.topic == "orders" for x in moment_of(run, cluster.now_ms).partitions)


def test_moment__of_an_older_run_has_what_its_tables_have() -> None:
    moment = moment_of(unclean_run(), 6_000)
    assert [one.state for one in moment.brokers] == [ProcessState.DOWN, ProcessState.UP]
    assert orders(moment).logs[0].standing == "down, 3 ahead"
    assert moment_values(moment)["partitions"][0]["leader"] == 2


def test_status_at__shows_the_faults_that_were_in_force() -> None:
    cluster, times = failover()
    cluster.do("slow", nodes="2", latency="20ms")
    cluster.do("rule", api="Produce", delay="5ms")
    run = record(cluster)
    values = status_values(moment_of(run, cluster.now_ms), {1: ("127.0.0.1", 9092, "4.3")})
    assert values["brokers"][0]["port"] == 9092
    lines = notices(values, None)
    assert "cut: 1-3" in lines
    assert any(line.startswith("slow: ") and "latency 20 ms" in line for line in lines)
    assert any(line.startswith("rule ") and "requests" not in line for line in lines)
    assert notices(status_values(moment_of(run, times["before"]), {}), "orders") == []


def test_moment_ms__counts_from_the_beginning_or_back_from_the_end() -> None:
    assert moment_ms("2s", 1_000, 11_000) == 3_000
    assert moment_ms("-2s", 1_000, 11_000) == 9_000
    assert moment_ms("0", 1_000, 11_000) == 1_000
    for typed, reason in (("12s", "10 s are recorded"), ("-12s", "10 s are"), ("5", "5 what?")):
        with pytest.raises(CommandError, match=reason):
            moment_ms(typed, 1_000, 11_000)


def orders(moment: ClusterMoment) -> PartitionMoment:
    return next(one for one in moment.partitions if one.topic == "orders")
