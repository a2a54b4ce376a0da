"""Replication through failures, in virtual time: the behaviour of Apache Kafka as short stories."""

from __future__ import annotations

import pytest

from kcluster.broker.handlers.data.fetch import PendingFetch
from kcluster.broker.node import BrokerNode
from kcluster.config.topology.model import Topology
from kcluster.deaths import DeathKind
from kcluster.events.brokers import BrokerDown, BrokerFenced
from kcluster.events.partitions import LeaderElected, LogTruncated
from kcluster.events.words import text_of
from kcluster.handle.virtual import VirtualDriver
from kcluster.protocol.apis import ApiKey
from tests.rig.cluster import CONTROLLER, LAG_MS, SESSION_MS, Simulated
from tests.rig.counting import calls_of
from tests.rig.requests import batch, produce_request


def test_acks_all__is_answered_when_every_member_of_the_isr_has_it() -> None:
    t = Simulated()
    assert t.produce(b"m1").error == "NONE"
    assert [t.values(broker) for broker in (1, 2, 3)] == [[b"m1"]] * 3


def test_watermark__reaches_the_followers_with_their_next_fetch() -> None:
    t = Simulated()
    t.produce(b"m1")
    assert t.replica(1).high_watermark == 1
    assert t.replica(2).high_watermark == 0
    t.run_for(500)
    assert [t.replica(broker).high_watermark for broker in (2, 3)] == [1, 1]


def test_failover__a_killed_leader_is_replaced_when_its_session_ends() -> None:
    t = Simulated(min_insync_replicas=2)
    t.produce(b"m1")
    killed_ms = t.now_ms
    t.kill(1)
    t.wait(lambda: t.state.leader == 2)
    assert killed_ms + SESSION_MS - 2_000 <= t.now_ms <= killed_ms + SESSION_MS
    assert t.state.leader_epoch == 1
    assert t.produce(b"m2").error == "NONE"
    assert t.values(3) == [b"m1", b"m2"]
    elected = t.notes_of(LeaderElected)[-1]
    assert "broker 1 fenced: no heartbeat for 9000 ms" in text_of(elected.event)
    assert any(note.note_id == elected.cause for note in t.notes_of(BrokerFenced))


def test_failover__followers_refuse_and_name_the_leader() -> None:
    t = Simulated()
    refused = t.produce(b"m1", to=2)
    assert refused.error == "NOT_LEADER_OR_FOLLOWER"
    t.kill(1)
    t.wait(lambda: t.state.leader == 2)
    hint = t.produce(b"v", to=3, acks=1, timeout_ms=100, version=10, timestamp_ms=0).partition
    assert (hint.current_leader.leader_id, hint.current_leader.leader_epoch) == (2, 1)


def test_return__a_restarted_broker_catches_up_and_rejoins_the_isr() -> None:
    t = Simulated()
    t.produce(b"m1")
    t.kill(1)
    t.wait(lambda: t.state.leader == 2)
    t.produce(b"m2")
    t.start(1)
    t.wait(lambda: t.isr == [1, 2, 3])
    assert t.values(1) == [b"m1", b"m2"]
    assert t.leader_id == 2


def test_isr__a_follower_that_is_cut_off_leaves_after_the_lag_time() -> None:
    t = Simulated(min_insync_replicas=2)
    t.cut(3, 1)
    waiting = t.produce(b"m1", timeout_ms=120_000)
    t.run_for(LAG_MS - 1_000)
    assert waiting.body is None
    t.wait(lambda: t.isr == [1, 2])
    assert waiting.error == "NONE"
    t.heal()
    t.wait(lambda: t.isr == [1, 2, 3])
    assert t.values(3) == [b"m1"]


def test_min_isr__writes_need_exactly_the_minimum() -> None:
    # RF 3, min.insync.replicas 2: one loss is tolerated, the second stops writes, not reads (S15).
    t = Simulated(min_insync_replicas=2)
    t.produce(b"m1")
    t.kill(3)
    t.wait(lambda: t.isr == [1, 2])
    assert t.produce(b"m2").error == "NONE"
    t.kill(2)
    t.wait(lambda: t.isr == [1])
    assert t.produce(b"m3").error == "NOT_ENOUGH_REPLICAS"
    assert t.fetch(0).partition.high_watermark == 2
    t.start(2)
    t.start(3)
    t.wait(lambda: t.isr == [1, 2, 3])
    assert t.produce(b"m4").error == "NONE"
    assert t.values(1) == [b"m1", b"m2", b"m4"]


