"""Results in pages: an agent reads a few hundred words at a time.

Owns: the size of a page, the results that are kept for `more`.  Never: makes a result.
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kcluster.config.files.problems import unknown

PAGE_CHARACTERS: Final = 2_400
"""About 600 tokens."""
LAST_LINES: Final = 3
"""The last lines of a long result are on its first page: a report ends with its answer."""
MAX_LINE: Final = 800
MAX_KEPT: Final = 50


class KeptResults:
    """The newest results of a session, by number."""

    def __init__(self) -> None:
        self._lines: dict[int, list[str]] = {}
        self._number = 0

    def first_page(self, text: str) -> str:
        """The first page of a result; the result is kept if there are more pages."""
        lines = text.rstrip("\n").split("\n")
        if len(text) <= PAGE_CHARACTERS:
            return text.rstrip("\n")
        self._number += 1
        self._lines[self._number] = lines
        if len(self._lines) > MAX_KEPT:
            del self._lines[next(iter(self._lines))]
        last = [_cut(line) for line in lines[-LAST_LINES:]]
        return self._page(self._number, 1, last)

    def page(self, result: int, first: int) -> str:
        """The page of a kept result that begins with this line, from 1; LookupError if there is
        none."""
        if result not in self._lines:
            known = [str(number) for number in self._lines]
            raise LookupError(unknown("result", str(result), known))
        if not 1 <= first <= len(self._lines[result]):
            raise LookupError(f"first: result {result} has lines 1 to {len(self._lines[result])}")
        return self._page(result, first, ())

    def _page(self, result: int, first: int, last: Sequence[str]) -> str:
        lines = self._lines[result]
        end = len(lines) - len(last)
        room = PAGE_CHARACTERS - sum(map(len, last))
        shown: list[str] = []
        while first - 1 + len(shown) < end:
            line = _cut(lines[first - 1 + len(shown)])
            room -= len(line) + 1
            if shown and room < 0:
                break
            shown.append(line)
        following = first + len(shown)
        if following <= end:
            shown.append(
                f"[lines {following} to {end} of {len(lines)}: more(result={result},"
                f" first={following})]"
            )
        return "\n".join((*shown, *last))


def _cut(line: str) -> str:
    return line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]}..."
