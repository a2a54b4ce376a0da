"""Everything that one scenario may name: topics, brokers, racks, clients.

Owns: the names, and what is wrong with one that is not there.  Never: collects them from a scenario
(naming.py does).  Kafka: no counterpart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from kcluster.config.files.problems import nearest, show, unknown
from kcluster.protocol.names import has_internal_prefix


class Names(Struct, frozen=True):
    """The names of one scenario.  `topics`: partition counts by name, None if it is not known.
    `from_steps`: names of brokers from `as:`.  `creates_topics`: a client's Metadata request may
    create a topic."""

    topics: Mapping[str, int | None]
    brokers: Sequence[int]
    racks: Sequence[str]
    clients: Sequence[str]
    from_steps: Sequence[str]
    creates_topics: bool

    def topic_problem(self, topic: str) -> str:
        """Why there can be no such topic; "" if there can."""
        if topic in self.topics or has_internal_prefix(topic):
            return ""
        if self.creates_topics and nearest(topic, self.topics) is None:
            return ""
        return f"{show(topic)}: {unknown('topic', topic, self.topics)}"

    def partition_problem(self, topic: str, partition: int) -> str:
        """Why there can be no such partition; "" if there can."""
        problem = self.topic_problem(topic)
        count = self.topics.get(topic)
        if problem or count is None or partition < count:
            return problem
        plural = "s" if count > 1 else ""
        return f"{topic} has {count} partition{plural}, not one numbered {partition}"

    def may_be_client(self, name: str) -> bool:
        """Whether it is a client of the workload, or may be one from outside, whose id is not known
        beforehand: then it must not look like a misspelt one of the workload's."""
        return name in self.clients or "*" in name or nearest(name, self.clients) is None
