"""Builds the response with a given error for any API, from the error fields of its schema.

Owns: the topics and partitions that a request names, the response with an error for all or some of
them, the rest of the request without them, merging two responses.  Never: decides that there is an
error (faults/rules.py does), or changes a message that is passed to it. Kafka:
AbstractRequest.getErrorResponse, which every API writes by hand.

The error goes into the innermost entries that the response has: into partitions, else into topics,
else into the response itself, as brokers do it.  SHALLOW lists the APIs for which Kafka stops
earlier.  An entry with an error keeps the fields that identify it (KEYS).  Its other fields have
the values of a failed entry in Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Final, TypeVar

from kcluster.protocol import messages as m
from kcluster.protocol.apis import APIS, ApiKey
from kcluster.protocol.codec.schema import FieldSchema, StructSchema, message_schema
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.messages import Message

M = TypeVar("M", bound=Message)
MessageClass = Callable[..., Message]
Entry = Message | str | int
"""An element of an array: a message, a name, or a number."""

KEYS: Final = frozenset(
    {
        "name", "topic", "topic_name", "topic_id", "index", "partition", "partition_index",
        "partition_id", "group_id", "member_id", "group_instance_id", "resource_type",
        "resource_name", "key", "transactional_id", "producer_id", "feature", "user", "entity",
        "entity_type", "entity_name", "is_internal", "log_dir", "replica_nodes", "isr_nodes",
        "offline_replicas", "leader_epoch",
    }
)  # fmt: skip
"""Fields that identify an entry, or stay valid in an entry with an error."""
ERROR_FIELDS: Final = ("error_code", "partition_error_code")
SHALLOW: Final = {
    ApiKey.METADATA: 1, ApiKey.OFFSET_FETCH: 1, ApiKey.LEAVE_GROUP: 0, ApiKey.OFFSET_DELETE: 0,
    ApiKey.UPDATE_FEATURES: 0, ApiKey.DESCRIBE_LOG_DIRS: 0, ApiKey.ALTER_SHARE_GROUP_OFFSETS: 0,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: 0, ApiKey.SHARE_FETCH: 0, ApiKey.SHARE_ACKNOWLEDGE: 0,
}  # fmt: skip
"""The most levels of arrays that get errors, by API, unless the error is for certain topics."""
SESSION_ERRORS: Final = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)  # fmt: skip
"""Errors that fail a fetch as a whole."""

_FAILED: Final[dict[str, int | bytes]] = {
    "base_offset": -1, "high_watermark": -1, "leader_id": -1, "node_id": -1, "port": -1,
    "committed_offset": -1, "low_watermark": -1, "records": b"",
}  # fmt: skip
"""Values that Kafka sets in failed entries where the schema has another default."""
_TOPIC_FIELDS: Final = ("name", "topic", "topic_name")
_PARTITION_FIELDS: Final = ("partition_index", "index", "partition", "partition_id")
_ALIASES: Final = {"user": "name", "topic_name": "name", "topic": "name"}
_READS: Final = frozenset(
    key
    for key in ApiKey
    if key.name.startswith(("DESCRIBE_", "LIST_")) or key.name.endswith("_DESCRIBE")
) | {
    ApiKey.FETCH, ApiKey.METADATA, ApiKey.OFFSET_FETCH, ApiKey.FIND_COORDINATOR,
    ApiKey.OFFSET_FOR_LEADER_EPOCH, ApiKey.API_VERSIONS, ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
}  # fmt: skip

NameOf = Callable[[bytes], str | None]
"""Finds a topic's name by its id."""
Wanted = Callable[[str, int | None], bool]
"""Whether a partition of a topic gets the error; with partition None, whether any partition may."""


def is_read(api_key: int) -> bool:
    """Whether a request changes nothing."""
    return api_key in _READS


def depth_limit(api_key: int, error: ErrorCode, wanted: Wanted | None) -> int | None:
    """The most levels of arrays that get errors; None for all levels."""
    if api_key == ApiKey.FETCH and error in SESSION_ERRORS:
        return 0
    return SHALLOW.get(ApiKey(api_key)) if wanted is None else None


