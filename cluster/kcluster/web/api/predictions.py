"""Questions about what an action will lead to.

Owns: this route, whether the answers are shown.  Never: predicts (scenario/predicting.py).
Kafka: no counterpart.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from kcluster.scenario.language.loader import parse_action
from kcluster.scenario.predicting import question_values, questions
from kcluster.web.call import ApiCall
from kcluster.web.routes import route

_SECRET = ("answer", "reason")


class PredictionParameters(Struct):
    """Which action."""

    action: Annotated[
        str, Meta(description='As JSON or as in a scenario file: `{"kill": 1}`, `kill: 1`.')
    ]
    answers: Annotated[bool, Meta(description="Show which choice is right, and why.")] = False


class ChoiceAnswer(Struct, frozen=True):
    """A choice."""

    value: int | str
    text: str


class QuestionAnswer(Struct, frozen=True, omit_defaults=True):
    """A question.  `partition`, `offset`: what it is about; `answer`: the value of the right
    choice, with its reason, if they were asked for."""

    kind: str
    partition: str
    offset: int
    text: str
    choices: list[ChoiceAnswer]
    answer: int | str | None = None
    reason: str = ""


class QuestionList(Struct, frozen=True):
    """Empty for an action that takes no broker from the cluster."""

    questions: list[QuestionAnswer]


@route(
    "GET",
    "/v1/clusters/<id>/predictions",
    query=PredictionParameters,
    answer=QuestionList,
    errors=(404, 409, 422),
)
def predict_action(call: ApiCall) -> QuestionList:
    """What is worth asking before an action takes effect; right if it follows before anything else
    happens, so pause the clock."""
    step = parse_action(call.query.action)
    asked = [question_values(question) for question in questions(call.held.cluster, step)]
    return QuestionList([question_answer(values, call.query.answers) for values in asked])


def question_answer(values: dict[str, Any], shown: bool) -> QuestionAnswer:
    """A question for JSON."""
    kept = {key: value for key, value in values.items() if shown or key not in _SECRET}
    kept["choices"] = [ChoiceAnswer(**choice) for choice in values["choices"]]
    return QuestionAnswer(**kept)
