"""Events of a scenario's steps.

Owns: their facts.  Never: words for them (words/).
Kafka: no counterpart.
"""

from __future__ import annotations

from kcluster.events.base import TaggedEvent


class StepSkipped(TaggedEvent, frozen=True):
    """A step whose moment or target was drawn from the seed could not be performed, or could not be
    undone.  `line`: its line in the scenario file, 0 for none; `refusal`: the error of the
    operation."""

    action: str
    line: int
    refusal: str
    is_undoing: bool = False

    @property
    def subject(self) -> str:
        return f"{self.action} (line {self.line})" if self.line else self.action
