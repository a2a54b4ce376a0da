"""The actions, as `kcluster fault` lists and explains them.

Owns: the choice between the list and one action.  Never: the words
(scenario/language/reference.py).
Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kcluster.scenario.language.reference import action_lines, pages
from kcluster.scenario.language.reference_text import as_text


def list_lines() -> Iterator[str]:
    """A line for each action."""
    return (f"{verb:<16} {text}" for verb, text in action_lines())


def help_of(words: Iterable[str]) -> str | None:
    """The help of the first action among the words; None if there is none."""
    actions = dict(action_lines())
    return next((as_text(pages()[word]) for word in words if word in actions), None)
