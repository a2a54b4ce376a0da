"""The stand-ins of the course's site: each gives what the package gives, and so do whole runs."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from random import Random
from types import ModuleType

import networkx
import pytest

from kcluster.json_types import JsonObject
from kcluster.learn import in_browser
from kcluster.protocol.records.crc import crc32c_of
from kcluster.scenario.library import LibraryKind, library_path
from tools.course_site.build import NOT_NEEDED, PACKAGE, PURE, ROOMS_LEFT_OUT, STAND_INS, WHEELS

IMPORT = re.compile(r"^ *(?:import (?=[\w.]+(?:$| as|  #))|from (?=[\w.]+ import ))(\w+)", re.M)
FOLDER = Path(__file__).parents[2] / "tools/course_site/stand_ins"
LESSONS = (6, 9)
"""A network that is cut; transactions."""
SCENARIO = "scram_user_unknown"
ASKS = f"""
import hashlib, json, sys
del hashlib.pbkdf2_hmac
import hashlib_openssl, crc32c, networkx
from kcluster.json_types import JsonObject
from kcluster.learn import in_browser
lessons = [in_browser.lesson(number) for number in {LESSONS}]
print(json.dumps([*lessons, in_browser.run(sys.stdin.read(), 'x.yaml')]))
print(json.dumps([each.__file__ for each in (hashlib_openssl, crc32c, networkx)]))
"""


def test_packages__the_site_has_each_or_says_why_not() -> None:
    imported = {
        name
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0] not in ROOMS_LEFT_OUT
        for name in IMPORT.findall(path.read_text("utf-8"))
    }
    packages = imported - sys.stdlib_module_names - {"kcluster"}
    assert packages == {*WHEELS, *PURE, *STAND_INS, *NOT_NEEDED}


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> ModuleType:
    """The stand-in with this name."""
    name: str = request.param
    monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(FOLDER)
    module = __import__(name)
    monkeypatch.delitem(sys.modules, name)
    return module


@pytest.mark.parametrize("stand_in", ["crc32c"], indirect=True)
def test_crc32c__any_length_and_in_parts(stand_in: ModuleType) -> None:
    rng = Random(3)
    for size in (*range(9), 61, 1000):
        data = rng.randbytes(size)
        whole = stand_in.crc32c(memoryview(data))
        assert whole == crc32c_of(data)
        assert stand_in.crc32c(data[size // 3 :], stand_in.crc32c(data[: size // 3])) == whole


@pytest.mark.parametrize("stand_in", ["networkx"], indirect=True)
def test_networkx__the_same_components(stand_in: ModuleType) -> None:
    rng = Random(5)
    for size in range(12):
        edges = [(rng.randrange(size), rng.randrange(size)) for _ in range(size + size // 2)]
        found = []
        for module in (networkx, stand_in):
            graph = module.DiGraph()
            graph.add_nodes_from(range(size))
            graph.add_edges_from(iter(edges))
            components = module.strongly_connected_components(graph)
            found.append(sorted(sorted(each) for each in components))
        assert found[0] == found[1]


@pytest.mark.parametrize("stand_in", ["hashlib_openssl"], indirect=True)
@pytest.mark.parametrize("name", ["sha256", "sha512"])
def test_pbkdf2__one_block_and_several(stand_in: ModuleType, name: str) -> None:
    for length in (None, 1, 64, 150):
        expected = hashlib.pbkdf2_hmac(name, b"secret", b"salt", 7, length)
        assert stand_in.pbkdf2_hmac(name, b"secret", b"salt", 7, length) == expected


def test_runs__are_the_same_to_the_byte() -> None:
    path = library_path(LibraryKind.SCENARIO, SCENARIO)
    assert path is not None
    text = path.read_text("utf-8")
    paths = (str(FOLDER), str(Path(in_browser.__file__).parents[2]))
    done = subprocess.run(
        (sys.executable, "-c", ASKS),
        input=text,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=True,
    )
    runs, files = map(json.loads, done.stdout.splitlines())
    assert {Path(file).parent for file in files} == {FOLDER}
    expected = [*map(in_browser.lesson, LESSONS), in_browser.run(text, "x.yaml")]
    for with_stand_ins, real in zip(map(json.loads, runs), map(json.loads, expected), strict=True):
        assert without_wall_time(with_stand_ins) == without_wall_time(real)


def without_wall_time(run: JsonObject) -> JsonObject:
    """An answer without the last line of the report, which says how long the run took."""
    return {**run, "lines": run.get("lines", "").rpartition("\n")[0]}
