"""Which build is under test: all pure Python, or all that pyproject.toml names as C extensions."""

from __future__ import annotations

import os
import tomllib
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import cluster

ROOT = Path(__file__).parents[1]


def compiled_modules() -> list[str]:
    """The modules that the wheel's build hook compiles."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    paths = project["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["mypyc"]["include"]
    return [path.removesuffix(".py").replace("/", ".") for path in paths]


def test_build__the_hot_modules_are_what_the_build_says() -> None:
    suffixes = (".py",) if cluster.build() == "pure Python" else tuple(EXTENSION_SUFFIXES)
    files = {name: str(import_module(name).__file__) for name in compiled_modules()}
    assert [file for file in files.values() if not file.endswith(suffixes)] == []


def test_build__it_is_the_one_that_was_meant_to_be_tested() -> None:
    assert os.environ.get("KCLUSTER_BUILD", cluster.build()) == cluster.build()
