"""The input and output of `kcluster import`.

Owns: the sources of a cluster, the output file, exit codes.  Never: knows a format of Kafka's tools
(importing/), makes a topology or a scenario (import_topology.py, import_logs.py).
Kafka: no counterpart.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

import click

from kcluster.config.files.problems import Problem, ProblemsError
from kcluster.config.topology.specs import split_address
from kcluster.importing.admin import AdminError, read_cluster
from kcluster.importing.described import DescribedCluster, LeftOut
from kcluster.importing.properties import read_properties
from kcluster.importing.tool_output import ToolText, read_tools
from kcluster.runs.whole_files import SHARED, replacing

INVALID: Final = 2
FAILED: Final = 1


class Sources(NamedTuple):
    """The sources of a cluster's description; at most one of bootstrap, topics, properties."""

    bootstrap: str | None
    topics: str | None
    configs: Sequence[str]
    brokers: Sequence[str]
    properties: Sequence[str]


def cluster_of(sources: Sources) -> DescribedCluster | None:
    """The cluster that the sources describe, if any."""
    if sources.bootstrap is not None:
        return _from_cluster(sources.bootstrap)
    if sources.topics is not None:
        return _from_files(sources.topics, sources.configs, sources.brokers)
    return _from_properties(sources.properties) if sources.properties else None


def _from_cluster(bootstrap: str) -> DescribedCluster:
    for address in bootstrap.split(","):
        try:
            _, port = split_address(address)
        except ValueError:
            port = 0
        if not port:
            raise click.UsageError(f"--bootstrap {address}: not an address like localhost:9092.")
    try:
        return read_cluster(bootstrap)
    except AdminError as error:
        fail(str(error), FAILED)


def _from_files(topics: str, configs: Sequence[str], brokers: Sequence[str]) -> DescribedCluster:
    def read(path: str) -> ToolText:
        return ToolText(path, text_of(path))

    cluster, problems = read_tools(read(topics), [*map(read, configs)], [*map(read, brokers)])
    if problems:
        refuse(problems)
    return cluster


def _from_properties(paths: Sequence[str]) -> DescribedCluster:
    files = [ToolText(path, text_of(path)) for path in paths]
    cluster = read_properties(files)
    problems = [problem for file in files for problem in file.problems]
    if problems:
        refuse(problems)
    return cluster


def text_of(path: str) -> str:
    """The text of a file; ends the process with one line if it has none."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        fail(f"{path}: cannot be read: {error.strerror}", INVALID)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        fail(f"{path}:{line}:{column}: not UTF-8", INVALID)


def report(left_out: Sequence[LeftOut]) -> None:
    """Show the parts that are not taken over."""
    for entry in left_out:
        print(f"not taken over: {entry}", file=sys.stderr)


def check_output(output: str | None, force: bool) -> None:
    """Refuse to overwrite a file, unless forced."""
    if output is not None and os.path.exists(output) and not force:
        fail(f"{output} exists; --force overwrites it", INVALID)


def write(text: str, output: str | None, summary: str) -> None:
    """Write the file with a line about it, or print the text."""
    if output is None:
        print(text, end="")
        return
    try:
        with replacing(Path(output), SHARED) as file:
            file.write(text.encode())
    except OSError as error:
        fail(f"{output}: cannot be written: {error.strerror}", FAILED)
    print(f"{output}: {summary}", file=sys.stderr)


def refuse(problems: Sequence[Problem]) -> NoReturn:
    """End the process with the problems of files."""
    print(ProblemsError(problems), file=sys.stderr)
    sys.exit(INVALID)


def fail(text: str, code: int) -> NoReturn:
    """End the process with one line."""
    print(f"kcluster: {text}", file=sys.stderr)
    sys.exit(code)
