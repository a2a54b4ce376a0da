"""A plugin of pytest that writes the outcome of a search for measure.py.

Owns: that file.  Never: searches (kcluster.testing does), judges.  Kafka: no counterpart.

It is given as `-p tools.program_bugs.plugin`, with the file in an environment variable.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import msgspec
import pytest
from msgspec import Struct

from kcluster.testing.searching import FACTS, SearchFacts

FILE_VARIABLE: Final = "PROGRAM_BUGS_OUTCOME"


class Outcome(Struct, frozen=True):
    """How the test of a program ended.  `failed`: its failure without a search, "" if it had none;
    `facts`: None if it failed without faults."""

    failed: str
    facts: SearchFacts | None


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write the outcome of a test that has failed, or has run to its end."""
    if report.when != "call" and not report.failed:
        return
    given = dict(report.user_properties).get(FACTS)
    facts = msgspec.json.decode(str(given), type=SearchFacts) if given else None
    failed = report.longreprtext if report.failed and facts is None else ""
    file = Path(os.environ[FILE_VARIABLE])
    file.write_bytes(msgspec.json.encode(Outcome(failed, facts)))
