"""Figures within one Python process: python -m bench.clients.in_process FIGURE --runs N.

Owns: `warm_ack_ms` (a Cluster is created, opened and written to) and `virtual_ms` (a scenario in
virtual time).  Never: counts the first run, which imports and compiles code.  Prints the median.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from typing import Final

from bench.virtual_scenario import run_scenario
from bench.wire import METADATA_VERSION, PRODUCE_VERSION, Wire, batch_of, produce_body
from kcluster.config.topology.model import Topology
from kcluster.handle.cluster import Cluster
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey

TOPIC: Final = "orders"


def warm_ack_ms() -> float:
    """The time from the call of Cluster(...) to the first record's ack, acks=all, by a client that
    finds the leader by Metadata.  The topology is loaded before."""
    topology = Topology.of(brokers=3, topics={TOPIC: {"partitions": 6, "replication_factor": 3}})
    batch = batch_of(1, 100)
    began_s = time.perf_counter()
    with Cluster(topology) as cluster:
        host, port = cluster.bootstrap.split(",")[0].split(":")
        question = m.MetadataRequest(
            topics=[m.MetadataRequest.MetadataRequestTopic(name=TOPIC)],
            allow_auto_topic_creation=False,
        )
        with Wire((host, int(port))) as wire:
            answer = wire.ask(ApiKey.METADATA, METADATA_VERSION, question)
        partition = answer.topics[0].partitions[0]
        leader = next(x for x in answer.brokers if x.node_id == partition.leader_id)
        with Wire((leader.host, leader.port)) as wire:
            body = produce_body(TOPIC, partition.partition_index, batch)
            answer = wire.ask(ApiKey.PRODUCE, PRODUCE_VERSION, body)
        took_ms = (time.perf_counter() - began_s) * 1e3
    error = answer.responses[0].partition_responses[0].error_code
    if error:
        raise SystemExit(f"the record was refused with error {error}")
    return took_ms


def virtual_ms() -> float:
    """The time of one run of the scenario, whose outcome must be correct."""
    began_s = time.perf_counter()
    outcome = run_scenario()
    took_ms = (time.perf_counter() - began_s) * 1e3
    if outcome.lost or outcome.acked != outcome.sent:
        raise SystemExit(f"the scenario went wrong: {outcome}")
    return took_ms


FIGURES: Final = {"warm_ack_ms": warm_ack_ms, "virtual_ms": virtual_ms}


def main() -> None:
    parser = argparse.ArgumentParser(description="figures of one process")
    parser.add_argument("figure", choices=FIGURES)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    measure = FIGURES[options.figure]
    values = [measure() for _ in range(1 + options.runs)][1:]
    print(json.dumps({options.figure: statistics.median(values)}))


if __name__ == "__main__":
    main()
