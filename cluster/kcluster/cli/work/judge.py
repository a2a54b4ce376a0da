"""The work of `kcluster judge`.

Owns: errors about files, the lines that are printed.  Never: judges (judge/, checks/manners.py).
Kafka: no counterpart.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn

from kcluster.checks.manners import Manner, find_manners
from kcluster.checks.manners_words import manner_lines, manner_values
from kcluster.checks.verdict_facts import VALID
from kcluster.cli.click_tools import fail, print_json, refuse_both
from kcluster.cli.errors import CommandError
from kcluster.config.files.problems import ProblemsError
from kcluster.judge.files import read_history
from kcluster.judge.judgment import Judgment
from kcluster.judge.parts import judge_history
from kcluster.judge.words import judgment_lines, judgment_values
from kcluster.runs.directory import RunError, read_run


def judge_paths(
    paths: tuple[str, ...], verbose: bool, quiet: bool, manners: bool, as_json: bool
) -> None:
    """Judge the history in these files, print the judgement, and exit."""
    refuse_both(verbose, quiet)
    try:
        history = read_history(paths)
        found = _manners(paths) if manners else []
    except (ProblemsError, RunError) as error:
        fail(CommandError(str(error), 2))
    show_judgment(judge_history(history), found if manners else None, verbose, quiet, as_json)


def show_judgment(
    judgment: Judgment, manners: list[Manner] | None, verbose: bool, quiet: bool, as_json: bool
) -> NoReturn:
    """Print a judgement, and the habits of clients if they were asked for; exit."""
    if as_json:
        values = judgment_values(judgment)
        if manners is not None:
            values["manners"] = [manner_values(manner) for manner in manners]
        print_json(values)
    else:
        lines = list(judgment_lines(judgment, verbose=verbose))
        told = [] if quiet else list(manner_lines(manners or ()))
        print("\n".join([*told, *(lines[-1:] if quiet else lines)]))
    sys.exit(0 if judgment.outcome == VALID and not manners else 1)


def _manners(paths: tuple[str, ...]) -> list[Manner]:
    """The habits in the run directories among the paths, of which there must be one."""
    found: list[Manner] = []
    directories = [path for path in map(Path, paths) if path.is_dir()]
    if not directories:
        fail(CommandError("--manners needs a run directory, which has the requests of clients", 2))
    for path in directories:
        record, _ = read_run(path)
        found += find_manners(record.exchanges, record.groups)
    return found
