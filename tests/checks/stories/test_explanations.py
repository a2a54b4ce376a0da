"""Every way to lose, duplicate or reorder a record: its anomaly, and the chain that explains it."""

from __future__ import annotations

from kcluster.checks.settings import Setting
from kcluster.checks.verdict import Verdict
from kcluster.checks.verdict_facts import UNKNOWN, VALID
from kcluster.events.brokers import LostRange, RecordsLost
from kcluster.faults.rules import rule
from kcluster.metadata.placement import coordinator_partition
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import error_of
from tests.rig.stage import Hand, P, Stage


def assert_explained(verdict: Verdict, *words: str) -> None:
    """Each of these words is in a link of the first anomaly's chain, in this order."""
    links = [link.text for link in verdict.anomalies[0].chain]
    at = 0
    for word in words:
        found = [index for index in range(at, len(links)) if word in links[index]]
        assert found, (word, links[at:], verdict.lines())
        at = found[0] + 1


def with_lone_leader(stage: Stage) -> None:
    """Only broker 1 is left in the ISR."""
    stage.kill(2)
    stage.kill(3)
    stage.run_for(4_000)


def acked_by_a_lone_leader() -> tuple[Stage, Hand]:
    """One record, acked by broker 1 while nobody else is in the ISR; and its client."""
    stage = Stage(**{"min.insync.replicas": 1})
    hand = stage.hand()
    with_lone_leader(stage)
    hand.produce(1, [b"a"])
    stage.run_for(100)
    return stage, hand


def repaired_verdict(stage: Stage) -> Verdict:
    stage.heal()
    for broker in (1, 2, 3):
        if stage.dispatcher.processes[broker].node is None:
            stage.start(broker)
    stage.run_for(20_000)
    return stage.verdict()


def test_verdict__a_run_without_anomalies_is_valid() -> None:
    stage = Stage()
    hand = stage.hand()
    hand.produce(1, [b"a", b"b"])
    stage.run_for(100)
    hand.read(1, 0)
    stage.run_for(600)
    verdict = stage.verdict()
    assert (verdict.outcome, verdict.sent, verdict.acked, verdict.read) == (VALID, 2, 2, 2)
    assert [*verdict.anomalies, *verdict.violations, *verdict.windows, *verdict.errors] == []


def test_verdict__a_run_without_sends_is_unknown() -> None:
    assert Stage().verdict().outcome == UNKNOWN


def test_verdict__a_cluster_that_was_not_repaired_is_unknown() -> None:
    stage = Stage()
    stage.hand().produce(1, [b"a"])
    stage.run_for(100)
    assert stage.verdict().outcome == VALID
    assert stage.verdict(healed=False).outcome == UNKNOWN
    for broker in (1, 2, 3):
        stage.kill(broker)
        stage.run_for(5_000)
    verdict = stage.verdict()
    assert (verdict.outcome, verdict.offline) == (UNKNOWN, ("orders-0",))


def test_verdict__since_a_moment_ignores_earlier_anomalies() -> None:
    stage = Stage()
    hand = stage.hand()
    with_lone_leader(stage)
    hand.produce(1, [b"a"], acks=1)
    hand.produce(2, [b"refused"])
    stage.run_for(100)
    stage.kill(1, "wipe")
    assert repaired_verdict(stage).counts() == {"lost-write": 1}
    since_ms = stage.now_ms
    leader = stage.verbs.leader("orders", 0)
    assert stage.verdict(since_ms=since_ms).outcome == UNKNOWN
    hand.produce(leader, [b"b"])
    stage.run_for(100)
    verdict = stage.verdict(since_ms=since_ms)
    assert (verdict.outcome, verdict.sent, verdict.acked) == (VALID, 1, 1), verdict.lines()
    assert [*verdict.windows, *verdict.errors] == []


