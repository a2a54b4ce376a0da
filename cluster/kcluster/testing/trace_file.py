"""The file of `--kcluster-trace`: the frames of each test, in the order of the session.

Owns: that file.  Never: makes a trace (world/trace.py does).  Kafka: no counterpart; tcpdump.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

from kcluster.testing.items import TRACE_FILE

_BEGUN: Final = pytest.StashKey[bool]()


def write_trace(item: pytest.Item, lines: Iterable[str], seed: int) -> None:
    """Append the trace of a test to the file that the command line names; the first test of a
    session begins the file anew."""
    path = Path(item.config.invocation_params.dir, item.config.getoption(TRACE_FILE))
    has_begun = item.config.stash.get(_BEGUN, False)
    item.config.stash[_BEGUN] = True
    with path.open("a" if has_begun else "w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in (f"# {item.nodeid}, seed {seed}", *lines))
