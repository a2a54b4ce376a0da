"""The scenarios, fault profiles, searches and sweeps that ship with kcluster, by name.

Owns: the places of these files, in a checkout and in the wheel; their names and titles.  Never:
reads more of a file than its first line, the title.  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

from kcluster.config.files.problems import nearest

_HERE: Final = Path(__file__).parent
_IN_THE_WHEEL: Final = _HERE / "files"
_IN_A_CHECKOUT: Final = _HERE.parents[2] / "scenarios"
_SUFFIX: Final = ".yaml"


class LibraryKind(StrEnum):
    """The kinds of files in the library."""

    SCENARIO = "scenario"
    PROFILE = "profile"
    SWEEP = "sweep"
    SEARCH = "search"

    @property
    def plural(self) -> str:
        """The word for several files of the kind."""
        return "searches" if self is LibraryKind.SEARCH else f"{self}s"


_FOLDERS: Final = {
    LibraryKind.SCENARIO: ("incidents", "."),
    LibraryKind.PROFILE: ("profiles",),
    LibraryKind.SWEEP: ("sweeps",),
    LibraryKind.SEARCH: ("searches",),
}


STORMS: Final = (
    "safe_settings_overlapping", "txn_storm", "groups_storm", "share_storm", "compact_storm",
)  # fmt: skip
"""The scenarios in which a search without a name searches, beside all searches."""


class LibraryFile(NamedTuple):
    """A file of the library.  `title` is one line, without a full stop at its end."""

    name: str
    title: str
    path: Path


def library_files(kind: LibraryKind) -> tuple[LibraryFile, ...]:
    """All files of a kind, in the order of their names; incidents come before other scenarios."""
    return tuple(LibraryFile(path.stem, _title_of(path), path) for path in _paths(kind))


def library_path(kind: LibraryKind, name: str) -> Path | None:
    """The file of this name; None if there is none.  In `name`, `-` stands for `_`, and `.yaml` may
    follow."""
    wanted = _plain(name)
    return next((path for path in _paths(kind) if path.stem == wanted), None)


def searched_paths() -> list[Path]:
    """The files in which a search without a name searches."""
    storms = (library_root() / f"{name}{_SUFFIX}" for name in STORMS)
    return [*storms, *_paths(LibraryKind.SEARCH)]


def library_name(source: str) -> str | None:
    """The name under which this file ships; None if it does not ship.  A path relative to the
    working directory was typed by the user, and stays as it is."""
    path = Path(source)
    if not path.is_absolute() or library_path(LibraryKind.SCENARIO, path.stem) != path:
        return None
    return path.stem


def nearest_name(kind: LibraryKind, name: str) -> str | None:
    """The name that was probably meant by a wrong name; None if no name is near."""
    return nearest(_plain(name), [path.stem for path in _paths(kind)])


def library_root() -> Path:
    """The directory with `incidents`, `profiles`, `searches` and `sweeps`."""
    return _IN_THE_WHEEL if _IN_THE_WHEEL.is_dir() else _IN_A_CHECKOUT


def _paths(kind: LibraryKind) -> Iterator[Path]:
    for folder in _FOLDERS[kind]:
        yield from sorted((library_root() / folder).glob(f"*{_SUFFIX}"))


def _plain(name: str) -> str:
    return name.removesuffix(_SUFFIX).replace("-", "_")


def _title_of(path: Path) -> str:
    """The title of a file: its first line, which is a comment."""
    with path.open(encoding="utf-8") as opened:
        return opened.readline().removeprefix("#").strip().removesuffix(".")
