"""Placeholders: filled into request bodies, and restored in responses.

Owns: Values, the list of placeholders.  Never: knows systems.

  {topic} {topic_id}      3 partitions led by brokers 1, 2, 3; ten records in partition 0
  {fresh} {fresh_id}      a topic for this run of the case: 2 empty partitions led by 1, 2
  {new} {new2}            names of topics that do not exist; different in each run of a case
  {missing} {missing_id}  a name and an id of a topic that never exists
  {group} {group2}        names of groups, different in each run of a case
  {txn}                   a transactional id, different in each run of a case
  {transactions} {elsewhere}  as `to`: the coordinator of {txn}, and a broker that is not
  {subscription}          bytes: a consumer's subscription to {topic}
  {user}                  a name for any other entity, different in each run
  {now}                   ms since 1970, at the start of the comparison; also {now+5}, {now-5}
  {cluster_id} {port_1} {port_2} {port_3} {coordinator}
  {metadata_version}      the release's own level of this feature; also {metadata_version+1}
  and every name that a step saves

A string that is one placeholder becomes its value; inside a longer string it becomes text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeVar

from kcluster.conform.broker_ids import SAME_IDS, BrokerIds
from kcluster.json_types import JsonObject
from kcluster.protocol import messages as m
from kcluster.protocol.codec.schema import FieldSchema, StructSchema, message_schema

_Text = TypeVar("_Text", str, bytes)
_ONE = re.compile(r"\{(\w+?)(?:([+-]\d+))?\}")
NOW_REACH_MS = 10**9
"""Numbers this close to {now} are shown by their distance from it."""


class CaseError(Exception):
    """A case could not be run: a step before it failed."""


class Untried(CaseError):
    """A case needs what the cluster does not have, or what may not be changed there."""


class Values:
    """The values of the placeholders in one run of a case."""

    def __init__(self, known: Mapping[str, object], ids: BrokerIds = SAME_IDS) -> None:
        self.known: JsonObject = dict(known)
        self.ids = ids
        self.version: int | None = None
        """The version of the response that is made plain, where it is known."""
        self.port_names: dict[tuple[str, int], str] = {}
        """(host, port) -> its placeholder, for brokers with the same port on several hosts."""

    def fill(self, value: object) -> object:
        """`value` with its placeholders filled."""
        if not isinstance(value, str) or "{" not in value:
            return value
        if whole := _ONE.fullmatch(value):
            return self._lookup(whole)
        return _ONE.sub(lambda found: str(self._lookup(found)), value)

    def is_of_this_run(self, name: str) -> bool:
        """Whether a name in a list of the whole cluster is of this run of a case, or the id of a
        broker.  Every name is, in a cluster of the comparison's own."""
        start = self.known.get("run")
        own = (self.known.get("topic"), self.known.get("missing"))
        return start is None or name.isdecimal() or name in own or f"{start}." in name

    def _lookup(self, found: re.Match[str]) -> object:
        if found[1] not in self.known:
            raise CaseError(f"unknown placeholder {found[0]}")
        known = self.known[found[1]]
        return known + int(found[2]) if found[2] else known

    def restore(self, value: object) -> object:
        """A value of a response, with known values replaced by their placeholders."""
        if isinstance(value, str):
            for name, text in self._longest_first(str):
                value = value.replace(text, f"{{{name}}}")
        elif isinstance(value, bytes):
            for name, known in self._longest_first(bytes):
                if value == known:
                    return f"{{{name}}}"
        elif isinstance(value, int) and not isinstance(value, bool):
            distance = value - self.known["now"]
            if abs(distance) < NOW_REACH_MS:
                return f"{{now{distance:+d}}}" if distance else "{now}"
        return value

    def _longest_first(self, kind: type[_Text]) -> list[tuple[str, _Text]]:
        found = [(n, v) for n, v in self.known.items() if isinstance(v, kind) and v]
        return sorted(found, key=lambda item: -len(item[1]))


def request_of(api_name: str, body: Mapping[str, object], values: Values) -> m.Message:
    """The request message of a body; asserts that all its fields exist."""
    name = f"{api_name}Request"
    top = message_schema(name).top
    return _struct(m.message_class(name), m.message_class(name), top, body, values)


def _struct(
    whole: type[m.Message],
    kind: type[m.Message],
    schema: StructSchema,
    body: Mapping[str, object],
    values: Values,
) -> m.Message:
    fields = {field.name: field for field in schema.fields}
    unknown = set(body) - set(fields)
    assert not unknown, f"{kind.__qualname__} has no {', '.join(sorted(unknown))}"
    filled = {n: _value(whole, fields[n], v, values) for n, v in body.items()}
    for name in filled:
        filled[name] = values.ids.field_to_cluster(name, filled[name])
    if "resource_name" in filled:
        kind_of = filled.get("resource_type")
        named = values.ids.resource_to_cluster(kind_of, filled["resource_name"])
        filled["resource_name"] = named
    return kind(**filled)


def _value(whole: type[m.Message], field: FieldSchema, value: object, values: Values) -> object:
    if isinstance(value, list):
        return [_value(whole, field, one, values) for one in value]
    if field.struct is not None and isinstance(value, Mapping):
        return _struct(whole, getattr(whole, field.type), field.struct, value, values)
    if callable(value):
        return value(values)
    return values.fill(value)
