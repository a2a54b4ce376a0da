"""The sources of a broker's configs: levels, each overriding the next.

Owns: BrokerSettings: levels, values, synonyms.  Never: answers a request (handlers/), changes one.
Kafka: DynamicBrokerConfig (currentDynamicBrokerConfigs, …, brokerConfigSynonyms); KIP-226.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kcluster.broker.ports import BrokerView
from kcluster.config.kafka.catalog import broker_catalog, listener_config, listener_prefix
from kcluster.config.kafka.definitions import (
    BROKER_CONFIGS,
    BrokerConfig,
    ConfigDef,
    ConfigError,
    Value,
    describe,
    format_value,
    parse_value,
)
from kcluster.config.kafka.quotas import QUOTA_CONFIGS
from kcluster.config.kafka.values import ReleaseNumber
from kcluster.metadata.records import BROKER_RESOURCE, CLUSTER_DEFAULT
from kcluster.principals import BrokerEndpoint, SecurityProtocol
from kcluster.protocol import messages as m

if TYPE_CHECKING:
    Synonym = m.DescribeConfigsResponse.DescribeConfigsSynonym

DYNAMIC_TOPIC_CONFIG: Final = 1
DYNAMIC_BROKER_CONFIG: Final = 2
DYNAMIC_DEFAULT_BROKER_CONFIG: Final = 3
STATIC_BROKER_CONFIG: Final = 4
DEFAULT_CONFIG: Final = 5
DYNAMIC_BROKER_LOGGER_CONFIG: Final = 6
CLIENT_METRICS_CONFIG: Final = 7
GROUP_CONFIG: Final = 8
"""Kafka's DescribeConfigsResponse.ConfigSource codes."""

_RETENTION: Final = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
_ROLL: Final = ("log.roll.ms", "log.roll.hours")
_ROLL_JITTER: Final = ("log.roll.jitter.ms", "log.roll.jitter.hours")
BROKER_SYNONYMS: Final = {
    **dict.fromkeys(_RETENTION, _RETENTION),
    **dict.fromkeys(_ROLL, _ROLL),
    **dict.fromkeys(_ROLL_JITTER, _ROLL_JITTER),
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
}
"""Broker configs for the same setting, the strongest first."""


class BrokerSettings(Struct, frozen=True):
    """One broker's configs by Kafka's names, in levels that override each other."""

    broker_id: int
    config: BrokerConfig
    """The effective values."""
    static_config: BrokerConfig
    dynamic: Mapping[str, str]
    dynamic_default: Mapping[str, str]
    static: Mapping[str, str]
    """The values that the topology sets, or that follow from its other keys (ids, listeners)."""
    defaults: Mapping[str, str]
    release: ReleaseNumber
    """The broker's release, which has no configs of later ones."""

    @property
    def listener_prefixes(self) -> list[str]:
        """The prefix of the configs of each listener."""
        names = (listener.partition(":")[0] for listener in self.static["listeners"].split(","))
        return [listener_prefix(name) for name in names]

    def value(self, name: str) -> Value:
        """The effective value of any config, obeyed here or not; None if the value is null."""
        if name in BROKER_CONFIGS:
            value: Value = getattr(self.config, BROKER_CONFIGS[name].field)
            return value
        definition = self.definition(name)
        for values in (self.dynamic, self.dynamic_default, self.static):
            if definition is not None and name in values:
                parsed = parse_value(definition, values[name])
                if not isinstance(parsed, ConfigError):
                    return parsed
        return None if definition is None else definition.default

    def definition(self, name: str) -> ConfigDef | None:
        """The definition of a broker config, a throttle's rate, or a listener's config; None if
        Kafka does not know it."""
        catalog = broker_catalog()
        known = catalog.get(name) or QUOTA_CONFIGS.get(name)
        known = known or catalog.get(listener_config(name) or "")
        return known if known is not None and known.is_in(self.release) else None

    def number(self, name: str) -> int:
        """The effective value of an INT or a LONG that is never null."""
        value = self.value(name)
        assert isinstance(value, int), (name, value)
        return value

    def synonyms(self, name: str) -> list[Synonym]:
        """The sources of broker config `name`, the level in force first.

        Kafka's list starts with the first entry of exactly this name: a retention that is only set
        in hours does not appear for log.retention.ms.
        """
        base = listener_config(name)
        names = (name, base) if base is not None else BROKER_SYNONYMS.get(name, (name,))
        hidden = is_sensitive(self.definition(name))
        entries = [
            synonym_of(synonym, None if hidden else values[synonym], source)
            for values, source in (
                (self.dynamic, DYNAMIC_BROKER_CONFIG),
                (self.dynamic_default, DYNAMIC_DEFAULT_BROKER_CONFIG),
                (self.static, STATIC_BROKER_CONFIG),
                (self.defaults, DEFAULT_CONFIG),
            )
            for synonym in names
            if synonym in values
        ]
        while entries and entries[0].name != name:
            del entries[0]
        return entries


