"""The files that a user's word stands for: a path, a name that ships with kcluster, a directory.

Owns: finding the file that a word stands for; the nearest name for a wrong word.  Never: reads more
of a file than its kind requires.  Kafka: no counterpart.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kcluster.config.files.tree import Map, from_yaml
from kcluster.scenario.library import LibraryKind, library_path, nearest_name

_SUFFIXES: Final = (".yaml", ".yml")
_OF_OTHERS: Final = {"brokers", "kinds", "grid"}
"""Top-level keys of topologies, fault profiles and sweeps, which no scenario has."""


def file_or_name(word: str, *kinds: LibraryKind) -> str:
    """The path of a file: the word itself if there is such a file, else the file of this name that
    ships with kcluster.  Raises LookupError, with the nearest name."""
    if Path(word).exists():
        return word
    for kind in kinds:
        shipped = library_path(kind, word)
        if shipped is not None:
            return str(shipped)
    near = next(filter(None, (nearest_name(kind, Path(word).name) for kind in kinds)), None)
    ships = f"nor does a {kinds[0]} of this name ship with kcluster"
    raise LookupError(f"{word}: cannot be read: no such file, {ships}; {_hint(near)}")


def scenario_files(word: str, problems: list[str]) -> list[str]:
    """The scenario files that a word stands for; a directory stands for all scenarios directly in
    it.  Problems are added to `problems`."""
    try:
        path = Path(file_or_name(word, LibraryKind.SCENARIO, LibraryKind.SEARCH))
    except LookupError as error:
        problems.append(str(error))
        return []
    if not path.is_dir():
        return [str(path)]
    files = [each for each in sorted(path.iterdir()) if each.suffix in _SUFFIXES]
    found = [str(each) for each in files if _may_be_scenario(each)]
    if not found:
        problems.append(f"{word}: a directory without a scenario file (*.yaml)")
    return found


def _may_be_scenario(path: Path) -> bool:
    """Whether a file is no topology, profile or sweep.  A file with syntax errors counts as a
    scenario, so that they are reported."""
    root, _ = from_yaml(path.read_text("utf-8", "replace"), str(path))
    return not isinstance(root, Map) or not _OF_OTHERS & root.entries.keys()


def library_text(name: str) -> str:
    """The text of a scenario, profile or sweep that ships with kcluster.  Raises LookupError, with
    the nearest name."""
    for kind in LibraryKind:
        path = library_path(kind, name)
        if path is not None:
            return path.read_text("utf-8")
    near = next(filter(None, (nearest_name(kind, name) for kind in LibraryKind)), None)
    raise LookupError(f"{name}: nothing of this name ships with kcluster; {_hint(near)}")


def _hint(near: str | None) -> str:
    return f"did you mean {near}?" if near else "kcluster scenario list shows all"
