"""Rows of clients, logs, groups and transactions: of a recorder that sees every step, and of one
that looks from time to time."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

import pytest
from msgspec.structs import astuple

from kcluster.config.topology.model import Topology
from kcluster.evidence.exchanges import Exchanges
from kcluster.evidence.kept_rows import StateRows
from kcluster.evidence.recorder import Recorder
from kcluster.evidence.rows import BeliefRow, ExchangeRow
from kcluster.evidence.sampling import SamplingRecorder
from kcluster.runs.record import STREAMED
from kcluster.runs.recorder_rows import Recorded, recorded_between, rows_between
from kcluster.scenario.language.model import ConsumerSpec
from kcluster.scenario.play.workload import make_readers
from kcluster.testing.handles import VirtualCluster

ORDERS = ("orders", 0)


def cluster_of(looks: bool, **config: Any) -> tuple[VirtualCluster, Recorder]:
    """A cluster with one of the two recorders."""
    topics = {"orders": {"replication_factor": 3}}
    topology = Topology.of(brokers=3, profile="fast", topics=topics, config=config)
    cluster = VirtualCluster(topology, 1, "rows")
    if not looks:
        return cluster, cluster.recorder
    return cluster, SamplingRecorder(cluster.dispatcher, cluster.plan)


both = pytest.mark.parametrize("looks", [False, True], ids=["each step", "looks"])


def exchanges_of(recorder: Recorder, api: str) -> list[ExchangeRow]:
    recorder.check_last_step()
    return [row for row in recorder.exchanges().rows if row.api == api]


def beliefs_of(recorder: Recorder, client: str) -> list[tuple[int, int]]:
    rows = recorder.exchanges().beliefs.rows
    return [(x.leader, x.leader_epoch) for x in rows if (x.client, x.topic) == (client, "orders")]


def changes(values: Iterable[object]) -> list[object]:
    return [value for value, _ in groupby(values)]


@both
def test_exchanges__show_what_was_appended_and_read(looks: bool) -> None:
    cluster, recorder = cluster_of(looks)
    cluster.producer("orders", name="shop", rate="100/s", count=20)
    cluster.consumer(topics="orders", name="billing", group="g")
    cluster.run_for(2_000)
    sends = exchanges_of(recorder, "Produce")
    assert (sends[0].client, sends[0].topic, sends[0].partition) == ("shop", *ORDERS)
    assert (sends[0].first, sends[-1].last) == (0, 19)
    assert [row.first for row in sends[1:]] == [row.last + 1 for row in sends[:-1]]
    reads = [row for row in exchanges_of(recorder, "Fetch") if row.first >= 0]
    assert {row.client for row in reads} == {"billing"}
    assert (reads[0].first, reads[-1].last) == (0, 19)
    assert all(row.answered_ms >= row.asked_ms for row in reads + sends)


@both
def test_exchanges__show_what_a_share_consumer_acquired(looks: bool) -> None:
    cluster, recorder = cluster_of(looks)
    spec = ConsumerSpec(topics=("orders",), name="sharer", group="s", share=True)
    (sharer,) = make_readers(spec, "fast", cluster.ledger)
    cluster.add_client(sharer)
    cluster.run_for(3_000)  # a share group begins at the end of the log
    cluster.producer("orders", name="shop", rate="100/s", count=20)
    cluster.run_for(3_000)
    acquired = [row for row in exchanges_of(recorder, "ShareFetch") if row.first >= 0]
    assert {(row.client, row.topic, row.partition) for row in acquired} == {("sharer", *ORDERS)}
    assert (acquired[0].first, acquired[-1].last) == (0, 19)
    group = recorder.states.groups.newest["s"]
    assert (group.kind, group.members[0].client, group.members[0].assignment) == (
        "share", "sharer", (ORDERS,),
    )  # fmt: skip


@both
def test_exchanges__without_acks_there_is_no_answer(looks: bool) -> None:
    cluster, recorder = cluster_of(looks)
    cluster.producer("orders", name="shop", rate="100/s", count=20, acks="0")
    cluster.run_for(1_000)
    sends = exchanges_of(recorder, "Produce")
    assert len(sends) > 5
    assert {(row.answered_ms, row.error) for row in sends} == {(-1, "")}


@both
def test_exchanges__a_refusal_names_the_new_leader_and_the_client_believes_it(looks: bool) -> None:
    cluster, recorder = cluster_of(looks)
    cluster.producer("orders", name="shop", rate="100/s", count=200)
    cluster.run_for(1_000)
    old = cluster.verbs.leader(*ORDERS)
    new = next(broker for broker in (1, 2, 3) if broker != old)
    cluster.do("move", partition="orders-0", to=new)
    cluster.run_for(3_000)
    (refusal,) = [row for row in exchanges_of(recorder, "Produce") if row.error]
    assert (refusal.broker, refusal.error) == (old, "NOT_LEADER_OR_FOLLOWER")
    assert (refusal.leader, refusal.leader_epoch) == (new, 1)
    assert beliefs_of(recorder, "shop") == [(old, 0), (new, 1)]


def test_exchanges__a_request_to_a_broker_that_dies_has_no_answer() -> None:
    cluster, recorder = cluster_of(looks=False)
    cluster.producer("orders", name="shop", rate="100/s", count=200, acks="all")
    cluster.run_for(500)
    leader = cluster.verbs.leader(*ORDERS)
    followers = [broker for broker in (1, 2, 3) if broker != leader]
    cluster.do("isolate", nodes=str(leader), others=", ".join(map(str, followers)))
    cluster.run_for(20)
    died_ms = cluster.now_ms
    cluster.kill(leader)
    recorder.check_last_step()
    lost = [row for row in recorder.unanswered() if row.api == "Produce"]
    assert {(row.client, row.broker, row.topic) for row in lost} == {("shop", leader, "orders")}
    assert {(row.at_ms, row.answered_ms) for row in lost} == {(died_ms, -1)}


@both
def test_epochs__a_new_leader_begins_one_and_a_truncated_log_loses_its_own(looks: bool) -> None:
    cluster, recorder = cluster_of(looks)
    cluster.producer("orders", name="shop", rate="100/s", count=20, acks="1")
    cluster.run_for(1_000)
    old = cluster.verbs.leader(*ORDERS)
    cluster.kill(old)
    cluster.run_for(3_000)
    new = cluster.verbs.leader(*ORDERS)
    recorder.check_last_step()
    (observed,) = recorder.of_partition(ORDERS)
    of_new = [runs.epochs for runs in observed.epoch_runs if runs.broker == new]
    assert changes(of_new) == [((0, 0),), ((0, 0), (1, 20))]
    cluster.start(old)
    cluster.producer("orders", name="later", rate="100/s", count=5)
    cluster.run_for(3_000)
    recorder.check_last_step()
    of_old = [runs.epochs for runs in observed.epoch_runs if runs.broker == old]
    assert of_old[-1] == ((0, 0), (1, 20))


@both
def test_groups__their_members_and_assignments_as_they_change(looks: bool) -> None:
    cluster, recorder = cluster_of(looks)
    cluster.consumer(topics="orders", name="billing", group="g")
    cluster.run_for(5_000)
    recorder.check_last_step()
    rows = [row for row in recorder.states.groups.rows if row.group == "g"]
    assert rows[-1].state == "Stable"
    assert (rows[-1].kind, rows[-1].epoch) == ("classic", 1)
    (member,) = rows[-1].members
    assert (member.client, member.assignment) == ("billing", (ORDERS,))
    coordinator = rows[-1].coordinator
    cluster.kill(coordinator)
    cluster.run_for(8_000)
    recorder.check_last_step()
    assert recorder.states.groups.newest["g"].coordinator != coordinator


def test_groups__one_that_is_gone_is_dead() -> None:
    cluster, recorder = cluster_of(
        looks=True,
        **{"offsets.retention.minutes": 1, "offsets.retention.check.interval.ms": 10_000},
    )
    cluster.producer("orders", name="shop", rate="100/s", count=10)
    cluster.consumer(topics="orders", name="billing", group="g")
    cluster.run_for(3_000)
    cluster.do("isolate", nodes="client billing", others="1, 2, 3")
    cluster.run_for(80_000)
    recorder.check_last_step()
    recorder.look_at_coordinators()
    states = [row.state for row in recorder.states.groups.rows if row.group == "g"]
    assert states[-2:] == ["Empty", "Dead"]


@both
@pytest.mark.parametrize("protocol", ["consumer"])
def test_groups__with_epochs(looks: bool, protocol: str) -> None:
    cluster, recorder = cluster_of(looks)
    cluster.consumer(topics="orders", name="billing", group="g", group_protocol=protocol)
    cluster.run_for(8_000)
    recorder.check_last_step()
    row = recorder.states.groups.newest["g"]
    assert (row.kind, row.state) == (protocol, "Stable")
    assert [(x.client, x.assignment) for x in row.members] == [("billing", (ORDERS,))]


@both
def test_transactions__every_state_is_seen(looks: bool) -> None:
    cluster, recorder = cluster_of(looks)
    cluster.producer("orders", name="shop", rate="50/s", count=20, transactions={"every": 10})
    cluster.run_for(5_000)
    recorder.check_last_step()
    rows = recorder.states.transactions.rows
    states = changes(row.state for row in rows)
    assert states[-3:] == ["Ongoing", "PrepareCommit", "CompleteCommit"]
    assert {row.partitions for row in rows if row.state == "Ongoing"} == {(ORDERS,)}


def test_rows_between__gives_each_row_once() -> None:
    cluster, recorder = cluster_of(looks=True)
    cluster.producer("orders", name="shop", rate="100/s", count=100)
    cluster.consumer(topics="orders", name="billing", group="g")
    streamed: dict[str, list[object]] = {}
    after_ms = -1
    for _ in range(10):
        cluster.run_for(900)
        recorder.check_last_step()
        for table, rows in rows_between(recorder, after_ms, cluster.now_ms).items():
            streamed.setdefault(table, []).extend(rows)
        after_ms = cluster.now_ms - 1
    whole = rows_between(recorder, -1, cluster.now_ms)
    assert sorted(whole) == sorted(STREAMED)
    for table in ("exchanges", "beliefs", "epochs", "groups", "moves", "commits"):
        assert sorted(map(str, streamed[table])) == sorted(map(str, whole[table])), table
        assert whole[table], table


def test_recorded_between__has_the_same_as_rows_and_as_columns() -> None:
    cluster, recorder = cluster_of(looks=True)
    cluster.producer("orders", name="shop", rate="100/s", count=100)
    cluster.consumer(topics="orders", name="billing", group="g")
    cluster.run_for(5_000)
    recorder.check_last_step()
    found = recorded_between(recorder, -1, cluster.now_ms)
    columns = found.columns()
    for table, rows in found.rows().items():
        if table != "notes":
            named = rows[0].__struct_fields__ if rows else ()
            assert [*columns[table]] == [*named], table
            assert [*zip(*columns[table].values(), strict=True)] == [*map(astuple, rows)], table
    assert columns["appends"]["base_offset"]
    assert columns["moves"]["high_watermark"]


def test_recorded__columns_have_a_part_of_very_many_exchanges_and_all_failures() -> None:
    rows = [
        ExchangeRow(
            at, "shop", 1, "Produce", at, at, *ORDERS, 1, "" if number % 999 else "NOT_LEADER"
        )
        for number, at in enumerate(number // 100 for number in range(10_000))
    ]
    exchanges = Recorded({"exchanges": rows}, [], []).columns()["exchanges"]
    assert len(exchanges["at_ms"]) < 400
    assert list(exchanges["error"]).count("NOT_LEADER") == 11
    assert sum(int(str(each)) for each in exchanges["times"]) == pytest.approx(10_000, rel=0.01)
    few = Recorded({"exchanges": rows[:150]}, [], []).columns()["exchanges"]
    assert "times" not in few
    assert len(few["at_ms"]) == 150


# ------------------------------------------------------------------------------ bounded memory


def test_exchanges__routine_is_dropped_first() -> None:
    exchanges = Exchanges({}, max_rows=100)
    for at_ms in range(1_000):
        error = "NOT_LEADER_OR_FOLLOWER" if at_ms % 250 == 0 else ""
        row = ExchangeRow(at_ms, "shop", 1, "Produce", at_ms, at_ms, *ORDERS, 1, error)
        exchanges.rows.append(row)
        exchanges.trim()
    assert len(exchanges.rows) <= 100
    assert len(exchanges.rows) + exchanges.dropped_rows == 1_000
    assert [row.at_ms for row in exchanges.rows if row.error] == [0, 250, 500, 750]
    assert exchanges.rows[-50:] == sorted(exchanges.rows[-50:], key=lambda row: row.at_ms)


def test_kept_rows__the_newest_of_each_key_survives() -> None:
    rows: StateRows[str, BeliefRow] = StateRows(lambda row: row.client, 100)
    rows.add(BeliefRow("quiet", *ORDERS, 1, 0, 0))
    for at_ms in range(1, 1_000):
        rows.add(BeliefRow("busy", *ORDERS, 1, at_ms, at_ms))
        rows.trim()
        assert len(rows.rows) <= 100
    assert rows.rows[0].client == "quiet"
    assert {key: row.at_ms for key, row in rows.newest.items()} == {"quiet": 0, "busy": 999}
    assert [row.at_ms for row in rows.rows] == sorted(row.at_ms for row in rows.rows)


def test_kept_rows__more_keys_than_the_bound_lose_the_oldest() -> None:
    rows: StateRows[str, BeliefRow] = StateRows(lambda row: row.client, 100)
    for at_ms in range(1_000):
        rows.add(BeliefRow(f"c{at_ms}", *ORDERS, 1, 0, at_ms))
        rows.trim()
    assert len(rows.rows) <= 100
    assert list(rows.newest.values()) == rows.rows
    assert rows.rows[-1].client == "c999"


@both
def test_moves__a_power_loss_shortens_the_log_at_once(looks: bool) -> None:
    cluster, recorder = cluster_of(looks, **{"log.flush.interval.ms": "60000"})
    cluster.producer("orders", name="shop", rate="100/s", count=20)
    cluster.run_for(2_000)
    cluster.kill([1, 2, 3], how="power")
    cluster.run_for(500)
    recorder.check_last_step()
    (observed,) = (each for each in recorder.partitions.values() if each.topic == "orders")
    ends = {move.broker: (move.log_end_offset, move.high_watermark) for move in observed.moves}
    assert ends == dict.fromkeys((1, 2, 3), (0, 0)), "before any of them starts again"
