"""The record of a cluster, and its evidence: verdict, run directory, timeline page.

Owns: these routes.  Never: judges (checks/verdict.py), draws (runs/page/).
Kafka: no counterpart.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct, structs

from kcluster.checks.manners_words import manner_lines, manner_values
from kcluster.runs.page.document import page_of_record
from kcluster.scenario.recorded_file import write_scenario
from kcluster.web.api.clusters import place_of_file, saved_run, writing
from kcluster.web.api.processed import record_of_run
from kcluster.web.call import ApiAnswer, ApiCall
from kcluster.web.problems import wrong_value
from kcluster.web.routes import HTML, route

VERDICT_SCHEMA = {"type": "object", "required": ["outcome", "reason"]}


class VerdictParameters(Struct):
    """What to judge."""

    since: Annotated[
        str,
        Meta(
            description="Only what was sent and what happened since: a time back (30s), an event's"
            " sequence (17), or a moment of the cluster's clock (@12345, the at_ms of its status"
            " and of events)."
        ),
    ] = ""
    lines: Annotated[
        Literal["", "brief", "all"],
        Meta(description="Add `lines` for people: `brief`, or `all` with every outage."),
    ] = ""
    manners: Annotated[
        bool,
        Meta(description="Add `manners`: bad habits of clients, each with its figure and advice."),
    ] = False


class SaveWanted(Struct):
    """Where to write the run."""

    directory: Annotated[
        str,
        Meta(
            description="The run gets its own directory below: on the server's machine, below the"
            " directory of `kcluster serve --runs`."
        ),
    ] = ""
    scenario: Annotated[
        str, Meta(description="A file there, for what was done to the cluster, as a scenario.")
    ] = ""


class SavedRun(Struct, frozen=True, omit_defaults=True):
    """A run directory and the verdict in it, and a scenario file, as far as they were requested."""

    run: str = ""
    outcome: str = ""
    reason: str = ""
    scenario: str = ""


@route(
    "GET",
    "/v1/clusters/<id>/verdict",
    query=VerdictParameters,
    answer=VERDICT_SCHEMA,
    errors=(404, 409),
)
def show_verdict(call: ApiCall) -> ApiAnswer:
    """Whether the cluster has kept its promises so far: valid, invalid or unknown."""
    since = call.query.since
    verdict = call.held.cluster.verdict(since) if since else call.held.source.verdict()
    text = verdict.to_json().encode()
    if not since:
        call.held.verdicts.add(text)
    if not (call.query.lines or call.query.manners):
        return ApiAnswer(msgspec.Raw(text))
    values = msgspec.json.decode(text)
    if call.query.lines:
        values["lines"] = list(verdict.lines(verbose=call.query.lines == "all"))
    if call.query.manners:
        manners = call.held.cluster.manners(since or None)
        values["manners"] = [manner_values(manner) for manner in manners]
        if call.query.lines:
            values["manner_lines"] = list(manner_lines(manners))
    return ApiAnswer(values)


@route(
    "POST", "/v1/clusters/<id>/save", body=SaveWanted, answer=SavedRun, errors=(403, 404, 409, 422)
)
def save_run(call: ApiCall) -> SavedRun:
    """Write the run so far to a run directory, or what was done to the cluster to a scenario file;
    the cluster runs on."""
    wanted = call.values(SaveWanted)
    if not (wanted.directory or wanted.scenario):
        raise wrong_value("", "name a directory, or a scenario's file, or both")
    answer = SavedRun()
    if wanted.directory:
        path, verdict = saved_run(call, wanted.directory, "directory")
        answer = SavedRun(str(path), verdict["outcome"], verdict["reason"])
    if wanted.scenario:
        file = place_of_file(call, wanted.scenario, "scenario")
        with writing("scenario", file):
            write_scenario(call.held.cluster, file)
        answer = structs.replace(answer, scenario=str(file))
    return answer


@route("GET", "/v1/clusters/<id>/timeline.html", answer=HTML, errors=(404, 409))
def show_timeline(call: ApiCall) -> ApiAnswer:
    """The run so far as the timeline page of a run directory: one HTML file. After a lesson it is a
    replay of the class, with its votes."""
    body = page_of_record(record_of_run(call.held), call.held.lessons.replayed()).encode()
    return ApiAnswer(body=body, media_type=f"{HTML}; charset=utf-8")
