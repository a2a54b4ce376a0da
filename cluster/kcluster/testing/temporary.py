"""Directories of `tmp_path` for tests in virtual time.

Owns: making the session's directory outside of worlds, and a directory for each forked child.
Never: removes a directory (pytest does).  Kafka: no counterpart.

If it were made in a world, it would draw the world's random numbers, as many as there are old
directories.  Children with one directory would number theirs in the order of their arrival, and
with `--basetemp` each would remove the directories of all others.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

FACTORY: Final = "tmp_path_factory"


def make_session_directory(item: pytest.Item) -> None:
    """Make the session's directory, if the item uses one."""
    factory = _factory_of(item)
    if factory is not None:
        factory.getbasetemp()


def give_own_directory(item: pytest.Item, name: str) -> None:
    """Give a child its own directory of this name, for the directories of its tests."""
    factory = _factory_of(item)
    if factory is not None:
        own: Path = factory.getbasetemp() / name
        own.mkdir(exist_ok=True, mode=0o700)
        vars(factory)["_basetemp"] = own


def _factory_of(item: pytest.Item) -> pytest.TempPathFactory | None:
    if FACTORY not in getattr(item, "fixturenames", ()):
        return None
    found: pytest.TempPathFactory | None = getattr(item.config, f"_{FACTORY}", None)
    return found
