"""Which modules programs import, found in their text."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kcluster.world.imports import import_libraries, own_modules


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program with modules of its own, and a folder of libraries."""
    program, library = tmp_path / "program", tmp_path / "site"
    for file, text in {
        program / "app.py": "import helpers, lib_one\nfrom parts.deep import x\nimport no_such\n",
        program / "helpers.py": "if TYPE_CHECKING:\n    import lib_typing\nimport lib_two.part\n",
        program / "parts/__init__.py": "",
        program / "parts/deep.py": "from . import near\nfrom lib_three import *\n",
        program / "parts/near.py": "def f():\n    import lib_lazy\nx = 1 +\n",
        library / "lib_one.py": "",
        library / "lib_two/__init__.py": "",
        library / "lib_two/part.py": "",
        library / "lib_three.py": "raise RuntimeError('as its program will see')",
        library / "lib_lazy.py": "",
        library / "lib_typing.py": "",
    }.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.syspath_prepend(str(library))
    return program


def test_imports__a_program_s_own_modules_are_found_and_not_run(folder: Path) -> None:
    own = own_modules([folder / "app.py"], str(folder))
    assert list(own) == ["helpers", "parts", "parts.deep", "parts.near"]
    assert own["parts.deep"] == folder / "parts/deep.py"


def test_imports__libraries_at_the_top_of_its_modules_are_imported(folder: Path) -> None:
    import_libraries([folder / "app.py"], [str(folder)])
    found = {name for name in sys.modules if name.startswith("lib_")}
    assert found == {"lib_one", "lib_two", "lib_two.part"}
    assert "helpers" not in sys.modules
    for name in found:
        del sys.modules[name]
