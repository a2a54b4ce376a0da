"""A mutation: a bug that some Kafka had, or could have, as a change of the text of the core.

Owns: Mutation, and the changed text of a module.  Never: knows a mutation (areas/ has them), loads
a module (loading.py does).  Kafka: no counterpart; mutation testing, with bugs chosen by hand.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from msgspec import Struct

SOURCE: Final = Path(__file__).resolve().parents[2] / "cluster" / "kcluster"


class MutationError(ValueError):
    """The error for a mutation that does not apply to the core as it is."""


class Edit(Struct, frozen=True):
    """A piece of text that is replaced.  `file`: its path below cluster/kcluster; `old` must be in
    it exactly once."""

    file: str
    old: str
    new: str

    @property
    def module(self) -> str:
        """The name of the module."""
        return "kcluster." + self.file.removesuffix(".py").replace("/", ".")


class Mutation(Struct, frozen=True):
    """A bug.  `history`: what it does, with the number of Kafka's issue or KIP where there is one;
    `expects`: the names of findings that have the right cause; `workloads`: where it is searched
    for; `equivalent`: why nobody could see it, "" if somebody could."""

    name: str
    history: str
    edits: tuple[Edit, ...]
    expects: tuple[str, ...]
    workloads: tuple[str, ...]
    equivalent: str = ""


def mutation(
    name: str, history: str, *edits: Edit, on: str, expects: str = "", equivalent: str = ""
) -> Mutation:
    """A mutation; `on` and `expects` are words."""
    return Mutation(name, history, edits, tuple(expects.split()), tuple(on.split()), equivalent)


def changed_texts(mutation: Mutation, source: Path = SOURCE) -> dict[str, str]:
    """The text of each module that a mutation changes, by the module's name.  MutationError, with
    the mutation's name, if it does not apply."""
    texts: dict[str, str] = {}
    for edit in mutation.edits:
        path = source / edit.file
        if edit.module not in texts:
            if not path.is_file():
                raise MutationError(f"{mutation.name}: there is no {edit.file}")
            texts[edit.module] = path.read_text("utf-8")
        times = texts[edit.module].count(edit.old)
        if times != 1 or edit.old == edit.new:
            first = edit.old.strip().partition("\n")[0]
            raise MutationError(
                f"{mutation.name}: {edit.file} has {times} times, not once: {first}"
            )
        texts[edit.module] = texts[edit.module].replace(edit.old, edit.new)
    return texts
