"""What workers get from the driver: bare Pythons play runs and search with it, and read and write
topics."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

pytest.importorskip("packaging")
pytest.importorskip("kafka")

from kcluster import Cluster, Topology
from kcluster.cli.click_tools import kcluster
from kcluster.pipeline.shipping import SOURCE_NEEDS, dependencies
from tests.foreign_clients.real_clients import python_producer, python_read
from tests.rig.patience import PATIENCE_S
from tests.search.spaces import LOSING

MAIN = "from kcluster.cli.main import main; main()"
GRID = "seeds: 4\ngrid: {brokers: 1, replication_factor: 1, rate: 5, consumers: 0, duration: 1s}\n"
OWN_SESSION = """
import sys
from pyspark.sql import SparkSession
from kcluster.pipeline.source.register import register

master, bootstrap = sys.argv[1:]
spark = SparkSession.builder.master(master).getOrCreate()
register(spark, ship_env=True)
orders = spark.read.format("kcluster").option("kafka.bootstrap.servers", bootstrap)
orders = orders.option("subscribe", "orders").load()
values = sorted(int(row.value) for row in orders.collect())
print("read", values == list(range(100)))
copied = orders.selectExpr("value").write.format("kcluster").option("topic", "copy")
copied.option("kafka.bootstrap.servers", bootstrap).mode("append").save()
"""


class Standalone(NamedTuple):
    """A Spark cluster.  `env`: for drivers whose workers have a Python without any packages."""

    master: str
    env: dict[str, str]

    def run(self, *words: str) -> tuple[int, str]:
        """(exit code, output) of a driver."""
        ended = subprocess.run(
            [sys.executable, "-c", *words],
            env=self.env,
            timeout=280,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return ended.returncode, ended.stdout

    def kcluster(self, *words: str) -> tuple[int, str]:
        return self.run(MAIN, *words, "--master", self.master)


@contextmanager
def daemon(kind: str, ready: str, *words: str, env: dict[str, str]) -> Iterator[str]:
    """A master or a worker; the line with which it said that it is ready."""
    spark_class = Path(env["SPARK_HOME"]) / "bin/spark-class"
    name = f"org.apache.spark.deploy.{kind.lower()}.{kind}"
    command = [str(spark_class), name, "--host", "127.0.0.1", "--webui-port", "0", *words]
    process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        yield next(line for line in process.stderr if ready in line)
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)


@pytest.fixture(scope="module")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    """A master and two workers, whose Python has no packages."""
    from pyspark.find_spark_home import _find_spark_home

    place = tmp_path_factory.mktemp("standalone")
    venv.create(place / "bare")
    options = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    env = {**os.environ, "SPARK_HOME": _find_spark_home(), "SPARK_DAEMON_JAVA_OPTS": options}
    with ExitStack() as stack:
        starting = daemon("Master", "Starting Spark master", "--port", "0", env=env)
        line = stack.enter_context(starting)
        master = re.search(r"spark://\S+", line)
        assert master is not None
        for number in (1, 2):
            own = {**env, "SPARK_WORKER_DIR": str(place / f"worker-{number}")}
            words = ("--cores", "1", "--memory", "1g", master[0])
            stack.enter_context(daemon("Worker", "registered with master", *words, env=own))
        yield Standalone(master[0], {**env, "PYSPARK_PYTHON": str(place / "bare/bin/python")})


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.timeout_s(580)
def test_shipping__bare_workers_are_named_and_play_runs_with_the_dependencies(
    standalone: Standalone, tmp_path: Path
) -> None:
    (tmp_path / "grid.yaml").write_text(GRID)
    sweep = ("pipeline", "sweep", str(tmp_path / "grid.yaml"), "--out", str(tmp_path / "out"))
    code, text = standalone.kcluster(*sweep)
    assert code == 2
    assert f"kcluster: a worker's Python ({standalone.env['PYSPARK_PYTHON']}, " in text
    assert "No module named 'msgspec'; --ship-env " in text
    code, text = standalone.kcluster(*sweep, "--ship-env")
    assert (code, "4 runs in " in text) == (0, True), text


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.clients
@pytest.mark.timeout_s(580)
def test_shipping__bare_workers_are_named_and_read_topics_with_the_dependencies(
    standalone: Standalone, tmp_path: Path
) -> None:
    with Cluster(Topology.of(brokers=1, topics={"orders": {}, "copy": {}})) as cluster:
        with python_producer(cluster.bootstrap, acks="all") as producer:
            for number in range(100):
                producer.send("orders", b"%d" % number)
            producer.flush(PATIENCE_S)
        source = ("--bootstrap", cluster.bootstrap, "--topics", "orders")
        ingest = ("pipeline", "ingest", *source, "--once")
        code, text = standalone.kcluster(*ingest, "--out", str(tmp_path / "none"))
        assert code == 1
        assert f"kcluster: a worker's Python ({standalone.env['PYSPARK_PYTHON']}, " in text
        assert "No module named 'msgspec'; --ship-env " in text
        code, text = standalone.kcluster(*ingest, "--out", str(tmp_path / "table"), "--ship-env")
        assert (code, "100 records in 1 batches" in text) == (0, True), text
        code, text = standalone.run(OWN_SESSION, standalone.master, cluster.bootstrap)
        assert (code, "read True" in text) == (0, True), text
        copied = python_read(cluster.bootstrap, "copy")
        assert sorted(int(record.value or -1) for record in copied) == list(range(100))


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.timeout_s(580)
def test_shipping__bare_workers_are_named_and_search_with_the_dependencies(
    standalone: Standalone, tmp_path: Path
) -> None:
    (tmp_path / "losing.yaml").write_text(LOSING)
    search = ("search", str(tmp_path / "losing.yaml"), "--runs", "24", "--json")
    code, text = standalone.kcluster(*search, "--out", str(tmp_path / "none"))
    assert code == 2
    assert f"kcluster: a worker's Python ({standalone.env['PYSPARK_PYTHON']}, " in text
    assert "No module named 'msgspec'; --ship-env " in text
    alone = (*search, "--jobs", "1", "--out", str(tmp_path / "alone"))
    expected = json.loads(CliRunner().invoke(kcluster, alone).stdout.splitlines()[-1])
    code, text = standalone.kcluster(*search, "--out", str(tmp_path / "out"), "--ship-env")
    assert code == 1, text
    found = json.loads(text.splitlines()[-1])
    assert (found["runs"], found["findings"]) == (24, expected["findings"])


def test_shipping__dependencies_are_those_of_the_command_without_extras() -> None:
    names = [each.name.lower() for each in dependencies()]
    assert {"gevent", "greenlet", "msgspec", "networkx"} <= set(names)
    assert not {"kcluster-sim", "pyspark", "matplotlib", "pyarrow"} & set(names)
    assert len(names) == len(set(names))


@pytest.mark.skipif(find_spec("pyarrow") is None, reason="the extra spark is not installed")
def test_shipping__the_source_needs_pyarrow_too_but_not_pyspark() -> None:
    names = [each.name.lower() for each in dependencies(SOURCE_NEEDS)]
    assert {"msgspec", "pyarrow", "numpy"} <= set(names)
    assert "pyspark" not in names
