"""Tests mirror the folders of the source.

Owns: the folders of tests/ that belong to no folder of the source.  Never: says what a folder's
tests are (their heads do).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE, TESTS = ROOT / "cluster/kcluster", ROOT / "tests"

BESIDE_THE_ROOMS = {
    "bench": "of bench/ at the top",
    "compare": "of compare/ at the top",
    "compat": "programs and suites of others, against a whole cluster",
    "foreign_clients": "kafka-python and librdkafka, against a whole cluster",
    "course_site": "of tools/course_site/",
    "fuzz": "made-up input for whatever reads input",
    "helpers": "of helpers/ at the top",
    "mutants": "of tools/mutants/",
    "program_bugs": "of tools/program_bugs/",
    "property": "random histories of a whole cluster, and what they must find",
    "rig": "what tests of several rooms build and ask; no tests",
    "world/bodies": "programs that the tests of world/ run; no tests",
}
"""Folders of tests/ with no counterpart, and why they have none."""


def folders(root: Path, pattern: str = "*.py") -> set[str]:
    """The folders below `root`, as `broker/serving`, which hold such files."""
    found = {path.parent.relative_to(root).as_posix() for path in root.rglob(pattern)}
    return found - {"."}


def misplaced(source: set[str], tests: set[str]) -> Iterator[str]:
    """Modules and test files are given as `broker/serving/reading`, `broker/serving/test_reading`.
    A test that has the name of a module of its room lies beside that module's counterpart."""
    homes: dict[tuple[str, str], set[str]] = defaultdict(set)
    for module in source:
        folder, _, name = module.rpartition("/")
        homes[folder.split("/")[0], name].add(folder)
    for test in sorted(tests):
        folder, _, name = test.rpartition("/")
        may = homes.get((folder.split("/")[0], name.removeprefix("test_")), {folder})
        if folder not in may:
            yield f"tests/{test}.py: its subject is in {' or '.join(sorted(may))}"


def names(root: Path, pattern: str) -> set[str]:
    return {path.relative_to(root).with_suffix("").as_posix() for path in root.rglob(pattern)}


def test_mirror__each_folder_of_the_source_has_tests() -> None:
    tested = folders(TESTS, "test_*.py")
    untested = [
        folder
        for folder in sorted(folders(SOURCE))
        if not any(f"{test}/".startswith(f"{folder}/") for test in tested)
    ]
    assert untested == []


def test_mirror__each_folder_of_tests_has_a_source() -> None:
    beside = tuple(f"{folder}/" for folder in BESIDE_THE_ROOMS)
    extra = {folder for folder in folders(TESTS) if not f"{folder}/".startswith(beside)}
    assert extra <= folders(SOURCE)
    assert BESIDE_THE_ROOMS.keys() <= folders(TESTS) - folders(SOURCE)


def test_mirror__a_test_lies_where_the_module_of_its_name_does() -> None:
    assert list(misplaced(names(SOURCE, "*.py"), names(TESTS, "test_*.py"))) == []


def test_mirror__the_map_of_helpers_names_each() -> None:
    text = (TESTS / "README.md").read_text("utf-8")
    named = set(re.findall(r"`([\w/]+(?:\.py|/))`", text))
    helpers = {
        path.relative_to(TESTS).as_posix()
        for path in TESTS.rglob("*.py")
        if not path.name.startswith(("test_", "conftest", "__init__"))
    }
    assert [name for name in sorted(named) if not (TESTS / name).exists()] == []
    folders_named = tuple(name for name in named if name.endswith("/"))
    assert sorted(x for x in helpers - named if not x.startswith(folders_named)) == []


def test_mirror__a_test_in_the_wrong_folder_is_caught() -> None:
    source = {"broker/node", "broker/serving/reading", "broker/share/window"}
    tests = {"broker/test_reading", "broker/share/test_window", "broker/test_story"}
    found = list(misplaced(source, tests))
    assert found == ["tests/broker/test_reading.py: its subject is in broker/serving"]
