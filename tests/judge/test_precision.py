"""How the judge is measured: a few runs, compared with the truth, added up, and gone on with."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tools.judge_precision import (
    Measured,
    Sums,
    compared,
    page,
    play,
    read_results,
    sums_of,
    total,
    write_results,
)
from tools.judge_runs import RunKind, run_of


def first_of(kind: RunKind) -> Measured:
    """The first run of a kind, judged."""
    return compared(play(next(n for n in range(200) if run_of(n).kind is kind)))


@pytest.mark.pure_python  # the broken consumer has other methods
def test_compared__a_safe_run_has_nothing_and_a_broken_consumer_is_found() -> None:
    safe, broken = first_of(RunKind.SAFE), first_of(RunKind.BROKEN_CONSUMER)
    assert safe.outcomes[1] == "valid"
    assert not safe.false_alarms | safe.found
    assert broken.outcomes == ("invalid", "invalid")
    assert broken.found
    assert not broken.false_alarms


@pytest.mark.parametrize("number", [3686, 4901, 15686])
def test_compared__these_unsafe_runs_have_no_false_alarm(number: int) -> None:
    """A truncated marker opens a transaction again; a member was set back before it lost the
    partition."""
    assert not compared(play(number)).false_alarms


def measured(number: int, found: int = 0, missed: int = 0, false_alarms: int = 0) -> Measured:
    return Measured(
        number,
        run_of(number),
        ("invalid", "valid"),
        sent=10,
        read=5,
        found=Counter({"lost-write": found}),
        missed=Counter({"lost-write": missed}),
        false_alarms=Counter({"duplicate": false_alarms}),
    )


def test_results__are_read_again_and_added_up(tmp_path: Path) -> None:
    blocks = {
        1_000: sums_of(1_000, "2026-11-29", [measured(1_000, found=2)]),
        0: sums_of(0, "2026-11-28", [measured(0, found=2), measured(1)]),
    }
    write_results(tmp_path / "results.jsonl", blocks)
    again = read_results(tmp_path / "results.jsonl")
    assert again == blocks
    assert [*again] == [0, 1_000]
    whole = total(again.values())
    assert (whole.runs, whole.sent, whole.read) == (3, 30, 15)
    assert whole.records["found"] == {"lost-write": 4}
    assert whole.outcomes == {"invalid/valid": 3}


def test_page__precision_and_recall() -> None:
    sums = sums_of(0, "2026-11-28", [measured(0, found=3, missed=1, false_alarms=1)])
    text = "\n".join(page([sums]))
    assert "| lost-write | 3 | 0 | 0 | 1 | 0 | 100.00 % | 75.00 % |" in text
    assert "| duplicate | 0 | 0 | 0 | 0 | 1 | 0.00 % | - |" in text
    assert "| invalid | valid | 1 |" in text


def test_results__without_a_file_there_are_none(tmp_path: Path) -> None:
    nothing: dict[int, Sums] = {}
    assert read_results(tmp_path / "results.jsonl") == nothing
