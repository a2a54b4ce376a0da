"""Conversations of several steps: fetch sessions, groups, failovers; CONVERSATIONS of each module.

Owns: finding these modules.  Never: lists them by hand.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

from kcluster.conform.case import Conversation


def conversations() -> dict[str, Conversation]:
    """All of them by name."""
    names = sorted(found.name for found in pkgutil.iter_modules(__path__))
    modules = [import_module(f"{__name__}.{name}") for name in names]
    return {one.name: one for module in modules for one in module.CONVERSATIONS}
