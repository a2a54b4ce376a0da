"""The differences between two outcomes, and their reasons.

Owns: Difference, matching with reasons, differences.md.  Never: runs a case (running.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from compare.plain import MASKED, UNORDERED
from compare.reasons import REASONS, WITHOUT_CASE, Reason
from compare.references import REFERENCES

DOCUMENT: Final = Path(__file__).parents[1] / "docs" / "explanation" / "differences.md"
_INDEX: Final = re.compile(r"#\d+")
_KEYS: Final = ("api_key", "name")
_SHOWN_CHARS: Final = 90


class Missing(Struct, frozen=True):
    """In place of a field or an entry that only the other side has."""


NOTHING: Final = Missing()


class Difference(Struct, frozen=True):
    """One value that differs."""

    kafka_version: str
    """The release whose value it is."""
    case: str
    """`family: case`"""
    versions: str
    """`4`, `4-12`: the versions with this difference."""
    path: str
    """`answer.topics[0].error_code`"""
    kafka: Any
    ours: Any

    @property
    def reason(self) -> Reason | None:
        """The first reason that explains it; None if there is none."""
        for reason in REASONS:
            if (
                reason.kafka in ("", self.kafka_version)
                and any(fnmatchcase(self.case, one) for one in reason.cases)
                and any(fnmatchcase(self.path, one) for one in reason.paths)
            ):
                return reason
        return None

    def __str__(self) -> str:
        return (
            f"{self.case} v{self.versions}: {self.path}:"
            f" Kafka {self.kafka_version} {shown(self.kafka)}, ours {shown(self.ours)}"
        )


def differences(
    kafka_version: str, case: str, pairs: Mapping[int, tuple[Any, Any]]
) -> list[Difference]:
    """All of one case; `pairs`: Kafka's outcome and ours, by version."""
    return [
        Difference(kafka_version, case, versions, path, kafka, ours)
        for versions, path, kafka, ours in unequal_values(pairs)
    ]


def unequal_values(pairs: Mapping[int, tuple[Any, Any]]) -> list[tuple[str, str, Any, Any]]:
    """(versions, path, one value, the other) of two outcomes by version."""
    seen: dict[str, tuple[list[int], str, Any, Any]] = {}
    for version, (one, other) in pairs.items():
        for path, a, b in _walk(one, other, ""):
            # The same in many entries of a list is one difference, reported for the first.
            key = f"{_INDEX.sub('', path)} {a!r} {b!r}"
            versions = seen.setdefault(key, ([], path, a, b))[0]
            if version not in versions:
                versions.append(version)
    return [(_ranges(versions), path, a, b) for versions, path, a, b in seen.values()]


def _ranges(versions: list[int]) -> str:
    """[4, 5, 6, 9] -> `4-6,9`."""
    runs: list[list[int]] = []
    for version in versions:
        if runs and runs[-1][-1] == version - 1:
            runs[-1].append(version)
        else:
            runs.append([version])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _walk(one: Any, other: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(one, dict) and isinstance(other, dict):
        for name in dict.fromkeys((*one, *other)):
            inner = f"{path}.{name}" if path else name
            yield from _walk(one.get(name, NOTHING), other.get(name, NOTHING), inner)
    elif one != other:
        by_key = _by_key(one, other)
        if by_key:
            yield from _walk(*by_key, path)
        elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
            for at, (a, b) in enumerate(zip(one, other, strict=True)):
                yield from _walk(a, b, f"{path}#{at}")
        else:
            yield path, one, other


def _by_key(one: Any, other: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Two lists of different entries as mappings by a key, if such a key is unique."""
    if not (isinstance(one, list) and isinstance(other, list) and one and other):
        return None
    if not all(isinstance(entry, dict) for entry in (*one, *other)):
        return None
    for key in _KEYS:
        names, others = ([entry.get(key) for entry in side] for side in (one, other))
        if len({*map(str, names)}) == len(one) and len({*map(str, others)}) == len(other):
            if names == others:
                return None  # by position, which is shorter to read
            return (
                dict(zip(map(str, names), one, strict=True)),
                dict(zip(map(str, others), other, strict=True)),
            )
    return None


def shown(value: Any) -> str:
    """A value as one short line."""
    if value == NOTHING:
        return "no value (the default)"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"


def document(found: Iterable[Difference], counts: Iterable[str]) -> str:
    """The text of docs/explanation/differences.md: each reason once, with an example."""
    by_reason: dict[Reason, list[Difference]] = {}
    for one in found:
        if one.reason is not None:
            by_reason.setdefault(one.reason, []).append(one)
    versions = " and ".join(reference.version for reference in REFERENCES)
    lines = [
        "# Where kcluster's responses differ from those of Apache Kafka",
        "",
        f"Generated by `make compare`, which sends the same requests to Apache Kafka {versions},"
        " and to brokers of the same release here. The reasons are in compare/reasons.py.",
        "",
        *counts,
    ]
    area = ""
    for reason in sorted(by_reason, key=lambda one: (one.area, REASONS.index(one))):
        if reason.area != area:
            area = reason.area
            lines += ["", f"## {area}"]
        lines += ["", reason.text, *_seen(by_reason[reason])]
    lines += ["", "## Differences without a case", "", *(f"- {text}" for text in WITHOUT_CASE)]
    lines += ["", "## Compared only by presence, or sorted before comparing", ""]
    lines += [f"- `{name}`: {reason}." for name, reason in sorted(MASKED.items())]
    lists = ", ".join(f"`{name}`" for name in sorted(UNORDERED))
    lines += [f"- Lists whose order comes from a hash table in Kafka: {lists}."]
    return "\n".join(lines) + "\n"


def _seen(found: list[Difference]) -> list[str]:
    first = found[0]
    cases = sorted({one.case for one in found})
    more = f" (and {len(cases) - 1} more cases)" if len(cases) > 1 else ""
    return [
        "",
        f"- `{first.case}`{more}, v{first.versions}, `{first.path}`:"
        f" Kafka {first.kafka_version} `{shown(first.kafka)}`, kcluster `{shown(first.ours)}`",
    ]


def unused_reasons(found: Iterable[Difference]) -> list[Reason]:
    """Reasons that explain no difference."""
    seen = {one.reason for one in found}
    return [reason for reason in REASONS if reason not in seen]
