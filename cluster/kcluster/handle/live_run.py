"""A running cluster as a run: its verdict, its facts, its whole record.

Owns: when the record is complete enough to be judged, what a run directory says of a running
cluster.
Never: finds anomalies (checks/ does), looks into a broker (evidence/ does).
Kafka: no counterpart.
"""

from __future__ import annotations

from kcluster.checks.verdict import LATE_MS, LATE_VIRTUAL_MS, VALID, Verdict, judge
from kcluster.clients.ledger import Ledger
from kcluster.evidence.recorder import Recorder
from kcluster.operations.verbs import Verbs
from kcluster.runs.build_record import record_of
from kcluster.runs.record import RunInfo, RunRecord
from kcluster.version import __version__


def live_verdict(recorder: Recorder, ledger: Ledger, verbs: Verbs, clock: str = "live") -> Verdict:
    """The verdict on everything so far; called in the driver's thread."""
    return judge(
        recorder,
        ledger,
        healed=verbs.settled.all_in_sync(),
        began_ms=recorder.first_ms,
        late_ms=LATE_MS if clock == "live" else LATE_VIRTUAL_MS,
    )


def live_info(recorder: Recorder, name: str, seed: int, clock: str = "live") -> RunInfo:
    """The facts about a running cluster as a run."""
    return RunInfo(
        name=name,
        clock=clock,
        seed=seed,
        began_ms=recorder.first_ms,
        ended_ms=recorder.dispatcher.now_ms,
        version=__version__,
    )


def live_record(recorder: Recorder, ledger: Ledger, verbs: Verbs, info: RunInfo) -> RunRecord:
    """The whole record so far; called in the driver's thread."""
    verdict = live_verdict(recorder, ledger, verbs, info.clock)
    info.passed = verdict.outcome == VALID
    return record_of(info, recorder, ledger, verdict)
