"""The record of a cluster: `cluster.record.verdict()`, or `cluster.verdict()`.

Owns: these methods, and the recorder.  Never: decides what is recorded (evidence/sampling.py) or
the content of a run directory (live_run.py).  Kafka: no counterpart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kcluster.handle.port import ClusterPort
from kcluster.operations.errors import ClusterError

# Imported in the methods: so that the start of a cluster does not wait for it.
if TYPE_CHECKING:
    import os
    from pathlib import Path

    from kcluster.checks.manners import Manner
    from kcluster.checks.verdict import Verdict
    from kcluster.evidence.recorder import Recorder
    from kcluster.runs.moment import ClusterMoment
    from kcluster.runs.record import Rows, RunInfo, RunRecord
    from kcluster.runs.recorder_rows import Recorded


class ClusterRecord:
    """The record of a cluster: verdict, run directory, rows."""

    def __init__(self, port: ClusterPort) -> None:
        self._port = port
        self._recorder: Recorder | None = None

    def start(self) -> None:
        """Record the cluster from now on; `open` does it unless `record` is False."""
        self._port.call(self.begin)

    def begin(self) -> None:
        """Record the cluster from now on; called in the driver's thread, between two
        dispatches."""
        from kcluster.evidence.sampling import SamplingRecorder

        port = self._port
        if self._recorder is None:
            recorder = SamplingRecorder(port.dispatcher, port.plan)
            recorder.notes += [entry.note for entry in port.kept]
            self._recorder = recorder

    def record_with(self, recorder: Recorder) -> None:
        """Record with another recorder than that of samples; called before the cluster is open."""
        self._recorder = recorder

    def moment(self, at_ms: int) -> ClusterMoment:
        """The cluster as it was at `at_ms` of its clock, from its record: brokers, links,
        partitions with each replica's log, clients, groups, transactions.  ClusterError for a time
        before the record or in the future."""
        from kcluster.runs.moment import moment_of, recorded_until

        port, recorder = self._port, self.recorder

        def read() -> RunRecord:
            if not recorder.first_ms <= at_ms <= port.driver.now_ms():
                known = f"{recorder.first_ms} to {port.driver.now_ms()} ms are recorded"
                raise ClusterError(f"there is no record of {at_ms} ms: {known}")
            return recorded_until(recorder, at_ms)

        return moment_of(port.call(read), at_ms)

    @property
    def recorder(self) -> Recorder:
        """The recorder of this cluster; ClusterError if it has none."""
        if self._recorder is None:
            raise ClusterError("this cluster is not recorded, by --no-record or record=False")
        return self._recorder

    def mark(self) -> str:
        """The present moment, for `verdict(since=...)`."""
        return f"@{self._port.call(self._port.driver.now_ms)}"

    def verdict(self, since: str | int | None = None) -> Verdict:
        """The verdict on every record so far, from what the brokers saw of their clients.  The
        cluster stands still meanwhile, for seconds at most.

        `since`: judge only records and events since this moment: a time back (`30s`), the number of
        an event, or a result of `mark()`.
        """
        return self._port.call(lambda: self.judge(since))

    def judge(self, since: str | int | None = None) -> Verdict:
        """The verdict, like `verdict`; called in the driver's thread."""
        from kcluster.handle.live_run import live_verdict

        port, recorder = self._port, self.recorder
        return live_verdict(recorder, port.ledger, port.verbs, port.clock_name, since, port.kept)

    def manners(self, since: str | int | None = None) -> list[Manner]:
        """The bad habits of clients, with the figure of each; empty if there are none.  `since`: as
        for `verdict`."""
        from kcluster.handle.live_run import live_manners

        port, recorder = self._port, self.recorder
        return port.call(lambda: live_manners(recorder, since, port.kept))

    def save(self, directory: str | os.PathLike[str], *, into: Path | None = None) -> Path:
        """Write the run so far to a new run directory below `directory`, with its verdict and
        timeline page; returns its path.  `into`: a run directory that exists already."""
        from kcluster.runs.directory import write_into, write_run

        record = self._port.call(self.read)
        if into is None:
            return write_run(directory, record)
        write_into(into, record)
        return into

    def read(self) -> RunRecord:
        """The whole record so far; called in the driver's thread."""
        from kcluster.handle.live_run import live_record

        port, recorder = self._port, self.recorder
        return live_record(recorder, port.ledger, port.verbs, self._info())

    def info(self) -> RunInfo:
        """The facts about this run, for its directory."""
        return self._port.call(self._info)

    def _info(self) -> RunInfo:
        from kcluster.handle.live_run import live_info

        port = self._port
        return live_info(self.recorder, port.name, port.seed, port.clock_name)

    def rows_since(self, after_ms: int) -> tuple[Rows, int]:
        """The rows after `after_ms` of all tables that are kept while a cluster runs, and the
        moment up to which they are complete."""

        def read() -> tuple[Rows, int]:
            found, until_ms = self.read_since(after_ms)
            return found.rows(), until_ms

        return self._port.call(read)

    def rows_now(self) -> Rows:
        """The rows of the present millisecond.  `rows_since` has them only once it is over;
        while the clock is paused, they show the operations during the pause.  More rows may
        follow."""
        return self._port.call(lambda: self.read_now().rows())

    def read_since(self, after_ms: int) -> tuple[Recorded, int]:
        """What was recorded after `after_ms`, as for `rows_since`; called in the driver's
        thread."""
        until_ms = self._port.driver.now_ms()
        return self._read(after_ms, until_ms), until_ms - 1

    def read_now(self) -> Recorded:
        """What was recorded in the present millisecond, as for `rows_now`; called in the driver's
        thread."""
        now_ms = self._port.driver.now_ms()
        return self._read(now_ms - 1, now_ms + 1)

    def _read(self, after_ms: int, until_ms: int) -> Recorded:
        """What was recorded between two moments."""
        from kcluster.runs.recorder_rows import recorded_between

        self.recorder.check_last_step()
        return recorded_between(self.recorder, after_ms, until_ms)
