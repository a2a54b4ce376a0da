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
from typing import Any

from kcluster.protocol import messages as m
from kcluster.protocol.codec.schema import FieldSchema, StructSchema, message_schema

_ONE = re.compile(r"\{(\w+?)(?:([+-]\d+))?\}")
NOW_REACH_MS = 10**9
"""Numbers this close to {now} are shown by their distance from it."""


class CaseError(Exception):
    """A case could not be run: a step before it failed."""


class Values:
    """The values of the placeholders in one run of a case."""

    def __init__(self, known: Mapping[str, Any]) -> None:
        self.known = dict(known)

    def fill(self, value: Any) -> Any:
        """`value` with its placeholders filled."""
        if not isinstance(value, str) or "{" not in value:
            return value
        if whole := _ONE.fullmatch(value):
            return self._lookup(whole)
        return _ONE.sub(lambda found: str(self._lookup(found)), value)

    def _lookup(self, found: re.Match[str]) -> Any:
        if found[1] not in self.known:
            raise CaseError(f"unknown placeholder {found[0]}")
        known = self.known[found[1]]
        return known + int(found[2]) if found[2] else known

    def restore(self, value: Any) -> Any:
        """A value of a response, with known values replaced by their placeholders."""
        if isinstance(value, str):
            for name, known in self._longest_first(str):
                value = value.replace(known, f"{{{name}}}")
        elif isinstance(value, bytes):
            for name, known in self._longest_first(bytes):
                if value == known:
                    return f"{{{name}}}"
        elif isinstance(value, int) and not isinstance(value, bool):
            distance = value - self.known["now"]
            if abs(distance) < NOW_REACH_MS:
                return f"{{now{distance:+d}}}" if distance else "{now}"
        return value

    def _longest_first(self, kind: type) -> list[tuple[str, Any]]:
        found = [(n, v) for n, v in self.known.items() if isinstance(v, kind) and v]
        return sorted(found, key=lambda item: -len(item[1]))


def request_of(api_name: str, body: Mapping[str, Any], values: Values) -> Any:
    """The request message of a body; asserts that all its fields exist."""
    name = f"{api_name}Request"
    top = message_schema(name).top
    whole: Any = m.message_class(name)
    return _struct(whole, whole, top, body, values)


def _struct(whole: Any, kind: Any, schema: StructSchema, body: Any, values: Values) -> Any:
    if not isinstance(body, Mapping):
        return body
    fields = {field.name: field for field in schema.fields}
    unknown = set(body) - set(fields)
    assert not unknown, f"{kind.__qualname__} has no {', '.join(sorted(unknown))}"
    filled = {n: _value(whole, fields[n], v, values) for n, v in body.items()}
    return kind(**filled)


def _value(whole: Any, field: FieldSchema, value: Any, values: Values) -> Any:
    if isinstance(value, list):
        return [_value(whole, field, one, values) for one in value]
    if field.struct is not None and isinstance(value, Mapping):
        return _struct(whole, getattr(whole, field.type), field.struct, value, values)
    if callable(value):
        return value(values)
    return values.fill(value)