def test_min_isr__not_enough_replicas_after_append_when_the_isr_shrinks_meanwhile() -> None:
    t = Simulated(min_insync_replicas=2, replicas=(1, 2), brokers=2)
    t.cut(2, 1)
    waiting = t.produce(b"m1", timeout_ms=120_000)
    t.wait(lambda: t.isr == [1])
    assert waiting.body is None, "the watermark does not advance below min.insync.replicas"
    t.heal()
    t.wait(lambda: t.isr == [1, 2])
    assert waiting.error == "NONE"


def test_timeout__an_uncommitted_append_times_out_and_stays_in_the_log() -> None:
    t = Simulated()
    t.cut(3, 1)
    answer = t.produce(b"m1", timeout_ms=1_500)
    t.run_for(1_500)
    assert answer.error == "REQUEST_TIMED_OUT"
    assert t.values(1) == [b"m1"]


def test_zombie_leader__its_unreplicated_records_are_truncated_and_never_acked() -> None:
    # S6: the old leader is cut from the controller and its followers, clients stay with it.
    t = Simulated(min_insync_replicas=2)
    t.produce(b"m1")
    t.cut_off(1)
    t.wait(lambda: t.state.leader == 2)
    lost = t.produce(b"lost", to=1, acks=1)
    never = t.produce(b"never acked", to=1, timeout_ms=5_000)
    t.run_for(5_000)
    assert lost.error == "NONE"
    assert never.error == "REQUEST_TIMED_OUT"
    assert t.replica(1).high_watermark == 1, "consumers do not read past the committed offset"
    t.produce(b"m2", to=2)
    t.heal()
    t.wait(lambda: t.isr == [1, 2, 3])
    assert t.values(1) == [b"m1", b"m2"]
    truncated = t.events_of(LogTruncated)[-1]
    assert truncated.broker == 1
    assert (truncated.from_offset, truncated.to_offset) == (3, 1)


def test_zombie_leader__a_resumed_leader_is_a_follower() -> None:
    t = Simulated()
    t.produce(b"m1")
    t.pause(1)
    t.wait(lambda: t.state.leader == 2)
    asleep = t.produce(b"late", to=1, acks=1)
    t.produce(b"m2", to=2)
    assert asleep.body is None
    t.resume(1)
    t.wait(lambda: t.isr == [1, 2, 3])
    assert t.values(1) == t.values(2) == [b"m1", b"m2"]


def test_truncation__a_follower_keeps_records_above_its_watermark() -> None:
    # KIP-101, scenario 1 (S1): truncating to the watermark would lose m2 here.
    t = Simulated(brokers=2, replicas=(1, 2))
    t.produce(b"m1")
    t.run_for(600)
    assert t.produce(b"m2").error == "NONE"
    assert t.replica(2).high_watermark == 1
    t.kill(2)
    t.start(2)
    t.kill(1)
    t.wait(lambda: t.state.leader == 2)
    assert t.values(2) == [b"m1", b"m2"]
    assert t.fetch(1).partition.high_watermark == 2


def test_truncation__logs_diverged_by_power_loss_converge() -> None:
    # KIP-101, scenario 2 (S2): both lose power; the shorter log comes back first and leads.
    t = Simulated(brokers=2, replicas=(1, 2), flush_messages=1, unclean_leader_election_enable=True)
    t.produce(b"m1")
    t.cut(2, 1)
    assert t.produce(b"m2", acks=1).error == "NONE"
    t.kill(1, "power")
    t.kill(2, "power")
    t.run_for(2 * SESSION_MS)
    t.heal()
    t.start(2)
    t.wait(lambda: t.state.leader == 2, limit_ms=700_000)
    assert t.produce(b"m3", acks=1).error == "NONE"
    t.start(1)
    t.wait(lambda: t.isr == [1, 2])
    assert t.values(1) == t.values(2) == [b"m1", b"m3"]


