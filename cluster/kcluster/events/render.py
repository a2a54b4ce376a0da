"""The canonical text of notes and of requests with their responses: one line each, stable columns.

Owns: notes and requests as text and as JSON, for CLI, tests and timelines.
Never: decides what to show; does I/O.
Kafka: kafka.request.logger, in one readable line.

Columns of a note
    `+1234 ms`   when, counted from `origin_ms` (notes carry the driver's clock)
    kind         `leader_elected`
    subject      `orders-0`, `broker 2`, …
    text         the change and its reason (words/)
    `[3000.12]`  the note that is its cause, if there is one (node id, sequence number)

Columns of a request
    `+1234 ms`   when it arrived
    broker       the broker that answered
    API vN       Kafka's name of the API, and the version of the request
    client       its client id, `-` without one
    subjects     topic-partitions (`orders-0,2,5`), with the size of the records; or a group, a
                 transactional id, a resource.  If the request names none (a fetch session, all
                 topics), those of the response; `-` if neither names any
    outcome      `ok`, or each error's name and its subjects; `no answer` for acks=0
    took         milliseconds from arrival to response
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, to_builtins

from kcluster.contract import Event, Note, NoteId, Request
from kcluster.events.brokers import BrokerRegistered
from kcluster.events.network import LinkCut, LinkHealed
from kcluster.events.partitions import BecameFollower, BecameLeader, PartitionEvent
from kcluster.events.words import sentence_of, text_after_subject, text_of
from kcluster.json_types import JsonObject
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.messages import Message

SUBJECTS_SHOWN: Final = 8
"""The most partitions that a line names; the rest are counted."""

FOLD_FROM: Final = 4
"""From this number on, equal changes of one topic with one cause share a line."""

KIND_WIDTH: Final = 22
"""The width of the column of kinds: the longest is reassignment_completed."""

_ERRORS: Final[dict[int, ErrorCode]] = {int(error): error for error in ErrorCode}
_TOPIC_LISTS: Final = frozenset({"topics", "topic_data", "responses"})
"""Fields whose items name the topic in `name`; in other fields, `name` is the name of a config or a
feature."""
_TOPIC_FIELDS: Final = ("topic", "topic_name")
_PARTITION_FIELDS: Final = ("partition", "partition_index", "index", "partition_id")
_PARTITION_LISTS: Final = frozenset({"partitions", "partition_indexes"})
_NAME_LISTS: Final = frozenset({"topic_names", "groups", "groups_names", "coordinator_keys"})
_NOT_ASKED: Final = frozenset({"forgotten_topics_data"})
"""Fields with the partitions that a request removes from its fetch session."""
_OTHER_SUBJECTS: Final = ("group_id", "transactional_id", "key", "resource_name")


class Mention(Struct, gc=False):
    """A reference in a message to a partition, a topic (`partition` None), or something else by
    name.  `error_code`: None if the message has no such field there; `size_bytes`: the size of its
    records."""

    subject: str
    partition: int | None
    error_code: int | None
    size_bytes: int


class FoldedNotes(Struct, gc=False):
    """Equal changes of many partitions of one topic, shown as one change; `notes`: in order."""

    topic: str
    partitions: list[int]
    notes: list[Note]


# ------------------------------------------------------------------------------------- notes


def cause_text(cause: NoteId | None) -> str:
    """The cause of a note as text: `[3000.12]`, or ""."""
    return "" if cause is None else f"[{cause[0]}.{cause[1]}]"


def note_line(note: Note, origin_ms: int = 0) -> str:
    """A note as a line; the docstring of the module lists the columns."""
    event, cause = note.event, cause_text(note.cause)
    text = text_after_subject(event)
    if cause:
        text = f"{text}  {cause}"
    return event_line(note.at_ms, origin_ms, event.kind, event.subject, text)


def event_line(at_ms: int, origin_ms: int, kind: str, subject: str, text: str) -> str:
    """A line in the columns of events, also for moments of other kinds, such as a test's calls."""
    at = offset_text(at_ms, origin_ms)
    return one_line(f"{at}  {kind:<{KIND_WIDTH}} {subject:<12} {text}")


def note_values(note: Note) -> JsonObject:
    """A note for JSON: id, at_ms, kind, subject, text, cause (null if none), and the event, as in a
    run directory."""
    event = note.event
    return {
        "id": list(note.note_id),
        "at_ms": note.at_ms,
        "kind": event.kind,
        "subject": event.subject,
        "text": text_of(event),
        "cause": None if note.cause is None else list(note.cause),
        "event": to_builtins(event),
    }


ECHOES: Final = (BecameLeader, BecameFollower, BrokerRegistered, LinkCut, LinkHealed)
"""Events that repeat another event for each broker."""


