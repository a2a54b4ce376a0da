"""DescribeConfigs (API 32, v1-4): a topic's or this broker's configs, and where each comes from.

Owns: the answer, from this broker's config and image.  Never: changes a config (configs.py).
Kafka: ConfigHelper, DynamicBrokerConfig.brokerConfigSynonyms; KIP-133, KIP-226, KIP-569.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from cluster.broker.handlers.configs import (
    BROKER_LOGGER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    other_broker,
)
from cluster.broker.handlers.metadata import unknown_topic_error
from cluster.broker.registry import handles
from cluster.config.definitions import (
    BROKER_CONFIGS,
    TOPIC_CONFIGS,
    BrokerConfig,
    TopicConfig,
    describe,
    format_value,
)
from cluster.config.quotas import QUOTA_CONFIGS
from cluster.contract import Request
from cluster.controller.metadata import (
    BROKER_RESOURCE,
    CLUSTER_DEFAULT,
    TOPIC_RESOURCE,
    MetadataImage,
)
from cluster.protocol import messages as m
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from cluster.broker.node import BrokerNode

    Described = m.DescribeConfigsResponse.DescribeConfigsResult
    Entry = m.DescribeConfigsResponse.DescribeConfigsResourceResult
    Synonym = m.DescribeConfigsResponse.DescribeConfigsSynonym

DYNAMIC_TOPIC_CONFIG: Final = 1
DYNAMIC_BROKER_CONFIG: Final = 2
DYNAMIC_DEFAULT_BROKER_CONFIG: Final = 3
STATIC_BROKER_CONFIG: Final = 4
DEFAULT_CONFIG: Final = 5
"""Kafka's DescribeConfigsResponse.ConfigSource codes."""

FIRST_WITHOUT_IS_DEFAULT: Final = (2, 6)
"""Observed: in v0 2.3.1 tells what is default, 2.8.2 of nothing that it is (since KIP-569)."""

CONFIG_TYPES: Final = {
    "BOOLEAN": 1, "STRING": 2, "INT": 3, "SHORT": 4, "LONG": 5, "DOUBLE": 6, "LIST": 7,
}  # fmt: skip
"""Kafka's DescribeConfigsResponse.ConfigType codes."""

_RETENTION: Final = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
_ROLL: Final = ("log.roll.ms", "log.roll.hours")
_ROLL_JITTER: Final = ("log.roll.jitter.ms", "log.roll.jitter.hours")
IDENTITY_TYPES: Final = {
    "advertised.listeners": "LIST", "broker.id": "INT", "broker.rack": "STRING",
    "listeners": "LIST", "node.id": "INT", "process.roles": "LIST",
}  # fmt: skip
"""Configs that the topology sets by other keys, all of them read-only."""

BROKER_SYNONYMS: Final = {
    **dict.fromkeys(_RETENTION, _RETENTION),
    **dict.fromkeys(_ROLL, _ROLL),
    **dict.fromkeys(_ROLL_JITTER, _ROLL_JITTER),
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
}
"""Broker configs that stand for each other, the strongest first."""


class BrokerSettings(Struct, frozen=True):
    """What is known of one broker's configs, by Kafka's names, each level over the next."""

    broker_id: int
    config: BrokerConfig
    """What all levels come to."""
    dynamic: Mapping[str, str]
    dynamic_default: Mapping[str, str]
    static: Mapping[str, str]
    """What the topology sets, and what follows from its other keys (ids, listeners)."""
    defaults: Mapping[str, str]


