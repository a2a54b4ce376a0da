"""The check that a run is deterministic: two traces of it, compared.

Owns: the first difference, and the advice for it.  Never: runs anything. Kafka: no counterpart;
FoundationDB's unseed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Final

from msgspec import Struct

AROUND: Final = 2
"""The number of lines shown before and after the first difference."""
_NOTHING: Final = "(the trace ends here)"


class Difference(Struct, frozen=True):
    """The first line that differs.  `index`: from 0; `before`: the lines before it; `first`,
    `second`: this line and the lines after it, in each trace."""

    index: int
    before: tuple[str, ...]
    first: tuple[str, ...]
    second: tuple[str, ...]


def compare(first: Sequence[str], second: Sequence[str]) -> Difference | None:
    """The first difference of two traces; None if they are equal."""
    for index, (one, other) in enumerate(zip_longest(first, second)):
        if one != other:
            before = tuple(first[max(0, index - AROUND) : index])
            end = index + 1 + AROUND
            return Difference(index, before, tuple(first[index:end]), tuple(second[index:end]))
    return None


def difference_lines(difference: Difference) -> Iterator[str]:
    """The report of a difference for users."""
    yield f"not deterministic: the traces differ from line {difference.index + 1} on"
    yield from (f"    {line}" for line in difference.before)
    for number, lines in (("1", difference.first), ("2", difference.second)):
        yield from (f"  {number} {line}" for line in lines or (_NOTHING,))
    yield "what may differ from run to run:"
    yield "  the order of a set of objects that have no __hash__ of their own (it is by address)"
    yield "  id() or repr() of an object, in a value, a key or a name"
    yield "  a library in C that reads the clock or draws random numbers itself"
    yield "  files that the first run has changed, and the environment"
