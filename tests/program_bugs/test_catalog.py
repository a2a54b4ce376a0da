"""The catalogue has every program, and each program says what its find must say."""

from __future__ import annotations

import pytest

from tools.program_bugs.catalog import CATALOG, OF_THE_REVIEW, PROGRAMS
from tools.program_bugs.sample import SAMPLE


def test_catalog__has_every_program() -> None:
    files = {file.stem for file in PROGRAMS.glob("*.py")} - {"shop"}
    assert files == set(CATALOG)
    assert set(OF_THE_REVIEW) | set(SAMPLE) <= set(CATALOG)


@pytest.mark.parametrize("name", CATALOG)
def test_catalog__the_words_of_a_find_are_those_of_the_program(name: str) -> None:
    program = CATALOG[name]
    assert f'"{program.expects}"' in program.program
    assert program.bug.endswith(".")
    assert "@twins" in program.program


def test_catalog__knows_the_library_of_a_program() -> None:
    assert CATALOG["pool"].library == "kafka-python"
    assert CATALOG["doubled"].library == CATALOG["tasks"].library == "aiokafka"
