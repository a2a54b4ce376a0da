"""A student's changes in the file of an exercise, and the check that they are allowed.

Owns: comparing two trees, the paths that a student may change.  Never: interprets a key. Kafka: no
counterpart.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from kcluster.config.files.problems import Problem, join, show
from kcluster.config.files.reading import is_null
from kcluster.config.files.tree import Items, Map, Node, Scalar

FREE: Final = ("name", "story", "seed")
"""Keys of a scenario that change nothing in a graded run."""
_NOTHING: Final = Scalar(None)


def forbidden_edits(
    start: Node, answer: Node, may_edit: Sequence[str], source: str
) -> list[Problem]:
    """The forbidden changes of an answer: each with its path and its place in the answer."""
    allowed = (*FREE, *may_edit)
    return [
        Problem(source, at.line, at.column, path, f"{words}; {_advice(may_edit)}")
        for path, at, words in _changes(start, answer, "", allowed)
    ]


def answer_key(answer: Node) -> str:
    """The answer without places, comments and free keys; equal answers have equal keys."""
    assert isinstance(answer, Map)
    values = _values(answer)
    return json.dumps({key: values[key] for key in sorted(values) if key not in FREE})


def _advice(may_edit: Sequence[str]) -> str:
    return f"you may change {', '.join(may_edit)}"


def _changes(
    start: Node, answer: Node, path: str, allowed: Sequence[str]
) -> Iterator[tuple[str, Node, str]]:
    """(path, place in the answer, the change in words) of each forbidden change."""
    if path and any(path == each or path.startswith((f"{each}.", f"{each}[")) for each in allowed):
        return
    if isinstance(start, Map | Scalar) and isinstance(answer, Map | Scalar):
        if isinstance(start, Map) or isinstance(answer, Map):
            if _is_one_map(start) and _is_one_map(answer):
                yield from _changes_of_map(start, answer, path, allowed)
                return
        elif start.text == answer.text:
            return
    elif isinstance(start, Items) and isinstance(answer, Items):
        yield from _changes_of_items(start, answer, path, allowed)
        return
    yield path, answer, f"{_shown(start)} may not be changed"


def _is_one_map(node: Node) -> bool:
    """Whether a node is a mapping, or nothing, which counts as an empty mapping."""
    return isinstance(node, Map) or is_null(node)


def _changes_of_map(
    start: Node, answer: Node, path: str, allowed: Sequence[str]
) -> Iterator[tuple[str, Node, str]]:
    before = start.entries if isinstance(start, Map) else {}
    after = answer.entries if isinstance(answer, Map) else {}
    for key in dict.fromkeys((*before, *after)):
        where = join(path, key)
        if key in before and key in after:
            yield from _changes(before[key].value, after[key].value, where, allowed)
        elif any(each.startswith(f"{where}.") for each in allowed):
            old = before[key].value if key in before else _NOTHING
            new = after[key].value if key in after else _at(answer)
            yield from _changes(old, new, where, allowed)
        elif key in after and where not in allowed:
            entry = after[key]
            yield where, Scalar(key, False, entry.line, entry.column), "may not be added"
        elif where not in allowed:
            yield where, answer, f"{_shown(before[key].value)} is missing"


def _at(node: Node) -> Scalar:
    """An empty node with the place of another node."""
    return Scalar(None, False, node.line, node.column)


def _changes_of_items(
    start: Items, answer: Items, path: str, allowed: Sequence[str]
) -> Iterator[tuple[str, Node, str]]:
    for at, (before, after) in enumerate(zip(start.items, answer.items, strict=False)):
        yield from _changes(before, after, join(path, at), allowed)
    if len(start.items) != len(answer.items):
        yield path, answer, f"there must be {len(start.items)} entries, not {len(answer.items)}"


def _shown(node: Node) -> str:
    return show(node.text) if isinstance(node, Scalar) and node.text is not None else "this"


def _values(node: Node) -> Any:
    """The tree as plain values."""
    match node:
        case Map():
            entries = sorted(node.entries.items())
            return {key: _values(entry.value) for key, entry in entries}
        case Items():
            return [_values(item) for item in node.items]
        case Scalar():
            return node.text