def fold(notes: Iterable[Note]) -> list[Note | FoldedNotes]:
    """Notes in order; `FOLD_FROM` or more of one kind, topic, cause and time are folded into one.

    The failure of a broker that leads many partitions then takes only a few lines.
    """
    folded: list[Note | FoldedNotes] = []
    runs: dict[tuple[type[Event], str, NoteId | None, int], list[Note]] = {}
    order: list[Note | list[Note]] = []
    for note in notes:
        event = note.event
        if not isinstance(event, PartitionEvent):
            order.append(note)
            continue
        key = (type(event), event.topic, note.cause, note.at_ms)
        run = runs.get(key)
        if run is None:
            run = runs[key] = []
            order.append(run)
        run.append(note)
    for item in order:
        if isinstance(item, Note):
            folded.append(item)
        elif len(item) < FOLD_FROM:
            folded.extend(item)
        else:
            folded.append(_folded(item))
    return folded


def _folded(notes: list[Note]) -> FoldedNotes:
    events = [note.event for note in notes if isinstance(note.event, PartitionEvent)]
    partitions = sorted(event.partition for event in events)
    return FoldedNotes(events[0].topic, partitions, notes)


def folded_line(entry: Note | FoldedNotes, origin_ms: int = 0) -> str:
    """The line for an item of `fold`: the partitions, and the first change in full."""
    if isinstance(entry, Note):
        return note_line(entry, origin_ms)
    first = entry.notes[0]
    numbers, example = numbers_text(entry.partitions), sentence_of(first.event)
    text = f"{len(entry.notes)} partitions ({numbers}), e.g. {example}"
    return event_line(first.at_ms, origin_ms, first.event.kind, entry.topic, text)


# ---------------------------------------------------------------------------------- requests


def request_line(
    broker_id: int,
    request: Request,
    reply: Message | None,
    started_ms: int,
    ended_ms: int,
    topic_names: Mapping[bytes, str] | None = None,
    origin_ms: int = 0,
) -> str:
    """A request and its response as a line.  `reply`: None if no response was due."""
    names = topic_names or {}
    asked = list(mentions(request.body, names))
    answered = [] if reply is None else list(mentions(reply, names))
    size_bytes = sum(mention.size_bytes for mention in (*asked, *answered))
    subjects = subjects_text(asked)
    if subjects == "-":
        subjects = subjects_text(answered)
    if size_bytes:
        subjects = f"{subjects} ({size_bytes:,} B)"
    outcome = "no answer" if reply is None else outcome_text(answered)
    return one_line(
        f"{offset_text(started_ms, origin_ms)}  broker {broker_id}  "
        f"{api_text(request.api_key, request.api_version):<20} {request.client_id or '-'}  "
        f"{subjects}  {outcome}  {ended_ms - started_ms} ms"
    )


def request_values(
    broker_id: int,
    request: Request,
    reply: Message | None,
    started_ms: int,
    ended_ms: int,
    topic_names: Mapping[bytes, str] | None = None,
) -> dict[str, object]:
    """A request and its response for JSON, with the content of `request_line`."""
    names = topic_names or {}
    asked = list(mentions(request.body, names))
    answered = [] if reply is None else list(mentions(reply, names))
    subjects = [_mention_text(mention) for mention in asked if mention.subject]
    return {
        "at_ms": started_ms,
        "broker": broker_id,
        "api": api_name(request.api_key),
        "version": request.api_version,
        "client_id": request.client_id,
        "subjects": list(dict.fromkeys(subjects)),
        "record_bytes": sum(mention.size_bytes for mention in (*asked, *answered)),
        "answered": reply is not None,
        "errors": [
            {"error": error_name(mention.error_code), "subject": _mention_text(mention)}
            for mention in answered
            if mention.error_code
        ],
        "took_ms": ended_ms - started_ms,
    }


def mentions(
    message: Struct, topic_names: Mapping[bytes, str], subject: str = "", inside: str = ""
) -> Iterator[Mention]:
    """The mentions in `message`, in order: one per partition and per named thing, and one for each
    further error code.  `topic_names` resolves topic ids; `inside`: the field that contains the
    message."""
    subject = _subject_of(message, topic_names, inside) or subject
    partition = _first_int(message, _PARTITION_FIELDS) if subject else None
    error_code = getattr(message, "error_code", None)
    children: list[Mention] = []
    size_bytes = 0
    fields: tuple[str, ...] = message.__struct_fields__
    for field in fields:
        value = getattr(message, field)
        if field == "records":
            size_bytes = _records_size(value)
        elif isinstance(value, list) and field not in _NOT_ASKED:
            children.extend(_mentions_in_list(field, value, topic_names, subject))
    if partition is not None or size_bytes or error_code or (subject and not children):
        yield Mention(subject, partition, error_code, size_bytes)
    yield from children