@handles(ApiKey.DESCRIBE_CONFIGS, versions=(1, 4))
def describe_configs(
    broker: BrokerNode, request: Request, now_ms: int
) -> m.DescribeConfigsResponse:
    """Describe configs of topics, of this broker, or (no name) those set for all brokers.

    Behaviour: from this broker's image; only this broker speaks for itself.  A config that no one
    set is DEFAULT_CONFIG; `profile: fast` counts as set in the broker's file.  Unknown keys asked
    for are left out; in alphabetical order (Kafka: any).
    Versions: v0 (to 3.9) tells only whether it is the default; v1 sources and synonyms (KIP-226);
    v3 types and documentation (KIP-569).
    Not done: documentation (null); loggers, client metrics and groups have no configs here.
    """
    static = {
        "advertised.listeners": f"PLAINTEXT://{broker.host}:{broker.port}",
        "broker.id": str(broker.node_id),
        "listeners": f"PLAINTEXT://{broker.host}:{broker.port}",
        "node.id": str(broker.node_id),
        "process.roles": "broker",
    }
    if broker.rack is not None:
        static["broker.rack"] = broker.rack
    settings = broker_settings(
        broker.node_id, broker.config, broker.static_config, static, broker.image
    )
    response = build_describe_configs(broker.image, request.body, settings)
    if request.api_version == 0 and broker.release.number < FIRST_WITHOUT_IS_DEFAULT:
        for result in response.results:
            for config in result.configs:
                config.is_default = config.config_source == DEFAULT_CONFIG
    return response


def broker_settings(
    broker_id: int,
    config: BrokerConfig,
    static_config: BrokerConfig,
    identity: Mapping[str, str],
    image: MetadataImage,
) -> BrokerSettings:
    """Tell the levels apart: what is not Kafka's default counts as set by the topology."""
    defaults: dict[str, str] = {"listeners": "PLAINTEXT://:9092", "broker.id": "-1"}
    static = dict(identity)
    for name, definition in BROKER_CONFIGS.items():
        default = format_value(definition.default)
        value = describe(definition, static_config)
        if default is not None:
            defaults[name] = default
        if value is not None and value != default:
            static[name] = value
    return BrokerSettings(
        broker_id,
        config,
        image.configs.get((BROKER_RESOURCE, str(broker_id)), {}),
        image.configs.get((BROKER_RESOURCE, CLUSTER_DEFAULT), {}),
        static,
        defaults,
    )


def build_describe_configs(
    image: MetadataImage, request: m.DescribeConfigsRequest, settings: BrokerSettings
) -> m.DescribeConfigsResponse:
    """The answer to `request`; one resource of an unknown type spoils the whole, as in Kafka."""
    known = (
        TOPIC_RESOURCE, BROKER_RESOURCE, BROKER_LOGGER_RESOURCE, CLIENT_METRICS_RESOURCE,
        GROUP_RESOURCE,
    )  # fmt: skip
    spoilt = any(resource.resource_type not in known for resource in request.resources)
    results = []
    for resource in request.resources:
        if spoilt:
            result = _failed(ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST.text)
        elif resource.resource_type == TOPIC_RESOURCE:
            result = describe_topic(image, resource.resource_name, settings)
        elif resource.resource_type == BROKER_RESOURCE:
            result = describe_broker(resource.resource_name, settings)
        else:
            result = _describe_other(resource.resource_type, resource.resource_name, settings)
        result.resource_type = resource.resource_type
        result.resource_name = resource.resource_name
        if resource.configuration_keys:
            keys = resource.configuration_keys
            result.configs = [entry for entry in result.configs if entry.name in keys]
        if not request.include_synonyms:
            for entry in result.configs:
                entry.synonyms = []
        results.append(result)
    return m.DescribeConfigsResponse(results=results)


def describe_topic(image: MetadataImage, topic: str, settings: BrokerSettings) -> Described:
    """All configs of a topic."""
    if topic not in image.topics:
        error = unknown_topic_error(topic)
        if error is ErrorCode.INVALID_TOPIC_EXCEPTION:
            return _failed(error, f"{topic!r} cannot be the name of a topic")
        return _failed(error)
    own = image.topic_configs(topic)
    config = TopicConfig.resolve(settings.config, own)
    entries = []
    for name, definition in sorted(TOPIC_CONFIGS.items()):
        if name.startswith("internal."):
            continue
        value = describe(definition, config)
        synonyms = _synonyms(definition.synonyms[0], settings) if definition.synonyms else []
        if name in own:
            synonyms.insert(0, _synonym(name, value, DYNAMIC_TOPIC_CONFIG))
        entries.append(_entry(name, value, synonyms, CONFIG_TYPES[definition.type], False))
    return _described(entries)


