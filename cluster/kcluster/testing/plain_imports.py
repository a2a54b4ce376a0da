"""Imports of the package's own modules like any library's: pytest does not rewrite their asserts.

Owns: the finder.  Never: touches a module outside this package.
Kafka: no counterpart.

pytest rewrites the asserts of every module of a distribution that has a plugin, which is all of
kcluster.  It parses and compiles each of them and, where no bytecode may be written (the usual
setting of a container), does so again in each session: three seconds before the first test.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Final

PACKAGE: Final = __name__.partition(".")[0]


class PlainImports(MetaPathFinder):
    """Finds the modules of the package before pytest's finder does."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(f"{PACKAGE}."):
            return None
        return PathFinder.find_spec(fullname, path, target)


def import_plainly() -> Callable[[], None]:
    """Start to find the package's modules without pytest's finder; returns a function that ends
    this."""
    finder = PlainImports()
    sys.meta_path.insert(0, finder)
    return lambda: sys.meta_path.remove(finder)
