"""How many runs a search needs to find the bug of a program, and whether its twin is left in peace.

Owns: one such search, as a process of pytest.  Never: prints, keeps a result (results.py does).
Kafka: no counterpart.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from tools.program_bugs.catalog import ProgramBug
from tools.program_bugs.plugin import FILE_VARIABLE, Outcome

ROOT: Final = Path(__file__).resolve().parents[2]
BUG: Final = "bug"
TWIN: Final = "fixed"


class Search(Struct, frozen=True):
    """What is searched, and how.  `kind`: BUG or TWIN; `plain`: faults at any time."""

    name: str
    kind: str
    runs: int
    seed: int = 1
    plain: bool = False


class Measured(Struct, frozen=True):
    """The outcome of a search.  `run`: the run that failed, from 1; 0: none did.  `runs`: how many
    there were.  `cpu_s`: of everything, also pytest's start and the shrinking.  `problem`: why
    there was no search, "" if there was one."""

    search: Search
    run: int = 0
    runs: int = 0
    cpu_s: float = 0.0
    reason: str = ""
    sentence: str = ""
    steps_before: int = 0
    steps: int = 0
    problem: str = ""

    def is_right(self, program: ProgramBug) -> bool:
        """Whether the bug was found, by its own words."""
        return bool(self.run) and program.expects in self.reason


def measure(program: ProgramBug, search: Search) -> Measured:
    """Search a program, or its twin."""
    with tempfile.TemporaryDirectory() as folder:
        outcome_file = Path(folder) / "outcome.json"
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(ROOT / "cluster"), str(ROOT))),
            FILE_VARIABLE: str(outcome_file),
        }
        before_s = _children_s()
        ended = subprocess.run(
            _command(program, search), cwd=folder, env=environment, capture_output=True, text=True
        )
        cpu_s = round(_children_s() - before_s, 1)
        if not outcome_file.exists():
            return Measured(search, cpu_s=cpu_s, problem=ended.stdout + ended.stderr)
        outcome = msgspec.json.decode(outcome_file.read_bytes(), type=Outcome)
    facts = outcome.facts
    if facts is None or not facts.runs:
        return Measured(search, cpu_s=cpu_s, problem=outcome.failed or "there was no run")
    return Measured(
        search,
        run=facts.run,
        runs=facts.runs,
        cpu_s=cpu_s,
        reason=facts.reason,
        sentence=facts.sentence,
        steps_before=facts.steps_before,
        steps=facts.steps,
    )


def _command(program: ProgramBug, search: Search) -> list[str]:
    plain = ["--kcluster-search-plain"] if search.plain else []
    return [
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
        *("-p", "tools.program_bugs.plugin", str(program.file), "-k", search.kind),
        *("--kcluster-search", str(search.runs), "--kcluster-seed", str(search.seed), *plain),
    ]


def _children_s() -> float:
    """The CPU time of the processes that have ended."""
    times = os.times()
    return times.children_user + times.children_system
