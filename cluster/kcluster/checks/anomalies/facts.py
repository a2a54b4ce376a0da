"""The facts of anomalies, as values: about each record concerned, and about neighbouring records.

Owns: these types.  Never: finds an anomaly (its own file does), words it (words.py).  Kafka: no
counterpart.
"""

from __future__ import annotations

from msgspec import Struct

from kcluster.checks.settings import Setting
from kcluster.clients.ledger import Partition
from kcluster.events.base import kind_of


class AnomalyFact(Struct, frozen=True, tag_field="kind", tag=kind_of):
    """A further fact that the text of an anomaly needs; neighbouring findings share it."""


class Acked(AnomalyFact, frozen=True):
    """The record was sent with these acks."""

    acks: int


class AckedInEpoch(AnomalyFact, frozen=True):
    """Only the offset of the record, and the leader epoch of its ack, are known."""

    epoch: int


class ReadDifferently(AnomalyFact, frozen=True):
    """Another consumer read `other_value`; consumer "": the log holds it."""

    consumer: str


class AckedOnly(AnomalyFact, frozen=True):
    """The acks of two records contradict each other, whatever the log holds."""


class FailedForCertain(AnomalyFact, frozen=True):
    """The send failed, or its transaction was aborted.  `reader`: the consumer that read the record
    although it is hidden, "" for none."""

    is_aborted: bool
    reader: str


class InTransaction(AnomalyFact, frozen=True):
    """The transaction of the record, by its number among the producer's transactions."""

    number: int
    producer: str


class OfProducer(AnomalyFact, frozen=True):
    """The producer of an open transaction."""

    producer_id: int


class OutputsOf(AnomalyFact, frozen=True):
    """Two producers of a group made an output of this input."""

    group: str
    input_partition: Partition
    input_offset: int
    producers: tuple[str, str]


class CommittedBeyond(AnomalyFact, frozen=True):
    """A group committed this offset."""

    group: str
    offset: int


class SkippedTo(AnomalyFact, frozen=True):
    """The next offset that the consumer received."""

    offset: int


class GivenTo(AnomalyFact, frozen=True):
    """A partition was given to a member of a group while another one held it."""

    member: str
    holder: str


class AcceptedBy(AnomalyFact, frozen=True):
    """A share group had accepted the record, by the member `before`; "" if this does not matter."""

    group: str
    before: str = ""


class DeliveryCount(AnomalyFact, frozen=True):
    """The count of a delivery to a share group, and its limit.  `is_again`: the count did not grow
    although the record had been released."""

    group: str
    count: int
    limit: int
    is_again: bool


class WithoutLeader(AnomalyFact, frozen=True):
    """The replicas of a partition that has no leader, by the controller's metadata."""

    isr: tuple[int, ...]
    elr: tuple[int, ...]
    replicas: tuple[int, ...]


class Finding(Struct, frozen=True):
    """One record of an anomaly.

    `offset`: the record's actual or expected offset, -1 if unknown.  `other`: a second offset: of
    the duplicate, or of the record sent or read before; for a lost record without an offset, its
    number among its producer's sends to the partition.  `other_value`: the value of a second
    record.  `allowed`: the setting that allows the anomaly.
    """

    name: str
    partition: Partition
    client: str
    offset: int
    value: bytes | None
    other: int = -1
    fact: AnomalyFact | None = None
    allowed: Setting = Setting.NONE
    other_value: bytes | None = None
    at_ms: int = -1


class AnomalyFacts(Struct, frozen=True):
    """The facts of `count` neighbouring findings of one kind, client, fact and setting.

    `name`: the anomaly's name in ANOMALIES; `first` and `last`: the offsets, -1 if unknown;
    `values`: the values of the first and the last record; `allowed`: the setting that allows the
    anomaly, "" for none; `at_ms`: the time of the first send or read; `other`, `other_value`: from
    the first finding; `last_other`: `other` of the last finding.
    """

    name: str
    partition: Partition
    count: int = 1
    first: int = -1
    last: int = -1
    values: tuple[bytes | None, bytes | None] = (None, None)
    client: str = ""
    allowed: Setting = Setting.NONE
    at_ms: int = -1
    other: int = -1
    last_other: int = -1
    other_value: bytes | None = None
    fact: AnomalyFact | None = None
