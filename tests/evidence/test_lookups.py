"""The faults of a broker at a time, found in the notes of a run."""

from __future__ import annotations

from kcluster.contract import Note
from kcluster.events.network import LinkCut
from kcluster.evidence.lookups import Facts
from tests.rig.stage import Stage


def ends(note: Note | None) -> tuple[int, int] | None:
    """The ends of the link that a note reports cut."""
    if note is None:
        return None
    assert isinstance(note.event, LinkCut)
    return note.event.source, note.event.destination


def test_cut__is_found_between_the_cut_and_the_repair_only() -> None:
    stage = Stage()
    before_ms = stage.now_ms
    stage.run_for(100)
    stage.cut(1, 2, one_way=True)
    cut_ms = stage.now_ms
    stage.run_for(100)
    stage.heal()
    healed_ms = stage.now_ms
    facts = Facts(stage.recorder, stage.ledger)
    assert [ends(facts.cut(1, 2, at_ms)) for at_ms in (before_ms, cut_ms, cut_ms + 50)] == [
        None, (1, 2), (1, 2),
    ]  # fmt: skip
    assert facts.cut(1, 2, healed_ms) is None
    assert facts.cut(2, 1, cut_ms) is None


def test_fault_of__is_the_last_cut_that_still_holds() -> None:
    stage = Stage()
    times = []
    for pair in ((1, 2), (3, 2), (3, 1)):
        stage.run_for(100)
        stage.cut(*pair, one_way=True)
        times.append(stage.now_ms)
    facts = Facts(stage.recorder, stage.ledger)

    def moments(broker: int) -> list[int | None]:
        faults = [facts.fault_of(broker, at_ms) for at_ms in times]
        return [None if fault is None else fault.at_ms for fault in faults]

    assert moments(1) == [times[0], times[0], times[2]]
    assert moments(2) == [times[0], times[1], times[1]]
    assert moments(3) == [None, times[1], times[2]]