def test_lost__acked_by_a_single_leader_that_died() -> None:
    stage = Stage()
    hand = stage.hand()
    stage.cut(1, 2)
    stage.cut(1, 3)
    hand.produce(1, [b"a", b"b", b"c"], acks=1)
    stage.run_for(100)
    stage.kill(1)
    stage.run_for(5_000)
    verdict = repaired_verdict(stage)
    (lost,) = verdict.anomalies
    assert (lost.name, lost.count, lost.allowed) == ("lost-write", 3, "acks=1")
    assert lost.text == ("offsets 0 to 2 (3 records, a to c), acked (acks=1), are not in the log")
    assert_explained(
        verdict,
        "offsets 0 to 2 were appended by broker 1, leader in epoch 0, ISR [1, 2, 3]",
        "acked by broker 1 alone (acks=1); broker 2 ended at 0, broker 3 ended at 0",
        "broker 1: process killed",
        "broker 1 fenced: no heartbeat for 3000 ms",
        "broker 2, log end 0, elected in epoch 1",
        "broker 1 drops offsets 0 to 2 of orders-0",
    )


def test_lost__acked_by_a_single_leader_before_a_planned_move() -> None:
    stage = Stage()
    hand = stage.hand()
    stage.cut(1, 2, one_way=True)
    hand.produce(1, [b"a"], acks=1)
    stage.run_for(100)
    stage.move("orders", 0, 2)
    stage.run_for(100)
    verdict = repaired_verdict(stage)
    assert_explained(
        verdict,
        "appended by broker 1",
        "broker 2 ended at 0",
        "broker 2, log end 0, elected in epoch 1: requested by the operator",
    )
    assert verdict.counts() == {"lost-write": 1}
    assert verdict.anomalies[0].allowed == "acks=1"


def test_lost__of_many_batches_the_first_and_the_last_are_reported() -> None:
    stage = Stage()
    hand = stage.hand()
    stage.cut(1, 2)
    stage.cut(1, 3)
    for value in (b"a", b"b", b"c"):
        hand.produce(1, [value], acks=1)
        stage.run_for(20)
    stage.kill(1)
    stage.run_for(5_000)
    verdict = repaired_verdict(stage)
    assert [(x.count, x.first, x.last) for x in verdict.anomalies] == [(3, 0, 2)]
    assert_explained(
        verdict, "offset 0 was appended", "offset 2 was appended", "offset 2 was acked"
    )
    assert not any("offset 1 " in link.text for link in verdict.anomalies[0].chain)


def test_lost__on_a_leader_that_did_not_know_it_was_replaced() -> None:
    stage = Stage()
    hand = stage.hand()
    for other in (2, 3, 3_000):
        stage.cut(1, other)
    stage.run_for(4_000)
    hand.produce(1, [b"a"], acks=1)
    stage.run_for(100)
    verdict = repaired_verdict(stage)
    assert_explained(
        verdict,
        "broker 1 fenced",
        "broker 2, log end 0, elected in epoch 1",
        "offset 0 was appended by broker 1, leader in epoch 0, ISR [1, 2, 3]",
        "acked by broker 1 alone (acks=1)",
        "broker 1 drops offsets 0 to 0",
    )


def test_lost__acked_after_the_isr_shrank_to_the_leader() -> None:
    stage = Stage(**{"min.insync.replicas": 1})
    hand = stage.hand()
    stage.cut(1, 2)
    stage.cut(1, 3)
    hand.produce(1, [b"a"])
    stage.run_for(9_000)
    stage.kill(1, "wipe")
    stage.run_for(5_000)
    stage.elect("orders", 0, unclean=True)
    verdict = repaired_verdict(stage)
    assert_explained(
        verdict,
        "offset 0 was appended by broker 1, leader in epoch 0, ISR [1, 2, 3]",
        "ISR [1, 2, 3] -> [1]: leader 1 reports brokers 2, 3 out of sync",
        "offset 0 was acked by broker 1 alone (acks=all, ISR [1])",
        "broker 1 lost its disk",
        "broker 2, log end 0, elected unclean",
    )


