"""Checks the configs of a topology: from a tree (tree.py) to text by name.

Owns: the configs that a topology may set, the ones without an effect, and the messages for unknown
names and invalid values.  Never: raises; records every problem.
Kafka: ConfigDef.parse, KafkaConfig.validateValues, ConfigurationControlManager.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

from kcluster.config.files.key_sets import KEY_SET
from kcluster.config.files.problems import Place, join, nearest
from kcluster.config.files.reading import TreeReader, kind
from kcluster.config.files.tree import Items, Map, Node, Scalar
from kcluster.config.kafka.broker import BROKER_CONFIGS, BrokerConfig, check_broker_config
from kcluster.config.kafka.catalog import listener_config, not_simulated
from kcluster.config.kafka.spelling import config_name
from kcluster.config.kafka.topic import TOPIC_CONFIGS
from kcluster.config.kafka.values import ConfigDef, ConfigError, parse_value
from kcluster.config.topology.sasl import key_set_problem

_TOPOLOGY_SETS: Final = {
    "broker.id": "`id` of the broker",
    "node.id": "`id` of the broker",
    "broker.rack": "`rack` of the broker",
}


@cache
def _settable() -> dict[str, ConfigDef]:
    """Every broker config of Kafka by name, except the ones that other keys of a topology set."""
    all_ = BROKER_CONFIGS | not_simulated()
    return {name: all_[name] for name in all_ if name not in _TOPOLOGY_SETS}


def simulated(config: Mapping[str, str]) -> dict[str, str]:
    """The part of a topology's broker configs that a BrokerConfig has."""
    return {name: text for name, text in config.items() if name in BROKER_CONFIGS}


SECURITY_CONFIGS: Final = frozenset(
    {
        "connection.failed.authentication.delay.ms",
        "connections.max.reauth.ms",
        "delegation.token.expiry.check.interval.ms",
        "delegation.token.expiry.time.ms",
        "delegation.token.max.lifetime.ms",
        "delegation.token.secret.key",
        "sasl.enabled.mechanisms",
        "sasl.jaas.config",
        "sasl.oauthbearer.clock.skew.seconds",
        "sasl.oauthbearer.expected.audience",
        "sasl.oauthbearer.expected.issuer",
        "sasl.oauthbearer.jwks.endpoint.url",
        "sasl.oauthbearer.scope.claim.name",
        "sasl.oauthbearer.sub.claim.name",
        "sasl.server.callback.handler.class",
        "sasl.server.max.receive.size",
    }
)
"""The configs with an effect that a BrokerConfig does not have, because each listener may have its
own value."""


def without_passwords(config: Mapping[str, str]) -> dict[str, str]:
    """A topology's broker configs without those that are secret."""
    if all(name in BROKER_CONFIGS for name in config):
        return dict(config)
    known = _settable()
    return {
        name: text
        for name, text in config.items()
        if known[name if name in known else listener_config(name) or name].type != "PASSWORD"
    }


def has_effect(name: str, definitions: Mapping[str, ConfigDef]) -> bool:
    """Whether a broker config, or with TOPIC_CONFIGS a topic config, has an effect here."""
    if name in definitions:
        return definitions[name].obeyed
    return (listener_config(name) or name) in SECURITY_CONFIGS


def read_broker_configs(
    reading: TreeReader, node: Node | None, path: str, profile: str, beneath: Mapping[str, str]
) -> tuple[dict[str, str], BrokerConfig | None]:
    """Read a mapping of broker configs.  Returns them as text by name, and the BrokerConfig that
    results if they override `beneath`: None if one of them is wrong, or two contradict each
    other."""
    before = len(reading.problems)
    names = node.entries if isinstance(node, Map) else ()
    # Loading the definitions of Kafka's other configs takes some ms; most topologies use none.
    is_simulated = all(config_name(name, BROKER_CONFIGS) in BROKER_CONFIGS for name in names)
    definitions = BROKER_CONFIGS if is_simulated else _settable()
    own = read_configs(reading, node, path, definitions, _unknown_broker_config)
    if len(reading.problems) > before or node is None:
        return own, None if node is not None else _resolved(profile, beneath)
    config = _resolved(profile, beneath, own)
    if config is not None:
        written = node.entries if isinstance(node, Map) else {}
        values = {config_name(key, definitions): entry for key, entry in written.items()}
        for name, reason in check_broker_config(config):
            entry = values.get(name)
            reading.wrong(node if entry is None else entry.value, join(path, name), reason)
    return own, config


