"""The directory of a run: written when the run ends, read by explain, pages and Spark.

Owns: the names and format of its files: run.json, verdict.json, scenario.yaml, timeline.html, and
one file of JSON lines per table.  An unreadable line is reported with its position and skipped.
Never: interprets a run, leaves a partial file (whole_files.py).
Kafka: no counterpart.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from errno import EINVAL
from pathlib import Path
from time import time
from typing import Final, TypeVar

import msgspec

from kcluster.clients.ledger import Partition
from kcluster.json_types import JsonObject
from kcluster.runs.page.document import page_of_record
from kcluster.runs.record import FORMAT, READABLE, TABLES, RunInfo, RunRecord
from kcluster.runs.whole_files import PRIVATE_DIRECTORY, removed_on_failure, replacing

LATEST: Final = "latest"
INFO: Final = "run.json"
VERDICT: Final = "verdict.json"
SCENARIO: Final = "scenario.yaml"
PAGE: Final = "timeline.html"
MAX_NAME: Final = 60

WRONG_JSON: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""The errors that decoding any bytes as JSON of a type may raise."""


R = TypeVar("R")


class RunError(Exception):
    """The error for a run directory that cannot be used; the message names the file and the
    reason."""


class _BrokerRead(msgspec.Struct):
    id: int
    rack: str | None = None
    port: int | None = None
    kafka_version: str | None = None


class _TopologyRead(msgspec.Struct):
    """The fields of a run's topology that readers rely on."""

    brokers: tuple[_BrokerRead, ...] = ()
    host: str | None = None
    kafka_version: str | None = None


class _LinkRead(msgspec.Struct):
    at_ms: int
    text: str
    note_id: tuple[int, int] | None = None


class _WindowRead(msgspec.Struct):
    kind: str
    partition: Partition
    from_ms: int
    to_ms: int
    is_over: bool
    clients: tuple[str, ...]
    errors: tuple[str, ...]
    reasons: tuple[_LinkRead, ...]


class _AnomalyRead(msgspec.Struct):
    name: str
    partition: Partition
    text: str
    count: int
    client: str
    allowed: str
    at_ms: int
    chain: tuple[_LinkRead, ...]


class _ViolationRead(msgspec.Struct):
    name: str
    subject: str
    text: str
    at_ms: int


class _VerdictRead(msgspec.Struct):
    """The fields of a verdict that readers rely on."""

    outcome: str = ""
    reason: str = ""
    degraded_lines: tuple[str, ...] = ()
    outage_lines: tuple[str, ...] = ()
    sent: int = 0
    acked: int = 0
    failed: int = 0
    unknown: int = 0
    read: int = 0
    windows: tuple[_WindowRead, ...] = ()
    anomalies: tuple[_AnomalyRead, ...] = ()
    violations: tuple[_ViolationRead, ...] = ()


def write_run(parent: str | os.PathLike[str], record: RunRecord) -> Path:
    """Write a run to a new directory below `parent` and link `latest` to it; returns the path.  If
    that is not possible, raises OSError, and leaves no directory."""
    path = new_run(parent, record.info)
    with removed_on_failure(path):
        write_into(path, record)
    link_latest(path)
    return path


def new_run(parent: str | os.PathLike[str], info: RunInfo) -> Path:
    """Make the directory of a run below `parent`, for this user only; returns its path."""
    parent = Path(parent)
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", info.name)[:MAX_NAME] or "run"
    # In a thread of a simulation, datetime.now would be the simulation's time; time() is always the
    # machine's.
    stamp = datetime.fromtimestamp(time(), UTC).strftime("%Y%m%dT%H%M%S")
    return free_directory(parent, f"{name}-{info.clock}-{info.seed}-{stamp}")


def write_into(path: Path, record: RunRecord) -> None:
    """Write all files of a run, each as a whole, in place of older files. run.json and the verdict
    come last, so that they are never newer than the others."""
    encode = msgspec.json.Encoder().encode
    for field, table in TABLES.items():
        with replacing(path / table.file) as out:
            out.writelines(encode(row) + b"\n" for row in getattr(record, field))
    if record.scenario:
        with replacing(path / SCENARIO) as out:
            out.write(record.scenario.encode())
    write_page(path, record)
    write_values(path / VERDICT, record.verdict)
    write_values(path / INFO, record.info)


