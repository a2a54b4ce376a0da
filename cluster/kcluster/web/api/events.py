"""The events of a cluster: as a list, as lines of JSON, as server-sent events.

Owns: this route, what is answered about an event.  Never: words an event (events/words/).
Kafka: the controller's and the brokers' logs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from kcluster.config.files.problems import unknown
from kcluster.events import KINDS
from kcluster.events.render import note_values
from kcluster.events.words import sentence_of
from kcluster.handle.cluster import Cluster
from kcluster.json_types import JsonObject
from kcluster.operations.status import NoteEntry
from kcluster.web.call import ApiAnswer, ApiCall
from kcluster.web.problems import PlacedProblem, bad_request
from kcluster.web.routes import EVENT_STREAM, JSON, NDJSON, Runs, route
from kcluster.web.streams import COMMENT, QUIET_S, Inbox, sse_event


class EventParameters(Struct):
    """Which events."""

    since: (
        Annotated[int, Meta(ge=0, description="Only events after the one with this sequence.")]
        | None
    ) = None
    follow: Annotated[
        bool, Meta(description="Go on with those that happen from now on, until either side ends.")
    ] = False
    kind: Annotated[
        str, Meta(description="Only events of these kinds: leader_elected,isr_shrunk.")
    ] = ""


class EventAnswer(Struct, frozen=True):
    """An event.  `sequence`: from 1; `text`: what happened to the subject; `sentence`: with the
    subject, for a line of its own; `event`: its fields by kind, as in a run directory; `cause`: the
    id of the event that caused it."""

    sequence: int
    id: tuple[int, int]
    at_ms: int
    kind: str
    subject: str
    text: str
    sentence: str
    cause: tuple[int, int] | None
    event: JsonObject


class EventList(Struct, frozen=True):
    """Events, oldest first."""

    events: list[EventAnswer]


@route(
    "GET",
    "/v1/clusters/<id>/events",
    query=EventParameters,
    answer=EventList,
    also=(NDJSON, EVENT_STREAM),
    errors=(404, 409),
    runs=Runs.AT_ONCE,
)
def list_events(call: ApiCall) -> ApiAnswer:
    """The events of a cluster: a JSON object, lines of JSON (application/x-ndjson) or server-sent
    events (text/event-stream), as Accept says; with `follow` lines if it does not say."""
    wanted = call.query
    kinds = read_kinds(wanted.kind)
    media_types = (NDJSON, EVENT_STREAM) if wanted.follow else (JSON, NDJSON, EVENT_STREAM)
    media_type = call.accepts(*media_types)
    since = last_event_id(call) or wanted.since
    cluster = call.held.cluster
    if wanted.follow:
        entries = followed(call, cluster, since or 0)
    else:
        entries = iter([call.in_thread(lambda: cluster.events(since or 0))])
    shown = ([entry for entry in part if not kinds or entry.kind in kinds] for part in entries)
    if media_type == JSON:
        return ApiAnswer(EventList([event_answer(entry) for part in shown for entry in part]))
    is_sse = media_type == EVENT_STREAM
    parts = (as_sse(part) if is_sse else as_lines(part) for part in shown)
    return ApiAnswer(body=parts, media_type=media_type)


def last_event_id(call: ApiCall) -> int | None:
    """Up to where a client that connects again has read."""
    text = call.request.headers.get("Last-Event-ID", "")
    return int(text) if text.isascii() and text.isdecimal() else None


def read_kinds(text: str) -> tuple[str, ...]:
    """Kinds of events; a refusal with the nearest name for one that does not exist."""
    kinds = tuple(kind.strip() for kind in text.split(",") if kind.strip())
    problems = [
        PlacedProblem("kind", f"{kind}: {unknown('kind of event', kind, KINDS)}")
        for kind in kinds
        if kind not in KINDS
    ]
    if problems:
        raise bad_request("; ".join(problem.text for problem in problems), *problems)
    return kinds


def followed(call: ApiCall, cluster: Cluster, since: int) -> Iterator[list[NoteEntry]]:
    """The past events, then those that happen."""
    inbox: Inbox[NoteEntry] = Inbox(call.server.call_soon)
    end = cluster.subscribe(inbox.put)  # here: a stream that nobody reads never comes this far
    try:
        past = call.in_thread(lambda: cluster.events(since))
        last = past[-1].sequence if past else since
        yield past
        while not (inbox.is_closed or call.is_over):
            yield [entry for entry in inbox.take(QUIET_S) if entry.sequence > last]
    finally:
        end()


def event_answer(entry: NoteEntry) -> EventAnswer:
    """An event for JSON."""
    sentence = sentence_of(entry.note.event)
    return EventAnswer(sequence=entry.sequence, sentence=sentence, **note_values(entry.note))


def as_lines(entries: list[NoteEntry]) -> bytes:
    """A line of JSON per event; an empty one if nothing has happened."""
    encode = msgspec.json.Encoder().encode
    return b"".join(encode(event_answer(entry)) + b"\n" for entry in entries) or b"\n"


def as_sse(entries: list[NoteEntry]) -> bytes:
    """A server-sent event per event; a comment if nothing has happened."""
    encode = msgspec.json.Encoder().encode
    texts = (sse_event(x.kind, encode(event_answer(x)), x.sequence) for x in entries)
    return b"".join(texts) or COMMENT
