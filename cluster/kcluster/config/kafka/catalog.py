"""Every broker config of Kafka 4.4.0, including those without an effect here, with documentation.

Owns: the rest of the table (catalog.txt), which is read on first use; documentation.txt.
Never: decides which configs a topology may set (config_checks.py).  Configs without an effect can
be set and described, and changed in a running broker if Kafka allows that.  Kafka: KafkaConfig,
DynamicBrokerConfig (AllDynamicConfigs, PerBrokerConfigs), DynamicConfig.Broker.

A line of catalog.txt: name, type, time of change, default (`""` empty, `-` required) and the
range or the valid words.  The time of change may be followed by `/internal` (Kafka does not
describe the config) and `/4.4` (brokers have it since that release).
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final, Literal, cast

from msgspec.structs import replace

from kcluster.config.kafka.broker import BROKER_CONFIGS
from kcluster.config.kafka.jaas import MODULES, check_callback_handler, check_jaas, check_mechanisms
from kcluster.config.kafka.values import (
    ConfigDef,
    ConfigError,
    ConfigType,
    Dynamic,
    Spec,
    Value,
    parse_value,
)
from kcluster.packaged import packaged_text

_INTERNAL: Final = "internal"
_RANGE: Final = re.compile(r"\[(-?[0-9.]+?),\.\.\.,?(-?[0-9.]+)?\]")

_CHECKS: Final = {
    "sasl.enabled.mechanisms": check_mechanisms,
    "sasl.jaas.config": check_jaas,
    "sasl.server.callback.handler.class": check_callback_handler,
}
"""Checks beyond ranges and words, by name."""

_NO_THREADS: Final = "a broker is one state machine, without threads"
_NO_LINGER: Final = "the records of each request are a batch of their own"
_NO_BUFFERS: Final = "no buffers are kept between batches"
_NO_WARMUP: Final = "a streams group's tasks have no warm-up replicas here"

WHY_NOT_SIMULATED: Final = {
    "group.consumer.assignor.offload.enable": _NO_THREADS,
    "group.coordinator.append.linger.ms": _NO_LINGER,
    "group.coordinator.background.threads": _NO_THREADS,
    "group.coordinator.cached.buffer.max.bytes": _NO_BUFFERS,
    "group.coordinator.threads": _NO_THREADS,
    "group.share.assignor.offload.enable": _NO_THREADS,
    "group.share.dlq.manager.class.name": "there are no plugins",
    "group.streams.acceptable.recovery.lag": _NO_WARMUP,
    "group.streams.assignor.offload.enable": _NO_THREADS,
    "group.streams.assignors": "sticky is the one assignor of streams groups",
    "group.streams.max.warmup.replicas": _NO_WARMUP,
    "group.streams.min.task.offset.interval.ms": _NO_WARMUP,
    "group.streams.num.warmup.replicas": _NO_WARMUP,
    "group.streams.rack.aware.assignment.tags": "standby tasks are spread over processes only",
    "group.streams.task.offset.interval.ms": _NO_WARMUP,
    "group.streams.topology.description.plugin.class": "there are no plugins",
    "share.coordinator.append.linger.ms": _NO_LINGER,
    "share.coordinator.cached.buffer.max.bytes": _NO_BUFFERS,
    "share.coordinator.threads": _NO_THREADS,
    "share.fetch.purgatory.purge.interval.requests": "an answered fetch leaves nothing behind",
    "transaction.two.phase.commit.enable": (
        "two-phase commit needs InitProducerId 6, which 4.3 does not serve"
    ),
}
"""The reasons why configs have no effect although users may expect an effect, by name."""


def listener_config(name: str) -> str | None:
    """The config in `listener.name.<listener>.<config>`, also with a SASL mechanism before the
    config; None for any other name."""
    prefix, _, rest = name.partition("listener.name.")
    if prefix or "." not in rest:
        return None
    config = rest.partition(".")[2]
    for mechanism in MODULES:
        config = config.removeprefix(f"{mechanism.lower()}.")
    return config or None


def listener_prefix(listener: str) -> str:
    """The prefix of the configs of a listener."""
    return f"listener.name.{listener.lower()}."


@cache
def not_simulated() -> dict[str, ConfigDef]:
    """The configs of Kafka without an effect here, by name."""
    return {definition.name: definition for definition in _table()}


@cache
def broker_catalog() -> dict[str, ConfigDef]:
    """All of Kafka's broker configs, by name."""
    ours = {name: one for name, one in BROKER_CONFIGS.items() if not one.feature}
    return ours | not_simulated()


@cache
def internal_configs() -> frozenset[str]:
    """The names of configs that Kafka does not describe."""
    return frozenset(name for name, one in broker_catalog().items() if one.internal)


@cache
def _table() -> tuple[ConfigDef, ...]:
    lines = packaged_text("config/kafka/catalog.txt").splitlines()
    return tuple(_row(*line.split(" ")) for line in lines)


def _row(name: str, kind: str, mode: str, default: str, valid: str = "") -> ConfigDef:
    when, *marks = mode.split("/")
    spec = Spec(
        cast("ConfigType", kind), dynamic=cast("Dynamic", when), internal=_INTERNAL in marks
    )
    for mark in marks:
        if mark != _INTERNAL:
            major, _, minor = mark.partition(".")
            spec = replace(spec, since=(int(major), int(minor)))
    range_match = _RANGE.fullmatch(valid)
    if range_match:
        maximum = None if range_match[2] is None else float(range_match[2])
        spec = replace(spec, minimum=float(range_match[1]), maximum=maximum)
    elif valid:
        spec = replace(spec, one_of=tuple(valid.strip("[]").split(",")))
    bare = ConfigDef(name, "broker", None, Spec(spec.type))
    value: Value | ConfigError = None
    if default not in ("null", "-"):
        value = parse_value(bare, "" if default == '""' else default)
    assert not isinstance(value, ConfigError), (name, default)
    return ConfigDef(name, "broker", value, replace(spec, check=_CHECKS.get(name)))


# ------------------------------------------------------------------------------------ documentation

Scope = Literal["broker", "topic", "group", "client-metrics"]


@cache
def sentences() -> dict[str, str]:
    """The sentences of documentation.txt by name; the name of a topic's or a group's config has its
    scope before it."""
    lines = packaged_text("config/kafka/documentation.txt").splitlines()
    return {name: words for name, _, words in (line.partition(": ") for line in lines)}


def documentation(scope: Scope, definition: ConfigDef) -> str | None:
    """The purpose of a config, in our own words; None for a name that Kafka does not have."""
    name = definition.name
    words = sentences().get(name if scope == "broker" else f"{scope} {name}")
    if words is None and scope == "topic" and definition.synonyms:
        return sentences().get(definition.synonyms[0])
    if words is None and scope == "group":
        return sentences().get(f"group.{name}")
    return words