def _resolved(profile: str, *overrides: Mapping[str, str]) -> BrokerConfig | None:
    try:
        return BrokerConfig.resolve(profile, *map(simulated, overrides))
    except ConfigError:
        return None  # reported at the place where it was written


def read_configs(
    reading: TreeReader,
    node: Node | None,
    path: str,
    definitions: Mapping[str, ConfigDef],
    unknown_name: Callable[[str], str],
) -> dict[str, str]:
    """The configs of a mapping as text, by Kafka's name; underscores may stand for dots.
    `unknown_name` gives the message for a name that is not in `definitions`."""
    configs: dict[str, str] = {}
    if node is None:
        return configs
    if not isinstance(node, Map):
        reading.entries(node, path, None, "config")
        return configs
    for written, entry in node.entries.items():
        name, at = config_name(written, definitions), join(path, written)
        definition = definitions.get(name) or definitions.get(listener_config(name) or "")
        if name in configs:
            reading.wrong(entry, at, f"{name} is given twice")
            continue
        if definition is None:
            reading.wrong(
                entry, at, "no such config" if reading.is_exhausted else unknown_name(name)
            )
            continue
        text = _config_text(entry.value, definition)
        if text is None:
            reading.wrong(entry.value, at, f"{kind(entry.value)}; it must be a {definition.type}")
            continue
        value = parse_value(definition, text)
        problem = key_set_problem(text) if definition.name == KEY_SET else None
        if isinstance(value, ConfigError):
            reading.wrong(entry.value, at, show_sentence(str(value)))
        elif problem is not None:
            reading.wrong(entry.value, at, show_sentence(problem))
        else:
            configs[name] = text
            reading.places[join(path, name)] = Place(entry.value.line, entry.value.column)
    return configs


def _config_text(node: Node, definition: ConfigDef) -> str | None:
    if isinstance(node, Scalar):
        return node.text
    if isinstance(node, Items) and definition.type == "LIST":
        words = [item.text for item in node.items if isinstance(item, Scalar)]
        return ",".join(word or "" for word in words) if len(words) == len(node.items) else None
    return None


def show_sentence(text: str) -> str:
    """A message that contains a value, on one line and of bounded length."""
    text = text if len(text) <= 300 else f"{text[:200]} ... {text[-97:]}"
    return text if text.isprintable() else repr(text)


def _unknown_broker_config(written: str) -> str:
    name = written.replace("_", ".")
    if name in _TOPOLOGY_SETS:
        return f"set with {_TOPOLOGY_SETS[name]}"
    topic_config = TOPIC_CONFIGS.get(name)
    if topic_config is not None and topic_config.synonyms:
        return f"a config of topics; for all topics it is {topic_config.synonyms[0]}"
    return "no such broker config" + _did_you_mean(written, _settable())


def unknown_topic_config(written: str) -> str:
    """The message for a name that no topic config has."""
    name = written.replace("_", ".")
    for definition in TOPIC_CONFIGS.values():
        if name in definition.synonyms:
            return f"a config of brokers; of a topic it is {definition.name}"
    return "no such topic config" + _did_you_mean(written, TOPIC_CONFIGS)


def _did_you_mean(written: str, known: Mapping[str, ConfigDef]) -> str:
    """The config that was probably meant, in the spelling of the wrong name: the only config that
    begins with the name, or the nearest."""
    name = written.replace("_", ".")
    longer = [one for one in known if one.startswith(f"{name}.")]
    meant = longer[0] if len(longer) == 1 else nearest(name, known)
    if meant is None:
        return ""
    is_dotted = "." in written or "_" not in written
    return f"; did you mean {meant if is_dotted else meant.replace('.', '_')}?"
