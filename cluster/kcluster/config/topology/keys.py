"""The keys of topology files: the values, default and meaning of each.

Owns: these Structs; reading, the JSON Schema and the reference follow from them.  Never: checks
what several keys decide together (the *_checks.py do).
Kafka: server.properties, kafka-topics.sh.
"""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Struct, field

from kcluster.config.eras import FIXES
from kcluster.config.files.fields import (
    Later,
    Milliseconds,
    OneOf,
    Schema,
    Text,
    Whole,
    duration,
    fields_of,
    struct_schema,
)
from kcluster.config.files.tree import Node
from kcluster.config.kafka.broker import PROFILES
from kcluster.config.topology.security_keys import security_schema
from kcluster.config.topology.specs import MAX_PORT
from kcluster.config.topology.values import advertised_of, host_of, release_of
from kcluster.principals import SecurityProtocol
from kcluster.protocol.features import FEATURES

DEFAULT_NAME: Final = "kcluster"
DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PROFILE: Final = PROFILES[0]
MAX_BROKERS: Final = 1_000
MAX_LATENCY_MS: Final = 3_600_000
MAX_PARTITIONS: Final = 100_000
"""The most partitions of one topic, and of all topics of a topology together."""

ID: Final = Whole()
MAX_CONTROLLERS: Final = 9
_PORT: Final = Whole(0, MAX_PORT, "port")
_LATENCY: Final = Milliseconds(MAX_LATENCY_MS)
_VERSION: Final = Text("release such as 2.8", release_of)
_CONFIG_NAME: Final = "^[a-z]+([._][a-z]+)+$"
"""The name of a topic config, in either spelling."""


def _list_of(item: Schema, **more: int) -> Schema:
    return {"type": "array", "items": item, **more}


def _configs() -> Schema:
    return {"type": "object", "additionalProperties": Text().schema()}


def _brokers() -> Schema:
    broker = struct_schema(BrokerKeys) | {"type": "object"}
    return {"anyOf": [Whole(1, MAX_BROKERS).schema(), _list_of(broker)]}


def _topics() -> Schema:
    topic = struct_schema(TopicKeys)
    topic["patternProperties"] = {_CONFIG_NAME: Text().schema()}
    return {"type": "object", "additionalProperties": topic}


def _listeners() -> Schema:
    return {"type": "object", "additionalProperties": struct_schema(ListenerKeys)}


def _assignment() -> Schema:
    return _list_of(_list_of(ID.schema()))


def _ends() -> Schema:
    return _list_of(ID.schema(), minItems=2, maxItems=2)


def _links() -> Schema:
    return _list_of(struct_schema(LinkKeys))


def _network() -> Schema:
    return struct_schema(NetworkKeys)


def _eras() -> Schema:
    names: Schema = {"enum": [*FIXES]}
    return {"anyOf": [names, _list_of(names)]}


def _features() -> Schema:
    """The levels of features by name, in either spelling."""
    properties: Schema = {}
    for name, feature in FEATURES.items():
        level = Whole(feature.lowest, feature.highest).schema()
        properties |= {name: level, name.replace(".", "_"): level}
    return {"type": "object", "additionalProperties": False, "properties": properties}


_LISTENERS: Final = Later("mapping such as {CLIENT: {protocol: SASL_SSL}}", _listeners)
_CONFIGS: Final = Later("mapping such as {min.insync.replicas: 2}", _configs)


class ListenerKeys(Struct, frozen=True):
    """One listener, by its name."""

    protocol: Annotated[
        str | None,
        OneOf("protocol", tuple(SecurityProtocol.__members__)),
        "How its clients encrypt and authenticate; without it, the one that its name is.",
    ] = None
    port: Annotated[
        int | None,
        _PORT,
        "Its port; without it, a free one.  Of the listeners of all brokers: the first broker's; "
        "each further one has the next.",
    ] = None
    advertised: Annotated[
        str | None,
        Text("host, or host:port", advertised_of),
        "The address that clients are given, if it differs.",
    ] = None


class BrokerKeys(Struct, frozen=True):
    """One broker of a list."""

    id: Annotated[int | None, ID, "Its id; without it, its place in the list, from 1."] = None
    port: Annotated[int | None, _PORT, "Its port; without it, a free one."] = None
    rack: Annotated[str | None, Text(), "Its rack (broker.rack)."] = None
    advertised: Annotated[
        str | None,
        Text("host, or host:port", advertised_of),
        "The address that clients are given, if it differs.",
    ] = None
    listeners: Annotated[
        Node | None, _LISTENERS, "Its listeners, instead of those of all brokers."
    ] = None
    config: Annotated[
        Node | None, _CONFIGS, "Configs of this broker, over those of all brokers."
    ] = None
    kafka_version: Annotated[str | None, _VERSION, "Its release, if it differs."] = None