def test_truncation__of_an_epoch_without_a_record() -> None:
    # Broker 2 leads epoch 1 and appends nothing; its epoch must not keep it from following.
    t = Simulated()
    t.produce(b"m1")
    t.move("orders", 0, 2)
    t.move("orders", 0, 3)
    assert t.produce(b"m2").error == "NONE"
    assert t.values(2) == [b"m1", b"m2"]


def test_unclean_election__loses_acked_records_and_reports_it() -> None:
    # S11: broker 2 falls behind, the others die, broker 2 is elected nevertheless.
    t = Simulated(min_insync_replicas=1, unclean_leader_election_enable=True)
    t.produce(b"m1")
    t.cut(2, 1)
    acked = t.produce(b"m2", timeout_ms=120_000)
    t.wait(lambda: t.isr == [1, 3])
    assert acked.error == "NONE"
    t.kill(1)
    t.kill(3)
    t.heal()
    t.wait(lambda: t.state.leader == 2, limit_ms=700_000)
    assert t.events_of(LeaderElected)[-1].clean is False
    t.produce(b"other")
    t.start(1)
    t.start(3)
    t.wait(lambda: t.isr == [1, 2, 3])
    assert [t.values(broker) for broker in (1, 2, 3)] == [[b"m1", b"other"]] * 3


def test_clean_election__without_a_member_of_the_isr_the_partition_is_offline() -> None:
    t = Simulated(min_insync_replicas=1)
    t.cut(2, 1)
    t.cut(3, 1)
    acked = t.produce(b"m1", timeout_ms=120_000)
    t.wait(lambda: t.isr == [1])
    assert acked.error == "NONE"
    t.kill(1)
    t.wait(lambda: t.state.leader is None)
    assert t.produce(b"m2", to=2).error == "NOT_LEADER_OR_FOLLOWER"
    t.start(1)
    t.wait(lambda: t.state.leader == 1)
    assert t.values(1) == [b"m1"]


def test_last_replica_standing__eligible_leaders_preserve_acked_records() -> None:
    # KIP-966 (S9): with min.insync.replicas=2 nothing is committed by the last one alone.
    t = Simulated(min_insync_replicas=2)
    t.produce(b"m1")
    t.cut_off(2)
    t.wait(lambda: t.isr == [1, 3])
    t.cut_off(3)
    t.wait(lambda: t.isr == [1])
    assert sorted(t.state.elr) == [3]
    assert t.produce(b"m2").error == "NOT_ENOUGH_REPLICAS"
    t.kill(1, "power")
    t.wait(lambda: t.state.leader is None)
    assert t.values(1) == [], "it lost its unflushed tail"
    t.start(1)
    t.run_for(SESSION_MS)
    assert t.state.leader is None, "it came back uncleanly: it is no longer eligible"
    t.heal()
    t.wait(lambda: t.state.leader == 3)
    t.wait(lambda: t.isr == [1, 2, 3])
    assert [t.values(broker) for broker in (1, 2, 3)] == [[b"m1"]] * 3


def test_wiped_disk__is_filled_again_from_the_leader() -> None:
    t = Simulated()
    t.produce(b"m1", b"m2")
    t.kill(3, "wipe")
    t.wait(lambda: t.isr == [1, 2])
    t.start(3)
    t.wait(lambda: t.isr == [1, 2, 3])
    assert t.values(3) == [b"m1", b"m2"]


def test_controlled_shutdown__moves_the_leader_first_and_no_request_fails() -> None:
    t = Simulated()
    t.produce(b"m1")
    t.kill(1, "clean")
    t.run_for(100)
    assert t.leader_id in (2, 3)
    assert t.produce(b"m2").error == "NONE"
    t.start(1)
    t.wait(lambda: t.isr == [1, 2, 3])
    assert t.values(1) == [b"m1", b"m2"]


