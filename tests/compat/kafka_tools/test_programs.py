"""Kafka's own test programs with the newest Java clients, exactly once or at least once, while
leaders and coordinators die.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kcluster import Cluster, Topology
from tests.compat.kafka_tools.conftest import TOOLS, java_with_newest_clients
from tests.compat.programs.processes import (
    Program,
    break_along,
    check_exactly_once,
    fill,
    wait_until,
)

pytestmark = [
    pytest.mark.clients,
    pytest.mark.slow,
    pytest.mark.xdist_group("kafka programs"),  # a JVM or three at a time
]

COPIED = 2000
SENT = 1000
"""In two seconds."""
LIMIT_S = 60


def events(program: Program, name: str) -> list[dict[str, Any]]:
    """The events of this name that a Verifiable… program printed."""
    return [json.loads(line) for line in list(program.lines) if f'"name":"{name}"' in line]


@pytest.mark.parametrize("group_mode", [False, True], ids=["assigned", "subscribed"])
def test_transactional_message_copier__copies_exactly_once(
    group_mode: bool, tmp_path: Path
) -> None:
    """Two of them, with aborts at random: each has its partition, or they share a group."""
    shape = {"partitions": 2, "replication_factor": 3}
    topology = Topology.of(brokers=3, profile="fast", topics={"source": shape, "sink": shape})

    def copier(number: int) -> list[str]:
        group = "copiers" if group_mode else f"copiers-{number}"
        return java_with_newest_clients(
            f"{TOOLS}.TransactionalMessageCopier",
            *("--broker-list", cluster.bootstrap),
            *("--input-topic", "source", "--input-partition", number, "--output-topic", "sink"),
            *("--consumer-group", group, "--transactional-id", f"copier-{number}"),
            *("--transaction-size", 20, "--enable-random-aborts", "--use-group-metadata"),
            *(["--group-mode"] if group_mode else []),
        )

    with Cluster(topology) as cluster, ExitStack() as stack:
        fill(cluster.bootstrap, "source", COPIED, 2)
        copiers = [stack.enter_context(Program(copier(number), tmp_path)) for number in (0, 1)]
        kills = [
            (1, "leader(sink-0)"),
            (COPIED // 4, "coordinator(copiers)" if group_mode else "coordinator(copiers-0)"),
            (COPIED // 2, "txn copier-0"),
        ]
        break_along(cluster, copiers, "sink", 2, kills)
        for program in copiers:
            program.wait(LIMIT_S)
        check_exactly_once(cluster.bootstrap, "sink", 2, COPIED)


@pytest.mark.parametrize("kind", ["classic", "consumer", "share"])
def test_verifiable__consumers_of_each_group_protocol_read_what_is_acked(
    kind: str, tmp_path: Path
) -> None:
    """A share group acknowledges each record once; others may read some twice after a kill.

    The readers are killed at the end: a share consumer of Kafka 4.3.1 that has a session with a
    broker which its metadata no longer names waits 30 s for it when it closes.
    """
    shape = {"partitions": 4, "replication_factor": 3}
    topology = Topology.of(brokers=3, profile="fast", topics={"records": shape})
    where = ("--topic", "records", "--bootstrap-server")
    patient = tmp_path / "patient.properties"
    patient.write_text("retries=2147483647\nretry.backoff.ms=20\n")
    limits = ("--max-messages", SENT, "--throughput", 500, "--command-config", patient)
    with Cluster(topology) as cluster, ExitStack() as stack:
        bootstrap = cluster.bootstrap

        def start(name: str, *arguments: object) -> Program:
            command = java_with_newest_clients(f"{TOOLS}.{name}", *where, bootstrap, *arguments)
            return stack.enter_context(Program(command, tmp_path))

        if kind == "share":
            group = ("--group-id", "readers", "--offset-reset-strategy", "earliest")
            mode = ("--acknowledgement-mode", "sync")
            readers = [start("VerifiableShareConsumer", *group, *mode) for _ in range(2)]
        else:
            group = ("--group-id", "readers", "--reset-policy", "earliest")
            readers = [
                start("VerifiableConsumer", *group, "--group-protocol", kind) for _ in range(2)
            ]
        producer = start("VerifiableProducer", "--acks", -1, *limits)

        def read() -> Counter[tuple[int, int]]:
            find = _acknowledged if kind == "share" else _consumed
            return Counter(place for reader in readers for place in find(reader))

        programs = [producer, *readers]
        break_along(cluster, programs, "records", 4, [(SENT // 4, "leader(records-0)")])
        wait_until(lambda: bool(read()), "something read", readers)
        cluster.start(cluster.kill("coordinator(readers)"))
        producer.wait(LIMIT_S)
        acked = {
            (event["partition"], event["offset"])
            for event in events(producer, "producer_send_success")
        }
        assert len(acked) == SENT

        wait_until(lambda: acked <= read().keys(), "end of what is acked", readers)
        if kind == "share":
            assert max(read().values()) == 1


def _consumed(reader: Program) -> list[tuple[int, int]]:
    return [
        (part["partition"], offset)
        for event in events(reader, "records_consumed")
        for part in event["partitions"]
        for offset in range(part["minOffset"], part["maxOffset"] + 1)
    ]


def _acknowledged(reader: Program) -> list[tuple[int, int]]:
    return [
        (part["partition"], offset)
        for event in events(reader, "offsets_acknowledged")
        if event["success"]
        for part in event["partitions"]
        for offset in part["offsets"]
    ]