def write_values(file: Path, values: object) -> None:
    """Replace a JSON file at once: a reader sees the old values or the new ones."""
    with replacing(file) as out:
        out.write(msgspec.json.format(msgspec.json.encode(values)) + b"\n")


def write_page(path: Path, record: RunRecord) -> Path:
    """Write the timeline page of a run into its directory; returns its path."""
    page = path / PAGE
    with replacing(page) as out:
        out.write(page_of_record(record).encode())
    return page


def free_directory(parent: Path, name: str) -> Path:
    """Create a new directory below `parent` whose name begins with `name`."""
    parent.mkdir(parents=True, exist_ok=True)
    for number in range(1, 10_000):
        path = parent / (name if number == 1 else f"{name}-{number}")
        try:
            path.mkdir(PRIVATE_DIRECTORY)
        except FileExistsError:
            continue
        return path
    raise RunError(f"{parent}: 10,000 runs of the same name within one second")


def link_latest(path: Path) -> None:
    """Point the link `latest` beside a run at the run, atomically: other processes may write runs
    there, too."""
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
        try:
            record.scenario = _content(path / SCENARIO).decode(errors="replace")
        except OSError as error:
            problems.append(f"{path / SCENARIO}: {error.strerror}")
    for field, table in TABLES.items():
        file = path / table.file
        if not table.is_new or file.exists():
            setattr(record, field, rows_in(file, table.row, problems))
    return record, problems


def read_verdict(path: Path) -> JsonObject:
    """The verdict of a run as values; RunError if it cannot be read."""
    try:
        content = _content(path / VERDICT)
        msgspec.json.decode(content, type=_VerdictRead)
        return msgspec.json.decode(content, type=JsonObject)
    except (OSError, *WRONG_JSON) as error:
        raise RunError(f"{path / VERDICT}: {_reason(error)}") from None


def find_run(path: str | os.PathLike[str]) -> Path:
    """The directory of a run: `path` itself, or the `latest` run below it.  RunError if there is
    none."""
    path = Path(path)
    if path.is_dir() and not (path / INFO).exists() and (path / LATEST / INFO).exists():
        path = path / LATEST
    if not (path / INFO).exists():
        what = "no such directory" if not path.exists() else f"no run: {INFO} is missing"
        raise RunError(f"{path}: {what}")
    return path


def read_info(path: Path) -> RunInfo:
    """The facts about a run as a whole; RunError if this version cannot read the run's files."""
    file = path / INFO
    try:
        info = msgspec.json.decode(_content(file), type=RunInfo)
        msgspec.convert(info.topology, _TopologyRead)
    except (OSError, *WRONG_JSON) as error:
        raise RunError(f"{file}: {_reason(error)}") from None
    if info.format in READABLE:
        return info
    raise other_format(file, info, f"this version reads formats {READABLE[0]} and {FORMAT}")


def other_format(file: Path, info: RunInfo, needed: str) -> RunError:
    """The error for a run whose format is not the `needed` one, with the way to get a run of the
    newest format."""
    writer = f"kcluster {info.version}" if info.version else "another version of kcluster"
    again = ""
    if info.format < FORMAT:
        again = ": run the scenario again" + (f": {info.replay}" if info.replay else "")
    return RunError(f"{file}: format {info.format}, written by {writer}; {needed}{again}")


def rows_in(path: Path, row_type: type[R], problems: list[str]) -> list[R]:
    """The rows of a file of JSON lines; adds each line that is none to the problems."""
    decode = msgspec.json.Decoder(row_type).decode
    rows: list[R] = []
    try:
        lines = _content(path).split(b"\n")
    except OSError as error:
        problems.append(f"{path}: {error.strerror}")
        return rows
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            rows.append(decode(line))
        except WRONG_JSON as error:
            problems.append(f"{path}:{number}: {_reason(error)}")
    return rows


def _content(file: Path) -> bytes:
    """The bytes of a regular file; a run from elsewhere may have a pipe or a device instead."""
    if file.exists() and not file.is_file():
        raise OSError(EINVAL, "not a regular file")
    return file.read_bytes()


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)
