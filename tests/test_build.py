"""Which build is under test: all pure Python, or all that pyproject.toml names as C extensions.

Owns: that it is the one meant, and what a person sees of either who looks for a bug.  Never: what
the modules do; the other tests run on both builds for that.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tomllib
import traceback
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest
from msgspec import Struct

import kcluster
from kcluster.contract import PeerRequest
from kcluster.timers import Timers

ROOT = Path(__file__).parents[1]
COLOUR = "colour"
"""An attribute that no class of ours has."""


def compiled_modules() -> list[str]:
    """The modules that the wheel's build hook compiles."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    paths = project["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["mypyc"]["include"]
    return [path.removeprefix("cluster/").removesuffix(".py").replace("/", ".") for path in paths]


def test_build__the_hot_modules_match_the_build() -> None:
    suffixes = (".py",) if kcluster.build() == "pure Python" else tuple(EXTENSION_SUFFIXES)
    files = {name: str(import_module(name).__file__) for name in compiled_modules()}
    assert [file for file in files.values() if not file.endswith(suffixes)] == []


def test_build__it_is_the_one_that_was_to_be_tested() -> None:
    meant = os.environ.get("KCLUSTER_BUILD", kcluster.build())
    folder = Path(str(kcluster.__file__)).parent
    stray = sorted(str(file) for file in folder.rglob("*.so"))[:1]
    assert kcluster.build() == meant, f"found {stray}; if it should not be there: make clean"


def test_build__structs_have_the_options_that_their_source_names() -> None:
    """mypyc calls a metaclass without the keywords of a class."""
    wrong = []
    for name in compiled_modules():
        module = import_module(name)
        path = ROOT / "cluster" / (name.replace(".", "/") + ".py")
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            kind = getattr(module, node.name, None) if isinstance(node, ast.ClassDef) else None
            if not (isinstance(kind, type) and issubclass(kind, Struct)):
                continue
            assert isinstance(node, ast.ClassDef)
            for option in node.keywords:
                has = getattr(kind.__struct_config__, str(option.arg))
                if has is not ast.literal_eval(option.value):
                    wrong.append(f"{name}.{node.name}: {option.arg}={has}")
    assert wrong == []


class Unequal:
    """Raises out of a comparison that the core makes."""

    def __eq__(self, other: object) -> bool:
        raise ValueError("raised in the body")

    def __hash__(self) -> int:
        return 0


def test_build__a_traceback_names_file_line_and_function_of_the_source() -> None:
    with pytest.raises(ValueError, match="raised in the body") as raised:
        _ = PeerRequest(1, 2, Unequal()) == PeerRequest(1, 2, Unequal())
    frames = traceback.extract_tb(raised.value.__traceback__)
    (ours,) = [frame for frame in frames if frame.filename.endswith("cluster/kcluster/contract.py")]
    lines = (ROOT / "cluster" / "kcluster" / "contract.py").read_text("utf-8").splitlines()
    assert ours.name == "__eq__"
    assert "(other.source, other.request_id, other.body)" in "".join(
        lines[(ours.lineno or 0) - 3 : ours.lineno]
    )


def test_build__an_instance_has_only_the_attributes_that_its_class_names() -> None:
    with pytest.raises(AttributeError):
        setattr(PeerRequest(1, 2, None), COLOUR, "blue")
    with pytest.raises(AttributeError):
        setattr(Timers(), Timers.set.__name__, None)
    with pytest.raises(TypeError, match="unhashable"):
        hash(PeerRequest(1, 2, None))


DEEP = """
from kcluster.contract import PeerRequest, Request
from kcluster.network.fabric import Arrives

kinds = (lambda at: Request(at, 0, 9, at, "a", None), lambda at: PeerRequest(1, at, None), Arrives)
for make in kinds:
    chain = None
    for at in range(500):
        chain = (make(at), make(at), chain)
    del chain
"""


def test_build__values_that_end_deep_in_a_structure_leave_memory_sound() -> None:
    """Beyond 50 levels CPython frees objects later, and links them in a header that instances of
    mypyc's acyclic classes lack: the bytes before them were overwritten."""
    environment = {**os.environ, "PYTHONMALLOC": "debug", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", DEEP], env=environment, capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
