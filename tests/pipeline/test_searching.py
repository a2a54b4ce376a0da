"""A search on Spark: its runs are those of one process, whoever plays them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from kcluster.cli.click_tools import kcluster
from kcluster.json_types import JsonObject
from kcluster.pipeline.searching import SparkTrials
from kcluster.search.loop import ScheduleSearch
from kcluster.search.trial import run_trial
from tests.search.spaces import FAULTS, LOSING, space

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout_s(240)


def test_spark__a_batch_has_the_trials_of_one_process_in_its_order(spark: SparkSession) -> None:
    searched = space(FAULTS)
    batch = ScheduleSearch([searched], 1).batch()
    assert [*SparkTrials(spark, [searched]).play(batch)] == [run_trial(searched, x) for x in batch]


def test_spark__a_search_finds_what_a_search_in_one_process_finds(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("losing.yaml").write_text(LOSING)

    def found_with(*words: str) -> list[JsonObject]:
        search = ("search", "losing.yaml", "--runs", "13", "--json", *words)
        result = CliRunner().invoke(kcluster, search)
        assert result.exit_code == 1, result.output
        lines: list[JsonObject] = [*map(json.loads, result.stdout.splitlines())]
        del lines[-1]["wall_s"]
        return lines

    alone = found_with("--jobs", "1")
    assert (alone[0]["finding"], alone[-1]["runs"]) == ("lost-write", 13)
    assert found_with("--master", "local[2]") == alone