class ErrorAnswers:
    """Responses of one API in one version with one error.

    `wanted`: decides which topics and partitions get the error; None: all of them.
    """

    def __init__(
        self,
        api_key: int,
        version: int,
        error: ErrorCode,
        name_of: NameOf,
        wanted: Wanted | None = None,
    ) -> None:
        self._version = version
        self._error = int(error)
        self._name_of = name_of
        self._wanted = wanted
        api = APIS[api_key].name
        self._request = message_schema(api + "Request").top
        self._response = message_schema(api + "Response").top
        self._class = m.message_class(api + "Response")
        limit = depth_limit(api_key, error, wanted)
        if limit is not None and not _has_error_field(self._response, version, limit):
            limit = None  # old versions of some APIs have no error field there
        self._limit = limit

    # ------------------------------------------------------- a response without the broker

    def answer(self, request: Message) -> Message | None:
        """The response to a request that no broker has served; None if it has no error field."""
        response, has_error = self._mirror(
            self._response, self._class, request, self._request, None, 0
        )
        return response if has_error else None

    def _mirror(
        self,
        answer_schema: StructSchema,
        cls: MessageClass,
        requested: Entry,
        schema: StructSchema,
        topic: str | None,
        depth: int,
    ) -> tuple[Message, bool]:
        values: dict[str, object] = {}
        has_error = False
        for field in self._arrays(answer_schema, depth):
            entries = []
            for item, item_schema in self._counterparts(field, requested, schema):
                entry, is_in_entry = self._entry(field, item, item_schema, topic, depth)
                if is_in_entry:
                    entries.append(entry)
                    has_error = True
            values[field.name] = entries
        if depth:
            values |= _keys(answer_schema, requested)
        return self._failed(answer_schema, cls, values, has_error)

    def _entry(
        self,
        field: FieldSchema,
        item: Entry,
        schema: StructSchema | None,
        topic: str | None,
        depth: int,
    ) -> tuple[Message | None, bool]:
        """The response's entry for an element of the request; None if the element does not get the
        error."""
        struct, cls = field.struct, getattr(self._class, field.type)
        assert struct is not None
        if self._wanted is not None:
            is_meant, topic = self._is_meant(item, topic)
            if not is_meant:
                return None, False
        if schema is not None:
            return self._mirror(struct, cls, item, schema, topic, depth + 1)
        key = next(inner.name for inner in struct.fields if inner.name in KEYS)
        return self._failed(struct, cls, {key: item}, False)

    def _failed(
        self, struct: StructSchema, cls: MessageClass, values: dict[str, object], has_error: bool
    ) -> tuple[Message, bool]:
        for field in struct.fields:
            if field.name in _FAILED and field.name not in values:
                values[field.name] = _FAILED[field.name]
            if not has_error and field.name in ERROR_FIELDS and field.is_in(self._version):
                values[field.name] = self._error
                has_error = True
        return cls(**values), has_error

    def _arrays(self, struct: StructSchema, depth: int) -> Iterator[FieldSchema]:
        """The arrays in a response whose entries may have errors."""
        if self._limit is None or depth < self._limit:
            for field in struct.fields:
                if (
                    field.is_array
                    and field.struct is not None
                    and field.is_in(self._version)
                    and _has_error_field(field.struct, self._version)
                ):
                    yield field

    def _counterparts(
        self, field: FieldSchema, requested: Entry, schema: StructSchema
    ) -> Iterator[tuple[Entry, StructSchema | None]]:
        """The elements of a request to which a response's array has entries, with their schemas."""
        arrays = [x for x in schema.fields if x.is_array and x.is_in(self._version)]
        chosen = [x for x in arrays if x.name == field.name] or [
            x for x in arrays if not x.name.startswith("forgotten")
        ]
        assert field.struct is not None
        has_topics = any(x.name in _TOPIC_FIELDS for x in field.struct.fields)
        for array in chosen:
            inner = array.struct
            for item in getattr(requested, array.name) or ():
                below = [] if inner is None else [x for x in inner.fields if x.name == "topics"]
                if has_topics and below:
                    # AlterReplicaLogDirs groups by directory in the request, but not in the
                    # response.
                    yield from ((topic, below[0].struct) for topic in item.topics)
                else:
                    yield item, inner

    # ----------------------------------------------------------------- a broker's response

    def override(self, answer: Message) -> tuple[Message, bool]:
        """A broker's response with the error in it, and whether it has a field for the error."""
        return self._override(self._response, self._class, answer, None, 0)

    def _override(
        self,
        struct: StructSchema,
        cls: MessageClass,
        answer: Message,
        topic: str | None,
        depth: int,
    ) -> tuple[Message, bool]:
        has_error, changes = False, {}
        for field in self._arrays(struct, depth):
            entries = []
            for item in getattr(answer, field.name) or ():
                is_meant, below = True, topic
                if self._wanted is not None:
                    is_meant, below = self._is_meant(item, topic)
                if is_meant:
                    assert field.struct is not None
                    kind = getattr(self._class, field.type)
                    item, is_in_entry = self._override(field.struct, kind, item, below, depth + 1)
                    has_error = has_error or is_in_entry
                entries.append(item)
            changes[field.name] = entries
        if has_error:
            values = {field.name: getattr(answer, field.name) for field in struct.fields}
            return cls(**values | changes), True
        if self._wanted is not None and topic is None:
            return answer, False
        entry, has_error = self._failed(struct, cls, _keys(struct, answer), False)
        return (entry, True) if has_error else (answer, False)

    # ----------------------------------------------------------- which parts get the error

    def _is_meant(self, item: Entry, topic: str | None) -> tuple[bool, str | None]:
        """Whether an element of an array gets the error, and the topic that it belongs to."""
        assert self._wanted is not None
        if topic is not None:
            partition = partition_of(item)
            return partition is None or self._wanted(topic, partition), topic
        topic_name = topic_of(item, self._name_of)
        if topic_name is None:
            return not getattr(item, "topic_id", None), None  # no topic, or one of unknown name
        return self._wanted(topic_name, None), topic_name

    def rest(self, request: Message) -> Message | None:
        """The request without the parts that get the error; None if nothing is left of it."""
        remainder = _without(self._request, request, self._version, self._name_of, self._wanted)
        return remainder if _has_topics(self._request, remainder, self._version) else None

    def merged(self, answer: Message, errors: Message) -> Message:
        """A broker's response to `rest`, with the entries of `answer(request)`."""
        return _merged(self._response, self._class, self._class, answer, errors)


