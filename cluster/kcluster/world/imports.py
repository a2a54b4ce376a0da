"""The libraries that programs import, imported before their world begins.

Owns: finding them in the programs' text.  Never: imports a program's own modules, which must run in
the world. Kafka: no counterpart.

A library that has been imported costs the following worlds nothing.  Imports that are not found
here (computed names, imports within functions) happen in the world.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from msgspec import Struct

_SKIPPED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class _ProgramSource(Struct, frozen=True):
    """A file of a program.  `package`: the package that contains it, as names."""

    file: Path
    package: tuple[str, ...] = ()


def import_libraries(files: Iterable[Path], folders: Sequence[str]) -> None:
    """Import the libraries that these files, and their own modules in `folders`, import.  A failing
    import is left to the program, which reports it."""
    for name in _libraries(files, folders):
        with contextlib.suppress(Exception):  # the program itself will meet the error
            importlib.import_module(name)


def own_modules(files: Iterable[Path], folder: str) -> dict[str, Path]:
    """The modules in `folder` that these files import, directly or through each other, by name."""
    return _ImportSearch(files, [folder]).own


def program_file(module: str) -> Path | None:
    """The file that `python -m module` runs here; None if there is none.  Nothing is imported."""
    path: Sequence[str] | None = [os.getcwd(), *sys.path]
    name = ""
    for part in module.split("."):
        if path is None:
            return None
        name = f"{name}.{part}" if name else part
        spec = PathFinder.find_spec(name, path)
        if spec is None:
            return None
        path = spec.submodule_search_locations
    if path is not None:
        spec = PathFinder.find_spec(f"{name}.__main__", path)
    return Path(spec.origin) if spec is not None and spec.origin else None


def _libraries(files: Iterable[Path], folders: Sequence[str]) -> Iterator[str]:
    search = _ImportSearch(files, folders)
    for name in search.foreign:
        # In `from x import y`, y may or may not be a module.
        head, _, last = name.rpartition(".")
        if head in sys.modules and hasattr(sys.modules[head], last):
            continue
        yield name


class _ImportSearch:
    """A search for the modules that programs import.  `own`: modules of the programs, by name;
    `foreign`: names of other modules, in order."""

    def __init__(self, files: Iterable[Path], folders: Sequence[str]) -> None:
        self.own: dict[str, Path] = {}
        self.foreign: dict[str, None] = {}
        self._folders = list(folders)
        self._to_read = [_ProgramSource(file) for file in files]
        while self._to_read:
            source = self._to_read.pop(0)
            for name in _imported(source):
                self._found(name)

    def _found(self, name: tuple[str, ...]) -> None:
        if name[0] in sys.builtin_module_names or name[0] == "kcluster":
            return
        path: Sequence[str] | None = self._folders
        for depth in range(1, len(name) + 1):
            spec = self._spec(".".join(name[:depth]), path)
            if spec is None:
                if depth == 1:
                    self.foreign[".".join(name)] = None
                return
            path = spec.submodule_search_locations
            if spec.origin is None or not spec.origin.endswith(".py"):
                continue
            dotted = ".".join(name[:depth])
            if dotted not in self.own:
                self.own[dotted] = Path(spec.origin)
                package = name[:depth] if path is not None else name[: depth - 1]
                self._to_read.append(_ProgramSource(Path(spec.origin), package))
            if path is None:
                return

    def _spec(self, name: str, path: Sequence[str] | None) -> ModuleSpec | None:
        return PathFinder.find_spec(name, path)


def _imported(source: _ProgramSource) -> Iterator[tuple[str, ...]]:
    """The modules that a file may import at its top level; some of the names may belong to no
    module."""
    try:
        tree = ast.parse(source.file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return  # the program itself reports the error
    for node in _top_level(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield tuple(alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            depth = len(source.package) - node.level + 1
            base = source.package[:depth] if node.level else ()
            base += tuple(node.module.split(".")) if node.module else ()
            if base:
                yield base
            for alias in node.names:
                if alias.name != "*":
                    yield (*base, alias.name)


def _top_level(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _SKIPPED):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        yield child
        yield from _top_level(child)
