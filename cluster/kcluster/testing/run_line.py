"""The line of a report that names the run directory of a failed test.

Owns: writing that directory, or naming the reason why it could not be written.  Never: knows
pytest, chooses the place (reports.py).  Kafka: no counterpart.
"""

from __future__ import annotations

from pathlib import Path

from kcluster.runs.directory import write_run
from kcluster.runs.record import RunRecord


def run_line(parent: Path, record: RunRecord) -> str:
    """Write a run to a new directory below `parent`; returns the line that names it."""
    try:
        directory = write_run(parent, record)
    except OSError as error:
        where = error.filename or parent  # a full disk is reported without a name
        why = f"{where}: {error.strerror}"
        return f"run directory: not written: {why} (kcluster_runs in the ini file names another)"
    return f"run directory: {directory}  (kcluster explain {directory})"
