"""What clients sent, read and were told, as they know it: the outside half of the truth.

Owns: the values of a run's ledger.  Never: judges them (checks/), looks into a node.
Kafka: no counterpart; the three outcomes of a send are Jepsen's.

Every value is sent once by the application, so it is its own name.  A send ends as one of
  acked    the answer said so, with an offset
  failed   an answer said that nothing was done
  unknown  no answer, or one that leaves it open: the record may be there or not
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

Partition = tuple[str, int]
"""(topic, partition)."""


class Outcome(StrEnum):
    """What a producer knows of a send."""

    ACKED = "acked"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Send(Struct):
    """One record given to a producer.  `offset` is known when acked, unless acks=0.

    `attempts`: Produce requests that carried it.  `error`: Kafka's name of the last one it met, on
    the way to whatever outcome.  Times in ms, -1 while it is not so far."""

    producer: str
    partition: Partition
    value: bytes
    acks: int
    idempotent: bool
    outcome: Outcome = Outcome.UNKNOWN
    offset: int = -1
    sent_ms: int = -1
    ended_ms: int = -1
    attempts: int = 0
    error: str = ""


class Read(Struct, frozen=True):
    """One record given to a consumer; `restarted`: the first after it chose a position itself."""

    consumer: str
    partition: Partition
    offset: int
    value: bytes | None
    restarted: bool = False
    at_ms: int = -1


class Told(Struct, frozen=True):
    """An error that a client was told, or met: `api` and `error` by Kafka's names, `DISCONNECTED`
    and `REQUEST_TIMED_OUT` (the client's own) where no answer came."""

    at_ms: int
    client: str
    api: str
    error: str
    partition: Partition | None = None


class Ledger:
    """All sends and reads of a run, in order."""

    def __init__(self) -> None:
        self.sends: list[Send] = []
        self.reads: list[Read] = []
        self.commits: list[tuple[str, Partition, int, bool]] = []
        """(group, partition, offset, True for an acked commit and False for a later look)."""
        self.told: list[Told] = []
