"""The values in which two outcomes differ.

Owns: walking two outcomes, a value as one short line.  Never: says which of both is right.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from kcluster.json_types import JsonObject

_INDEX: Final = re.compile(r"#\d+")
_KEYS: Final = ("api_key", "name")
_SHOWN_CHARS: Final = 90


class Absent(Struct, frozen=True):
    """In place of a field or an entry that only the other side has."""


NOTHING: Final = Absent()


def unequal_values(
    pairs: Mapping[int, tuple[object, object]],
) -> list[tuple[str, str, object, object]]:
    """(versions, path, one value, the other) of two outcomes by version."""
    seen: dict[str, tuple[list[int], str, object, object]] = {}
    for version, (one, other) in pairs.items():
        for path, a, b in _walk(one, other, ""):
            # The same in many entries of a list is one difference, reported for the first.
            key = f"{_INDEX.sub('', path)} {a!r} {b!r}"
            versions = seen.setdefault(key, ([], path, a, b))[0]
            if version not in versions:
                versions.append(version)
    return [(ranges_of(versions), path, a, b) for versions, path, a, b in seen.values()]


def ranges_of(versions: Sequence[int]) -> str:
    """[4, 5, 6, 9] -> `4-6,9`."""
    runs: list[list[int]] = []
    for version in versions:
        if runs and runs[-1][-1] == version - 1:
            runs[-1].append(version)
        else:
            runs.append([version])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _walk(one: object, other: object, path: str) -> Iterator[tuple[str, object, object]]:
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


def _by_key(one: object, other: object) -> tuple[JsonObject, JsonObject] | None:
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


def shown(value: object) -> str:
    """A value as one short line."""
    if value == NOTHING:
        return "no value (the default)"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"
