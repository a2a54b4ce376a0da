"""The function that makes the text of an event; each kind registers its own.

Owns: `text_of` without any kind, counting nouns.  Never: knows an event.
"""

from __future__ import annotations

from functools import singledispatch

from kcluster.contract import Event


@singledispatch
def text_of(event: Event) -> str:
    """The text of an event and its reason, in one line."""
    raise TypeError(f"no words for {type(event).__name__}")


def counted(count: int, noun: str) -> str:
    """A count of nouns: `1 link`, `4,000 links`, `2 more anomalies`."""
    if count == 1:
        return f"1 {noun}"
    if noun.endswith("y"):
        return f"{count:,} {noun.removesuffix('y')}ies"
    return f"{count:,} {noun}{'es' if noun.endswith('ch') else 's'}"
