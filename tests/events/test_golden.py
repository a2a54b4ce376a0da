"""What happens in each incident, as facts and as words: two golden files for each.

`golden/NAME.facts.jsonl` has the events of the run, one per line: the time (ms since it began), the
event as its type is encoded, and the line number of its cause.  `golden/NAME.txt` has the text that
is shown: the events, the verdict as a screen, and its long form.

A change of words must not change the facts; a change of facts must be intended.  To renew both:

    pytest tests/events/test_golden.py --rewrite

Read the difference, and commit it only if you can explain it.
"""

from __future__ import annotations

import difflib
from pathlib import Path

import msgspec
import pytest

from kcluster.events.render import ECHOES
from kcluster.scenario.play.phases import RunResult
from kcluster.scenario.report import REBALANCES, timeline_lines
from tests.rig.incidents import INCIDENTS, each_incident, played

GOLDEN = Path(__file__).parent / "golden"
SHOWN_LINES = 40
RENEW = "if it is intended: pytest tests/events/test_golden.py --rewrite, and read the difference"


def facts(result: RunResult) -> str:
    """The events of the run, without those of internal topics and repetitions of others."""
    numbers: dict[tuple[int, int], int] = {}
    lines = []
    for note in result.notes[result.first_note :]:
        if note.event.is_internal or isinstance(note.event, (*ECHOES, *REBALANCES)):
            continue
        numbers[note.note_id] = len(numbers) + 1
        cause = None if note.cause is None else numbers.get(note.cause)
        row = {"at_ms": note.at_ms - result.began_ms, "cause": cause, "event": note.event}
        lines.append(msgspec.json.encode(row).decode())
    return "\n".join(lines) + "\n"


def words(result: RunResult) -> str:
    verdict = result.verdict
    screen, everything = verdict.lines(), verdict.lines(verbose=True)
    return "\n".join([*timeline_lines(result), "", *screen, "", *everything]) + "\n"


def compare(request: pytest.FixtureRequest, name: str, made: str) -> None:
    golden = GOLDEN / name
    if request.config.getoption("rewrite"):
        golden.write_text(made, "utf-8")
    golden_text = golden.read_text("utf-8") if golden.exists() else ""
    if made != golden_text:
        difference = difflib.unified_diff(
            golden_text.splitlines(),
            made.splitlines(),
            f"golden/{name}",
            "this run",
            n=1,
            lineterm="",
        )
        shown = list(difference)
        more = [f"... {len(shown) - SHOWN_LINES} more lines"] if len(shown) > SHOWN_LINES else []
        pytest.fail("\n".join([*shown[:SHOWN_LINES], *more, RENEW]), pytrace=False)


@each_incident
def test_golden__the_facts_of_an_incident(file: Path, request: pytest.FixtureRequest) -> None:
    compare(request, f"{file.stem}.facts.jsonl", facts(played(file)))


@each_incident
def test_golden__the_words_for_an_incident(file: Path, request: pytest.FixtureRequest) -> None:
    compare(request, f"{file.stem}.txt", words(played(file)))


def test_golden__every_golden_file_has_an_incident() -> None:
    names = {f"{file.stem}{end}" for file in INCIDENTS for end in (".facts.jsonl", ".txt")}
    assert {path.name for path in GOLDEN.iterdir()} == names
