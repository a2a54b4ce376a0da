"""What prevents a Spark session is reported in one line, and everything else works."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kcluster.extras import how_to_install
from kcluster.pipeline.session import why
from kcluster.pipeline.shipping import lacking
from kcluster.runs.directory import write_run
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.running import run_scenario

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCENARIO = """
name: short
duration: 1s
topology: {brokers: 1, topics: {orders: {partitions: 1, replication_factor: 1}}}
workload: {producers: [{topic: orders, rate: 10}]}
"""

WITHOUT_PYSPARK = "import sys; sys.modules['pyspark'] = None; "
MAIN = "from kcluster.cli.main import main; main()"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    result = run_scenario(Scenario.parse(SCENARIO, "short.yaml"), "virtual")
    return write_run(tmp_path_factory.mktemp("runs"), result.record())


def kcluster(*words: str, env: dict[str, str] | None = None, before: str = "") -> tuple[int, str]:
    """(exit code, stderr) of a command in a separate process."""
    ended = subprocess.run(
        [sys.executable, "-c", before + MAIN, *words],
        capture_output=True,
        text=True,
        timeout=60,
        env=env,
    )
    return ended.returncode, ended.stderr


def without_java(**more: str) -> dict[str, str]:
    others = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    return {**others, "PATH": "", **more}


def fake_java(parent: Path, version: str) -> str:
    """A JAVA_HOME whose java only prints its version."""
    java = parent / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\nexit 1\n")
    java.chmod(0o755)
    return str(parent)


def test_session__without_java_one_line_explains_how_to_get_it(run: Path) -> None:
    code, err = kcluster("pipeline", "audit", str(run), env=without_java())
    assert code == 2
    assert err.startswith("kcluster: no Java found: Spark needs Java 17 or newer, as of `apt-get")
    assert err.count("\n") == 1


def test_session__an_old_java_is_named(run: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="the extra spark is not installed")
    env = {**os.environ, "JAVA_HOME": fake_java(tmp_path / "jdk", "11.0.2")}
    code, err = kcluster("pipeline", "audit", str(run), env=env)
    assert code == 2
    assert err.startswith("kcluster: Java 11 found: Spark needs Java 17 or newer")
    assert err.count("\n") == 1


def test_session__without_pyspark_one_line_explains_how_to_get_it(run: Path) -> None:
    code, err = kcluster("pipeline", "audit", str(run), before=WITHOUT_PYSPARK)
    assert (code, err) == (2, f"kcluster: no pyspark found: {how_to_install('spark')}\n")


def test_session__without_pyspark_everything_else_works(run: Path) -> None:
    assert kcluster("explain", str(run), before=WITHOUT_PYSPARK)[0] == 0
    assert kcluster("pipeline", "--help", before=WITHOUT_PYSPARK)[0] == 0


@pytest.mark.parametrize(
    ("master", "reason"),
    [
        ("spark://127.0.0.1:1", "no Spark at spark://127.0.0.1:1: 127.0.0.1:1: Connection refused"),
        ("lokal[2]", "no Spark at lokal[2]: a master is local[2], local[*], spark://host:7077, "),
        ("local[two]", "no Spark at local[two]: a master is local[2], local[*], "),
        ("spark://somewhere", "no Spark at spark://somewhere: no host:port in it"),
    ],
)
def test_session__an_invalid_master_is_reported_before_spark_waits_for_it(
    run: Path, master: str, reason: str
) -> None:
    pytest.importorskip("pyspark", reason="the extra spark is not installed")
    code, err = kcluster("pipeline", "audit", str(run), "--master", master)
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith(f"kcluster: {reason}")


def test_session__a_python_error_is_found_in_the_java_stack_around_it() -> None:
    err = (
        "An error occurred while calling o51.parquet.\n: org.apache.spark.SparkException: Job"
        ' aborted\n\tat x.y\nTraceback (most recent call last):\n  File "worker.py", line 9\n'
        "    raise ValueError(seed)\nValueError: seed 7\n\n\tat org.apache.spark.api.python.Runner"
    )
    assert why(RuntimeError(err)) == "ValueError: seed 7"


def test_session__a_line_of_a_program_with_a_colon_is_not_the_error() -> None:
    err = (
        'Traceback (most recent call last):\n  File "codec.py", line 9\n'
        "    crc32c_of: Final = _load()\nValueError: seed 7"
    )
    assert why(RuntimeError(err)) == "ValueError: seed 7"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        ("ModuleNotFoundError: No module named 'pyarrow'", "the workers' Python (/opt/python)"),
        ("kcluster.x.<locals>.WorkerLacksModule: a worker's Python (x)", "a worker's Python (x)"),
        ("KeyError: ImportError", "KeyError: ImportError"),
    ],
)
def test_session__what_a_worker_lacks_is_said_with_its_python(error: str, line: str) -> None:
    assert lacking(error, "/opt/python").startswith(line)
    assert ("--ship-env" in lacking(error, "/opt/python")) is error.startswith("ModuleNotFound")


def test_session__workers_import_what_the_driver_imports(spark: SparkSession) -> None:
    """And not Spark's own archive of pyspark, which they would compile each time."""

    def places(_: int) -> tuple[str, str, str]:
        import py4j
        import pyspark

        return sys.executable, str(pyspark.__file__), str(py4j.__file__)

    assert spark.sparkContext.parallelize([0], 1).map(places).collect() == [places(0)]


@pytest.mark.usefixtures("spark")
def test_session__all_its_tests_are_on_one_worker(request: pytest.FixtureRequest) -> None:
    """xdist appends the group's name to that of the test; without groups each worker would start a
    session."""
    if request.config.getoption("loadgroup", None):
        assert request.node.nodeid.endswith("@spark")