def test_preferred_election__restores_the_preferred_leader() -> None:
    t = Simulated()
    t.kill(1, "clean")
    t.run_for(100)
    t.start(1)
    t.wait(lambda: t.isr == [1, 2, 3])
    assert t.elect("orders", 0) == 1
    assert t.produce(b"m1").error == "NONE"


def test_move__a_former_leader_answers_not_leader_with_the_new_epoch() -> None:
    t = Simulated()
    t.move("orders", 0, 3)
    assert t.leader_id == 3
    assert t.produce(b"m1", to=1).error == "NOT_LEADER_OR_FOLLOWER"
    assert t.fetch(0, to=1, version=12, epoch=0).error == "FENCED_LEADER_EPOCH"


def test_controller_cut_off__a_leader_keeps_serving_but_cannot_shrink_its_isr() -> None:
    t = Simulated(min_insync_replicas=1)
    t.cut(1, CONTROLLER)
    assert t.produce(b"m1").error == "NONE", "its followers still fetch"
    t.wait(lambda: t.state.leader != 1)
    waiting = t.produce(b"m2", to=1, timeout_ms=3_000)
    t.run_for(3_000)
    assert waiting.error == "REQUEST_TIMED_OUT", "they have moved on to the new epoch"


def test_out_of_range__a_follower_restarts_at_the_leaders_log_start() -> None:
    t = Simulated()
    t.kill(3)
    t.wait(lambda: t.isr == [1, 2])
    for value in (b"m1", b"m2", b"m3"):
        t.produce(value)
    t.delete_records(2)
    t.start(3)
    t.wait(lambda: t.isr == [1, 2, 3])
    assert t.replica(3).log.log_start_offset == 2
    assert t.values(3) == [b"m3"]


def test_deleted_topic__leaves_no_log_on_a_broker_that_was_down() -> None:
    t = Simulated()
    t.produce(b"m1")
    t.kill(3)
    t.wait(lambda: t.isr == [1, 2])
    t.delete_orders(via=1)
    t.start(3)
    t.run_for(1_000)
    assert [len(t.plan.disks[broker].logs) for broker in (1, 2, 3)] == [0, 0, 0]


@pytest.mark.parametrize("latency_ms", [0.2, 5, 40])
def test_latency__replication_and_failover_work_over_slow_links(latency_ms: float) -> None:
    t = Simulated(min_insync_replicas=2, latency_ms=latency_ms)
    acked = t.produce(b"m1")
    t.wait(lambda: acked.body is not None)
    assert acked.error == "NONE"
    t.kill(1)
    t.wait(lambda: t.state.leader == 2)
    t.run_for(500)
    again = t.produce(b"m2")
    t.wait(lambda: again.body is not None)
    assert again.error == "NONE"
    assert t.values(3) == [b"m1", b"m2"]


def test_late_answer__of_an_earlier_epoch_is_ignored() -> None:
    # Broker 3 fetches from leader 1; before the slow response arrives, 2 and then 1 have led.
    t = Simulated()
    t.assign_topic("other", [[1, 3]])  # so that broker 3 has a fetcher for broker 1 all along
    t.plan.fabric.set_latency(1, 3, 3_000, one_way=True)
    t.run_for(8_000)
    t.cut(1, 2, one_way=True)
    leader = t.dispatcher.broker(1)
    assert leader is not None
    sessions = leader.sessions.watchers[t.replica(1)]

    def is_parked() -> bool:
        parked = [session.parked for session in sessions]
        return any(isinstance(x, PendingFetch) and x.reader.follower_id == 3 for x in parked)

    t.wait(is_parked)
    t.produce(b"only on 1", acks=1)
    t.run_for(10)
    t.move("orders", 0, 2)
    t.heal()
    acked = t.produce(b"m1", to=2)
    t.wait(lambda: acked.error == "NONE", limit_ms=2_000)
    t.move("orders", 0, 1)
    t.run_for(5_000)
    assert [t.values(broker) for broker in (1, 2, 3)] == [[b"m1"]] * 3
    assert not t.notes_of(BrokerDown)


