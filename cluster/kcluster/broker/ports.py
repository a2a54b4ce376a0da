"""A broker's interfaces to its parts: its view of itself and the cluster, and its outbox.

Owns: `BrokerView`, `Outbox`, and the ports whose other side must not be imported.  Never: decides
anything, or knows a part.  Kafka: KafkaConfig, MetadataCache and RequestChannel, which BrokerServer
passes to its parts.

A part takes these, and its sibling parts, in its constructor.  Handlers see all parts (broker.py).
Both are concrete classes, not Protocols: compiled code reads their attributes as fields of a C
struct, where a Protocol's are looked up by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, final

from kcluster.config.eras import TODAY, Era
from kcluster.config.kafka.definitions import BrokerConfig
from kcluster.contract import Effect, Event, Note, NoteId
from kcluster.metadata.image import MetadataImage
from kcluster.principals import BrokerEndpoint
from kcluster.protocol.releases import Release
from kcluster.security.tokens import TokenSettings


@final
class BrokerView:
    """A broker's identity, its configs, and its view of the cluster.

    These fields change: `epoch` (lifecycle.py), `endpoints` (node.py), `config`,
    `reconfigurations` and the content of `image` (publisher.py); a driver sets `check_stores`.
    """

    __slots__ = (
        "check_stores", "cluster_id", "config", "endpoints", "epoch", "era", "image", "node_id",
        "rack", "reconfigurations", "release", "static_config", "tokens", "unused_configs",
    )  # fmt: skip

    def __init__(
        self,
        *,
        node_id: int,
        endpoints: tuple[BrokerEndpoint, ...],
        rack: str | None,
        cluster_id: str,
        release: Release,
        static_config: BrokerConfig,
        unused_configs: Mapping[str, str],
        tokens: TokenSettings | None = None,
        era: Era = TODAY,
    ) -> None:
        self.node_id = node_id
        self.endpoints = endpoints
        """The advertised address of each listener."""
        self.rack = rack
        self.cluster_id = cluster_id
        self.release = release
        """The release whose APIs, versions and errors its clients see."""
        self.era = era
        """The fixes of Kafka that this broker does not have."""
        self.static_config = static_config
        """The configs that the topology sets."""
        self.tokens = tokens
        """The settings of delegation tokens; None if there are none."""
        self.unused_configs = unused_configs
        """Further configs of the topology, as text by Kafka's names, which are described and have
        no effect."""
        self.config = static_config
        """`static_config` with the dynamic configs of the image on top."""
        self.reconfigurations = 0
        """The number of changes of the broker's dynamic configs, which may be to the same value:
        files that they name are then read again."""
        self.check_stores: Callable[[Mapping[str, str]], str | None] | None = None
        """Why the keystores that the broker's dynamic configs would name, by Kafka's names, cannot
        be used; None if they can.  The core opens no files."""
        self.epoch = -1
        """The broker epoch that the controller gave to this life; -1 before registration."""
        self.image = MetadataImage()
        """The metadata image: one object for the whole life, changed in place by records."""


@final
class Outbox:
    """The effects of the current step, in the order in which the driver performs them."""

    __slots__ = ("_node_id", "_notes_written", "effects", "now_ms")

    def __init__(self, node_id: int, first_note: int) -> None:
        self._node_id = node_id
        self._notes_written = first_note
        self.effects: list[Effect] = []
        """The effects, which the node takes when the step ends."""
        self.now_ms = 0
        """The time of the current step."""

    def emit(self, effect: Effect) -> None:
        """Add an effect to the current step."""
        self.effects.append(effect)

    def note(self, event: Event, cause: NoteId | None = None) -> NoteId:
        """Note an event; the returned id can be the cause of a later note."""
        self._notes_written += 1
        note_id = (self._node_id, self._notes_written)
        self.effects.append(Note(note_id, self.now_ms, event, cause))
        return note_id


class InternalTopicListener(Protocol):
    """A coordinator's interface for events of an internal topic, and of deleted topics."""

    @property
    def topic(self) -> str:
        """The name of the internal topic."""

    def on_elected(self, partition: int, now_ms: int) -> None:
        """Begin: this broker now leads a partition of the internal topic."""

    def on_resigned(self, partition: int, now_ms: int) -> None:
        """End: this broker no longer leads that partition."""

    def on_topic_deleted(self, name: str, now_ms: int) -> None:
        """Take note that a topic, of any name, was deleted."""
