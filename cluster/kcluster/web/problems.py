"""Refusals of requests: problem documents (RFC 9457) and the errors that become them.

Owns: RefusedRequest, the document, the HTTP status of each of our errors.  Never: words an
error that another room raises: its text is passed on.
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Annotated, Final

from msgspec import Meta, Struct

from kcluster.config.files.problems import MAX_SHOWN, Problem, ProblemsError
from kcluster.operations.errors import ClusterError, WrongName
from kcluster.operations.states import WrongState

MEDIA_TYPE: Final = "application/problem+json"
RETRY_AFTER_S: Final = 1


class PlacedProblem(Struct, omit_defaults=True):
    """A mistake in a request.  `path`: the path of the value in the body, or among the query's
    parameters; `line`, `column`: its place in the body, from 1; 0 if unknown."""

    path: str
    text: str
    line: int = 0
    column: int = 0


class ProcessStanding(Struct, frozen=True):
    """The state of a broker's process: up, paused or down.  The controller has an id too."""

    id: int
    state: str


class ProblemDocument(Struct, omit_defaults=True):
    """A problem document of RFC 9457."""

    status: Annotated[int, Meta(description="The HTTP status.")]
    title: Annotated[str, Meta(description="Its name.")]
    detail: Annotated[str, Meta(description="What is wrong, for people.")]
    problems: Annotated[
        list[PlacedProblem], Meta(description="Each problem, with its place in the request.")
    ] = []
    state: Annotated[
        list[str], Meta(description="How the cluster stands, if it has not settled in time.")
    ] = []
    action: Annotated[
        int | None, Meta(description="The number of the action that was performed all the same.")
    ] = None
    left_alone: Annotated[
        list[ProcessStanding],
        Meta(description="The broker whose state does not allow the action, with this state."),
    ] = []


class RefusedRequest(Exception):
    """A request that gets a problem document as its answer."""

    def __init__(
        self,
        status: HTTPStatus,
        detail: str,
        problems: list[PlacedProblem] | None = None,
        *,
        state: list[str] | None = None,
        action: int | None = None,
        left_alone: Sequence[tuple[int, str]] = (),
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.document = ProblemDocument(
            status=int(status),
            title=status.phrase,
            detail=detail,
            problems=problems or [],
            state=state or [],
            action=action,
            left_alone=broker_states(left_alone),
        )
        self.headers = headers or {}


EXPECTED: Final[tuple[type[Exception], ...]] = (
    RefusedRequest, ClusterError, ProblemsError,
)  # fmt: skip
"""The errors that a handler may raise; any other exception is a bug."""


def refusal_of(error: Exception) -> RefusedRequest:
    """The refusal for an expected error."""
    if isinstance(error, RefusedRequest):
        return error
    if isinstance(error, ProblemsError):
        return wrong_values(error.problems)
    if isinstance(error, WrongName):
        return wrong_value("", str(error))
    assert isinstance(error, ClusterError), error
    left_alone = error.left_alone if isinstance(error, WrongState) else ()
    return RefusedRequest(HTTPStatus.CONFLICT, str(error), left_alone=left_alone)


def broker_states(nodes: Iterable[tuple[int, str]]) -> list[ProcessStanding]:
    """Brokers' ids and states for JSON."""
    return [ProcessStanding(node, str(state)) for node, state in nodes]


def wrong_values(problems: Sequence[Problem | PlacedProblem]) -> RefusedRequest:
    """The refusal of a body whose values are wrong."""
    return _all_of(HTTPStatus.UNPROCESSABLE_ENTITY, problems)


def wrong_parameters(problems: Sequence[PlacedProblem]) -> RefusedRequest:
    """The refusal of a query whose parameters are wrong."""
    return _all_of(HTTPStatus.BAD_REQUEST, problems)


def _all_of(status: HTTPStatus, problems: Sequence[Problem | PlacedProblem]) -> RefusedRequest:
    """A refusal that lists the problems, the first MAX_SHOWN of them, as for a file."""
    shown = [placed_problem(problem) for problem in problems[:MAX_SHOWN]]
    lines = [
        f"{problem.path}: {problem.text}" if problem.path else problem.text for problem in shown
    ]
    if len(problems) > MAX_SHOWN:
        lines.append(f"and {len(problems) - MAX_SHOWN} more problems")
    return RefusedRequest(status, "; ".join(lines), shown)


def wrong_value(path: str, text: str) -> RefusedRequest:
    """The refusal of one wrong value."""
    return wrong_values([Problem("", 0, 0, path, text)])


def placed_problem(problem: Problem | PlacedProblem) -> PlacedProblem:
    """A problem of a file as one of a request."""
    if isinstance(problem, PlacedProblem):
        return problem
    return PlacedProblem(problem.path, problem.text, problem.line, problem.column)


def not_found(detail: str) -> RefusedRequest:
    """The refusal of a request for something that does not exist."""
    return RefusedRequest(HTTPStatus.NOT_FOUND, detail)


def overloaded(detail: str) -> RefusedRequest:
    """The refusal of a request for which the server has no room now."""
    detail = f"{detail}; try again in {RETRY_AFTER_S} s"
    headers = {"Retry-After": str(RETRY_AFTER_S)}
    return RefusedRequest(HTTPStatus.SERVICE_UNAVAILABLE, detail, headers=headers)


def bad_request(detail: str, *problems: PlacedProblem) -> RefusedRequest:
    """The refusal of a request that cannot be read."""
    return RefusedRequest(HTTPStatus.BAD_REQUEST, detail, list(problems))
