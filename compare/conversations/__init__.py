"""Conversations: streams, groups, failovers, step by step; each module has CONVERSATIONS.

Owns: finding them.  Never: a list to be kept up.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

from compare.case import Conversation


def conversations() -> dict[str, Conversation]:
    """All of them by name."""
    names = sorted(found.name for found in pkgutil.iter_modules(__path__))
    modules = [import_module(f"{__name__}.{name}") for name in names]
    return {one.name: one for module in modules for one in module.CONVERSATIONS}
