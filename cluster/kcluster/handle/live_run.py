"""A running cluster as a run: its verdict, its facts, its whole record.

Owns: the decision that the record is complete enough to be judged, and the reasons if it is not;
the facts about a running cluster in a run directory.  Never: finds anomalies (checks/ does), looks
into a broker (evidence/ does).  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kcluster.checks.manners import Manner, recorded_manners
from kcluster.checks.verdict import LATE_MS, LATE_VIRTUAL_MS, Verdict, judge
from kcluster.checks.verdict_facts import VALID, Remedy, RemedyKind
from kcluster.clients.ledger import Ledger
from kcluster.deaths import ProcessState
from kcluster.evidence.outside import FROM_THE_START
from kcluster.evidence.recorder import Recorder
from kcluster.handle.since import since_ms_of
from kcluster.operations.settled import Settled
from kcluster.operations.status import NoteEntry
from kcluster.operations.verbs import Verbs
from kcluster.runs.build_record import record_of
from kcluster.runs.record import RunInfo, RunRecord
from kcluster.runtime.dispatch import Dispatcher
from kcluster.version import __version__


def live_verdict(
    recorder: Recorder,
    ledger: Ledger,
    verbs: Verbs,
    clock: str,
    since: str | int | None = None,
    kept: Sequence[NoteEntry] = (),
) -> Verdict:
    """The verdict on everything so far, or on everything since a moment (since.py), which may be
    that of one of the `kept` events.  To be called in the driver's thread."""
    since_ms = _since_ms(recorder, since, kept)
    needed = _remedies(verbs.settled, recorder.dispatcher)
    return judge(
        recorder,
        ledger,
        healed=not needed,
        remedies=needed,
        began_ms=recorder.first_ms,
        since_ms=FROM_THE_START if since_ms is None else since_ms,
        late_ms=LATE_VIRTUAL_MS if clock == "virtual" else LATE_MS,
    )


def live_manners(
    recorder: Recorder, since: str | int | None, kept: Sequence[NoteEntry]
) -> list[Manner]:
    """The bad habits of clients, with the figure of each.  To be called in the driver's thread."""
    return recorded_manners(recorder, _since_ms(recorder, since, kept))


def _since_ms(recorder: Recorder, since: str | int | None, kept: Sequence[NoteEntry]) -> int | None:
    return None if since is None else since_ms_of(since, recorder.dispatcher.now_ms, kept)


def live_info(recorder: Recorder, name: str, seed: int, clock: str) -> RunInfo:
    """The facts about a running cluster as a run."""
    return RunInfo(
        name=name,
        clock=clock,
        seed=seed,
        began_ms=recorder.first_ms,
        ended_ms=recorder.dispatcher.now_ms,
        version=__version__,
        ground=recorder.ground,
    )


def live_record(recorder: Recorder, ledger: Ledger, verbs: Verbs, info: RunInfo) -> RunRecord:
    """The whole record so far.  To be called in the driver's thread."""
    verdict = live_verdict(recorder, ledger, verbs, info.clock)
    info.passed = verdict.outcome == VALID
    return record_of(info, recorder, ledger, verdict)


def _remedies(settled: Settled, dispatcher: Dispatcher) -> tuple[Remedy, ...]:
    """The actions by which a user gets all replicas in sync; none if they are."""
    return () if settled.all_in_sync() else tuple(_needed(settled, dispatcher))


def _needed(settled: Settled, dispatcher: Dispatcher) -> Iterator[Remedy]:
    is_over = True
    for state, kind in (
        (ProcessState.DOWN, RemedyKind.START),
        (ProcessState.PAUSED, RemedyKind.RESUME),
    ):
        brokers = tuple(x for x in settled.brokers() if dispatcher.processes[x].state is state)
        if brokers:
            is_over = False
            yield Remedy(kind, brokers)
    fabric = dispatcher.fabric
    if fabric.cuts or (is_over and fabric.shaped):
        yield Remedy(RemedyKind.HEAL)
    elif is_over:
        yield Remedy(RemedyKind.WAIT)
