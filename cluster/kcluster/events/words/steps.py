"""Words for events of a scenario's steps.

Owns: these words.  Never: decides anything.
"""

from __future__ import annotations

from kcluster.events.steps import StepSkipped
from kcluster.events.words.base import text_of


@text_of.register
def _(event: StepSkipped) -> str:
    return f"{'undoing it was ' if event.is_undoing else ''}skipped: {event.refusal}"
