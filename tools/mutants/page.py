"""The page about mutations.

Owns: its words.  Never: measures.  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Sequence

from tools.mutants.measure import Measured


def page_of(found: Sequence[Measured]) -> str:
    """The page, in Markdown."""
    return ""
