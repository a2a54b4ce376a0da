"""The questions that can be asked before an action of a scenario takes effect.

Owns: the actions that lose brokers, and the way of each.  Never: predicts
(operations/prediction.py), performs.  Kafka: no counterpart.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

from kcluster.actions.brokers import KillBrokers, PauseBrokers, StopBrokers
from kcluster.actions.network import Isolate
from kcluster.deaths import DeathKind
from kcluster.handle.cluster_verbs import ClusterVerbs
from kcluster.json_types import JsonObject
from kcluster.operations.prediction import Leaving, Prediction, predict
from kcluster.operations.prediction_facts import cluster_state
from kcluster.operations.prediction_words import answer_reason, choice_text, question_text
from kcluster.scenario.language.model import Step
from kcluster.scenario.perform import running_stage
from kcluster.scenario.play.stage import ScenarioStage

_DEATHS: Final = {
    DeathKind.KILL: Leaving.KILLED,
    DeathKind.POWER: Leaving.POWERED_OFF,
    DeathKind.WIPE: Leaving.WIPED,
    DeathKind.CLEAN: Leaving.SHUT_DOWN,
}


def questions(cluster: ClusterVerbs, step: Step) -> list[Prediction]:
    """The questions about an action on a live cluster at this moment; none for an action that loses
    no broker.  The answers hold only if nothing else happens before the action: pause the clock.
    ClusterError if the action is not possible."""
    return cluster.call(lambda: questions_on(running_stage(cluster), step))


def questions_on(stage: ScenarioStage, step: Step) -> list[Prediction]:
    """The questions about an action on a stage of either clock; called between two dispatches."""
    how = _leaving(step)
    if how is None:
        return []
    brokers = stage.about_to_affect(step.action)
    return predict(cluster_state(stage.plan, stage.dispatcher), brokers, how)


def question_values(question: Prediction) -> JsonObject:
    """A question as values for JSON, with its text and the texts of its choices."""
    return {
        "kind": question.kind,
        "partition": question.partition,
        "offset": question.offset,
        "text": question_text(question),
        "choices": [{"value": value, "text": choice_text(value)} for value in _drawn(question)],
        "answer": question.answer,
        "reason": answer_reason(question),
    }


def _drawn(question: Prediction) -> list[int | str]:
    """The choices in an order that the question itself draws, so that the right one may stand
    anywhere, and the same question always has the same order."""
    asked = f"{question.kind} {question.partition} {question.offset} {question.reason.was_leader}"
    return sorted(question.choices, key=lambda choice: crc32(f"{asked} {choice}".encode()))


def _leaving(step: Step) -> Leaving | None:
    """The way in which an action loses brokers; None if it loses none."""
    match step.action:
        case KillBrokers(how=how):
            return _DEATHS[DeathKind(how)]
        case StopBrokers():
            return Leaving.SHUT_DOWN
        case PauseBrokers():
            return Leaving.PAUSED
        case Isolate(others=None, one_way=False):
            return Leaving.ISOLATED
        case _:
            return None
