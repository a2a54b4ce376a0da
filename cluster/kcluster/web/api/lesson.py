"""The lesson that is played on a cluster: its card, and the class's answer.

Owns: these routes.  Never: knows a lesson (learn/), takes a vote of a phone (voting.py).
Kafka: no counterpart.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from msgspec import Meta, Struct

from kcluster.web.call import ApiAnswer, ApiCall
from kcluster.web.problems import RefusedRequest, not_found
from kcluster.web.routes import JSON, Runs, route


class LessonAnswer(Struct, forbid_unknown_fields=True):
    """The class's answer to the question of a lesson's part."""

    choice: Annotated[
        int | None, Meta(description="The choice, from 0; null: go on without an answer.")
    ] = None


@route("GET", "/v1/clusters/<id>/lesson", answer=JSON, errors=(404,), runs=Runs.AT_ONCE)
def show_lesson(call: ApiCall) -> ApiAnswer:
    """The part of a lesson that `kcluster learn --page` shows beside the cluster now."""
    count, card = call.held.lessons.newest()
    if not count:
        raise not_found("no lesson is played on this cluster")
    return ApiAnswer(body=card)


@route(
    "POST", "/v1/clusters/<id>/lesson", body=LessonAnswer, errors=(404, 409, 422), runs=Runs.AT_ONCE
)
def answer_lesson(call: ApiCall) -> None:
    """Answer the question of the lesson, or go on, in place of the terminal."""
    choice = call.values(LessonAnswer).choice
    if not call.held.lessons.answer(choice):
        raise RefusedRequest(HTTPStatus.CONFLICT, "the lesson does not wait for this answer")
