"""Predictions: by Kafka's rules on a given state, and held against what then happens."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kcluster.contract import CONTROLLER_ID
from kcluster.events.reasons import ElectionKind
from kcluster.metadata.records import NO_LEADER, PartitionRegistration
from kcluster.operations.prediction import (
    ClusterState,
    Leaving,
    Notice,
    PartitionState,
    Prediction,
    QuestionKind,
    RecordFate,
    Writes,
    predict,
)
from kcluster.operations.prediction_words import answer_reason, choice_text, question_text
from kcluster.scenario.language.loader import parse_action
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.stage import ScenarioStage
from kcluster.scenario.play.virtual import VirtualRun
from kcluster.scenario.predicting import question_values, questions_on

TOPIC_ID = b"t" * 16


def state(
    isr: tuple[int, ...], ends: dict[int, int], *, min_isr: int = 1, unclean: bool = False
) -> ClusterState:
    """orders-0 on 1, 2, 3, led by 1."""
    registration = PartitionRegistration(TOPIC_ID, 0, (1, 2, 3), isr, 1, 0, 0)
    orders = PartitionState("orders", registration, min_isr, unclean, ends)
    return ClusterState(frozenset({1, 2, 3}), (), (orders,), 9_000, elr_enabled=True)


def by_kind(questions: list[Prediction]) -> dict[QuestionKind, Prediction]:
    return {question.kind: question for question in questions}


@pytest.mark.parametrize(
    ("isr", "ends", "more", "leader", "fate", "writes"),
    [
        ((1, 2, 3), {1: 10, 2: 10, 3: 10}, {}, 2, RecordFate.KEPT, Writes.CONTINUE),
        ((1, 2, 3), {1: 10, 2: 9, 3: 10}, {}, 2, RecordFate.LOST, Writes.CONTINUE),
        ((1, 3), {1: 10, 2: 4, 3: 10}, {}, 3, RecordFate.KEPT, Writes.CONTINUE),
        ((1, 3), {1: 10, 3: 10}, {"min_isr": 2}, 3, RecordFate.KEPT, Writes.NOT_ENOUGH_REPLICAS),
        ((1,), {1: 10, 2: 4}, {}, NO_LEADER, RecordFate.UNAVAILABLE, Writes.NO_LEADER),
        ((1,), {1: 10, 2: 4}, {"unclean": True}, 2, RecordFate.LOST, Writes.CONTINUE),
    ],
)
def test_predict__the_leader_dies(
    isr: tuple[int, ...],
    ends: dict[int, int],
    more: dict[str, Any],
    leader: int,
    fate: RecordFate,
    writes: Writes,
) -> None:
    asked = by_kind(predict(state(isr, ends, **more), [1], Leaving.KILLED))
    assert asked[QuestionKind.LEADER].answer == leader
    assert (asked[QuestionKind.RECORD].offset, asked[QuestionKind.RECORD].answer) == (9, fate)
    assert asked[QuestionKind.WRITES].answer == writes
    assert asked[QuestionKind.NOTICED].answer == Notice.AFTER_SESSION
    for question in asked.values():
        assert question.answer in question.choices


def test_predict__a_follower_dies_and_the_leader_stays() -> None:
    asked = by_kind(predict(state((1, 2), {1: 10, 2: 10}, min_isr=2), [2], Leaving.PAUSED))
    assert QuestionKind.LEADER not in asked
    assert asked[QuestionKind.WRITES].answer == Writes.NOT_ENOUGH_REPLICAS


def test_predict__brokers_that_nobody_has_missed_yet_do_not_lead() -> None:
    before = state((1, 2, 3), {1: 1, 2: 1, 3: 1})
    soon = ClusterState(before.active, (2,), before.partitions, 9_000, elr_enabled=True)
    assert by_kind(predict(soon, [1], Leaving.KILLED))[QuestionKind.LEADER].answer == 3
    assert predict(soon, [4], Leaving.KILLED) == []


def test_words__say_what_is_asked_and_why() -> None:
    asked = by_kind(predict(state((1, 2), {1: 10, 2: 8}, min_isr=2), [1], Leaving.KILLED))
    leader, record = asked[QuestionKind.LEADER], asked[QuestionKind.RECORD]
    assert question_text(leader) == "Who leads orders-0 afterwards?"
    assert list(map(choice_text, leader.choices)) == ["broker 1", "broker 2", "broker 3", "nobody"]
    assert leader.reason.election is ElectionKind.IN_SYNC
    assert question_text(record) == "What becomes of the record at offset 9 of orders-0?"
    assert answer_reason(record) == (
        "The log of the new leader, broker 2, ends at 8, so it lacks the record at 9. What the"
        " leader lacks, the others drop."
    )
    assert answer_reason(asked[QuestionKind.WRITES]) == (
        "The ISR is [2], and min.insync.replicas is 2."
    )


# ------------------------------------------------------------------- against what then happens


def scenario(rng: Random) -> Scenario:
    """A cluster with some trouble behind it."""
    settings = {
        "min.insync.replicas": rng.choice([1, 2]),
        "unclean.leader.election.enable": rng.choice(["true", "false"]),
    }
    behind = "isolate: {nodes: followers(orders-0), others: leader(orders-0)}"
    trouble = rng.sample([behind, "kill: 3", "pause: 4", "kill: {brokers: 1, how: power}"], 2)
    steps = [
        f"  - {{at: {at}ms, {action}}}" for at, action in zip((150, 300), trouble, strict=True)
    ]
    return Scenario.parse(
        f"""
