"""Loads the core with some modules' texts replaced.

Owns: the finder that does so.  Never: changes a file, or a module that is imported already.
Kafka: no counterpart.

Only a process that has imported nothing of kcluster can load a mutated core; worker.py is one.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Final

PACKAGE: Final = "kcluster"


class _ReplacedLoader(SourceFileLoader):
    """Loads a module from a text.  No bytecode is written, so that later processes do not load
    it."""

    def __init__(self, name: str, path: str, text: str) -> None:
        super().__init__(name, path)
        self._text = text

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._text, self.path, "exec", dont_inherit=True)


class _ReplacedModules(MetaPathFinder):
    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        text = self._texts.get(fullname)
        if text is None:
            return None
        found = PathFinder.find_spec(fullname, path, target)
        assert found is not None, fullname
        origin = found.origin or ""
        assert origin.endswith(".py"), f"{fullname} is compiled: {origin}"
        found.loader = _ReplacedLoader(fullname, origin, text)
        return found


def replace_modules(texts: Mapping[str, str]) -> None:
    """Load these modules, by name, from these texts, when they are imported."""
    loaded = [name for name in sys.modules if name == PACKAGE or name.startswith(f"{PACKAGE}.")]
    assert not loaded, f"loaded already: {loaded[:3]}"
    sys.meta_path.insert(0, _ReplacedModules(texts))
