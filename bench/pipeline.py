"""Two sources of one Spark: format("kcluster") beside the official Kafka connector.

    python -m bench.pipeline --jars build/connector-jars [--bootstrap host:port] [--records N]

Owns: a topic of equal records, the same batch read of it by each source in turn, the table.
Never: judges the figures.  Without `--bootstrap` the topic is in a cluster of this project within
this process, whose CPU time then influences the figures.

CPU time is that of the JVM and its Python workers.  On a shared machine it is more reliable than
elapsed time.  Linux only.
"""

from __future__ import annotations

import argparse
import os
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from bench.wire import Wire, address_of, batch_of, produce_body
from kcluster.config.topology.model import Topology
from kcluster.handle.cluster import Cluster
from kcluster.pipeline.ingest.jars import jar_settings
from kcluster.pipeline.session import open_session
from kcluster.pipeline.source.register import register
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.records.records import Record, build_batch

TOPIC: Final = "bench-pipeline"
ONE: Final = "bench-pipeline-one"
RECORD_BYTES: Final = 100
BATCH_RECORDS: Final = 1_000
PRODUCE_VERSION: Final = 7
CREATE_VERSION: Final = 4


def fill(bootstrap: str, records: int) -> None:
    """Create and fill both topics, with one partition and replication factor 1."""
    with Wire(address_of(bootstrap), 60) as wire:
        topic = m.CreateTopicsRequest.CreatableTopic
        body = m.CreateTopicsRequest(
            topics=[topic(name, 1, 1) for name in (TOPIC, ONE)], timeout_ms=30_000
        )
        wire.ask(ApiKey.CREATE_TOPICS, CREATE_VERSION, body)
    time.sleep(2)
    now_ms = time.time_ns() // 1_000_000
    value = bytes(RECORD_BYTES)
    batch = bytes(build_batch([Record(0, now_ms, None, value) for _ in range(BATCH_RECORDS)]))
    with Wire(leader_of(bootstrap, TOPIC), 60) as wire:
        for _ in range(records // BATCH_RECORDS):
            answer = wire.ask(ApiKey.PRODUCE, PRODUCE_VERSION, produce_body(TOPIC, 0, batch))
            assert not answer.responses[0].partition_responses[0].error_code, answer
    with Wire(leader_of(bootstrap, ONE), 60) as wire:
        wire.ask(ApiKey.PRODUCE, PRODUCE_VERSION, produce_body(ONE, 0, batch_of(1, 1)))


def leader_of(bootstrap: str, topic: str) -> tuple[str, int]:
    with Wire(address_of(bootstrap), 60) as wire:
        metadata = m.MetadataRequest([m.MetadataRequest.MetadataRequestTopic(name=topic)])
        answer = wire.ask(ApiKey.METADATA, 4, metadata)
    node = answer.topics[0].partitions[0].leader_id
    return next((row.host, row.port) for row in answer.brokers if row.node_id == node)


def read_s(spark: Any, source: str, bootstrap: str, topic: str) -> float:
    """The seconds of one batch read of all columns into the noop sink."""
    begun = time.perf_counter()
    reader = spark.read.format(source).option("kafka.bootstrap.servers", bootstrap)
    frame = reader.option("subscribe", topic).load()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - begun


def cpu_s(root: int) -> float:
    """The CPU seconds of a process and its descendants, including those that have ended."""
    parents: dict[int, tuple[int, int]] = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = place.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # the process has ended
        parents[int(place.parent.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    below, ticks = {root}, 0
    grown = True
    while grown:
        more = {pid for pid, (parent, _) in parents.items() if parent in below} - below
        below |= more
        grown = bool(more)
    ticks = sum(parents[pid][1] for pid in sorted(below) if pid in parents)
    return ticks / os.sysconf("SC_CLK_TCK")


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m bench.pipeline")
    options.add_argument("--jars", required=True)
    options.add_argument("--bootstrap", default="")
    options.add_argument("--records", type=int, default=1_000_000)
    options.add_argument("--times", type=int, default=5)
    chosen = options.parse_args()
    spark = open_session("local[1]", jar_settings(chosen.jars))
    register(spark)
    with ExitStack() as stack:
        bootstrap = chosen.bootstrap
        if not bootstrap:
            bootstrap = stack.enter_context(Cluster(Topology.of(brokers=1))).bootstrap
        fill(bootstrap, chosen.records)
        # The first query of the JVM and of Spark itself counts for neither source.
        spark.range(1).write.format("noop").mode("overwrite").save()
        sources = ("kcluster", "kafka")
        first = {source: read_s(spark, source, bootstrap, ONE) for source in sources}
        later: dict[str, list[float]] = {source: [] for source in sources}
        whole: dict[str, list[float]] = {source: [] for source in sources}
        used: dict[str, list[float]] = {source: [] for source in sources}
        gateway: Any = spark.sparkContext._gateway
        java = gateway.proc.pid
        for _ in range(chosen.times):
            for source in sources:
                later[source].append(read_s(spark, source, bootstrap, ONE))
                before = cpu_s(java)
                whole[source].append(read_s(spark, source, bootstrap, TOPIC))
                used[source].append(cpu_s(java) - before)
    print("| source | rows/s, best | median | CPU s a million | first query | later, 1 record |")
    print("|---|---|---|---|---|---|")
    for source in sources:
        seconds = sorted(whole[source])
        best, median = (chosen.records / s for s in (seconds[0], seconds[len(seconds) // 2]))
        print(
            f"| {source} | {best:,.0f} | {median:,.0f}"
            f" | {min(used[source]) * 1e6 / chosen.records:.1f}"
            f" | {first[source]:.2f} s | {min(later[source]):.2f} s |"
        )


if __name__ == "__main__":
    main()