def describe_broker(resource_name: str, settings: BrokerSettings) -> Described:
    """All configs of this broker, or (no name) what is set for all brokers."""
    problem = other_broker(resource_name, settings.broker_id)
    if problem is not None:
        return _failed(ErrorCode.INVALID_REQUEST, problem)
    if resource_name:
        quotas = QUOTA_CONFIGS.keys() & {*settings.dynamic, *settings.dynamic_default}
        names: Iterable[str] = {*settings.static, *IDENTITY_TYPES, *BROKER_CONFIGS, *quotas}
    else:
        names = settings.dynamic_default
    entries = []
    for name in sorted(names):
        definition = BROKER_CONFIGS.get(name) or QUOTA_CONFIGS.get(name)
        if definition is not None and definition.feature:
            continue
        synonyms = _synonyms(name, settings)
        if not resource_name:
            synonyms = [s for s in synonyms if s.source == DYNAMIC_DEFAULT_BROKER_CONFIG]
        if definition is None:
            kind = CONFIG_TYPES[IDENTITY_TYPES[name]]
            entries.append(_entry(name, settings.static.get(name), synonyms, kind, True))
            continue
        value = synonyms[0].value if synonyms else describe(definition, settings.config)
        kind = CONFIG_TYPES[definition.type]
        entries.append(_entry(name, value, synonyms, kind, definition.dynamic == "read-only"))
    return _described(entries)


def _describe_other(resource_type: int, name: str, settings: BrokerSettings) -> Described:
    """Loggers, client metrics and groups: their names are checked as Kafka does, no more."""
    if not name:
        return _failed(ErrorCode.INVALID_REQUEST, "such a resource has a name")
    problem = other_broker(name, settings.broker_id)
    if resource_type == BROKER_LOGGER_RESOURCE and problem is not None:
        return _failed(ErrorCode.INVALID_REQUEST, problem)
    return _described([])


# ---------------------------------------------------------------------------------- entries


def _synonyms(name: str, settings: BrokerSettings) -> list[Synonym]:
    """Where broker config `name` gets its value from, the winner first.

    Kafka's list starts with the first that has this very name, so a retention that is only set in
    hours does not show for log.retention.ms.
    """
    found = [
        _synonym(synonym, values[synonym], source)
        for values, source in (
            (settings.dynamic, DYNAMIC_BROKER_CONFIG),
            (settings.dynamic_default, DYNAMIC_DEFAULT_BROKER_CONFIG),
            (settings.static, STATIC_BROKER_CONFIG),
            (settings.defaults, DEFAULT_CONFIG),
        )
        for synonym in BROKER_SYNONYMS.get(name, (name,))
        if synonym in values
    ]
    while found and found[0].name != name:
        del found[0]
    return found


def _synonym(name: str, value: str | None, source: int) -> Synonym:
    return m.DescribeConfigsResponse.DescribeConfigsSynonym(name, value, source)


def _entry(
    name: str,
    value: str | None,
    synonyms: list[Synonym],
    config_type: int,
    read_only: bool,
) -> Entry:
    return m.DescribeConfigsResponse.DescribeConfigsResourceResult(
        name=name,
        value=value,
        read_only=read_only,
        config_source=synonyms[0].source if synonyms else DEFAULT_CONFIG,
        synonyms=synonyms,
        config_type=config_type,
        documentation=None,
    )


def _described(entries: list[Entry]) -> Described:
    return m.DescribeConfigsResponse.DescribeConfigsResult(error_message="", configs=entries)


def _failed(error: ErrorCode, message: str = "") -> Described:
    return m.DescribeConfigsResponse.DescribeConfigsResult(error_code=error, error_message=message)
