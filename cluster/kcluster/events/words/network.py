"""Words for events of the network and of rules.

Owns: these words.  Never: decides anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kcluster.contract import CONTROLLER_ID
from kcluster.events.network import (
    ANY_CLIENT,
    LinkCut,
    LinkHealed,
    LinkReset,
    NetworkCut,
    NetworkHealed,
    NetworkShaped,
    NodeRuleAdded,
    NodeRuleHit,
    Nodes,
    RuleAdded,
    RuleHit,
    RuleRemoved,
)
from kcluster.events.rule_effects import (
    AnswerError,
    AnyEffect,
    CapVersion,
    Close,
    Corruption,
    CorruptRecords,
    Delay,
    Drop,
    DuplicateRecords,
    EmptyFetch,
    Reorder,
    ReplaceSchemaId,
    StaleMetadata,
    ThrottleClient,
)
from kcluster.events.words.base import counted, text_of
from kcluster.events.words.reasons import brokers_text


@text_of.register
def _(_event: LinkCut) -> str:
    return "cut: messages are lost"


@text_of.register
def _(_event: LinkHealed) -> str:
    return "healed"


@text_of.register
def _(_event: LinkReset) -> str:
    return "a message was lost; the connection is reset when its sender times out"


@text_of.register
def _(event: NetworkCut) -> str:
    nodes, others = node_names(event.nodes, event.clients), node_names(event.others, event.clients)
    ways = f"from {nodes} to {others}" if event.one_way else f"between {nodes} and {others}"
    return f"no messages pass {ways}; {_sides(event)}"


@text_of.register
def _(event: NetworkHealed) -> str:
    return f"{counted(len(event.links), 'link')} healed; {_sides(event)}"


def _sides(event: NetworkCut | NetworkHealed) -> str:
    """The sides of the network in words: `sides: {1} | {2, 3, controller}`."""
    clients = event.clients
    sides = " | ".join(node_names(side, clients) for side in event.sides)
    bridged = f", bridged by {node_names(event.joint, clients)}" if event.joint else ""
    several = f"; on several sides: {node_names(event.astride, clients)}" if event.astride else ""
    return f"sides: {sides}{bridged}{several}"


@text_of.register
def _(event: NetworkShaped) -> str:
    if event.undone:
        return shape_text(event)
    nodes, others = node_names(event.nodes, event.clients), node_names(event.others, event.clients)
    if all(node in event.others for node in event.nodes):
        return f"all links {'from' if event.one_way else 'of'} {nodes}: {shape_text(event)}"
    return f"{nodes} {'to' if event.one_way else 'and'} {others}: {shape_text(event)}"


def shape_text(event: NetworkShaped) -> str:
    """The impairment that was added to links, in words, or its removal."""
    if event.undone:
        other = ", except for other impairments" if event.remaining else ""
        return f"links restored{other}"
    if event.of_disk:
        return f"disk takes {event.latency_us / 1000:g} ms per write"
    return impairment_text(
        event.latency_us, event.jitter_us, event.distribution, event.loss, event.bytes_per_s
    )


def impairment_text(
    latency_us: int, jitter_us: int, distribution: str, loss: float, bytes_per_s: int
) -> str:
    """A link's impairment of messages in words: `latency 30 ms, jitter 10 ms normal, 5% lost`."""
    words = []
    if latency_us or jitter_us:
        words.append(f"latency {latency_us / 1000:g} ms")
    if jitter_us:
        words.append(f"jitter {jitter_us / 1000:g} ms {distribution}")
    if loss:
        words.append(f"{loss * 100:g}% lost")
    if bytes_per_s:
        words.append(f"{bytes_per_s:,} bytes/s")
    return ", ".join(words)


def node_names(nodes: Iterable[int], clients: Mapping[int, str]) -> str:
    """The names of nodes: `{1, 2, controller, client shop}`."""
    return "{" + ", ".join(_node(node, clients) for node in nodes) + "}"


def _node(node: int, clients: Mapping[int, str]) -> str:
    if node == CONTROLLER_ID:
        return "controller"
    name = clients.get(node)
    if name is None:
        return str(node)
    return "clients from outside" if name == ANY_CLIENT else f"client {name}"


@text_of.register
def _(event: RuleAdded) -> str:
    words = [" or ".join(event.apis) or "any request"]
    if event.topic is not None:
        words.append(f"for {event.topic}-{','.join(map(str, event.partitions)) or '*'}")
    if event.client != "*":
        words.append(f"from {event.client}")
    if event.brokers:
        words.append(f"to {brokers_text(event.brokers)}")
    return f"{' '.join(words)}: {effect_text(event.effect)}"


@text_of.register
def _(event: RuleHit) -> str:
    client = event.client_id or "a client"
    text = f"{event.api} from {client} to broker {event.broker}: {effect_text(event.effect)}"
    return f"{text}{_last(event.is_last_noted)}"


@text_of.register
def _(event: NodeRuleAdded) -> str:
    words = [" or ".join(event.apis) or "any request"]
    if event.topic is not None:
        words.append(f"for {event.topic}-{','.join(map(str, event.partitions)) or '*'}")
    if event.sources or not event.destinations:
        words.append(f"from {_nodes(event.sources)}")
    if event.destinations:
        words.append(f"to {_nodes(event.destinations)}")
    return f"{' '.join(words)}: {effect_text(event.effect)}"


@text_of.register
def _(event: NodeRuleHit) -> str:
    ends = f"from {_nodes((event.source,))} to {_nodes((event.destination,))}"
    return f"{event.api} {ends}: {effect_text(event.effect)}{_last(event.is_last_noted)}"


def _last(is_last_noted: bool) -> str:
    return "; further hits are counted but not logged" if is_last_noted else ""


def _nodes(nodes: Nodes) -> str:
    """`broker 2`, `the controller`, `brokers 1 and 2`; `any node` for none."""
    brokers = tuple(node for node in nodes if node != CONTROLLER_ID)
    words = [brokers_text(brokers)] if brokers else []
    words += ["the controller"] if len(brokers) < len(nodes) else []
    return " and ".join(words) or "any node"


def effect_text(effect: AnyEffect) -> str:
    """The effect of a rule on a request or its reply, in words."""
    match effect:
        case AnswerError(error=error, after=after):
            return f"answers {error}{' after serving the request' if after else ''}"
        case Delay(delay_ms=delay_ms, of=of, jitter_ms=jitter_ms):
            more = f" to {delay_ms + jitter_ms}" if jitter_ms else ""
            return f"delays the {of} by {delay_ms}{more} ms"
        case Drop(of=of, close=close):
            return f"drops the {of}{', closes the connection' if close else ''}"
        case Close(when=when):
            return f"closes the connection {when} the request is served"
        case ThrottleClient(throttle_ms=throttle_ms):
            return f"throttles for {throttle_ms} ms"
        case StaleMetadata():
            return "answers from old metadata"
        case Reorder(limit_ms=limit_ms):
            return f"lets another pass first, for {limit_ms} ms at most"
        case DuplicateRecords():
            return "appends the records a second time"
        case CorruptRecords(of=of):
            crc = "wrong" if of is Corruption.CRC else "right"
            return f"changes a value in the answer, with a {crc} CRC"
        case EmptyFetch():
            return "leaves the records out of the answer"
        case ReplaceSchemaId(schema_id=schema_id):
            return f"puts schema id {schema_id} into the values of the answer"
        case CapVersion(max_version=max_version):
            return f"caps the version at {max_version}"


@text_of.register
def _(event: RuleRemoved) -> str:
    return f"removed; it applied to {event.hits} of {counted(event.calls, 'matching request')}"
