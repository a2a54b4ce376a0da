"""The figures of reference.yaml are those of reference.json, value by value.

They change when the simulator, the draws or the formulas do.  If that is what a change is for (a
difference from Kafka fixed, a new field of the clients' timing), look at what moved, renew, and
say why in the commit:

    KCLUSTER_RENEW=1 pytest tests/pipeline/sweep/test_reference.py
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kcluster.pipeline.sweep.estimates import MS_PER_YEAR
from kcluster.pipeline.sweep.figures import figures_of

if TYPE_CHECKING:
    from tests.pipeline.sweep.conftest import Swept

REFERENCE = Path(__file__).with_name("reference.json")
OF_THE_MACHINE = ("wall_ms_a_run",)
pytestmark = pytest.mark.timeout_s(240)


def test_reference__the_figures_are_unchanged(swept: Swept) -> None:
    found = figures_of(swept.grid, swept.sums, MS_PER_YEAR)
    for row in found:
        for name in OF_THE_MACHINE:
            del row[name]
    if "KCLUSTER_RENEW" in os.environ:
        REFERENCE.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    wanted = json.loads(REFERENCE.read_text("utf-8"))
    assert len(found) == len(wanted)
    for row, old in zip(found, wanted, strict=True):
        assert list(row) == list(old)
        moved = {name: (old[name], row[name]) for name in row if row[name] != near(old[name])}
        assert not moved, f"cell {row['number']}: (was, is) {moved}"


def near(value: object) -> object:
    """Sums of floats depend on the order in which Spark's tasks end."""
    return pytest.approx(value, rel=1e-9) if isinstance(value, float) else value
