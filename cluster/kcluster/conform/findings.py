"""What a conformance run found: typed values, as they are in its JSON.

Owns: the types, grouping equal differences, counting by API.  Never: asks, makes words (words.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Final, Literal

import msgspec
from msgspec import Struct

from kcluster.conform.comparing import NOTHING, ranges_of
from kcluster.json_types import JsonObject

FORMAT: Final = 1
"""Of the JSON; a reader of this number can rely on all fields."""
_INDEX: Final = re.compile(r"#\d+")


class Deviation(Struct, frozen=True):
    """One value of one case that is not Kafka's."""

    case: str
    """`family: name`, or `conversation: name`."""
    api: str
    versions: str
    """`4`, `4-12`."""
    path: str
    """`answer.topics#0.error_code`; of a conversation the step comes first."""
    kafka: object
    cluster: object


class Result(Struct, frozen=True):
    """One case, or one conversation, after it was asked."""

    case: str
    api: str
    same: int
    """In so many versions the answer is Kafka's."""
    different: int
    untried: int
    deviations: tuple[Deviation, ...] = ()
    reasons: tuple[str, ...] = ()
    """Why it was not tried in `untried` versions; each reason once."""


class ValueDifference(Struct, frozen=True):
    """Equal deviations of several cases."""

    api: str
    versions: str
    path: str
    """Without positions in lists: `answer.topics[].error_code`."""
    kafka: object
    """The value of Apache Kafka; null if it has none here."""
    cluster: object
    has_kafka: bool
    """Whether Kafka has the field, or the row, at all."""
    has_cluster: bool
    cases: tuple[str, ...]


class ApiCount(Struct, frozen=True):
    """The answers of one API.  A conversation counts once, for the API of its first step, or of the
    step that differs."""

    api: str
    listed: str
    """The versions that the cluster lists: `0-13`; "" if it does not list the API."""
    same: int
    different: int
    untried: int


class UntriedReason(Struct, frozen=True):
    """Cases that were not compared, by their reason."""

    reason: str
    cases: tuple[str, ...]


class AskedOf(Struct, frozen=True):
    """The cluster."""

    cluster_id: str
    brokers: tuple[int, ...]
    features: dict[str, int]


class ConformReport(Struct, frozen=True):
    """A whole run."""

    format: Literal[1]
    kcluster: str
    """The version of kcluster."""
    against: str
    """The release of Apache Kafka whose recorded answers were compared: `4.4.0`."""
    bootstrap: str
    began_ms: int
    took_s: float
    cluster: AskedOf
    same: int
    """Answers that are Kafka's."""
    different: int
    untried: int
    stopped: str
    """Why the run ended early; "" if it did not."""
    apis: tuple[ApiCount, ...]
    differences: tuple[ValueDifference, ...]
    not_tried: tuple[UntriedReason, ...]
    left_behind: tuple[str, ...]
    """Names of topics and groups that could not be deleted at the end."""


def conform_schema() -> JsonObject:
    """The JSON Schema of a report."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A report of kcluster conform",
        **msgspec.json.schema(ConformReport, schema_hook=_any_value),
    }


def _any_value(kind: type) -> JsonObject:
    """The schema of a value of any kind: what an answer has in a field."""
    assert kind is object, kind
    return {"description": "Any JSON value."}


def grouped(results: Iterable[Result]) -> tuple[ValueDifference, ...]:
    """The differences, those of most cases first within each API."""
    from_key: dict[tuple[str, str, str, str], list[Deviation]] = {}
    for result in results:
        for one in result.deviations:
            path = _INDEX.sub("[]", one.path)
            key = (one.api, path, _text(one.kafka), _text(one.cluster))
            from_key.setdefault(key, []).append(one)
    found = [_difference(path, same) for (_, path, _, _), same in from_key.items()]
    return tuple(sorted(found, key=lambda one: (one.api, -len(one.cases), one.path)))


def _difference(path: str, same: Sequence[Deviation]) -> ValueDifference:
    first = same[0]
    return ValueDifference(
        api=first.api,
        versions=_united(one.versions for one in same),
        path=path,
        kafka=None if first.kafka is NOTHING else first.kafka,
        cluster=None if first.cluster is NOTHING else first.cluster,
        has_kafka=first.kafka is not NOTHING,
        has_cluster=first.cluster is not NOTHING,
        cases=tuple(dict.fromkeys(one.case for one in same)),
    )


def _text(value: object) -> str:
    return "…" if value is NOTHING else json.dumps(value, sort_keys=True)


def _united(texts: Iterable[str]) -> str:
    """`4-6` and `5-9` -> `4-9`."""
    versions: set[int] = set()
    for text in texts:
        for part in text.split(","):
            low, _, high = part.partition("-")
            versions |= {*range(int(low), int(high or low) + 1)}
    return ranges_of(sorted(versions))


def counted(results: Iterable[Result], listed: dict[str, str]) -> tuple[ApiCount, ...]:
    """The counts by API; `listed`: the versions that the cluster lists.  A difference in a state
    counts for the API that shows it."""
    sums: dict[str, list[int]] = {}
    for one in results:
        counts = sums.setdefault(one.api, [0, 0, 0])
        counts[0] += one.same
        counts[1] += one.different
        counts[2] += one.untried
        for api in sorted({deviation.api for deviation in one.deviations} - {one.api}):
            sums.setdefault(api, [0, 0, 0])[1] += 1  # it shows a state, or is a step, of this case
    return tuple(
        ApiCount(api, listed.get(api, ""), *counts) for api, counts in sorted(sums.items())
    )


def untried_by_reason(results: Iterable[Result]) -> tuple[UntriedReason, ...]:
    """The cases that were not compared in some version; the commonest reason first."""
    cases: dict[str, list[str]] = {}
    for one in results:
        for reason in one.reasons:
            cases.setdefault(reason, []).append(one.case)
    ordered = sorted(cases.items(), key=lambda item: (-len(item[1]), item[0]))
    return tuple(UntriedReason(reason, tuple(found)) for reason, found in ordered)
