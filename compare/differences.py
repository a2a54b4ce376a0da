"""Where two outcomes differ, and why that is so.

Owns: Difference, matching them with their reasons, docs/differences.md.  Never: runs anything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from compare.plain import UNORDERED, WORDS
from compare.reasons import BESIDE, REASONS, Reason

DOCUMENT: Final = Path(__file__).parents[1] / "docs" / "differences.md"
_INDEX: Final = re.compile(r"#\d+")
_KEYS: Final = ("api_key", "name")
_SHOWN_CHARS: Final = 90


class Missing(Struct, frozen=True):
    """A field or an entry that only the other side has."""


NOTHING: Final = Missing()


class Difference(Struct, frozen=True):
    """One value that the two tell differently."""

    case: str
    """`family: case`"""
    versions: str
    """`4`, `4-12`: where it differs in this way."""
    path: str
    """`answer.topics[0].error_code`"""
    kafka: Any
    ours: Any

    @property
    def reason(self) -> Reason | None:
        """The first that explains it."""
        for reason in REASONS:
            if any(fnmatchcase(self.case, one) for one in reason.cases) and any(
                fnmatchcase(self.path, one) for one in reason.paths
            ):
                return reason
        return None

    def __str__(self) -> str:
        return (
            f"{self.case} v{self.versions}: {self.path}:"
            f" Kafka {shown(self.kafka)}, ours {shown(self.ours)}"
        )


def differences(case: str, pairs: Mapping[int, tuple[Any, Any]]) -> list[Difference]:
    """All of one case; `pairs`: Kafka's outcome and ours, by version."""
    seen: dict[str, tuple[list[int], str, Any, Any]] = {}
    for version, (kafka, ours) in pairs.items():
        for path, a, b in _walk(kafka, ours, ""):
            # The same in many entries of a list is one difference, told of the first.
            key = f"{_INDEX.sub('', path)} {a!r} {b!r}"
            versions = seen.setdefault(key, ([], path, a, b))[0]
            if version not in versions:
                versions.append(version)
    return [
        Difference(case, _ranges(versions), path, a, b) for versions, path, a, b in seen.values()
    ]


def _ranges(versions: list[int]) -> str:
    """[4, 5, 6, 9] -> `4-6,9`."""
    runs: list[list[int]] = []
    for version in versions:
        if runs and runs[-1][-1] == version - 1:
            runs[-1].append(version)
        else:
            runs.append([version])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _walk(kafka: Any, ours: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(kafka, dict) and isinstance(ours, dict):
        for name in dict.fromkeys((*kafka, *ours)):
            inner = f"{path}.{name}" if path else name
            yield from _walk(kafka.get(name, NOTHING), ours.get(name, NOTHING), inner)
    elif isinstance(kafka, list) and isinstance(ours, list) and len(kafka) == len(ours):
        for at, (a, b) in enumerate(zip(kafka, ours, strict=True)):
            yield from _walk(a, b, f"{path}#{at}")
    elif kafka != ours:
        by_key = _by_key(kafka, ours)
        if by_key:
            yield from _walk(*by_key, path)
        else:
            yield path, kafka, ours


def _by_key(kafka: Any, ours: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Two lists of different entries by what names their entries, if that is unique."""
    if not (isinstance(kafka, list) and isinstance(ours, list) and kafka and ours):
        return None
    if not all(isinstance(one, dict) for one in (*kafka, *ours)):
        return None
    for key in _KEYS:
        found = tuple({str(one.get(key)): one for one in side} for side in (kafka, ours))
        if len(found[0]) == len(kafka) and len(found[1]) == len(ours):
            return found[0], found[1]
    return None


def shown(value: Any) -> str:
    """A value in one short line."""
    if value == NOTHING:
        return "nothing (the default)"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"


def document(found: Iterable[Difference], counts: str) -> str:
    """docs/differences.md: each reason once, with where it shows."""
    by_reason: dict[Reason, list[Difference]] = {}
    for one in found:
        if one.reason is not None:
            by_reason.setdefault(one.reason, []).append(one)
    lines = [
        "# Where kcluster answers otherwise than Apache Kafka 4.3.1",
        "",
        "Written by `make compare`, which asks both the same; compare/reasons.py has the reasons.",
        "",
        counts,
    ]
    area = ""
    for reason in sorted(by_reason, key=lambda one: (one.area, REASONS.index(one))):
        if reason.area != area:
            area = reason.area
            lines += ["", f"## {area}"]
        lines += ["", reason.text, *_seen(by_reason[reason])]
    lines += ["", "## Not shown by a case", "", *(f"- {text}" for text in BESIDE)]
    lines += ["", "## Compared by presence or in an order of our own", ""]
    lines += [f"- `{name}`: {reason}." for name, reason in sorted(WORDS.items())]
    lists = ", ".join(f"`{name}`" for name in sorted(UNORDERED))
    lines += [f"- Lists that Kafka takes out of hash tables: {lists}."]
    return "\n".join(lines) + "\n"


def _seen(found: list[Difference]) -> list[str]:
    first = found[0]
    cases = sorted({one.case for one in found})
    more = f" (and {len(cases) - 1} more cases)" if len(cases) > 1 else ""
    return [
        "",
        f"- `{first.case}`{more}, v{first.versions}, `{first.path}`:"
        f" Kafka `{shown(first.kafka)}`, kcluster `{shown(first.ours)}`",
    ]


def never_seen(found: Iterable[Difference]) -> list[Reason]:
    """Reasons that explain nothing any more."""
    seen = {one.reason for one in found}
    return [reason for reason in REASONS if reason not in seen]