def test_lost__an_unclean_election_drops_records_only_the_old_leader_had() -> None:
    stage, _ = acked_by_a_lone_leader()
    stage.kill(1)
    stage.start(2)
    stage.run_for(5_000)
    stage.elect("orders", 0, unclean=True)
    verdict = repaired_verdict(stage)
    (lost,) = verdict.anomalies
    assert lost.allowed == "an unclean election requested by the operator"
    assert_explained(
        verdict,
        "broker 2: process killed",
        "orders-0: ISR [1, 2, 3] -> [1, 3]",
        "orders-0: ISR [1, 3] -> [1]",
        "appended by broker 1, leader in epoch 0, ISR [1]",
        "acked by broker 1 alone (acks=all, ISR [1])",
        "broker 1: process killed",
        "leader 1 -> none",
        "broker 2, log end 0, elected unclean",
        "broker 1 drops offsets 0 to 0 of orders-0",
    )


def test_lost__after_a_truncated_first_attempt_the_acked_one_is_explained() -> None:
    stage = Stage(**{"min.insync.replicas": 1})
    hand = stage.hand()
    for other in (2, 3, 3_000):
        stage.cut(1, other)
    hand.produce(1, [b"a"])
    stage.run_for(4_000)
    stage.heal()
    stage.run_for(2_000)
    assert stage.leader_id == 2, "broker 1 has dropped the first attempt"
    stage.kill(1)
    stage.kill(3)
    stage.run_for(4_000)
    hand.produce(2, [b"a"], again=True)
    stage.run_for(100)
    stage.kill(2)
    stage.start(1)
    stage.run_for(5_000)
    stage.elect("orders", 0, unclean=True)
    verdict = repaired_verdict(stage)
    (lost,) = verdict.anomalies
    assert (lost.first, lost.allowed) == (0, "an unclean election requested by the operator")
    assert_explained(
        verdict,
        "offset 0 was appended by broker 2, leader in epoch 1, ISR [2]",
        "acked by broker 2 alone (acks=all, ISR [2])",
        "broker 1, log end 0, elected unclean",
        "broker 2 drops offsets 0 to 0 of orders-0",
    )


def test_lost__a_late_attempt_at_a_deposed_leader_is_not_the_lost_one() -> None:
    stage = Stage(**{"min.insync.replicas": 1})
    hand = stage.hand()
    for other in (2, 3, 3_000):
        stage.cut(1, other)
    stage.kill(3)
    stage.run_for(5_000)
    hand.produce(2, [b"a"])
    stage.run_for(100)
    hand.produce(1, [b"a"], again=True)
    stage.run_for(100)
    stage.kill(2)
    stage.start(3)
    stage.run_for(5_000)
    stage.elect("orders", 0, unclean=True)
    verdict = repaired_verdict(stage)
    (lost,) = verdict.anomalies
    assert lost.allowed == "an unclean election requested by the operator"
    assert_explained(
        verdict,
        "offset 0 was appended by broker 2, leader in epoch 1, ISR [2]",
        "acked by broker 2 alone (acks=all, ISR [2])",
        "broker 3, log end 0, elected unclean",
    )


def test_lost__with_the_disk_of_the_only_isr_member() -> None:
    stage, _ = acked_by_a_lone_leader()
    stage.kill(1, "wipe")
    stage.run_for(4_000)
    verdict = repaired_verdict(stage)
    assert_explained(
        verdict, "acked by broker 1 alone", "broker 1 lost its disk", "log end 0, elected"
    )
    assert verdict.anomalies[0].allowed


def test_lost__the_last_known_leader_is_elected_without_its_log_tail() -> None:
    stage, _ = acked_by_a_lone_leader()
    stage.kill(1, "power")
    stage.run_for(15_000)
    verdict = repaired_verdict(stage)
    (lost,) = verdict.anomalies
    assert lost.allowed == "power lost before a flush"
    assert_explained(
        verdict,
        "offset 0 was acked by broker 1 alone (acks=all, ISR [1])",
        "elected unclean in epoch",
    )


def test_lost__the_unflushed_tail_in_a_power_loss() -> None:
    stage, _ = acked_by_a_lone_leader()
    stage.kill(1, "power")
    stage.run_for(4_000)
    verdict = repaired_verdict(stage)
    assert_explained(verdict, "acked by broker 1 alone", "unflushed record lost")


