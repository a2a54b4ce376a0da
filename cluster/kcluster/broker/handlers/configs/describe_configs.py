"""DescribeConfigs (API 32, v1-4): of topics, this broker and its loggers, groups, client metrics:
each config, and the source of its value.

Owns: the answer, from this broker's config and image.  Never: changes a config (alter_configs.py).
Kafka: ConfigHelper, DynamicBrokerConfig.brokerConfigSynonyms; KIP-133, KIP-226, KIP-412, KIP-569,
KIP-714, KIP-848.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from kcluster.broker.broker import Broker
from kcluster.broker.configs.loggers import levels
from kcluster.broker.configs.settings import (
    CLIENT_METRICS_CONFIG,
    DEFAULT_CONFIG,
    DYNAMIC_BROKER_LOGGER_CONFIG,
    DYNAMIC_DEFAULT_BROKER_CONFIG,
    DYNAMIC_TOPIC_CONFIG,
    GROUP_CONFIG,
    BrokerSettings,
    is_sensitive,
    settings_of,
    synonym_of,
)
from kcluster.broker.handlers.configs.alter_configs import BROKER_LOGGER_RESOURCE, other_broker
from kcluster.broker.handlers.metadata.metadata import unknown_topic_error
from kcluster.broker.registry import handles
from kcluster.config.kafka.catalog import Scope, broker_catalog, documentation
from kcluster.config.kafka.definitions import (
    CLIENT_METRICS_CONFIGS,
    GROUP_CONFIGS,
    TOPIC_CONFIGS,
    ConfigDef,
    GroupConfig,
    TopicConfig,
    describe,
    format_value,
)
from kcluster.config.kafka.group import broker_default
from kcluster.config.kafka.values import known_configs
from kcluster.contract import Request
from kcluster.metadata.image import MetadataImage
from kcluster.metadata.records import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode

if TYPE_CHECKING:
    Described = m.DescribeConfigsResponse.DescribeConfigsResult
    Entry = m.DescribeConfigsResponse.DescribeConfigsResourceResult
    Synonym = m.DescribeConfigsResponse.DescribeConfigsSynonym

FIRST_WITHOUT_IS_DEFAULT: Final = (2, 6)
"""Observed: in version 0 of the answer, 2.3.1 marks default values and 2.8.2 marks none (since
KIP-569)."""

CONFIG_TYPES: Final = {
    "BOOLEAN": 1, "STRING": 2, "INT": 3, "SHORT": 4, "LONG": 5, "DOUBLE": 6, "LIST": 7, "CLASS": 8,
    "PASSWORD": 9,
}  # fmt: skip
"""Kafka's DescribeConfigsResponse.ConfigType codes; 0: unknown."""


@handles(ApiKey.DESCRIBE_CONFIGS, versions=(1, 4))
def describe_configs(broker: Broker, request: Request, now_ms: int) -> m.DescribeConfigsResponse:
    """Describe configs of topics, of this broker, or (no name) configs set for all brokers; levels
    of this broker's loggers; configs of groups and of client metrics, which need not exist.

    Behaviour:
    - from this broker's image; a broker describes no other broker;
    - an unset config is DEFAULT_CONFIG; `profile: fast` counts as set in the broker's
      file;
    - unknown names are left out; names in alphabetical order (in Kafka in no order);
    - documentation is in our own words.
    Versions:
    - v0 (to 3.9): only whether a value is the default
    - v1: sources and synonyms (KIP-226)
    - v3: types and documentation (KIP-569)
    """
    describing = _Describing(broker, request.body, settings_of(broker.view))
    response = describing.answer()
    if request.api_version == 0 and broker.release.number < FIRST_WITHOUT_IS_DEFAULT:
        for result in response.results:
            for config in result.configs:
                config.is_default = config.config_source == DEFAULT_CONFIG
    return response


