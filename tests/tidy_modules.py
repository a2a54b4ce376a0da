"""The modules of this project as data, for the rules of tests/test_tidy.py.

Owns: reading a module, its place in the tree, what it imports.  Never: judges one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

SOURCE = "cluster/kcluster/"
OUTSIDE_THE_CORE = (
    "drivers/sockets/", "drivers/tls/", "drivers/live.py", "drivers/wires/tcp.py", "handle/",
    "scenario/play/live.py", "runs/", "importing/", "learn/", "testing/", "web/", "pipeline/",
    "apache_kafka/", "cli/", "demo/", "world/", "proxy/", "record/", "__main__.py",
    "mirror/cluster.py", "mirror/connection.py", "mirror/coordinators.py", "mirror/driver.py",
    "mirror/metadata_log.py", "mirror/requests.py", "conform/cluster.py", "conform/recorded.py",
    "conform/session.py",
)  # fmt: skip


class Module(NamedTuple):
    path: str
    text: str
    tree: ast.Module

    @property
    def is_ours(self) -> bool:
        return self.path.startswith(SOURCE)

    @property
    def is_core(self) -> bool:
        place = self.path.removeprefix(SOURCE)
        return self.is_ours and not place.startswith(OUTSIDE_THE_CORE)

    @property
    def layer(self) -> str:
        return layer_of(self.path.removeprefix(SOURCE).removesuffix(".py").replace("/", "."))

    @property
    def dotted(self) -> str:
        name = self.path.removeprefix("cluster/").removesuffix(".py").replace("/", ".")
        return name.removesuffix(".__init__")

    def walk(self, *kinds: type[ast.AST]) -> Iterator[ast.AST]:
        return (node for node in nodes_of(self.tree) if isinstance(node, kinds))


@cache
def nodes_of(tree: ast.AST) -> list[ast.AST]:
    """Every node: most rules look at all of them."""
    return list(ast.walk(tree))


def layer_of(name: str) -> str:
    """`controller.node` -> `controller`."""
    return name.split(".", 1)[0]


def imports_of(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of each import; `from a import b` gives `a.b`."""
    for node in nodes_of(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            dots = "." * node.level
            yield from ((node.lineno, f"{dots}{node.module}.{alias.name}") for alias in node.names)
