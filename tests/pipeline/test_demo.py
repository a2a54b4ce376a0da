"""The end of the demo: the audit of what Spark read while the leader died."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kcluster.cli.work.demo import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# kafka-python reads its schemas in a way that Python 3.11 warns about, in importlib's name.
pytestmark = [
    pytest.mark.clients,
    pytest.mark.timeout_s(250),
    pytest.mark.filterwarnings("ignore:.*Use files:DeprecationWarning"),
]


def test_demo__sparks_audit_of_what_it_ingested_finds_no_loss(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "text.txt"
    # Some lines are equal: the audit distinguishes them as the run does.
    text.write_text("".join(f"line {number % 900} of the text\n" for number in range(1_000)))
    assert run(str(text), None, "fast", with_spark=True, as_json=True, quiet=False)
    shown = json.loads(capsys.readouterr().out)
    assert "killed" in [moment["label"] for moment in shown["timeline"]]
    found = shown["spark"]
    assert found["rows"] == found["sent"] == found["acked"] == 1_000
    assert (found["lost"], found["duplicated"], found["reordered"]) == (0, 0, 0)
    assert found["batches"] >= 2  # one before the leader was killed
