"""The progress of a Spark job: a bar on a terminal; elsewhere lines now and then, or nothing.

Owns: the bar, the lines, polling Spark for finished tasks.  Never: starts or ends a job.
Kafka: no counterpart.

    with Progress("sends.jsonl", spark) as progress:  # tasks of all active stages
        ...
        progress.part("traces")
    with Progress("runs", spark, done=found, total=count):  # scaled to the missing runs
    with Progress("records") as progress:  # updated by the caller
        progress.update(done, total)
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from rich.console import Console
    from rich.progress import Progress as Bar

POLL_S: Final = 0.3


class Progress:
    """A bar while it is entered.  `spark`: the session whose tasks are polled, None for none.
    `done`, `total`: the counts to which tasks are scaled, None to show tasks.  `unit`: the word
    after the counts.  `console`: None for stderr, if that is a terminal.  `line_every_s`: seconds
    between the lines on stderr where that is no terminal; None for no lines.  `is_quiet`: neither
    a bar nor lines.  `clock`: seconds."""

    def __init__(
        self,
        what: str,
        spark: SparkSession | None = None,
        *,
        done: int = 0,
        total: int | None = None,
        unit: str = "",
        console: Console | None = None,
        line_every_s: float | None = None,
        is_quiet: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._is_quiet = is_quiet
        self._what = what
        self._spark = spark
        self._found = self._done = done
        self._wanted = self._total = total
        self._unit = unit or ("tasks" if total is None and spark is not None else "")
        self._console = console
        self._line_every_s = line_every_s
        self._clock = clock
        self._bar: Bar | None = None
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Progress:
        self._line_due_s = self._clock() + (self._line_every_s or 0)
        if self._is_quiet or (self._console is None and not sys.stderr.isatty()):
            return self
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        from kcluster.plain_output import plain_console

        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[counts]}"),
            TimeElapsedColumn(),
            console=self._console or plain_console(to_stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(self._what, total=None, counts="")
        self._bar.start()
        self._show()
        if self._spark is not None:
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is None:
            return
        self._is_over.set()
        if self._spark is not None:
            self._thread.join()
        self._bar.stop()
        self._bar = None

    def part(self, what: str) -> None:
        """Start the next part of the job."""
        self._what = what
        self._done, self._total = self._found, self._wanted
        self._show()

    def update(self, done: int, total: int | None = None, more: str = "") -> None:
        """Show these counts.  `total`: None if unknown; `more`: text after the counts."""
        self._done, self._total = done, total
        self._show(more)

    def _show(self, more: str = "") -> None:
        of = "" if self._total is None else f" of {self._total:,}"
        counts = f"{self._done:,}{of} {self._unit}".rstrip() if self._done or of else ""
        counts += f", {more}" if more else ""
        if self._bar is None:
            self._print_line(counts)
            return
        self._bar.update(
            self._task,
            description=self._what,
            completed=self._done,
            total=self._total,
            counts=counts,
            refresh=True,
        )

    def _print_line(self, counts: str) -> None:
        """Print the counts if a line is due."""
        if self._line_every_s is None or self._is_quiet:
            return
        if self._clock() >= self._line_due_s:
            self._line_due_s = self._clock() + self._line_every_s
            print(f"kcluster: {self._what}: {counts}", file=sys.stderr, flush=True)

    def _watch(self) -> None:
        while not self._is_over.wait(POLL_S):
            assert self._spark is not None
            done, all_ = tasks_of(self._spark)
            if all_ and self._wanted is None:
                self.update(done, all_)
            elif all_ and self._wanted is not None:
                share = (self._wanted - self._found) * done // all_
                self.update(max(self._done, self._found + share), self._wanted)


def tasks_of(spark: SparkSession) -> tuple[int, int]:
    """(done, all) tasks of the active stages of all jobs; (0, 0) between stages."""
    done = all_ = 0
    tracker = spark.sparkContext.statusTracker()
    for stage in tracker.getActiveStageIds():
        info = tracker.getStageInfo(stage)
        if info is not None:
            done += info.numCompletedTasks
            all_ += info.numTasks
    return done, all_
