"""The judgement of a history: valid, invalid or unknown, with the operations that prove it.

Owns: Judgment and its outcome.  Never: finds an anomaly (parts.py), words a judgement (words.py).
Kafka: no counterpart; the checker of jepsen.tests.kafka, whose names the anomalies have.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from kcluster.checks.anomalies import Anomaly
from kcluster.checks.verdict_facts import INVALID, UNKNOWN, VALID
from kcluster.clients.ledger import Partition, ReadRecord, SentRecord
from kcluster.judge.cycles import WriteCycle
from kcluster.judge.history import LogEnd, OperationPlace, Passed


class Proof(Struct, frozen=True):
    """An operation that proves an anomaly: a send, a read, the end of a log or a position, and its
    place in a file."""

    operation: SentRecord | ReadRecord | LogEnd | Passed
    origin: OperationPlace


class Proven(Struct, frozen=True):
    """An anomaly with its proofs, in the order of their operations' time."""

    anomaly: Anomaly
    proofs: tuple[Proof, ...]


class Undecided(Struct, frozen=True):
    """The promised records of a partition of which the history does not show whether they are kept.
    `first`, `last`: the offsets of their acks, -1 if none has one; `read_to`: the last offset that
    was read, -1 for none."""

    partition: Partition
    count: int
    first: int
    last: int
    read_to: int


class Judgment(Struct, frozen=True):
    """The judgement.  `sent`, `acked`, `read`: records; `undecided`, `missing`: why a judgement
    without anomalies is unknown: records of which the history does not show whether they are kept,
    and the reasons for which parts of the history are missing."""

    sent: int
    acked: int
    read: int
    proven: tuple[Proven, ...] = ()
    cycles: tuple[WriteCycle, ...] = ()
    undecided: tuple[Undecided, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def outcome(self) -> str:
        """valid, invalid or unknown.  A cycle of writes alone is allowed: Kafka's transactions do
        not keep the writes of others out."""
        if self.proven or any(not cycle.is_allowed for cycle in self.cycles):
            return INVALID
        if self.undecided or self.missing or not self.sent + self.read:
            return UNKNOWN
        return VALID

    def without_findings(self) -> Judgment:
        """The judgement without the finding about each record."""
        return replace(self, proven=tuple(map(without_findings, self.proven)))


def without_findings(proven: Proven) -> Proven:
    """A proven anomaly without the finding about each record."""
    return Proven(replace(proven.anomaly, findings=()), proven.proofs)
