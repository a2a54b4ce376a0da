"""Events of the network and of protocol faults: deliberate interference with messages.

Owns: their facts.  Never: words for them (words/).
Kafka: no counterpart; in production: iptables, tc, or a proxy between clients and brokers.

Nodes are given by their ids in the fabric; `clients` has the names of the clients among them.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from kcluster.events.base import TaggedEvent
from kcluster.events.rule_effects import AnyEffect

Nodes = tuple[int, ...]
Links = tuple[tuple[int, int], ...]
"""Links as (source, destination)."""

ANY_CLIENT: Final = "*"
"""The name of the node of all outside clients that have no node of their own."""


class LinkEvent(TaggedEvent, frozen=True):
    """The base of events that happen to one direction of a link."""

    source: int
    destination: int

    @property
    def subject(self) -> str:
        return f"link {self.source}>{self.destination}"


class LinkCut(LinkEvent, frozen=True):
    """A link was cut: messages on it are lost, and neither end is notified."""


class LinkHealed(LinkEvent, frozen=True):
    """A link is no longer cut."""


class LinkReset(LinkEvent, frozen=True):
    """A message was lost permanently: its sender timed out, and the connection is reset."""


class NetworkEvent(TaggedEvent, frozen=True):
    """The base of events in which many links change at once.  `links`: these links; `clients`:
    names of clients by node id."""

    links: Links
    clients: dict[int, str]

    @property
    def subject(self) -> str:
        return "network"


class _SidesChanged(NetworkEvent, frozen=True):
    """The base of events that change the sides of the network.  `sides`: sets of nodes that reach
    each other; a single set if no link is cut.  `joint`: nodes that reach all sides; `astride`:
    clients that reach more than one."""

    sides: tuple[Nodes, ...]
    joint: Nodes
    astride: Nodes


class NetworkCut(_SidesChanged, frozen=True):
    """No message passes from `nodes` to `others` nor, unless `one_way`, back.  `links`: the links
    that this operation cut; all others between the nodes were cut before."""

    nodes: Nodes
    others: Nodes
    one_way: bool


class NetworkHealed(_SidesChanged, frozen=True):
    """Links are no longer cut: `links`."""


class NetworkShaped(NetworkEvent, frozen=True):
    """Latency, jitter, loss or a bandwidth limit were added to links (see network/shapes.py); or,
    with `undone`, removed.  `of_disk`: whether it simulates a slow disk of `nodes`.  `remaining`:
    the changed links that are still shaped; `restored`: whether no link of the cluster is shaped
    any more."""

    nodes: Nodes = ()
    others: Nodes = ()
    one_way: bool = False
    latency_us: int = 0
    jitter_us: int = 0
    distribution: str = "constant"
    loss: float = 0.0
    bytes_per_s: int = 0
    of_disk: bool = False
    undone: bool = False
    remaining: Links = ()
    restored: bool = False


class RuleEvent(TaggedEvent, frozen=True):
    """The base of events that happen to a rule for requests."""

    rule: str

    @property
    def subject(self) -> str:
        return f"rule {self.rule}"


class RuleCalls(Struct, frozen=True, gc=False):
    """The choice among the matching requests, as in `faults.rules.Rule`.  `versions`: the lowest
    and the highest version of the API, or empty."""

    versions: tuple[int, ...]
    nth: int
    every: int
    first: int
    times: int
    probability: float


class RuleAdded(RuleEvent, frozen=True):
    """A rule is in force.  It applies to requests of these `apis` to these `brokers` (empty: any),
    for partitions that match `topic` and `partitions` (None: any request), from clients that match
    the pattern `client`.  `applies_to`: the choice among these requests; None: all of them."""

    effect: AnyEffect
    apis: tuple[str, ...]
    topic: str | None
    partitions: tuple[int, ...]
    client: str
    brokers: tuple[int, ...]
    applies_to: RuleCalls | None = None


class RuleHit(RuleEvent, frozen=True):
    """A rule applied to a request, for the `hit`-th time.  `is_last_noted`: whether further hits
    are counted but not noted."""

    broker: int
    api: str
    client_id: str
    connection_id: int
    correlation_id: int
    effect: AnyEffect
    hit: int
    is_last_noted: bool


class NodeRuleAdded(RuleEvent, frozen=True):
    """A rule for requests between nodes is in force.  It applies to requests of these `apis` from
    the nodes `sources` to the nodes `destinations` (empty: any), for partitions that match `topic`
    and `partitions` (None: any request).  `applies_to`: the choice among these requests; None: all
    of them."""

    effect: AnyEffect
    apis: tuple[str, ...]
    topic: str | None
    partitions: tuple[int, ...]
    sources: Nodes
    destinations: Nodes
    applies_to: RuleCalls | None = None


class NodeRuleHit(RuleEvent, frozen=True):
    """A rule applied to a request from the node `source` to the node `destination`, or to its
    answer, for the `hit`-th time.  `is_last_noted`: whether further hits are counted but not
    noted."""

    source: int
    destination: int
    api: str
    effect: AnyEffect
    hit: int
    is_last_noted: bool


class RuleRemoved(RuleEvent, frozen=True):
    """A rule is no longer in force; it matched `calls` requests and applied to `hits` of them."""

    hits: int
    calls: int
