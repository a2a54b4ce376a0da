"""Reads the nodes of a tree (tree.py) as mappings of known keys, numbers or text.

Owns: the messages about kinds, ranges and unknown keys; the list of problems of one file.
Never: raises; for a value that cannot be used it records a problem and returns None.
Kafka: no counterpart.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from kcluster.config.files.problems import MAX_SHOWN, Place, Problem, join, show, unknown
from kcluster.config.files.tree import Items, Map, MapEntry, Node, Scalar

_DECIMAL: Final = re.compile(r"[+-]?(0|[1-9][0-9]{0,30})")
_FRACTION: Final = re.compile(r"[0-9]+\.[0-9]{1,3}")
_LEADING_ZERO: Final = re.compile(r"[+-]?0+([0-9]{1,30})")
_LOOKS_LIKE_NUMBER: Final = re.compile(r"[+-]?[0-9][0-9a-fA-FxXoO_.,:]*")


class TreeReader:
    """Reads one file."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.problems: list[Problem] = []
        self.places: dict[str, Place] = {}

    def wrong(self, at: Node | MapEntry, path: str, text: str) -> None:
        """Record a problem at this place."""
        self.problems.append(Problem(self.source, at.line, at.column, path, text))

    @property
    def is_exhausted(self) -> bool:
        """Whether there are too many problems to search for near names."""
        return len(self.problems) > 2 * MAX_SHOWN

    def entries(
        self,
        node: Node | None,
        path: str,
        known: Sequence[str] | None,
        what: str,
        explain: Callable[[str], str] | None = None,
    ) -> dict[str, Node]:
        """The values of a mapping by key, without empty ones; only values with `known` keys, if
        these are passed.  `explain`: makes the message for an unknown key."""
        if node is None or is_null(node):
            return {}
        if not isinstance(node, Map):
            example = "" if known is None else f" with keys like {', '.join(known[:3])}"
            self.wrong(node, path, f"{kind(node)}; it must be a mapping{example}")
            return {}
        values: dict[str, Node] = {}
        for key, entry in node.entries.items():
            if known is not None and key not in known:
                if self.is_exhausted:
                    text = f"no such {what}"
                else:
                    text = unknown(what, key, known) if explain is None else explain(key)
                self.wrong(entry, join(path, key), text)
            elif not is_null(entry.value):
                values[key] = entry.value
        return values

    def items(self, node: Node | None, path: str, of: str) -> list[Node]:
        """The items of a list."""
        if node is None or is_null(node):
            return []
        if not isinstance(node, Items):
            self.wrong(node, path, f"{kind(node)}; it must be a list of {of}")
            return []
        return node.items

    def integer(
        self, node: Node | None, path: str, low: int, high: int, advice: str = ""
    ) -> int | None:
        """A whole number within a range; None, without a problem, if there is no node."""
        if node is None:
            return None
        if not isinstance(node, Scalar) or node.text is None:
            self.wrong(node, path, f"{kind(node)}; it must be a whole number{advice}")
            return None
        text = node.text
        if node.quoted or not _DECIMAL.fullmatch(text):
            self.wrong(node, path, _not_integer(node, text) + advice)
            return None
        number = int(text)
        if not low <= number <= high:
            bound = f"at least {low}" if number < low else f"at most {high}"
            self.wrong(node, path, f"{show(text)} is out of range; it must be {bound}{advice}")
            return None
        self.places[path] = Place(node.line, node.column)
        return number

    def milliseconds(self, node: Node | None, path: str, high: int) -> float | None:
        """A time in ms, down to a thousandth, from 0 to `high`; None without a problem if there
        is no node."""
        if not (isinstance(node, Scalar) and node.text and _FRACTION.fullmatch(node.text)):
            return self.integer(node, path, 0, high)
        number = float(node.text)
        if node.quoted or number > high:
            return self.integer(node, path, 0, high)
        self.places[path] = Place(node.line, node.column)
        return number

    def text(self, node: Node | None, path: str) -> str | None:
        """A text; a number or a flag counts as the text that was written."""
        if node is None:
            return None
        if not isinstance(node, Scalar) or node.text is None:
            self.wrong(node, path, f"{kind(node)}; it must be text")
            return None
        if not node.text or not node.text.isprintable() or len(node.text) > 1_000:
            self.wrong(
                node, path, f"{show(node.text)} is not usable: empty, too long or unprintable"
            )
            return None
        self.places[path] = Place(node.line, node.column)
        return node.text


def is_null(node: Node) -> bool:
    """Whether a key has no value after it."""
    return isinstance(node, Scalar) and node.text is None


def kind(node: Node) -> str:
    """The word for the kind of a node in messages."""
    match node:
        case Map():
            return "this is a mapping"
        case Items():
            return "this is a list"
        case Scalar(text=None):
            return "this is empty"
        case Scalar(text=text):
            return f"this is {show(text)}"


def _not_integer(node: Scalar, text: str) -> str:
    zeros = _LEADING_ZERO.fullmatch(text)
    if node.quoted and _DECIMAL.fullmatch(text):
        return f"{show(repr(text))} is text; it must be a whole number (leave out the quotes)"
    if zeros:
        return f"{show(text)} has leading zeros, octal to some; write {int(zeros[1])}"
    if _LOOKS_LIKE_NUMBER.fullmatch(text):
        return f"{show(text)} is not a plain decimal number; it must be digits alone"
    return f"{show(text)} is not a whole number"