def topics_named(
    api_key: int, version: int, request: Message, name_of: NameOf
) -> list[tuple[str, int | None]]:
    """(topic, partition) for each partition that a request names; partition None for a topic as a
    whole."""
    schema = message_schema(APIS[api_key].name + "Request").top
    return list(named(schema, request, version, name_of))


def named(
    schema: StructSchema, requested: Message, version: int, name_of: NameOf
) -> Iterator[tuple[str, int | None]]:
    """(topic, partition) for each partition that a request names, found by the request's schema."""
    for field in schema.fields:
        if not field.is_array or not field.is_in(version):
            continue
        for item in getattr(requested, field.name) or ():
            if _names_topics(field):
                topic = topic_of(item, name_of)
                partitions = _partitions_of(field, item)
                if topic is not None:
                    yield from ((topic, x) for x in ([None] if partitions is None else partitions))
            elif field.struct is not None:
                yield from named(field.struct, item, version, name_of)


def _has_topics(schema: StructSchema, requested: Message, version: int) -> bool:
    """Whether a request has an entry for a topic, also for one of unknown id."""
    for field in schema.fields:
        if not field.is_array or not field.is_in(version):
            continue
        items = getattr(requested, field.name) or ()
        if _names_topics(field):
            if items:
                return True
        elif field.struct is not None:
            struct = field.struct
            if any(_has_topics(struct, item, version) for item in items):
                return True
    return False