class TopicKeys(Struct, frozen=True):
    """A topic."""

    partitions: Annotated[
        int | None, Whole(1, MAX_PARTITIONS), "Without it as num.partitions says."
    ] = None
    replication_factor: Annotated[
        int | None,
        Whole(1, 2**15 - 1),
        "Replicas of each partition; without it as default.replication.factor says: 3, or as many"
        " as there are brokers.",
    ] = None
    assignment: Annotated[
        Node | None,
        Later("list such as [[1, 2], [2, 3]]", _assignment),
        "The replicas of each partition, the preferred leader first; instead of the two above.",
    ] = None
    config: Annotated[
        Node | None,
        _CONFIGS,
        "Configs of the topic by Kafka's names.  They may also stand beside the other keys:"
        " {partitions: 3, min.insync.replicas: 2}.",
    ] = None


class LinkKeys(Struct, frozen=True):
    """The link of two brokers."""

    between: Annotated[Node, Later("list such as [1, 3]", _ends), "The two brokers."]
    latency: Annotated[float, _LATENCY, "One way, in both directions."] = field(name="latency_ms")


class NetworkKeys(Struct, frozen=True):
    """Latency between nodes."""

    default_latency: Annotated[float, _LATENCY, "One way, between any two nodes."] = field(
        default=0, name="default_latency_ms"
    )
    links: Annotated[
        Node | None, Later("list of links", _links), "Links that differ from the default."
    ] = None


class TopologyKeys(Struct, frozen=True, kw_only=True):
    """A cluster: brokers, topics, latencies."""

    name: Annotated[str, Text(), "The cluster's name, for `--name` of other verbs."] = DEFAULT_NAME
    host: Annotated[str, Text("host name or address", host_of), "Where all brokers listen."] = (
        DEFAULT_HOST
    )
    profile: Annotated[
        str,
        OneOf("profile", PROFILES),
        "kafka: Kafka's time constants; fast: the same divided by 100; slow: times 3.",
    ] = DEFAULT_PROFILE
    config: Annotated[Node | None, _CONFIGS, "Configs of all brokers by Kafka's names."] = None
    features: Annotated[
        Node | None,
        Later("mapping such as {transaction.version: 1}", _features),
        "Levels of features in the new cluster by Kafka's names; 0 is off.  Without it, those that"
        " Kafka formats in the release of the oldest broker, which is 4.0 or later; a lower"
        " metadata.version lowers the others' defaults.",
    ] = None
    brokers: Annotated[
        Node,
        Later("number, or a list", _brokers, "a number (`brokers: 3`) or a list of brokers"),
        "The number of brokers, or a list of them.",
    ]
    base_port: Annotated[
        Node | None,
        Later("port", _PORT.schema),
        "The first broker's port, with a number of brokers; without it, free ports.",
    ] = None
    listeners: Annotated[
        Node | None,
        _LISTENERS,
        "The listeners of each broker by name; without them, one that is PLAINTEXT.  Clients are "
        "given the addresses of the first one to start with.",
    ] = None
    security: Annotated[
        Node | None,
        Later("mapping such as {tls: auto}", security_schema),
        "TLS, users and their rights; without it, everybody may do everything.",
    ] = None
    topics: Annotated[
        Node | None,
        Later("mapping of topics by name", _topics),
        "Topics that exist from the start.",
    ] = None
    network: Annotated[Node | None, Later("mapping", _network), "Latency between brokers."] = None
    kafka_version: Annotated[
        str | None, _VERSION, "The release as which brokers serve clients; without it, the newest."
    ] = None
    era: Annotated[
        Node | None,
        Later("name such as before KIP-101, or a list", _eras),
        "Kafka as it was before a fix, or before each of a list: "
        + " ".join(f"{name}: {fix.meaning}" for name, fix in FIXES.items()),
    ] = None
    controllers: Annotated[
        int | None,
        Whole(1, MAX_CONTROLLERS),
        "The number of controllers of a real Kafka, which elect one (--ground kafka).  A simulated"
        " cluster has one.  [default: 1]",
    ] = None
    write_back_ms: Annotated[
        int | None,
        duration(1),
        "The age at which the operating system writes records to the disk, as Linux does after 30s;"
        " `kill: {how: power}` loses younger ones.  Without it, only flushed records survive.",
    ] = None


TOPIC_KEYS: Final = tuple(each.key for each in fields_of(TopicKeys))
