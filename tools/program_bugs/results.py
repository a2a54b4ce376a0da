"""The results of `make program-bugs`, kept so that the same command goes on where it ended.

Owns: the file of results, and which of them are still true.  Never: measures, words a result
(page.py does).  Kafka: no counterpart.

A result is true for one text of the program.  A change of kcluster does not make it void: `--again`
does.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from tools.program_bugs.catalog import ProgramBug
from tools.program_bugs.measure import Measured, Search

RESULTS: Final = Path("tools/program_bugs/results.jsonl")
"""In git: a pass over all programs takes hours, and may be made in parts."""


class KeptSearch(Struct, frozen=True):
    """A result.  `key`: of what it is true; see `key_of`."""

    key: str
    measured: Measured


def key_of(program: ProgramBug, search: Search) -> str:
    """The hash of what a search depends on besides kcluster and the number of its runs."""
    parts = repr((program.text, search.name, search.kind, search.seed, search.plain))
    return hashlib.sha256(parts.encode()).hexdigest()[:16]


def is_enough(measured: Measured, search: Search) -> bool:
    """Whether a search with another number of runs has this result, too; one with more runs tells
    more."""
    is_found = 0 < measured.run <= search.runs
    return not measured.problem and (is_found or measured.runs >= search.runs)


class ProgramResults:
    """The results in a file, to which new ones are added."""

    def __init__(self, path: Path = RESULTS) -> None:
        self._path = path
        self._known: dict[str, Measured] = {}
        if path.exists():
            for line in path.read_bytes().splitlines():
                kept = msgspec.json.decode(line, type=KeptSearch)
                self._known[kept.key] = kept.measured

    def get(self, key: str) -> Measured | None:
        """The result of a key; None if there is none."""
        return self._known.get(key)

    def add(self, key: str, measured: Measured) -> None:
        """Keep a result."""
        self._known[key] = measured
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(KeptSearch(key, measured)) + b"\n")