def synonym_of(name: str, value: str | None, source: int) -> Synonym:
    return m.DescribeConfigsResponse.DescribeConfigsSynonym(name, value, source)


def is_sensitive(definition: ConfigDef | None) -> bool:
    """Whether the value is never shown: passwords, and configs that Kafka does not know."""
    return definition is None or definition.type == "PASSWORD" or definition.spec.of_plugin


def settings_of(view: BrokerView) -> BrokerSettings:
    """The levels at which a broker's configs can be set, with the values in its metadata image."""
    listeners = ",".join(map(str, view.endpoints))
    protocols = {"CONTROLLER": "PLAINTEXT"}
    protocols |= {endpoint.listener: endpoint.protocol.name for endpoint in view.endpoints}
    identity = {
        "advertised.listeners": listeners,
        "broker.id": str(view.node_id),
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": _between_brokers(view.endpoints).listener,
        "listener.security.protocol.map": ",".join(
            f"{name}:{protocol}" for name, protocol in protocols.items()
        ),
        "listeners": listeners,
        "node.id": str(view.node_id),
        "process.roles": "broker",
    }
    if view.rack is not None:
        identity["broker.rack"] = view.rack
    catalog, release = broker_catalog(), view.release.number
    identity |= {
        name: text
        for name, text in view.unused_configs.items()
        if catalog[name if name in catalog else listener_config(name) or name].is_in(release)
    }
    return _in_levels(view, identity)


def _between_brokers(endpoints: Sequence[BrokerEndpoint]) -> BrokerEndpoint:
    """The listener between brokers: the first plaintext one, or the first."""
    plain = (one for one in endpoints if one.protocol is SecurityProtocol.PLAINTEXT)
    return next(plain, endpoints[0])


def _in_levels(view: BrokerView, identity: Mapping[str, str]) -> BrokerSettings:
    """Split a broker's configs into levels; a value other than Kafka's default counts as set by the
    topology."""
    release = view.release.number
    defaults = _defaults(release)
    static = dict(identity)
    for name, definition in BROKER_CONFIGS.items():
        value = describe(definition, view.static_config)
        if value is not None and value != defaults.get(name) and definition.is_in(release):
            static[name] = value
    configs = view.image.configs
    own = configs.get((BROKER_RESOURCE, str(view.node_id)), {})
    for_all = configs.get((BROKER_RESOURCE, CLUSTER_DEFAULT), {})
    return BrokerSettings(
        view.node_id, view.config, view.static_config, own, for_all, static, defaults, release
    )


@cache
def _defaults(release: ReleaseNumber) -> dict[str, str]:
    texts = {
        name: format_value(definition.default)
        for name, definition in (BROKER_CONFIGS | broker_catalog()).items()
        if definition.is_in(release)
    }
    return {name: text for name, text in texts.items() if text is not None}
