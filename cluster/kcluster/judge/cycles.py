"""Cycles between transactions: G0 and G1c of Adya, and precommitted reads, as Jepsen names them.

Owns: the graph of transactions, its cycles.  Never: reads a log that clients did not see.
Kafka: no counterpart; Elle.

An edge a -> b: b wrote the record after a's in a partition (ww), or b read a record of a's (wr).
Kafka's transactions do not keep each other's writes out: cycles of ww edges (G0) are allowed, and
ww edges are left out of G1c, which would be allowed with them, too.  A transaction that read its
own record is a cycle of one: read_committed consumers get no record before its commit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import pairwise

import networkx as nx
from msgspec import Struct

from kcluster.clients.ledger import Partition, SentRecord, TransactionOutcome
from kcluster.evidence.history import FinalLog
from kcluster.judge.history import ReadInTransaction

TransactionKey = tuple[str, int]
"""A producer, and the number of its transaction."""


class CycleName(StrEnum):
    """The name of a cycle."""

    G0 = "G0"
    G1C = "G1c"
    PRECOMMITTED_READ = "precommitted-read"


class CycleStep(Struct, frozen=True):
    """One edge of a cycle.  `value`: the record of `earlier`, at `offset`, which `later` read
    (`is_read`), or which stands before a record of `later`."""

    earlier: TransactionKey
    later: TransactionKey
    partition: Partition
    offset: int
    value: bytes | None
    is_read: bool


class WriteCycle(Struct, frozen=True):
    """A cycle of transactions, by its steps."""

    name: CycleName
    steps: tuple[CycleStep, ...]

    @property
    def is_allowed(self) -> bool:
        """Whether Kafka's transactions allow it."""
        return self.name is CycleName.G0


def writers_of(sends: Iterable[SentRecord]) -> dict[bytes | None, TransactionKey]:
    """The transactions of one partition's records, without those that were aborted."""
    return {
        send.value: (send.producer, send.transaction.number)
        for send in sends
        if send.transaction is not None
        and send.transaction.outcome is not TransactionOutcome.ABORTED
    }


def overwrites_of(
    partition: Partition, log: FinalLog, writers: Mapping[bytes | None, TransactionKey]
) -> Iterator[CycleStep]:
    """The ww edges of one partition, in the order of its log."""
    before: tuple[TransactionKey, int, bytes | None] | None = None
    for offset, value in log.records:
        writer = writers.get(value)
        if writer is None:
            continue
        if before is not None and before[0] != writer:
            yield CycleStep(before[0], writer, partition, *before[1:], False)
        before = (writer, offset, value)


def dependencies_of(
    reads: Iterable[ReadInTransaction],
    writers: Mapping[bytes | None, TransactionKey],
    read_committed: Collection[str],
) -> Iterator[CycleStep]:
    """The wr edges of one partition's reads.  `read_committed`: the consumers of this level; others
    may read the records of their own transaction."""
    for read in reads:
        writer = writers.get(read.value)
        reader = (read.client, read.number)
        if writer is not None and (writer != reader or read.client in read_committed):
            yield CycleStep(writer, reader, read.partition, read.offset, read.value, True)


def write_cycles(
    overwrites: Iterable[CycleStep], dependencies: Iterable[CycleStep]
) -> Iterator[WriteCycle]:
    """The shortest cycle of each group of transactions that depend on each other, and those that
    depend on themselves."""
    own: dict[TransactionKey, CycleStep] = {}
    for name, steps in ((CycleName.G0, overwrites), (CycleName.G1C, dependencies)):
        graph: nx.DiGraph[TransactionKey] = nx.DiGraph()
        for step in steps:
            if step.earlier == step.later:
                own.setdefault(step.earlier, step)
            else:
                graph.add_edge(step.earlier, step.later, step=step)
        yield from _cycles(name, graph)
    for step in own.values():
        yield WriteCycle(CycleName.PRECOMMITTED_READ, (step,))


def _cycles(name: CycleName, graph: nx.DiGraph[TransactionKey]) -> Iterator[WriteCycle]:
    for component in nx.strongly_connected_components(graph):
        if len(component) > 1:
            # Sorted, so that the same history gives the same cycle.
            part = graph.subgraph(component)
            start = min(component)
            path = _shortest_back(part, start)
            yield WriteCycle(name, tuple(part.edges[edge]["step"] for edge in path))


def _shortest_back(
    graph: nx.DiGraph[TransactionKey], start: TransactionKey
) -> list[tuple[TransactionKey, TransactionKey]]:
    """The edges of the shortest way from a transaction back to itself."""
    ways = [
        nx.shortest_path(graph, follower, start) for follower in sorted(graph.successors(start))
    ]
    nodes = [start, *min(ways, key=len)]
    return list(pairwise(nodes))
