"""Questions about the consequences of an action.

Owns: this route, the decision to show the answers.  Never: predicts (scenario/predicting.py).
Kafka: no counterpart.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from kcluster.handle.cluster import Cluster
from kcluster.json_types import JsonObject
from kcluster.scenario.language.loader import parse_action
from kcluster.scenario.predicting import question_values, questions
from kcluster.web.call import ApiCall
from kcluster.web.routes import route

_SECRET = ("answer", "reason")


class PredictionParameters(Struct):
    """The action that is about to be performed."""

    action: Annotated[
        str, Meta(description='As JSON or as in a scenario file: `{"kill": 1}`, `kill: 1`.')
    ]
    answers: Annotated[bool, Meta(description="Show which choice is right, and why.")] = False
    at_ms: Annotated[
        int | None,
        Meta(description="Of a run that is over: the moment, on its clock; without it, its end."),
    ] = None


class ChoiceAnswer(Struct, frozen=True):
    """One of the choices of a question."""

    value: int | str
    text: str


class QuestionAnswer(Struct, frozen=True, omit_defaults=True):
    """A question.  `partition`, `offset`: what it is about; `answer`: the value of the right
    choice, with its reason, if requested."""

    kind: str
    partition: str
    offset: int
    text: str
    choices: list[ChoiceAnswer]
    answer: int | str | None = None
    reason: str = ""


class QuestionList(Struct, frozen=True):
    """The questions; none for an action that takes no broker from the cluster."""

    questions: list[QuestionAnswer]


@route(
    "GET",
    "/v1/clusters/<id>/predictions",
    query=PredictionParameters,
    answer=QuestionList,
    errors=(404, 409, 422),
)
def predict_action(call: ApiCall) -> QuestionList:
    """The questions that can be asked before an action takes effect. The answers hold if it follows
    before anything else happens, so pause the clock."""
    wanted, source = call.query, call.held.source
    step = parse_action(wanted.action)
    if isinstance(source, Cluster):
        asked = questions(source, step)
    else:
        ended_ms = source.info.ended_ms
        asked = source.questions(step, ended_ms if wanted.at_ms is None else wanted.at_ms)
    return QuestionList(
        [question_answer(question_values(question), wanted.answers) for question in asked]
    )


def question_answer(values: JsonObject, shown: bool) -> QuestionAnswer:
    """The values of a question for JSON."""
    kept = {key: value for key, value in values.items() if shown or key not in _SECRET}
    kept["choices"] = [ChoiceAnswer(**choice) for choice in values["choices"]]
    return QuestionAnswer(**kept)
