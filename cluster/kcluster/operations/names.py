"""Names: of partitions as people write them, and everything that one scenario may name.

Owns: PartitionName, Names, the messages about missing names.  Never: collects the names
of a scenario (scenario/language/naming.py does).  Kafka: kafka-topics --describe.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from kcluster.config.files.problems import nearest, show, unknown
from kcluster.operations.errors import ClusterError
from kcluster.operations.python_values import MAX_INT, number_in, text_in
from kcluster.protocol.names import NameFault, has_internal_prefix, name_fault

PartitionName = tuple[str, int]

_SEPARATED: Final = re.compile(r"([A-Za-z0-9._-]{1,249})[:/,[]([0-9]{1,9})]?")
"""A partition as other tools write it: `orders:0`, `orders[0]`."""
_PARTITION: Final = re.compile(r"([A-Za-z0-9._-]{1,249})-([0-9]{1,9})")


class Names(Struct, frozen=True):
    """The names of one scenario.  `topics`: partition counts by name, None for an unknown count.
    `from_steps`: names of brokers from `as:`.  `creates_topics`: whether a client's Metadata
    request may create a topic."""

    topics: Mapping[str, int | None]
    brokers: Sequence[int]
    racks: Sequence[str]
    clients: Sequence[str]
    from_steps: Sequence[str]
    creates_topics: bool

    def topic_problem(self, topic: str) -> str:
        """The reason why no such topic can exist; "" if it can."""
        if topic in self.topics or has_internal_prefix(topic):
            return ""
        if name_fault(topic) is NameFault.CHARACTERS:
            return f"{show(topic)} is not a topic's name; write [orders, bills] for several topics"
        if self.creates_topics and nearest(topic, self.topics) is None:
            return ""
        return f"{show(topic)}: {unknown('topic', topic, self.topics)}"

    def partition_problem(self, topic: str, partition: int) -> str:
        """The reason why no such partition can exist; "" if it can."""
        problem = self.topic_problem(topic)
        count = self.topics.get(topic)
        if problem or count is None or partition < count:
            return problem
        plural = "s" if count > 1 else ""
        return f"{topic} has {count} partition{plural}, not one numbered {partition}"

    def may_be_client(self, name: str) -> bool:
        """Whether the name is a client of the workload, or may be a client from outside.  An
        outside client's id is not known beforehand, so it must not resemble the name of a
        workload's client."""
        return name in self.clients or "*" in name or nearest(name, self.clients) is None


def partition_name(text: str) -> PartitionName:
    """The partition in `orders-0`: ("orders", 0)."""
    match = _PARTITION.fullmatch(text.strip())
    if match is None:
        other = _SEPARATED.fullmatch(text.strip())
        if other is not None:
            raise ValueError(f"a partition is written with a dash: {other[1]}-{other[2]}")
        raise ValueError("not a partition; one is written like orders-0")
    return match[1], int(match[2])


def partition_in(topic: str, partition: int | None = None) -> PartitionName:
    """A partition as Python users name it: `("orders", 0)` or `"orders-0"`."""
    text_in("topic", topic)
    if partition is not None:
        return topic, number_in("partition", partition, 0, MAX_INT, is_whole=True)
    try:
        return partition_name(topic)
    except ValueError as error:
        raise ClusterError(f"{topic}: {error}") from None
