"""The directory of a run: written when the run ends, read by explain, pages and Spark.

Owns: the names and format of its files: run.json, verdict.json, scenario.yaml, timeline.html, and
one file of JSON lines per table.  An unreadable line is reported with its position and skipped.
Never: interprets a run.
Kafka: no counterpart.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from pathlib import Path
from time import time
from typing import Any, Final

import msgspec

from kcluster.runs.page import page_of
from kcluster.runs.record import ADDED_TABLES, FORMAT, TABLES, RunInfo, RunRecord

LATEST: Final = "latest"
INFO: Final = "run.json"
VERDICT: Final = "verdict.json"
SCENARIO: Final = "scenario.yaml"
PAGE: Final = "timeline.html"
MAX_NAME: Final = 60


class RunError(Exception):
    """A run directory cannot be used; the message names the file and the reason."""


def write_run(parent: str | os.PathLike[str], record: RunRecord) -> Path:
    """Write a run to a new directory below `parent` and link `latest` to it; returns the path."""
    path = new_run(parent, record.info)
    write_into(path, record)
    link_latest(path)
    return path


def new_run(parent: str | os.PathLike[str], info: RunInfo) -> Path:
    """Make the directory of a run below `parent`; returns its path."""
    parent = Path(parent)
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", info.name)[:MAX_NAME] or "run"
    # datetime.now would be that of the simulation in a thread of one; time() stays the machine's.
    stamp = datetime.fromtimestamp(time(), UTC).strftime("%Y%m%dT%H%M%S")
    return free_directory(parent, f"{name}-{info.clock}-{info.seed}-{stamp}")


def write_into(path: Path, record: RunRecord) -> None:
    """Write all files of a run; those that are there are replaced."""
    write_values(path / INFO, record.info)
    write_values(path / VERDICT, record.verdict)
    if record.scenario:
        (path / SCENARIO).write_text(record.scenario)
    encode = msgspec.json.Encoder().encode
    for field, (file, _) in TABLES.items():
        with open(path / file, "wb") as out:
            out.writelines(encode(row) + b"\n" for row in getattr(record, field))
    write_page(path, record)


def write_values(file: Path, values: Any) -> None:
    """Replace a JSON file at once: a reader sees the old values or the new ones."""
    fresh = file.with_name(f".{file.name}.new")
    fresh.write_bytes(msgspec.json.format(msgspec.json.encode(values)) + b"\n")
    os.replace(fresh, file)


def write_page(path: Path, record: RunRecord) -> Path:
    """Write the timeline page of a run into its directory; returns its path."""
    page = path / PAGE
    page.write_text(page_of(record), "utf-8")
    return page


def free_directory(parent: Path, name: str) -> Path:
    """Create a directory below `parent` whose name begins with `name`, and that was not there."""
    parent.mkdir(parents=True, exist_ok=True)
    for number in range(1, 10_000):
        path = parent / (name if number == 1 else f"{name}-{number}")
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return path
    raise RunError(f"{parent}: 10,000 runs of the same name within one second")


def link_latest(path: Path) -> None:
    """Point `latest` beside a run at it, atomically: other processes may be writing runs here
    too."""
    parent = path.parent
    fresh = parent / f".{LATEST}-{os.getpid()}-{path.name}"
    fresh.symlink_to(path.name)
    os.replace(fresh, parent / LATEST)


def read_run(path: str | os.PathLike[str]) -> tuple[RunRecord, list[str]]:
    """A run, and the problems in its files as `file:line: reason`.  RunError if there is no run, or
    its format differs."""
    path = find_run(path)
    record = RunRecord(read_info(path))
    problems: list[str] = []
    try:
        record.verdict = read_verdict(path)
    except RunError as error:
        problems.append(str(error))
    if (path / SCENARIO).exists():
        record.scenario = (path / SCENARIO).read_text(errors="replace")
    for field, (file, row_type) in TABLES.items():
        if field not in ADDED_TABLES or (path / file).exists():
            setattr(record, field, _rows(path / file, row_type, problems))
    return record, problems


def read_verdict(path: Path) -> dict[str, Any]:
    """The verdict of a run as values; RunError if it cannot be read."""
    try:
        return msgspec.json.decode((path / VERDICT).read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.DecodeError) as error:
        raise RunError(f"{path / VERDICT}: {error}") from None


def find_run(path: str | os.PathLike[str]) -> Path:
    """The directory of a run: this one, or the `latest` below it.  RunError if there is none."""
    path = Path(path)
    if path.is_dir() and not (path / INFO).exists() and (path / LATEST / INFO).exists():
        path = path / LATEST
    if not (path / INFO).exists():
        what = "no such directory" if not path.exists() else f"no run: {INFO} is missing"
        raise RunError(f"{path}: {what}")
    return path


def read_info(path: Path) -> RunInfo:
    """The facts about a run as a whole; RunError if this version cannot read the rest."""
    file = path / INFO
    try:
        info = msgspec.json.decode(file.read_bytes(), type=RunInfo)
    except (OSError, msgspec.DecodeError) as error:
        raise RunError(f"{file}: {error}") from None
    if info.format == FORMAT:
        return info
    writer = f"kcluster {info.version}" if info.version else "another version of kcluster"
    again = ""
    if info.format < FORMAT:
        again = ": run the scenario again" + (f": {info.replay}" if info.replay else "")
    text = f"format {info.format}, written by {writer}; this version reads format {FORMAT}{again}"
    raise RunError(f"{file}: {text}")


def _rows(path: Path, row_type: Any, problems: list[str]) -> list[Any]:
    decode = msgspec.json.Decoder(row_type).decode
    rows: list[Any] = []
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        problems.append(f"{path}: {error.strerror}")
        return rows
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            rows.append(decode(line))
        except msgspec.DecodeError as error:
            problems.append(f"{path}:{number}: {error}")
    return rows
