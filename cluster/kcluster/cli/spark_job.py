"""The common part of the Spark jobs of the command line: runs, a session, errors in one line.

Owns: the course of a job over run directories, the form of its errors, Ctrl-C.  Never: does a job's
work, imports pyspark before a session is needed.
"""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from kcluster.cli.click_tools import fail
from kcluster.cli.errors import CommandError
from kcluster.pipeline.session import SMALL, SMALL_BYTES, SessionError, open_session, why
from kcluster.pipeline.tables import RunDirectory, Tables, find_runs
from kcluster.runs.directory import RunError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkJob(NamedTuple):
    """A running job.  `problems`: the unreadable parts of the runs."""

    spark: SparkSession
    runs: list[RunDirectory]
    tables: Tables
    problems: list[str]


@contextmanager
def spark_job(paths: tuple[str, ...], master: str, verbose: bool) -> Iterator[SparkJob]:
    """Find the runs and open a session for the body.  Errors of any of them end the process with
    one line and exit code 2."""
    try:
        runs, problems = find_runs(paths)
    except RunError as error:
        refuse(str(error))
    size_bytes = sum(file.stat().st_size for run in runs for file in run.path.glob("*.jsonl"))
    with spark_session(master, verbose, size_bytes) as spark:
        tables = Tables(spark, runs)
        try:
            yield SparkJob(spark, runs, tables, problems)
        except RunError as error:
            refuse(str(error))
        finally:
            tables.close()


@contextmanager
def spark_session(
    master: str, verbose: bool, size_bytes: int, needs: Sequence[str] = ()
) -> Iterator[SparkSession]:
    """A session for data of this size, whose workers get `needs`; errors of Spark and of files end
    the process with one line and exit code 2."""
    try:
        spark = open_session(master, SMALL if size_bytes <= SMALL_BYTES else None, verbose, needs)
    except SessionError as error:
        refuse(str(error))
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield spark
    except (PySparkException, Py4JError) as error:
        refuse(why(error))
    except OSError as error:
        if error.filename is None:
            raise  # not an error of a file: the reader has closed the pipe
        refuse(f"{error.filename}: {error.strerror}")


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt in the body, in place of pyspark's handler, which would
    call Java while another call's answer is being read."""
    before = signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _interrupt(signum: int, frame: object) -> NoReturn:
    logging.disable()  # py4j logs every error that ends a call
    raise KeyboardInterrupt


def report_problems(job: SparkJob) -> None:
    """Show the problems of unreadable parts on stderr."""
    report((*job.problems, *job.tables.problems))


def report(problems: Iterable[str]) -> None:
    """Show problems on stderr."""
    for problem in problems:
        print(f"kcluster: {problem}; the rest is used", file=sys.stderr)


def refuse(text: str) -> NoReturn:
    """Show one line on stderr and exit with code 2."""
    fail(CommandError(text, 2))
