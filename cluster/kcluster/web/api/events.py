"""The events of a cluster: as a list, as lines of JSON, as server-sent events.

Owns: this route, the answer about an event.  Never: words an event (events/words/).
Kafka: the controller's and the brokers' logs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from kcluster.config.files.durations import milliseconds
from kcluster.config.files.numbers import whole_number
from kcluster.config.files.problems import unknown
from kcluster.events import KINDS
from kcluster.events.render import note_line, note_values
from kcluster.events.words import sentence_of
from kcluster.handle.cluster import Cluster
from kcluster.json_types import JsonObject
from kcluster.operations.status import NoteEntry
from kcluster.web.call import ApiAnswer, ApiCall
from kcluster.web.problems import PlacedProblem, bad_request, wrong_parameters
from kcluster.web.routes import EVENT_STREAM, JSON, NDJSON, PLAIN, Runs, route
from kcluster.web.streams import COMMENT, QUIET_S, Inbox, sse_event

NOW: Final = "now"
_SINCE: Final = "a time back (10s), an event's number (17), or now"


class EventParameters(Struct):
    """The selection of events."""

    since: Annotated[
        str,
        Meta(
            description="Only events after the one with this sequence (17), those of the last while"
            " (10s), or with `follow` from `now` on."
        ),
    ] = ""
    last: Annotated[int, Meta(ge=0, description="Of these only the newest.")] | None = None
    follow: Annotated[
        bool, Meta(description="Continue with new events as they happen, until either side ends.")
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
    also=(NDJSON, EVENT_STREAM, PLAIN),
    errors=(404, 409),
    runs=Runs.AT_ONCE,
)
def list_events(call: ApiCall) -> ApiAnswer:
    """The events of a cluster: a JSON object, lines of JSON (application/x-ndjson), server-sent
    events (text/event-stream) or lines for people (text/plain), as Accept says; with `follow` and
    without Accept, lines of JSON."""
    wanted = call.query
    kinds = read_kinds(wanted.kind)
    streamed = (NDJSON, EVENT_STREAM, PLAIN)
    media_type = call.accepts(*(streamed if wanted.follow else (JSON, *streamed)))
    cluster, began_ms = call.held.cluster, call.held.began_ms
    since = last_event_id(call) or sequence_of(cluster, wanted.since)

    def past() -> list[NoteEntry]:
        found = [x for x in cluster.events(since) if not kinds or x.kind in kinds]
        return found if wanted.last is None else found[len(found) - min(wanted.last, len(found)) :]

    if not wanted.follow:
        entries = call.in_thread(past)
        if media_type == JSON:
            return ApiAnswer(EventList([event_answer(entry) for entry in entries]))
        shown = iter([entries])
    else:
        shown = followed(call, cluster, past, kinds)
    as_text = {
        NDJSON: as_lines, EVENT_STREAM: as_sse, PLAIN: lambda entries: as_plain(entries, began_ms)
    }[media_type]  # fmt: skip
    charset = "; charset=utf-8" if media_type == PLAIN else ""
    return ApiAnswer(body=map(as_text, shown), media_type=f"{media_type}{charset}")


def sequence_of(cluster: Cluster, since: str) -> int:
    """The sequence of the last event that `since` leaves out: a number, a time back, or `now`."""
    number = whole_number(since)
    if number is not None:
        return min(number, sys.maxsize)
    if not since or since == NOW:
        return cluster.sequence_at(-1) if since else 0  # every event that is not in the future
    try:
        return cluster.sequence_at(milliseconds(since, _SINCE))
    except ValueError as error:
        raise wrong_parameters([PlacedProblem("since", str(error))]) from None


def last_event_id(call: ApiCall) -> int | None:
    """The sequence of the last event that a reconnecting client has read."""
    return whole_number(call.request.headers.get("Last-Event-ID", ""))


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


def followed(
    call: ApiCall,
    cluster: Cluster,
    read_past: Callable[[], list[NoteEntry]],
    kinds: tuple[str, ...],
) -> Iterator[list[NoteEntry]]:
    """The past events, then new ones when they happen."""
    inbox: Inbox[NoteEntry] = Inbox(call.server.call_soon)
    end = cluster.subscribe(inbox.put)  # only here: a stream without a reader never comes this far
    try:
        past = call.in_thread(read_past)
        last = past[-1].sequence if past else 0
        yield past
        while not (inbox.is_closed or call.is_over):
            news = inbox.take(QUIET_S)
            yield [x for x in news if x.sequence > last and (not kinds or x.kind in kinds)]
    finally:
        end()


def event_answer(entry: NoteEntry) -> EventAnswer:
    """The values of an event for JSON."""
    sentence = sentence_of(entry.note.event)
    return EventAnswer(sequence=entry.sequence, sentence=sentence, **note_values(entry.note))


def as_lines(entries: list[NoteEntry]) -> bytes:
    """A line of JSON per event; an empty one if nothing has happened."""
    encode = msgspec.json.Encoder().encode
    return b"".join(encode(event_answer(entry)) + b"\n" for entry in entries) or b"\n"


def as_plain(entries: list[NoteEntry], began_ms: int) -> bytes:
    """A line per event, as `kcluster events` shows it; an empty one if nothing has happened."""
    lines = (note_line(entry.note, began_ms) for entry in entries)
    return "\n".join((*lines, "")).encode() or b"\n"


def as_sse(entries: list[NoteEntry]) -> bytes:
    """A server-sent event per event; a comment if nothing has happened."""
    encode = msgspec.json.Encoder().encode
    texts = (sse_event(x.kind, encode(event_answer(x)), x.sequence) for x in entries)
    return b"".join(texts) or COMMENT
