"""What all events are built on: frozen values, tagged with the word for their kind.

Owns: `TaggedEvent`, the rule from a class's name to its word.  Never: a kind of event.
Kafka: no counterpart.

Notes hold a `kcluster.contract.Event`, a protocol that all of these fulfil.
"""

from __future__ import annotations

from msgspec import Struct

from kcluster.protocol.names import has_internal_prefix


def kind_of(class_name: str) -> str:
    """The word for a kind of event, from the name of its class: LeaderElected, `leader_elected`."""
    words = "".join(f"_{char.lower()}" if char.isupper() else char for char in class_name)
    return words.removeprefix("_")


class TaggedEvent(Struct, frozen=True, gc=False, tag_field="kind", tag=kind_of):
    """An event that msgspec writes with its kind, and reads again as its type."""

    @property
    def kind(self) -> str:
        """The word for its kind: `leader_elected`."""
        return str(type(self).__struct_config__.tag)

    @property
    def subject(self) -> str:
        """The name of what it happened to, as people type it: `orders-0`, `broker 2`."""
        return self.kind

    @property
    def is_internal(self) -> bool:
        """Whether it happened to one of Kafka's own topics."""
        return has_internal_prefix(self.subject)