class _Describing:
    """The state of answering one request."""

    def __init__(
        self, broker: Broker, request: m.DescribeConfigsRequest, settings: BrokerSettings
    ) -> None:
        self.broker = broker
        self.image: MetadataImage = broker.image
        self.request = request
        self.settings = settings
        self.release = settings.release
        self.by_type: dict[int, Callable[[str], Described]] = {
            TOPIC_RESOURCE: self.topic,
            BROKER_RESOURCE: self.one_or_all_brokers,
            BROKER_LOGGER_RESOURCE: self.loggers,
            CLIENT_METRICS_RESOURCE: self.client_metrics,
            GROUP_RESOURCE: self.group,
        }

    def answer(self) -> m.DescribeConfigsResponse:
        """Answer for one resource; an unknown type fails the whole request, as in Kafka."""
        resources = self.request.resources
        spoilt = any(resource.resource_type not in self.by_type for resource in resources)
        results = []
        for resource in resources:
            if spoilt:
                result = _failed(ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST.text)
            else:
                result = self.by_type[resource.resource_type](resource.resource_name)
            result.resource_type = resource.resource_type
            result.resource_name = resource.resource_name
            if resource.configuration_keys:
                keys = resource.configuration_keys
                result.configs = [entry for entry in result.configs if entry.name in keys]
            if not self.request.include_synonyms:
                for entry in result.configs:
                    entry.synonyms = []
            results.append(result)
        return m.DescribeConfigsResponse(results=results)

    # ------------------------------------------------------------------------- by resource type

    def topic(self, topic: str) -> Described:
        """All configs of a topic; internal configs only if the topic sets them."""
        if topic not in self.image.topics:
            error = unknown_topic_error(topic)
            if error is ErrorCode.INVALID_TOPIC_EXCEPTION:
                return _failed(error, f"{topic!r} cannot be the name of a topic")
            return _failed(error)
        own = known_configs(TOPIC_CONFIGS, self.image.topic_configs(topic), self.release)
        config = TopicConfig.resolve(self.settings.config, own)
        entries = []
        for name, definition in sorted(TOPIC_CONFIGS.items()):
            if not self.is_shown(definition, own):
                continue
            value = describe(definition, config)
            defaults = definition.synonyms[:1]
            synonyms = self.settings.synonyms(defaults[0]) if defaults else []
            if name in own:
                synonyms.insert(0, synonym_of(name, value, DYNAMIC_TOPIC_CONFIG))
            entries.append(self.entry("topic", definition, value, synonyms))
        return _described(entries)

    def one_or_all_brokers(self, name: str) -> Described:
        """All configs of this broker, or (no name) the configs set for all brokers."""
        problem = other_broker(name, self.settings.broker_id)
        if problem is not None:
            return _failed(ErrorCode.INVALID_REQUEST, problem)
        settings = self.settings
        names: Iterable[str] = settings.dynamic_default
        if name:
            known = [n for n, one in broker_catalog().items() if self.is_shown(one, ())]
            names = {*known, *settings.dynamic, *settings.dynamic_default}
        return _described([self.broker_entry(one, bool(name)) for one in sorted(names)])

    def broker_entry(self, name: str, for_one: bool) -> Entry:
        """One config of this broker, or of all brokers.  An unknown config has only its name."""
        settings, definition = self.settings, self.settings.definition(name)
        synonyms = settings.synonyms(name)
        value: str | None = None
        if not for_one:
            synonyms = [s for s in synonyms if s.source == DYNAMIC_DEFAULT_BROKER_CONFIG]
            value = settings.dynamic_default[name]
        elif definition is not None:
            value = format_value(settings.value(name))
        entry = _entry(name, None if is_sensitive(definition) else value, synonyms)
        entry.is_sensitive = is_sensitive(definition)
        entry.read_only = definition is None or (
            definition.dynamic == "read-only" or definition.name != name
        )
        entry.documentation = None
        if definition is not None:
            entry.config_type = CONFIG_TYPES[definition.type]
            if definition.name == name:
                entry.documentation = self.words("broker", definition)
        return entry

    def loggers(self, name: str) -> Described:
        """The levels of this broker's loggers (KIP-412)."""
        problem = other_broker(name, self.settings.broker_id) if name else "a broker id is needed"
        if problem is not None:
            return _failed(ErrorCode.INVALID_REQUEST, problem)
        entries = [
            _entry(logger, level, [], DYNAMIC_BROKER_LOGGER_CONFIG)
            for logger, level in levels(self.broker.loggers).items()
        ]
        return _described(entries)

    def client_metrics(self, name: str) -> Described:
        """A subscription to clients' metrics (KIP-714); an unknown one has the defaults."""
        if not name:
            return _failed(ErrorCode.INVALID_REQUEST, "a subscription's name is needed")
        own = self.image.configs.get((CLIENT_METRICS_RESOURCE, name), {})
        return _described(
            [
                self.entry(
                    "client-metrics",
                    definition,
                    own.get(key, format_value(definition.default)),
                    _own(key, own, CLIENT_METRICS_CONFIG),
                )
                for key, definition in CLIENT_METRICS_CONFIGS.items()
            ]
        )

    def group(self, name: str) -> Described:
        """The configs of a group; the group need not exist (KIP-848, KIP-932)."""
        if not name:
            return _failed(ErrorCode.INVALID_REQUEST, "a group's id is needed")
        own = self.image.configs.get((GROUP_RESOURCE, name), {})
        own = known_configs(GROUP_CONFIGS, own, self.release)
        config = GroupConfig.resolve(self.settings.value, own)
        entries = []
        for key, definition in GROUP_CONFIGS.items():
            if not self.is_shown(definition, own):
                continue
            value = describe(definition, config)
            synonyms = [synonym_of(key, value, GROUP_CONFIG)] if key in own else []
            default = broker_default(key)
            if default != key:
                synonyms += self.settings.synonyms(default)
            else:
                text = format_value(definition.default)
                synonyms.append(synonym_of(key, text, DEFAULT_CONFIG))
            entries.append(self.entry("group", definition, value, synonyms))
        return _described(entries)

    # ---------------------------------------------------------------------------------- entries

    def is_shown(self, definition: ConfigDef, own: Collection[str]) -> bool:
        """Whether the answer has this config: the broker's release knows it, and it is not an
        internal config that is unset (`own`: the names of set configs)."""
        if not definition.is_in(self.release):
            return False
        return not definition.internal or definition.name in own

    def entry(
        self, scope: Scope, definition: ConfigDef, value: str | None, synonyms: list[Synonym]
    ) -> Entry:
        """One config of a resource other than a broker: it can always be changed, and is never
        secret."""
        entry = _entry(definition.name, value, synonyms)
        entry.config_type = CONFIG_TYPES[definition.type]
        entry.documentation = self.words(scope, definition)
        return entry

    def words(self, scope: Scope, definition: ConfigDef) -> str | None:
        if not self.request.include_documentation:
            return None
        return documentation(scope, definition)


def _own(name: str, own: Mapping[str, str], source: int) -> list[Synonym]:
    return [synonym_of(name, own[name], source)] if name in own else []


def _entry(
    name: str, value: str | None, synonyms: list[Synonym], source: int = DEFAULT_CONFIG
) -> Entry:
    return m.DescribeConfigsResponse.DescribeConfigsResourceResult(
        name=name,
        value=value,
        config_source=synonyms[0].source if synonyms else source,
        synonyms=synonyms,
    )


def _described(entries: list[Entry]) -> Described:
    return m.DescribeConfigsResponse.DescribeConfigsResult(error_message="", configs=entries)


def _failed(error: ErrorCode, message: str = "") -> Described:
    return m.DescribeConfigsResponse.DescribeConfigsResult(error_code=error, error_message=message)
