"""Which parts of the controller may import which."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import kcluster.controller

PACKAGE = kcluster.controller.__name__
CONTROLLER = Path(kcluster.controller.__path__[0])

BELOW = {
    "partitions": "",
    "membership": "partitions",
    "topics": "partitions",
    "configs": "partitions topics",
}
"""By package: which others it may import."""


def imports(path: Path) -> Iterator[str]:
    """What a module imports from the controller: `partitions.elections`, `node`."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE):
            inside = (node.module or "").removeprefix(PACKAGE).removeprefix(".")
            yield from [inside] if inside else [alias.name for alias in node.names]


def test_parts__no_part_imports_the_node() -> None:
    knowing = [
        path.relative_to(CONTROLLER).as_posix()
        for path in sorted(CONTROLLER.rglob("*.py"))
        if "node" in imports(path)
    ]
    assert knowing == []


def test_parts__packages_import_each_other_one_way() -> None:
    upward = [
        f"{path.relative_to(CONTROLLER).as_posix()} imports {name}"
        for package, below in BELOW.items()
        for path in sorted((CONTROLLER / package).glob("*.py"))
        for name in imports(path)
        if name.split(".")[0] in BELOW and name.split(".")[0] not in (package, *below.split())
    ]
    assert upward == []
    assert set(BELOW) == {path.parent.name for path in CONTROLLER.glob("*/__init__.py")}