def _mentions_in_list(
    field: str, items: Sequence[Any], topic_names: Mapping[bytes, str], subject: str
) -> Iterator[Mention]:
    if not items:
        return
    if isinstance(items[0], Struct):
        for item in items:
            yield from mentions(item, topic_names, subject, field)
    elif field in _PARTITION_LISTS and isinstance(items[0], int):
        for partition in items:
            yield Mention(subject, partition, None, 0)
    elif field in _NAME_LISTS and isinstance(items[0], str):
        for name in items:
            yield Mention(name, None, None, 0)


def _subject_of(message: Struct, topic_names: Mapping[bytes, str], inside: str) -> str:
    for field in _TOPIC_FIELDS:
        value = getattr(message, field, None)
        if isinstance(value, str) and value:
            return value
    name = getattr(message, "name", None)
    if inside in _TOPIC_LISTS and name:
        return str(name)
    topic_id = getattr(message, "topic_id", None)
    if isinstance(topic_id, bytes) and any(topic_id):
        return topic_names.get(topic_id, topic_id.hex())
    for field in _OTHER_SUBJECTS:
        value = getattr(message, field, None)
        if isinstance(value, str) and value:
            return value
    return ""


def _first_int(message: Struct, fields: Sequence[str]) -> int | None:
    for field in fields:
        value = getattr(message, field, None)
        if isinstance(value, int):
            return value
    return None


def _records_size(records: Any) -> int:
    parts = records if isinstance(records, list) else [records or b""]
    return sum(len(getattr(part, "buffer", part)) for part in parts)


# ------------------------------------------------------------------------------------- texts


def subjects_text(found: Sequence[Mention]) -> str:
    """Subjects as text: `orders-0,2,5 audit-1`; a name without a partition stays as it is; `-` for
    none."""
    by_subject: dict[str, list[int]] = {}
    for mention in found:
        if mention.subject:
            partitions = by_subject.setdefault(mention.subject, [])
            if mention.partition is not None and mention.partition not in partitions:
                partitions.append(mention.partition)
    words = [
        f"{subject}-{numbers_text(partitions)}" if partitions else subject
        for subject, partitions in by_subject.items()
    ]
    if len(words) > SUBJECTS_SHOWN:
        words = [*words[:SUBJECTS_SHOWN], f"… {len(words) - SUBJECTS_SHOWN} more"]
    return " ".join(words) or "-"


def outcome_text(answered: Sequence[Mention]) -> str:
    """The outcome as text: `ok`, or `NOT_LEADER_OR_FOLLOWER orders-0,3; …` in order of first
    appearance."""
    by_error: dict[int, list[Mention]] = {}
    for mention in answered:
        if mention.error_code:
            by_error.setdefault(mention.error_code, []).append(mention)
    words = []
    for code, where in by_error.items():
        subjects = subjects_text(where)
        words.append(error_name(code) if subjects == "-" else f"{error_name(code)} {subjects}")
    return "; ".join(words) or "ok"


def api_name(api_key: int) -> str:
    """Kafka's name of an API: `Produce`, `ListOffsets`; `api 999` for an unknown key."""
    try:
        words = ApiKey(api_key).name.split("_")
    except ValueError:
        return f"api {api_key}"
    return "".join(word.capitalize() for word in words)


def api_text(api_key: int, version: int) -> str:
    return f"{api_name(api_key)} v{version}"


def error_name(code: int | None) -> str:
    """Kafka's name of an error code; `ERROR_1234` for an unknown code."""
    error = _ERRORS.get(code or 0)
    return f"ERROR_{code}" if error is None else error.name


def numbers_text(numbers: Sequence[int]) -> str:
    """Numbers as text: `0,2,5`, the first `SUBJECTS_SHOWN` of them."""
    text = ",".join(map(str, numbers[:SUBJECTS_SHOWN]))
    more = len(numbers) - SUBJECTS_SHOWN
    return f"{text},… {more} more" if more > 0 else text


def offset_text(at_ms: int, origin_ms: int) -> str:
    """A time as text, right-aligned: `+1234 ms`, the milliseconds since the origin."""
    return f"{at_ms - origin_ms:>+8d} ms"


def one_line(text: str) -> str:
    """Text with control characters escaped: a name that a client sends cannot break the line."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in text
    )


def plain(value: object) -> Any:
    """`value` in types of JSON: tuples as lists, bytes as hex."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Struct):
        return {field: plain(getattr(value, field)) for field in value.__struct_fields__}
    return value


def _mention_text(mention: Mention) -> str:
    if mention.partition is None:
        return mention.subject
    return f"{mention.subject}-{mention.partition}"
