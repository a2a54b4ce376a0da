"""The modules of the page as one script, for a file that opens without a server.

Owns: their order, the names that each imports from the others, leaving out comments, indentation
and breaks within statements.  Never: reads JavaScript beyond its imports, exports and comments, as
tools/javascript/biome.json formats them.
Kafka: no counterpart.

Each module becomes a function that returns the module's exports, and comes after the modules that
it imports.  So their scopes stay apart, as in a browser.  The functions' results are variables of
the page, where a later script finds the modules of an earlier one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_IMPORT: Final = re.compile(r'^import (?:\{([^}]*)\} from )?"([^"]+)";\n', re.M)
_EXPORT: Final = re.compile(r"^export ((?:async )?(?:function|class|const) (\w+))", re.M)
_INDENTATION: Final = re.compile(r"^ +", re.M)
_COMMENT: Final = re.compile(r"^ *(?://.*|/\*\*(?:[^*]|\*(?!/))*\*/)\n", re.M)
_INSIDE: Final = re.compile(r"/\*\*(?:[^*]|\*(?!/))*\*/ ?|(?<=[;,{]) // .*$", re.M)
"""A comment beside code: a type, or a remark at the end of a line."""
_BREAK: Final = re.compile(r"(?<=[,(\[{])\n|\n(?=[)\]}.?:&|])")
"""The end of a line that is not the end of a statement; templates have no lines of their own."""


class BundleError(Exception):
    """The error for modules that do not fit together; its text names the file."""


def bundle(folder: Path, entry: str, after: Sequence[str] = ()) -> str:
    """A module of a folder with all that it imports, as one script.  `after`: the entries of
    scripts that have run before, whose modules are left out."""
    modules = {path: path.read_text("utf-8") for path in sorted(folder.rglob("*.js"))}
    earlier: list[Path] = []
    for each in after:
        _add(folder / each, modules, earlier, ())
    ordered = list(earlier)
    _add(folder / entry, modules, ordered, ())
    parts = [_function(path, modules, folder) for path in ordered[len(earlier) :]]
    return '"use strict";\n' + "".join(parts)


def _add(
    path: Path, modules: dict[Path, str], ordered: list[Path], importers: tuple[Path, ...]
) -> None:
    """Append a module to `ordered`, after the modules that it imports."""
    if path in importers:
        circle = [*importers[importers.index(path) :], path]
        raise BundleError(" imports ".join(each.name for each in circle))
    if path in ordered:
        return
    for match in _IMPORT.finditer(modules[path]):
        imported = (path.parent / match[2]).resolve()
        if imported not in modules:
            raise BundleError(f"{path.name} imports {match[2]}, which is not there")
        _check_names(path, match, modules[imported])
        _add(imported, modules, ordered, (*importers, path))
    ordered.append(path)


def _check_names(path: Path, match: re.Match[str], imported: str) -> None:
    exported = {found[2] for found in _EXPORT.finditer(imported)}
    missing = [name for name in _names(match[1]) if name not in exported]
    if missing:
        raise BundleError(f"{path.name} imports {', '.join(missing)} from {match[2]}")


def _names(listed: str | None) -> list[str]:
    return [name.strip() for name in (listed or "").split(",") if name.strip()]


def _function(path: Path, modules: dict[Path, str], folder: Path) -> str:
    def taken(match: re.Match[str]) -> str:
        names = ", ".join(_names(match[1]))
        return f"const {{{names}}} = {_variable(path.parent / match[2], folder)};\n" * bool(names)

    text = modules[path]
    exported = ", ".join(found[2] for found in _EXPORT.finditer(text))
    body = _EXPORT.sub(r"\1", _IMPORT.sub(taken, _COMMENT.sub("", text)))
    body = _BREAK.sub("", _INSIDE.sub("", _INDENTATION.sub("", body)))
    return f"const {_variable(path, folder)} = (() => {{\n{body}return {{{exported}}};\n}})();\n"


def _variable(path: Path, folder: Path) -> str:
    """The variable of a module, such as `$views_partition`."""
    inside = path.resolve().relative_to(folder.resolve()).with_suffix("")
    return "$" + "_".join(inside.parts)
