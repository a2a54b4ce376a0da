"""What keeps a cluster from its rest: as values, each with its sentence.

Owns: these facts, and their sentences.  Never: finds one (settled.py does).
Kafka: no counterpart; UnderReplicatedPartitions and OfflinePartitionsCount count some of them.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from kcluster.deaths import ProcessState
from kcluster.operations.names import PartitionName


class Unrest(Struct, frozen=True, kw_only=True):
    """One reason why a cluster, or a run, is not at rest.  `broker`: the broker that it is about,
    -1 for none; `partition`: its topic and number, None for none."""

    TEXT: ClassVar[str]
    """Its sentence, with the names of its fields in braces."""
    broker: int = -1
    partition: PartitionName | None = None

    @property
    def name(self) -> str:
        """The partition's name; "" without one."""
        return f"{self.partition[0]}-{self.partition[1]}" if self.partition else ""

    @property
    def subject(self) -> str:
        """What it is about: `orders-0` or `broker 2`; "" for something else."""
        return self.name or (f"broker {self.broker}" if self.broker >= 0 else "")

    @property
    def text(self) -> str:
        """Its sentence, for people; no code reads it."""
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        return self.TEXT.format(**{**values, "name": self.name})


class BrokerNotUp(Unrest, frozen=True, kw_only=True):
    TEXT = "broker {broker} is {state}"
    state: ProcessState


class BrokerShutsDown(Unrest, frozen=True, kw_only=True):
    TEXT = "broker {broker} is shutting down"


class BrokerUnregistered(Unrest, frozen=True, kw_only=True):
    TEXT = "broker {broker} is not registered"


class BrokerOfEarlierLife(Unrest, frozen=True, kw_only=True):
    """Its registration is that of an earlier process."""

    TEXT = "broker {broker} is not registered in its current life"


class BrokerStaysFenced(Unrest, frozen=True, kw_only=True):
    TEXT = "broker {broker} is fenced"


class BrokerUnaware(Unrest, frozen=True, kw_only=True):
    """It is unfenced, and does not serve clients yet."""

    TEXT = "broker {broker} does not know yet that it is unfenced"


class NoLeader(Unrest, frozen=True, kw_only=True):
    TEXT = "{name} has no leader; ISR {isr}, ELR {elr}"
    isr: list[int]
    elr: list[int]


class MetadataBehind(Unrest, frozen=True, kw_only=True):
    TEXT = "broker {broker} has applied metadata up to {applied} of {newest}"
    applied: int
    newest: int


class OutsideIsr(Unrest, frozen=True, kw_only=True):
    """A replica, `broker`, is not in sync.  `leader`: -1 if the ends of logs are not known;
    `proposed`: the ISR that the leader has proposed since, None for none."""

    isr: list[int]
    leader: int = -1
    log_end_offset: int = -1
    leader_end_offset: int = -1
    proposed: list[int] | None = None

    @property
    def text(self) -> str:
        words = f"{self.name}: broker {self.broker} is not in the ISR {self.isr}"
        if self.leader >= 0:
            ends = f"that of leader {self.leader} at {self.leader_end_offset}"
            words += f"; its log ends at {self.log_end_offset}, {ends}"
        if self.proposed is not None:
            words += f"; the leader's proposal of the ISR {self.proposed} has not been decided"
        return words
