"""The skill: a guide for agents.

Owns: reading it.  Never: writes it: its home is docs/agents/SKILL.md, which a wheel has beside this
module.  Kafka: no counterpart.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from kcluster.packaged import packaged_text

IN_WHEEL: Final = "cli/mcp/SKILL.md"
IN_CHECKOUT: Final = "../../docs/agents/SKILL.md"


def skill() -> str:
    """The guide, as Markdown."""
    with suppress(FileNotFoundError):
        return packaged_text(IN_WHEEL)
    return packaged_text(IN_CHECKOUT)
