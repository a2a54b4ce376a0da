"""Archives of loaded classes, with which the JVMs of the tests start in half the CPU time.

    python tools/class_archives.py kafka-tools build/kafka-libs build/archives/kafka-tools.jsa
    python tools/class_archives.py kafka-programs build/kafka-clients:build/kafka-libs \
        build/archives/kafka-programs.jsa
    python tools/class_archives.py spark build/connector-jars build/archives/spark.jsa

Owns: what is run for an archive to know its classes.  Never: is needed by a test: a JVM without its
archive loads the classes from the jars.  `make jars` runs it.  Kafka: no counterpart; Java's class
data sharing.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from kcluster import Cluster, Topology

ROOT: Final = Path(__file__).resolve().parents[1]
LIMIT_S: Final = 300
TOOLS: Final = "org.apache.kafka.tools"
ORDERS: Final = ("--topic", "orders")
SPARK_PROGRAM: Final = """
import sys
from kcluster.pipeline.audit import audit
from kcluster.pipeline.ingest.jars import jar_settings
from kcluster.pipeline.ingest.job import ingest
from kcluster.pipeline.ingest.options import IngestOptions
from kcluster.pipeline.ingest.table import read_records
from kcluster.pipeline.session import SMALL, open_session
from kcluster.pipeline.tables import Tables, find_runs
from kcluster.runs.directory import write_run
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.play.running import run_scenario

bootstrap, jars, out = sys.argv[1:]
spark = open_session("local[2]", {**SMALL, **jar_settings(jars)})
for source in ("kcluster", "kafka"):
    options = IngestOptions(bootstrap, ("orders",), f"{out}/{source}", source=source, until="once")
    ingest(spark, options)
    read_records(spark, f"{out}/{source}").collect()
scenario = Scenario.load("scenarios/incidents/acks_one_crash.yaml")
write_run(f"{out}/runs", run_scenario(scenario, "virtual").record())
tables = Tables(spark, find_runs([f"{out}/runs"])[0])
found = audit(tables)
found.totals.collect()
found.summary.collect()
spark.stop()
"""


def topology() -> Topology:
    """One broker with a topic."""
    return Topology.of(brokers=1, topics={"orders": {"partitions": 2}}, profile="fast")


def run(command: list[str], **more: Any) -> None:
    """Run a program; CalledProcessError if it fails, TimeoutExpired if it hangs."""
    subprocess.run(command, capture_output=True, check=True, timeout=LIMIT_S, **more)


def of_kafka_tools(jars: str, archive: Path) -> None:
    """The classes that any of the tools loads, in one archive."""
    one = ["--from-beginning", "--max-messages", "1", "--timeout-ms", "20000"]

    def runs(bootstrap: str) -> list[list[str]]:
        server = ["--bootstrap-server", bootstrap]
        return [
            [f"{TOOLS}.TopicCommand", *server, "--describe"],
            [f"{TOOLS}.ConsoleProducer", *server, *ORDERS],
            [f"{TOOLS}.consumer.ConsoleConsumer", *server, *ORDERS, *one],
            [f"{TOOLS}.consumer.group.ConsumerGroupCommand", *server, "--describe", "--all-groups"],
            ["kafka.admin.ConfigCommand", *server, "--describe", "--entity-type", "topics"],
            [f"{TOOLS}.VerifiableProducer", *server, *ORDERS, "--max-messages", "1"],
        ]

    of_kafka(jars, archive, runs)


def of_kafka_programs(jars: str, archive: Path) -> None:
    """The same of Kafka's test programs, which have a class path of their own."""
    group = ["--group-id", "archive", "--reset-policy", "earliest"]

    def runs(bootstrap: str) -> list[list[str]]:
        server = ["--bootstrap-server", bootstrap]
        copier = [
            *("--broker-list", bootstrap, "--consumer-group", "copier"),
            *("--input-topic", "orders", "--input-partition", "0", "--output-topic", "copies"),
            *("--transactional-id", "copier", "--max-messages", "1"),
        ]
        return [
            [f"{TOOLS}.VerifiableProducer", *server, *ORDERS, "--max-messages", "1"],
            [f"{TOOLS}.VerifiableConsumer", *server, *ORDERS, *group, "--max-messages", "1"],
            [f"{TOOLS}.TransactionalMessageCopier", *copier],
        ]

    of_kafka(jars, archive, runs)


def of_kafka(jars: str, archive: Path, runs_on: Callable[[str], list[list[str]]]) -> None:
    """`runs_on`: from the brokers' addresses to programs with their arguments."""
    class_path = ":".join(f"{folder}/*" for folder in jars.split(":"))
    java = ["java", "-XX:+UseSerialGC", "-Xlog:disable", "-cp", class_path]
    with tempfile.TemporaryDirectory() as place, Cluster(topology()) as cluster:
        runs = runs_on(cluster.bootstrap)
        lists = [Path(place) / f"{number}.classes" for number in range(len(runs))]
        for words, classes in zip(runs, lists, strict=True):
            command = [*java[:1], f"-XX:DumpLoadedClassList={classes}", *java[1:], *words]
            run(command, input=b"one\n")
        names = dict.fromkeys(line for one in lists for line in one.read_text().splitlines())
        merged = Path(place) / "merged.classes"
        merged.write_text("".join(f"{name}\n" for name in names))
        dump = ["-Xshare:dump", f"-XX:SharedClassListFile={merged}"]
        command = [*java[:1], *dump, f"-XX:SharedArchiveFile={archive}", *java[1:]]
        run(command)


def of_spark(jars: str, archive: Path) -> None:
    """The classes of a session that ingests a topic and audits a run."""
    from confluent_kafka import Producer

    with tempfile.TemporaryDirectory() as place, Cluster(topology()) as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        for number in range(20):
            producer.produce("orders", b"%d" % number)
        producer.flush(20)
        env = {
            **os.environ,
            "SPARK_SUBMIT_OPTS": f"-XX:ArchiveClassesAtExit={archive} -Xlog:disable",
        }
        words = [cluster.bootstrap, jars, place]
        command = [sys.executable, "-c", SPARK_PROGRAM, *words]
        run(command, env=env, cwd=ROOT)


KINDS: Final[dict[str, Callable[[str, Path], None]]] = {
    "kafka-tools": of_kafka_tools,
    "kafka-programs": of_kafka_programs,
    "spark": of_spark,
}


if __name__ == "__main__":
    _, kind, jars, archive = sys.argv
    Path(archive).parent.mkdir(parents=True, exist_ok=True)
    folders = ":".join(str(Path(folder).resolve()) for folder in jars.split(":"))
    KINDS[kind](folders, Path(archive).resolve())
