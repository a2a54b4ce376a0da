"""The reports of the clusters of all fixtures about their runs: verdicts, ledgers, failed tests.

Owns: judging a run, the report of a failed test, its run directory.  Never: knows which clock runs,
finds anomalies (checks/ does).  Kafka: no counterpart.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from kcluster.checks.manners import Manner, recorded_manners
from kcluster.checks.manners_words import manner_lines, require_good_manners
from kcluster.checks.processing import AnyProblem, Processed
from kcluster.checks.verdict import Verdict
from kcluster.clients.ledger import Ledger
from kcluster.config.files.problems import nearest
from kcluster.evidence.recorder import Recorder
from kcluster.runs.build_record import add_processing, record_of
from kcluster.runs.record import RunInfo
from kcluster.testing.callers import CallingLine
from kcluster.testing.processed import ProcessedLedger, check_topic, judged_processing
from kcluster.testing.run_line import run_line
from kcluster.testing.story import client_lines, problem_lines, story_lines
from kcluster.testing.thread_deaths import ThreadDeaths, death_lines
from kcluster.version import __version__

T = TypeVar("T")


class ReportedRun(ABC):
    """The reports that every handle makes about its run."""

    ledger: Ledger
    test: str
    seed: int

    def _begin_report(self) -> None:
        self.test_began_ms: int | None = None
        """The beginning of the present test, in a cluster that tests share; None for the first."""
        self.last_verdict: Verdict | None = None
        """The last verdict that the test got."""
        self.calling_lines: list[CallingLine] = []
        self.threads_inside: set[int] = set()
        self.connection_lines: list[tuple[int, str]] = []
        """Connections that brokers closed or refused: (at_ms, line)."""
        self.deaths = ThreadDeaths(self.clock_ms)
        """The deaths of the test's threads, while its cluster is open."""
        self._ledgers: list[ProcessedLedger] = []
        self.replay = ""
        """The command that runs the test again, if its name alone is not enough."""

    @abstractmethod
    def clock_ms(self) -> int:
        """The cluster's time at this moment."""

    def is_caller_dying(self) -> bool:
        """Whether the calling thread belongs to an app that was killed, and has no effect."""
        return False

    def begin_test(self) -> None:
        """Begin another test that shares this cluster: verdicts judge from now on."""
        self.test_began_ms = self.clock_ms()

    @property
    def origin_ms(self) -> int:
        """The time from which the lines of a report count: the test's beginning, or the
        cluster's."""
        return self.recorder.first_ms if self.test_began_ms is None else self.test_began_ms

    @abstractmethod
    def _judge(self, since_ms: int | None = None) -> Verdict:
        """The verdict since a moment, or since the test began; made in the thread of the nodes."""

    @abstractmethod
    def _moment_ms(self, since: str | int | None) -> int | None:
        """A moment in ms of the cluster's clock, in the thread of the nodes."""

    def _between_steps(self, function: Callable[[], T]) -> T:
        """Call a function while no node runs."""
        return function()

    def verdict(self, since: str | int | None = None) -> Verdict:
        """The verdict on every record so far; outside clients are known from the brokers.  True if
        valid; the applications' use of their records is not judged (`processed` does that).

        `since`: judge only records and events since this moment: a time back (`30s`), the number of
        an event, or a result of `mark()`.  In a cluster that tests share, it is by default the
        moment when this test began.
        """
        self.last_verdict = self._between_steps(lambda: self._judge(self._moment_ms(since)))
        return self.last_verdict

    def manners(self, since: str | int | None = None) -> list[Manner]:
        """The bad habits of the test's clients; `since`: as for `verdict`."""
        return self._between_steps(lambda: self._manners(self._moment_ms(since)))

    def check_manners(self) -> None:
        """Raise BadMannersError if a client has a bad habit."""
        __tracebackhide__ = True
        require_good_manners(self.manners())

    def _manners(self, since_ms: int | None = None) -> list[Manner]:
        return recorded_manners(self.recorder, self.test_began_ms if since_ms is None else since_ms)

    def processed(self, topic: str, group: str = "") -> ProcessedLedger:
        """A ledger for the records of `topic` that the application processes: `add` each record,
        then `check`.  `group`: the group whose commits explain problems, by default all groups that
        read it.  In virtual time, records that the built-in consumers have read count as
        processed."""
        ledger = ProcessedLedger(
            topic,
            group,
            self.clock_ms,
            lambda: self.recorder.first_ms,
            self._problems_of,
            self.is_caller_dying,
        )
        self._ledgers.append(ledger)
        return ledger

    def _problems_of(self, ledger: ProcessedLedger) -> list[AnyProblem]:
        problems = self._between_steps(lambda: self._judged_processing(ledger)[1])
        assert self.recorder.judged is not None, "just judged"
        topics = list(dict.fromkeys(topic for topic, _ in self.recorder.judged.logs))
        check_topic(ledger.topic, topics, nearest(ledger.topic, topics))
        return problems

    def _judged_processing(
        self, ledger: ProcessedLedger
    ) -> tuple[list[Processed], list[AnyProblem]]:
        """The processed records, and the problems."""
        self._judge()
        reported = [*ledger.entries(), *self._processed_inside(ledger.topic)]
        return judged_processing(self.recorder, reported, ledger.topic, ledger.group)

    def _processed_inside(self, topic: str) -> list[Processed]:
        """The records that the built-in consumers read, since their application does nothing
        else."""
        return [
            Processed(read.at_ms, read.partition, read.offset, read.consumer)
            for read in self.ledger.reads
            if read.partition[0] == topic
        ]

    @property
    @abstractmethod
    def recorder(self) -> Recorder:
        """The recorder of this cluster."""

    def _info(self, clock: str) -> RunInfo:
        now_ms = self.recorder.dispatcher.now_ms
        return RunInfo(
            self.test,
            clock,
            self.seed,
            self.recorder.first_ms,
            now_ms,
            version=__version__,
            replay=self._replay(),
            environment=self._environment(),
        )

    def after_failure(self) -> None:  # noqa: B027  # of a world only
        """Prepare for the end of the fixtures of a test that failed and was reported."""

    def _replay(self) -> str:
        """The command that runs the test again."""
        return self.replay or f"pytest -k '{self.test}'"

    def _environment(self) -> dict[str, str]:
        """The environment on which the run depends besides its seed, if it is known."""
        return {}

    def _clients_story(self) -> Iterator[tuple[int, str]]:
        """What the test's clients and programs met themselves: lines of the timeline, each with its
        time."""
        yield from ()

    def _threads(self) -> Iterator[str]:
        """The test's own threads that have not ended, and the refused calls of its threads, one
        line each."""
        yield from ()

    def _seed_lines(self) -> Iterator[str]:
        """The seed, and everything else that is needed to repeat the run."""
        yield f"seed: {self.seed} (@pytest.mark.kafka_cluster(seed={self.seed}))"

    def _story(self, clock: str, parent: Path) -> list[str]:
        verdict = self._judge()
        info = self._info(clock)
        info.passed = False
        record = record_of(info, self.recorder, self.ledger, verdict)
        for ledger in self._ledgers:
            add_processing(record, *self._judged_processing(ledger))
        written = run_line(parent, record)
        return [
            *story_lines(self.recorder, self.calling_lines, self.origin_ms, self._clients_story()),
            "",
            *verdict.lines(),
            *manner_lines(self._manners()),
            *problem_lines(record),
            *death_lines(self.deaths.found, self.origin_ms),
            *client_lines(self.recorder, self.connection_lines, self.origin_ms),
            *self._threads(),
            *self._seed_lines(),
            f"replay: {info.replay}",
            written,
        ]
