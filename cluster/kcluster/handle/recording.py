"""The verbs of a live cluster's record, of the handle Cluster.

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

    from kcluster.checks.verdict import Verdict
    from kcluster.clients.ledger import Ledger
    from kcluster.evidence.recorder import Recorder
    from kcluster.runs.journal import Rows
    from kcluster.runs.moment import ClusterMoment
    from kcluster.runs.record import RunInfo, RunRecord


class RecordVerbs(ClusterPort):
    """The record of this cluster: verdict, run directory, rows.

    `name`: that of its run directories.  `ledger`: the sends and reads of the project's own
    clients.  `clock_name`: the name of its clock, "live" or "virtual".
    """

    ledger: Ledger
    name: str
    clock_name = "live"
    _recorder: Recorder | None = None

    def start_recording(self) -> None:
        """Record the cluster from now on; `open` does it unless `record` is False."""
        self.call(self._begin_recording)

    def _begin_recording(self) -> None:
        """Record the cluster from now on; called in the driver's thread, between two
        dispatches."""
        from kcluster.evidence.sampling import SamplingRecorder

        if self._recorder is None:
            recorder = SamplingRecorder(self.driver.dispatcher, self.plan)
            recorder.notes += [entry.note for entry in self.kept]
            self._recorder = recorder

    def moment(self, at_ms: int) -> ClusterMoment:
        """The cluster as it was at `at_ms` of its clock, from its record: brokers, links,
        partitions with each replica's log, clients, groups, transactions.  ClusterError for a time
        before the record or in the future."""
        from kcluster.runs.moment import moment_of, recorded_until

        recorder = self.recorder

        def read() -> RunRecord:
            if not recorder.first_ms <= at_ms <= self.driver.now_ms():
                known = f"{recorder.first_ms} to {self.driver.now_ms()} ms are recorded"
                raise ClusterError(f"there is no record of {at_ms} ms: {known}")
            return recorded_until(recorder, at_ms)

        return moment_of(self.call(read), at_ms)

    @property
    def recorder(self) -> Recorder:
        """The recorder of this cluster; ClusterError if it has none."""
        if self._recorder is None:
            raise ClusterError("this cluster is not recorded, by --no-record or record=False")
        return self._recorder

    def mark(self) -> str:
        """The present moment, for `verdict(since=...)`."""
        return f"@{self.call(self.driver.now_ms)}"

    def verdict(self, since: str | int | None = None) -> Verdict:
        """The verdict on every record so far, from what the brokers saw of their clients.  The
        cluster stands still meanwhile, for seconds at most.

        `since`: judge only records and events since then: a time back (`30s`), the number of an
        event, or a result of `mark()`.
        """
        from kcluster.handle.live_run import live_verdict
        from kcluster.handle.since import since_ms_of

        recorder = self.recorder

        def judge() -> Verdict:
            now_ms = self.driver.now_ms()
            since_ms = None if since is None else since_ms_of(since, now_ms, self.kept)
            return live_verdict(recorder, self.ledger, self.verbs, self.clock_name, since_ms)

        return self.call(judge)

    def save(self, directory: str | os.PathLike[str], *, into: Path | None = None) -> Path:
        """Write the run so far to a new run directory below `directory`, with its verdict and
        timeline page; returns its path.  `into`: a run directory that exists already."""
        from kcluster.handle.live_run import live_info, live_record
        from kcluster.runs.directory import write_into, write_run

        recorder = self.recorder

        def read() -> RunRecord:
            info = live_info(recorder, self.name, self.seed, self.clock_name)
            return live_record(recorder, self.ledger, self.verbs, info)

        record = self.call(read)
        if into is None:
            return write_run(directory, record)
        write_into(into, record)
        return into

    def run_info(self) -> RunInfo:
        """The facts about this run, for its directory."""
        from kcluster.handle.live_run import live_info

        recorder = self.recorder
        return self.call(lambda: live_info(recorder, self.name, self.seed, self.clock_name))

    def recorded_since(self, after_ms: int) -> tuple[Rows, int]:
        """The rows after `after_ms` of all tables that are kept while a cluster runs, and the
        moment up to which they are complete."""
        from kcluster.runs.journal import rows_between

        recorder = self.recorder

        def read() -> tuple[Rows, int]:
            recorder.check_last_step()
            now_ms = self.driver.now_ms()
            return rows_between(recorder, after_ms, now_ms), now_ms - 1

        return self.call(read)

    def recorded_now(self) -> Rows:
        """The rows of the present millisecond.  `recorded_since` has them only once it is over;
        while the clock is paused, they show the operations during the pause.  More rows may
        follow."""
        from kcluster.runs.journal import rows_between

        recorder = self.recorder

        def read() -> Rows:
            recorder.check_last_step()
            now_ms = self.driver.now_ms()
            return rows_between(recorder, now_ms - 1, now_ms + 1)

        return self.call(read)