def topic_of(item: object, name_of: NameOf) -> str | None:
    """The name of the topic that an entry is about."""
    if isinstance(item, str):
        return item
    for name in _TOPIC_FIELDS:
        topic: str | None = getattr(item, name, None)
        if topic:
            return topic
    topic_id = getattr(item, "topic_id", None)
    return name_of(topic_id) if topic_id else None


def partition_of(item: Entry) -> int | None:
    """The number of the partition that an entry is about."""
    if isinstance(item, int):
        return item
    return next((getattr(item, x) for x in _PARTITION_FIELDS if hasattr(item, x)), None)


def _names_topics(field: FieldSchema) -> bool:
    if field.struct is None and field.type != "string":
        return False
    return "topic" in field.name and not field.name.startswith("forgotten")


def _partitions_field(field: FieldSchema) -> FieldSchema | None:
    if field.struct is None:
        return None
    return next(
        (x for x in field.struct.fields if x.is_array and x.name.startswith("partition")), None
    )


def _partitions_of(field: FieldSchema, item: Entry) -> list[int | None] | None:
    inner = _partitions_field(field)
    if inner is None:
        return None
    return [partition_of(x) for x in getattr(item, inner.name)]


def _without(
    schema: StructSchema, requested: M, version: int, name_of: NameOf, wanted: Wanted | None
) -> M:
    values = {field.name: getattr(requested, field.name) for field in schema.fields}
    for field in schema.fields:
        items = values[field.name]
        if not field.is_array or not items or not field.is_in(version):
            continue
        remaining = []
        for item in items:
            if _names_topics(field):
                item = _topic_without(field, item, name_of, wanted)
            elif field.struct is not None:
                item = _without(field.struct, item, version, name_of, wanted)
            if item is not None:
                remaining.append(item)
        values[field.name] = remaining
    return type(requested)(**values)


def _topic_without(field: FieldSchema, item: M, name_of: NameOf, wanted: Wanted | None) -> M | None:
    topic = topic_of(item, name_of)
    if wanted is not None and (topic is None or not wanted(topic, None)):
        return item
    inner = _partitions_field(field)
    if inner is None or wanted is None or field.struct is None:
        return None
    assert topic is not None
    values = {x.name: getattr(item, x.name) for x in field.struct.fields}
    remaining = [x for x in values[inner.name] if not wanted(topic, partition_of(x))]
    values[inner.name] = remaining
    return type(item)(**values) if remaining else None


def _keys(struct: StructSchema, value: Entry) -> dict[str, object]:
    """The fields that identify an entry, from a request's element or a response's entry."""
    keys = {}
    for field in struct.fields:
        if field.name in KEYS and field.struct is None:
            for name in (field.name, _ALIASES.get(field.name, field.name)):
                if hasattr(value, name):
                    keys[field.name] = getattr(value, name)
                    break
    return keys


def _merged(
    struct: StructSchema, top: type[Message], cls: MessageClass, answer: Message, errors: Message
) -> Message:
    values = {field.name: getattr(answer, field.name) for field in struct.fields}
    for field in struct.fields:
        more = getattr(errors, field.name)
        if not field.is_array or field.struct is None or not more:
            continue
        inner, kind = field.struct, getattr(top, field.type)
        has_below = any(x.is_array and x.struct is not None for x in inner.fields)
        entries = list(values[field.name] or ())
        for entry in more:
            key = _keys(inner, entry)
            at = next((i for i, x in enumerate(entries) if _keys(inner, x) == key), None)
            if at is None or not has_below:
                entries.append(entry)
            else:
                entries[at] = _merged(inner, top, kind, entries[at], entry)
        values[field.name] = entries
    return cls(**values)


@cache
def _has_error_field(struct: StructSchema, version: int, depth: int = 99) -> bool:
    return any(
        field.name in ERROR_FIELDS
        or (
            depth > 0
            and field.is_array
            and field.struct is not None
            and _has_error_field(field.struct, version, depth - 1)
        )
        for field in struct.fields
        if field.is_in(version)
    )
