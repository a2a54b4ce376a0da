"""The base class of all events: frozen values, tagged with the name of their kind.

Owns: `TaggedEvent`, and the rule by which a kind's name follows from its class.  Never: defines a
kind.  Kafka: no counterpart.

A note holds a `kcluster.contract.Event`, a protocol that all of these types implement.
"""

from __future__ import annotations

from msgspec import Struct

from kcluster.protocol.names import has_internal_prefix


def kind_of(class_name: str) -> str:
    """The name of a kind, from the name of its class: `leader_elected` for LeaderElected."""
    words = "".join(f"_{char.lower()}" if char.isupper() else char for char in class_name)
    return words.removeprefix("_")


class TaggedEvent(Struct, frozen=True, gc=False, tag_field="kind", tag=kind_of):
    """An event that msgspec encodes with its kind and decodes as its type."""

    @property
    def kind(self) -> str:
        """The name of the event's kind: `leader_elected`."""
        return str(type(self).__struct_config__.tag)

    @property
    def subject(self) -> str:
        """The name of the event's subject: `orders-0`, `broker 2`."""
        return self.kind

    @property
    def is_internal(self) -> bool:
        """Whether the event's subject is an internal topic or a partition of one."""
        return has_internal_prefix(self.subject)
