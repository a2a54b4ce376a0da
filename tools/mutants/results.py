"""The results of `make mutants`, kept so that the same command goes on where it ended.

Owns: the file of results, and which of them are still true.  Never: measures, words a result
(page.py does).  Kafka: no counterpart.

A result is true for one text of the mutation and of its workloads: if either changes, it is
measured again.  A change of the core does not make results void, since each would: `--again`
does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tools.mutants.measure import Limits, Measured
from tools.mutants.mutation import Mutation
from tools.mutants.workloads import paths_of

RESULTS: Final = Path("tools/mutants/results.jsonl")
"""In git: a pass over all mutations takes an hour, and may be made in parts."""


class Kept(Struct, frozen=True):
    """A result.  `key`: of what it is true; see `key_of`."""

    key: str
    measured: Measured


def key_of(mutation: Mutation, seed: int, *, guided: bool) -> str:
    """The hash of what a search depends on besides the core and its limits: the mutation, its
    workloads."""
    paths = [path for name in mutation.workloads for path in paths_of(name)]
    texts = [path.read_text("utf-8") for path in paths]
    edits = [(edit.file, edit.old, edit.new) for edit in mutation.edits]
    parts = repr((mutation.name, edits, texts, seed, guided))
    return hashlib.sha256(parts.encode()).hexdigest()[:16]


def judged(mutation: Mutation, measured: Measured) -> Measured:
    """A result by the names that its mutation is expected to show now."""
    right = [name for name in measured.names if name in mutation.expects]
    if not measured.run:
        return measured
    return replace(measured, finding=(right or measured.names)[0], is_right=bool(right))


def is_within(measured: Measured, limits: Limits) -> bool:
    """Whether a search with these limits has this result: one with other limits is the same search,
    cut off elsewhere."""
    if measured.run:
        return measured.run <= limits.runs
    return measured.runs >= limits.runs or measured.cpu_s >= limits.cpu_s


class Results:
    """The results in a file, to which new ones are added."""

    def __init__(self, path: Path = RESULTS) -> None:
        self._path = path
        self._known: dict[str, Measured] = {}
        if path.exists():
            for line in path.read_bytes().splitlines():
                kept = msgspec.json.decode(line, type=Kept)
                self._known[kept.key] = kept.measured

    def get(self, key: str) -> Measured | None:
        """The result of a key; None if there is none."""
        return self._known.get(key)

    def add(self, key: str, measured: Measured) -> None:
        """Keep a result."""
        self._known[key] = measured
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(Kept(key, measured)) + b"\n")

    def forget(self, keys: Collection[str] | None = None) -> None:
        """Forget the results of these keys; None: of all."""
        self._known = {
            key: one for key, one in self._known.items() if keys is not None and key not in keys
        }
        kept = [Kept(key, one) for key, one in self._known.items()]
        self._path.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in kept))
