"""What a run still waits for, besides its cluster: as values, each with its sentence.

Owns: these facts, and their sentences.  Never: finds one (run_clients.py does).
Kafka: no counterpart.
"""

from __future__ import annotations

from kcluster.operations.unrest import Unrest


class SendsOpen(Unrest, frozen=True, kw_only=True):
    TEXT = "producer {producer} has sends without an outcome"
    producer: str


class SendsUnderWay(Unrest, frozen=True, kw_only=True):
    TEXT = "records sent with acks=0 may arrive for {limit_ms} ms"
    limit_ms: int


class NoMarker(Unrest, frozen=True, kw_only=True):
    """A transaction of this producer is open in the partition, and its coordinator is to end it."""

    TEXT = "{name}: the transaction of producer {producer_id} has no marker"
    producer_id: int


class ReaderInTransaction(Unrest, frozen=True, kw_only=True):
    TEXT = "{reader} is in a transaction"
    reader: str


class Unassigned(Unrest, frozen=True, kw_only=True):
    """No member of a group that runs, `readers`, has the partition."""

    TEXT = "{name} is assigned to none of {readers}"
    readers: str


class Unread(Unrest, frozen=True, kw_only=True):
    TEXT = "{reader} has read {name} up to {position} of {end_offset}"
    reader: str
    position: int
    end_offset: int


class SharersHadNoTime(Unrest, frozen=True, kw_only=True):
    TEXT = "share groups had less than {calm_ms} ms to go on"
    calm_ms: int


class SharerIsBusy(Unrest, frozen=True, kw_only=True):
    TEXT = "{reader} received a record or partitions in the last {calm_ms} ms"
    reader: str
    calm_ms: int


class SharerWaits(Unrest, frozen=True, kw_only=True):
    TEXT = "{reader} waits for an answer to its fetch"
    reader: str


class ShareLoads(Unrest, frozen=True, kw_only=True):
    TEXT = "share group {group} is loading partition {number}"
    group: str
    number: int


class ShareInFlight(Unrest, frozen=True, kw_only=True):
    TEXT = "share group {group}: partition {number} has records in flight"
    group: str
    number: int


class ShareUnassigned(Unrest, frozen=True, kw_only=True):
    TEXT = "{name} is assigned to no member of share group {group}"
    group: str


class ShareNotLoaded(Unrest, frozen=True, kw_only=True):
    TEXT = "share group {group} has not loaded {name}"
    group: str


class EndsAreOld(Unrest, frozen=True, kw_only=True):
    """On a real Kafka, where each log ends was last read before the last ack."""

    TEXT = "the ends of logs are older than the last ack"


class Loops(Unrest, frozen=True, kw_only=True):
    """The run went on and on at one moment.  `what`: the messages that it repeated."""

    TEXT = "{what}"
    what: str
