"""Both futures of a moment: without a choice, and with it.

Owns: this route.  Never: plays anything itself (scenario/play/fork.py).
Kafka: no counterpart.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct, structs

from kcluster.config.files.tree import from_python
from kcluster.handle.cluster import Cluster
from kcluster.json_types import JsonObject
from kcluster.runs.journal import rows_from
from kcluster.runs.note_values import notes_values
from kcluster.runs.record import Rows
from kcluster.scenario.difference import FutureDifference
from kcluster.scenario.forking import fork_cluster
from kcluster.scenario.language.loader import ScenarioError, parse_action, read_action
from kcluster.scenario.language.model import Step
from kcluster.scenario.play.fork import Future
from kcluster.web.api.waiting import seconds
from kcluster.web.call import ApiCall
from kcluster.web.routes import route


class ForkWanted(Struct, rename={"for_": "for"}):
    """The moment and the actions of a fork."""

    actions: Annotated[
        list[JsonObject | str], Meta(description="The choice: actions of scenario files.")
    ]
    at_ms: Annotated[
        int | None, Meta(description="The moment, on the cluster's clock; without it, now.")
    ] = None
    for_: Annotated[
        str, Meta(description="How long both futures go on before they come to rest.")
    ] = "30s"
    rows: Annotated[bool, Meta(description="Answer with the rows of both futures.")] = True


class FutureAnswer(Struct, frozen=True):
    """`rows`: the rows of the stream from the moment on, if requested; `problems`: actions that
    could not be performed in it; `lines`: the problems and the verdict, for people."""

    rows: JsonObject
    until_ms: int
    verdict: msgspec.Raw
    problems: tuple[str, ...]
    lines: tuple[str, ...]


class ForkAnswer(Struct, frozen=True):
    """`here`: without the choice; `there`: with it. `difference`: what the choice changes, in one
    sentence; `facts`: the same as values. `assumptions`: the reasons why the played past differs
    from the real one."""

    at_ms: int
    difference: str
    facts: FutureDifference
    here: FutureAnswer
    there: FutureAnswer
    assumptions: tuple[str, ...]


@route(
    "POST", "/v1/clusters/<id>/forks", body=ForkWanted, answer=ForkAnswer, errors=(404, 409, 422)
)
def fork_cluster_at(call: ApiCall) -> ForkAnswer:
    """Play both futures of a moment in virtual time: with nothing more done, and with actions."""
    wanted = call.values(ForkWanted)
    steps = read_steps(wanted.actions)
    for_ms = round(seconds(wanted.for_, "for") * 1000)
    source = call.held.source
    if isinstance(source, Cluster):
        futures = fork_cluster(source, steps, wanted.at_ms, for_ms)
    else:
        futures = source.fork(steps, wanted.at_ms, for_ms)
    return ForkAnswer(
        at_ms=futures.at_ms,
        difference=futures.difference.text,
        facts=futures.difference,
        here=future_answer(futures.here, futures.at_ms, wanted.rows),
        there=future_answer(futures.there, futures.at_ms, wanted.rows),
        assumptions=futures.assumptions,
    )


def read_steps(actions: list[dict[str, object] | str]) -> list[Step]:
    """The steps of the actions; a refusal with every problem and its path."""
    steps, problems = [], []
    for number, action in enumerate(actions):
        try:
            if isinstance(action, str):
                steps.append(parse_action(action))
            else:
                steps.append(read_action(from_python(action), ""))
        except ScenarioError as error:
            head = f"actions[{number}]"
            problems += [
                structs.replace(x, path=f"{head}.{x.path}" if x.path else head)
                for x in error.problems
            ]
    if problems:
        raise ScenarioError(problems)
    return steps


def future_answer(future: Future, at_ms: int, with_rows: bool) -> FutureAnswer:
    """The values of a future for JSON."""
    rows: Rows = {}
    if with_rows:
        # The chosen actions happen at the moment itself.
        found = rows_from(future.record, at_ms)
        rows = {field: of_table for field, of_table in found.items() if of_table}
        rows["notes"] = notes_values(future.record.notes, future.record.info.began_ms)
    return FutureAnswer(
        rows=rows,
        until_ms=future.record.info.ended_ms,
        verdict=msgspec.Raw(future.verdict.to_json().encode()),
        problems=future.problems,
        lines=(*future.problems, *future.verdict.lines()),
    )
