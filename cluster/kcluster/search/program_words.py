"""The words of a search over users' programs.

Owns: the report of a finding.  Never: finds, shrinks, decides.  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from kcluster.search.certainty import Certainty
from kcluster.search.shrink import Shrunk
from kcluster.search.words import certainty_text, needs_text


class ProgramFinding(Struct, frozen=True):
    """A run of users' programs that failed.  `what`: the test, or the programs; `reason`: why it
    failed, in a line; `run`: the number of the run that failed, from 1; `steps_before`: the number
    of its steps; `certainty`: from which moment on it was sure, None if that is unknown."""

    what: str
    reason: str
    shrunk: Shrunk
    run: int
    steps_before: int
    certainty: Certainty | None = None


def finding_lines(finding: ProgramFinding, replay: str) -> Iterator[str]:
    """What happened, which steps it needs, how it was found and how it is repeated."""
    shrunk = finding.shrunk
    steps = shrunk.scenario.steps
    yield f"{finding.reason.rstrip('.')}."
    if steps:
        needs = needs_text(steps, shrunk.is_minimal)
        yield f"Without faults, {finding.what}. {needs}"
    else:
        yield "It needs no fault: another seed is enough."
    shrinking = f"shrunk from {finding.steps_before} to {len(steps)} steps in {shrunk.tries} runs"
    yield f"found in run {finding.run}, {shrinking}"
    if finding.certainty is not None:
        yield certainty_text(finding.certainty)
    yield f"replay: {replay}"


def not_again_text(reason: str) -> str:
    """A failure that its own seed and steps did not repeat."""
    why = "the outcome depends on more than the seed, such as a file that runs share"
    return f"{reason.rstrip('.')}. It did not fail when it was run again: {why} (--jobs 1)"


def nothing_text(runs: int) -> str:
    """The end of a search without a finding."""
    return f"{runs} runs with faults, none failed"
