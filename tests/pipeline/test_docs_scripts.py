"""The Python scripts of the Spark pages run as they stand, but for addresses.

Owns: running them in the tests' one session.  Never: runs their console blocks (the other tests of
this folder call the same jobs).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kcluster import Cluster, Topology
from kcluster.cli.click_tools import kcluster
from tests.docs_pages import fenced
from tests.rig.patience import PATIENCE_S

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.clients]


def run_scripts(document: str, spark: SparkSession, place: Path, bootstrap: str = "") -> None:
    """All python blocks of a page, as one program.  Its directories are those of `place`: Spark's
    own working directory is that of the whole test run."""
    text = "\n".join(one.text for one in fenced(document) if one.language == "python")
    for address in ("127.0.0.1:9092", "localhost:9092"):
        text = text.replace(address, bootstrap)
    for directory in ("table", "out"):
        text = text.replace(f'"{directory}"', repr(str(place / directory)))
    exec(compile(text, document, "exec"), {"spark": spark})


def test_docs__the_scripts_of_ingest_and_of_the_spark_source(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from confluent_kafka import Producer

    monkeypatch.chdir(tmp_path)
    with Cluster(Topology.of(brokers=1, topics={"orders": {}}, profile="fast")) as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap})
        for number in range(20):
            producer.produce("orders", b"%d" % number)
        assert producer.flush(PATIENCE_S) == 0
        run_scripts("docs/how-to/ingest.md", spark, tmp_path, cluster.bootstrap)
        run_scripts("docs/reference/spark-source.md", spark, tmp_path, cluster.bootstrap)
    assert "Ingested(rows=20, batches=1, losses=()" in capsys.readouterr().out


def test_docs__the_scripts_of_audit_and_timeline(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    play = ["scenario", "run", "duplicate_by_lost_ack", "--out", "runs"]
    with pytest.raises(SystemExit) as ended:
        kcluster.main(play)
    assert ended.value.code == 0
    run_scripts("docs/how-to/audit.md", spark, tmp_path)
    assert (tmp_path / "out" / "timeline.html").exists()
