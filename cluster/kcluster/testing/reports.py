"""The clusters' part of a failed test's report in pytest.

Owns: the choice of clusters in a report, the place of run directories.  Never: makes the report of
one cluster (reported.py does).  Kafka: no counterpart.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from kcluster.packaged import is_packaged
from kcluster.plain_output import escaped

RUNS_DIRECTORY: Final = ".kcluster/runs"
_REFUSALS: Final = (
    ("kcluster.operations.errors", "ClusterError"),
    ("kcluster.config.files.problems", "ProblemsError"),
    ("kcluster.scenario.language.loader", "ScenarioError"),
)
_HANDLES: Final = pytest.StashKey[list[Any]]()
"""The clusters that an item's report covers."""
PENDING_RUNS: Final = pytest.StashKey[Path]()
"""The place of an item's run directories until it is known whether its report will be shown."""
ALL_LOGS: Final = 2
"""The verbosity, -vv, at which log lines of client libraries are no longer folded."""


def remember(node: pytest.Item, cluster: object) -> None:
    """Let the reports of this node's tests cover this cluster."""
    handles = node.stash.setdefault(_HANDLES, [])
    if cluster not in handles:
        handles.append(cluster)


def begin_test(item: pytest.Item) -> None:
    """Begin a test for the shared clusters that it may use, which are judged from now on."""
    for node in item.listchain():
        for cluster in node.stash.get(_HANDLES, []):
            cluster.begin_test()


def end_at_users_line(error: BaseException) -> None:
    """Cut off the frames below the test's line for a call that kcluster refuses: the text names the
    fault, which is not in those frames."""
    if not isinstance(error, tuple(_refusals())):
        return
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        if is_packaged(frame.tb_next.tb_frame.f_code.co_filename):
            frame.tb_next = None
        frame = frame.tb_next


def _refusals() -> Iterator[type[BaseException]]:
    """The exceptions that refuse a test's request, from modules that are already imported."""
    for module, name in _REFUSALS:
        if module in sys.modules:
            yield getattr(sys.modules[module], name)


def add_stories(item: pytest.Item, report: pytest.TestReport) -> bool:
    """Add the story of its clusters to a failed test's report, and write run directories.  Returns
    whether there were any."""
    parent = item.stash.get(PENDING_RUNS, None) or runs_directory(item.config)
    handles = [x for node in item.listchain() for x in node.stash.get(_HANDLES, [])]
    for cluster in {id(handle): handle for handle in handles}.values():
        if cluster.last_verdict is not None:
            _break_lines(report.longrepr, repr(cluster.last_verdict))
        report.sections.append(("kcluster", escaped("\n".join(cluster.story(parent)))))
        cluster.after_failure()
    return bool(handles)


def _break_lines(longrepr: object, text: str) -> None:
    """Show all lines of `text` in place of the value of `assert value`, which pytest shortens to
    one line."""
    entries = getattr(getattr(longrepr, "reprtraceback", None), "reprentries", [])
    first, *others = text.split("\n")
    shown = f"assert {first}"
    for entry in entries:
        lines = getattr(entry, "lines", [])
        at = next((i for i, x in enumerate(lines) if x.startswith("E") and shown in x), None)
        if at is None or not others:
            continue
        indent = lines[at].index(shown)
        # pytest continues with `+ where ... = ...`, which repeats the text.
        rest = [x for x in lines[at + 1 :] if not x.lstrip("E ").startswith("+")]
        own = [lines[at][:indent] + shown, *(f"E{' ' * (indent - 1)}{x}" for x in others)]
        entry.lines = [*lines[:at], *own, *rest]


def runs_directory(config: pytest.Config) -> Path:
    """The directory for run directories.  Like pytest's cache, `.kcluster` has a file that makes
    git ignore it."""
    named = config.getini("kcluster_runs")
    runs = Path(config.rootpath, named)
    ignored = runs.parent / ".gitignore"
    if named == RUNS_DIRECTORY and not ignored.exists():
        with suppress(OSError):  # the report shows it if runs cannot be written
            runs.mkdir(parents=True, exist_ok=True)
            ignored.write_text("# Created by kcluster.\n*\n")
    return runs