def test_lost__a_power_loss_does_not_explain_flushed_records() -> None:
    stage, hand = acked_by_a_lone_leader()
    stage.plan.disks[1].flush()
    hand.produce(1, [b"b"], acks=0)
    stage.run_for(100)
    stage.kill(1, "power")
    stage.start(2)
    stage.run_for(5_000)
    stage.elect("orders", 0, unclean=True)
    (lost,) = [note.event for note in stage.notes if isinstance(note.event, RecordsLost)]
    assert (lost.records, lost.ranges) == (1, (LostRange("orders", 0, 1, 2),))
    found = [each for each in repaired_verdict(stage).anomalies if each.values[0] == b"a"]
    assert found[0].allowed == "an unclean election requested by the operator"
    assert not any("not flushed" in link.text for link in found[0].chain), found[0].chain


def test_lost__sent_without_acks_to_a_broker_that_does_not_lead() -> None:
    stage = Stage()
    hand = stage.hand()
    hand.produce(2, [b"a"], acks=0)
    stage.run_for(100)
    verdict = stage.verdict()
    assert verdict.counts() == {"lost-write": 1}
    assert_explained(verdict, "a was sent (acks=0); no broker has appended it")


def test_lost__where_appends_are_not_seen_the_chain_claims_nothing_about_them() -> None:
    stage = Stage()
    stage.recorder.sees_appends = False  # as on a real Kafka
    stage.hand().produce(2, [b"a"], acks=0)
    stage.run_for(100)
    stage.elect("orders", 0, unclean=True)
    stage.kill(1)
    stage.run_for(20_000)
    verdict = stage.verdict()
    (lost,) = verdict.anomalies
    assert lost.name == "lost-write"
    assert not [link.text for link in lost.chain if "no broker has appended" in link.text]
    assert_explained(verdict, "a was sent", "leader 1 -> 2")


def test_duplicate__a_lost_answer_makes_the_client_send_again() -> None:
    stage = Stage()
    hand = stage.hand()
    stage.cut(1, hand.wire.client_id, one_way=True)
    hand.produce(1, [b"a", b"b"])
    stage.run_for(100)
    stage.heal()
    hand.wire.disconnect(1)
    hand.produce(1, [b"a", b"b"], again=True)
    stage.run_for(100)
    verdict = stage.verdict()
    (twice,) = verdict.anomalies
    assert twice.text == "offsets 0 to 1 (2 records, a to b) are there again at 2 to 3"
    assert twice.allowed == "enable.idempotence=false"
    assert_explained(
        verdict,
        "a was appended at offset 0 by broker 1, leader in epoch 0 (request 1 of",
        "broker 1 acked request 1; its producer did not get the answer",
        "a was again appended at offset 2 by broker 1, leader in epoch 0 (request 2 of",
    )
    assert any("network: no messages pass from {1}" in link.text for link in twice.chain), (
        twice.chain
    )


def test_reordered__the_first_was_refused_and_the_second_accepted() -> None:
    stage = Stage()
    hand = stage.hand()
    hand.produce(2, [b"a"])
    hand.produce(1, [b"b"])
    stage.run_for(100)
    hand.produce(1, [b"a"], again=True)
    stage.run_for(100)
    verdict = stage.verdict()
    assert verdict.counts() == {"nonmonotonic-send": 1}
    assert_explained(
        verdict,
        "a was sent",
        "broker 2 refused request 1: NOT_LEADER_OR_FOLLOWER",
        "b, sent after it, was appended at offset 0 by broker 1",
        "a was appended at offset 1 by broker 1",
    )