def test_watermark__reaches_a_follower_that_had_to_truncate_first() -> None:
    # A watermark in the same answer as the divergence is not taken: it must be sent again.
    t = Simulated(flush_messages=1)
    t.cut(2, 1, one_way=True)
    t.produce(b"m1", acks=1)
    t.cut(1, 2)
    t.produce(b"on 1 and 3 only", acks=1)
    assert [t.values(broker) for broker in (2, 3)] == [[b"m1"], [b"m1", b"on 1 and 3 only"]]
    t.pause(3)
    t.kill(1)
    t.wait(lambda: t.state.leader == 2 and t.isr == [2])
    t.resume(3)
    t.wait(lambda: t.isr == [2, 3])
    t.run_for(2_000)
    assert t.values(3) == [b"m1"]
    assert t.replica(3).high_watermark == 1


def test_deleted__a_diverged_log_ending_inside_a_leaders_batch_restarts() -> None:
    # DeleteRecords made broker 2 forget where epoch 0 ended: nothing makes 1 truncate.
    t = Simulated(min_insync_replicas=2)
    t.produce(b"m1")
    t.cut_off(1)
    t.wait(lambda: t.state.leader == 2)
    t.produce(b"only on 1", to=1, acks=1)
    t.produce(b"m2", b"m3", b"m4", to=2)
    t.delete_records(2)
    t.heal()
    t.wait(lambda: t.isr == [1, 2, 3])
    t.produce(b"m5")
    assert t.replica(1).log.log_start_offset == 2
    assert t.values(1)[-3:] == [b"m3", b"m4", b"m5"]


def test_unanswered_fetches__name_what_the_follower_follows_by_then() -> None:
    t = Simulated(of_brokers={"replica.socket.timeout.ms": 500})
    t.produce(b"m1")
    t.cut(1, 2)
    t.run_for(3_000)  # several fetches in a row are not answered
    t.assign_topic("late", [[1, 2, 3]])
    t.run_for(2_000)
    follower = t.dispatcher.processes[2].node
    assert isinstance(follower, BrokerNode)
    assert {replica.topic for replica in follower.replicas.all()} == {"orders", "late"}
    t.heal()
    in_orders = t.produce(b"m2")
    in_late = t.ask(1, ApiKey.PRODUCE, 9, produce_request("late", 0, batch(b"l1")))
    t.run_for(2_000)
    assert (in_orders.error, in_late.error, t.isr) == ("NONE", "NONE", [1, 2, 3])
    ends = {one.topic: one.log.log_end_offset for one in follower.replicas.all()}
    assert ends == {"orders": 2, "late": 1}


def calls_while_a_leader_is_missed(partitions: int) -> int:
    """How many functions run in a second of fetches that are refused."""
    topics = {"many": {"assignment": [[1, 2, 3]] * partitions}}
    driver = VirtualDriver(Topology.of(brokers=3, topics=topics), 1)
    driver.open()
    driver.run_for(5_000)
    driver.verbs.kill(1, DeathKind.KILL)
    driver.run_for(2_500)
    return calls_of(lambda: driver.run_for(1_000))


@pytest.mark.pure_python  # compiled functions are not counted
def test_unanswered_fetches__cost_the_same_whatever_the_number_of_partitions() -> None:
    assert calls_while_a_leader_is_missed(100) == calls_while_a_leader_is_missed(3) > 100


def test_era__a_log_that_diverged_unseen_inside_a_batch_is_no_longer_replicated() -> None:
    """Before KIP-279: broker 2 has another record at an offset of broker 1's batch of three."""
    t = Simulated(era="before KIP-279")
    t.produce(b"m1")
    t.run_for(1_000)
    for one, other in ((2, 1), (3, 1), (3, 2)):
        t.cut(one, other)
    t.produce(b"a", b"b", b"c", acks=1)
    t.move("orders", 0, 2)
    t.wait(lambda: t.leader_id == 2)
    t.produce(b"x", to=2, acks=1)
    t.move("orders", 0, 1)
    t.wait(lambda: t.leader_id == 1)
    t.heal()
    t.wait(lambda: t.isr == [1, 3])
    assert t.values(1) == t.values(3) == [b"m1", b"a", b"b", b"c"]
    assert t.values(2) == [b"m1", b"x"]
