"""What was recorded of a cluster, and what it proves: verdict, run directory, timeline page.

Owns: these routes.  Never: judges (checks/verdict.py), draws (runs/page/).
Kafka: no counterpart.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from kcluster.runs.page.document import page_of_record
from kcluster.web.api.clusters import saved_run
from kcluster.web.api.processed import record_of_run
from kcluster.web.call import ApiAnswer, ApiCall
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


class SaveWanted(Struct):
    """Where to write the run."""

    directory: Annotated[
        str,
        Meta(
            description="The run gets its own directory below: on the server's machine, below the"
            " directory of `kcluster serve --runs`."
        ),
    ]


class SavedRun(Struct, frozen=True):
    """A run directory, and the verdict in it."""

    run: str
    outcome: str
    reason: str


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
    return ApiAnswer(msgspec.Raw(text))


@route(
    "POST", "/v1/clusters/<id>/save", body=SaveWanted, answer=SavedRun, errors=(403, 404, 409, 422)
)
def save_run(call: ApiCall) -> SavedRun:
    """Write the run so far to a run directory; the cluster runs on."""
    path, verdict = saved_run(call, call.values(SaveWanted).directory, "directory")
    return SavedRun(str(path), verdict["outcome"], verdict["reason"])


@route("GET", "/v1/clusters/<id>/timeline.html", answer=HTML, errors=(404, 409))
def show_timeline(call: ApiCall) -> ApiAnswer:
    """The run so far as the timeline page of a run directory: one HTML file."""
    body = page_of_record(record_of_run(call.held)).encode()
    return ApiAnswer(body=body, media_type=f"{HTML}; charset=utf-8")