def test_read__of_a_record_dropped_by_an_unclean_election_is_explained() -> None:
    stage, hand = acked_by_a_lone_leader()
    hand.read(1, 0)
    stage.run_for(600)
    stage.kill(1)
    stage.start(2)
    stage.run_for(5_000)
    stage.elect("orders", 0, unclean=True)
    hand.produce(2, [b"z"])
    stage.run_for(5_000)
    verdict = repaired_verdict(stage)
    assert verdict.counts() == {"lost-write": 1, "inconsistent-offsets": 1}
    inconsistent = verdict.anomalies[1]
    assert inconsistent.allowed == "an unclean election requested by the operator"
    assert [
        link.text.partition(" was")[0] for link in inconsistent.chain if "appended" in link.text
    ] == ["a", "z"]


def test_commit__lost_by_an_unclean_election() -> None:
    stage = Stage(**{"min.insync.replicas": 1})
    hand = stage.hand()
    home = with_coordinator(stage, hand)
    hand.commit(1, "g", 3)
    stage.run_for(500)
    with_lone_leader(stage)
    hand.commit(1, "g", 5)
    stage.run_for(500)
    stage.kill(1)
    stage.start(2)
    stage.run_for(5_000)
    stage.elect(*home, unclean=True)
    stage.run_for(1_000)
    hand.fetch_offset(2, "g")
    stage.run_for(500)
    stage.ledger.add_commit("g", P, 5)
    stage.ledger.add_fetched("g", P, 3, known=5)
    back = next(x for x in repaired_verdict(stage).anomalies if x.name == "committed-offset-back")
    links = [link.text for link in back.chain]
    assert "broker 1 acked the commit of 5 by group g" in links
    assert "broker 2 answered offset 3 to group g" in links
    assert any("UNCLEAN" in text and text.startswith(f"{home[0]}-{home[1]}") for text in links)


def test_commit__taken_back_by_a_later_one() -> None:
    """A commit that was under way for longer: its own answer is lost, and nothing else happened."""
    stage = Stage()
    hand = stage.hand()
    with_coordinator(stage, hand)
    for offset in (43, 30):
        hand.commit(1, "g", offset)
        stage.run_for(500)
    stage.kill(3)
    stage.run_for(100)
    hand.fetch_offset(1, "g")
    stage.run_for(500)
    stage.ledger.add_commit("g", P, 43)
    stage.ledger.add_fetched("g", P, 30, known=43)
    back = next(x for x in repaired_verdict(stage).anomalies if x.name == "committed-offset-back")
    assert [link.text for link in back.chain] == [
        "broker 1 acked the commit of 43 by group g",
        "broker 1 wrote a commit of 43 by group g",
        "broker 1 wrote a commit of 30 by group g",
        "broker 1 answered offset 30 to group g",
    ]


def test_commit__that_a_rule_delayed_and_a_deposed_coordinator_wrote() -> None:
    """Its coordinator has a successor before it can answer, and the successor has the commit."""
    stage = Stage(latency_ms=20)
    hand, other = stage.hand(), stage.hand("p1")
    home = with_coordinator(stage, hand)
    stage.add_rule(rule(api="OffsetCommit", delay_ms=600, nth=1))
    hand.commit(1, "g", 30)
    stage.run_for(100)
    other.commit(1, "g", 43)
    stage.run_for(530)
    stage.move(*home, 2)
    stage.run_for(2_000)
    other.fetch_offset(2, "g")
    stage.run_for(500)
    stage.ledger.add_commit("g", P, 43)
    stage.ledger.add_fetched("g", P, 30, known=43)
    back = next(x for x in repaired_verdict(stage).anomalies if x.name == "committed-offset-back")
    assert back.allowed is Setting.DELAYED_COMMIT
    assert error_of(hand.answers[-1].topics[0].partitions[0].error_code).name == "NOT_COORDINATOR"


def with_coordinator(stage: Stage, hand: Hand) -> tuple[str, int]:
    """The partition of group g, made and led by broker 1."""
    body = m.FindCoordinatorRequest(coordinator_keys=["g"])
    hand.wire.send(1, ApiKey.FIND_COORDINATOR, 4, body)
    stage.run_for(2_000)
    home = ("__consumer_offsets", coordinator_partition("g", 50))
    stage.move(*home, 1)
    stage.run_for(500)
    return home