topology:
  brokers: 4
  profile: fast
  features: {{eligible.leader.replicas.version: {rng.choice([0, 1])}}}
  topics:
    orders: {{partitions: 4, replication_factor: 3, config: {settings}}}
    single: {{partitions: 2, replication_factor: 1}}
workload:
  producers:
    - {{topic: orders, rate: 200/s, acks: {rng.choice(["1", "all"])}}}
    - {{topic: single, rate: 50/s, acks: 1}}
steps:
"""
        + "\n".join(steps)
        + "\nduration: 2s\n"
    )


def epoch_at(
    stage: ScenarioStage, broker: int, partition: PartitionRegistration, offset: int
) -> int:
    """In which leader epoch a replica has the record at an offset; -1: it has none."""
    log = stage.plan.disks[broker].logs[partition.topic_id, partition.partition]
    if not log.log_start_offset <= offset < log.log_end_offset:
        return -1
    return max(epoch for epoch, start in log.epochs.entries if start <= offset)


def outcome(stage: ScenarioStage, question: Prediction, before: PartitionRegistration) -> int | str:
    """The answer that the cluster itself gives, once the controller has acted."""
    topic, _, number = question.partition.rpartition("-")
    now = stage.verbs.settled.image.topics[topic].partitions[int(number)]
    match question.kind:
        case QuestionKind.LEADER:
            return now.leader
        case QuestionKind.WRITES if now.leader == NO_LEADER:
            return Writes.NO_LEADER
        case QuestionKind.WRITES:
            controller: Any = stage.dispatcher.processes[CONTROLLER_ID].node
            min_isr = controller.partitions.min_isr(topic)
            return Writes.CONTINUE if len(now.isr) >= min_isr else Writes.NOT_ENOUGH_REPLICAS
        case _:
            if now.leader == NO_LEADER:
                return RecordFate.UNAVAILABLE
            epoch = epoch_at(stage, now.leader, now, question.offset)
            return RecordFate.KEPT if 0 <= epoch <= before.leader_epoch else RecordFate.LOST


@pytest.mark.parametrize("seed", range(40))
def test_predict__is_what_then_happens(seed: int) -> None:
    rng = Random(seed)
    run = VirtualRun(scenario(rng), seed)
    run.advance(rng.choice([200, 320, 500, 900]))
    stage = run.stage
    broker = rng.choice([1, 2, 3, 4])
    action = rng.choice([f"kill: {broker}", f"stop: {broker}", f"isolate: {broker}"])
    step = parse_action(action)
    asked = questions_on(stage, step)
    image = stage.verbs.settled.image
    before = {
        f"{topic.name}-{each.partition}": each
        for topic in image.topics.values()
        for each in topic.partitions
    }
    run.run.runner.branch_off([step])
    stage.run_until(stage.now_ms + 95)
    for question in asked:
        if question.partition:
            found = outcome(stage, question, before[question.partition])
            assert question.answer == found, (action, question_values(question), found)
