"""A group's configs: names, types, ranges and defaults of Kafka 4.4.0.

Owns: GroupConfig, GROUP_CONFIGS, the broker configs that give a group's defaults and bounds.
Never: knows a group.
Kafka: GroupConfig, GroupConfigManager; KIP-848, KIP-932, KIP-1043, KIP-1071,
KIP-1191.
"""

# No `from __future__ import annotations`: the annotations are used as values; see broker.py.

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Final

from msgspec import Struct, structs

from kcluster.config.kafka.broker import BrokerConfig
from kcluster.config.kafka.catalog import broker_catalog
from kcluster.config.kafka.values import (
    NEWEST,
    ConfigDef,
    ConfigError,
    ConfigFields,
    ReleaseNumber,
    Spec,
    Value,
    definitions_of,
    field_of,
    invalid,
    parse_overrides,
)

_BY_DURATION: Final = "by_duration:"
_DURATION: Final = re.compile(
    r"[+-]?P(?!$)([+-]?[0-9]+D)?(T(?=[+-]?[0-9])([+-]?[0-9]+H)?([+-]?[0-9]+M)?"
    r"([+-]?[0-9]+([.,][0-9]{0,9})?S)?)?",
    re.IGNORECASE | re.ASCII,
)


def _check_reset(definition: ConfigDef, value: Value) -> str | None:
    """Check a reset: earliest, latest, or by_duration: and an ISO 8601 duration that is not
    negative."""
    text = str(value)
    if text in ("earliest", "latest"):
        return None
    if text.startswith(_BY_DURATION):
        duration = text.removeprefix(_BY_DURATION)
        if len(duration) <= 100 and _DURATION.fullmatch(duration) and "-" not in duration:
            return None
    requirement = "it must be earliest, latest or by_duration:<an ISO 8601 duration>"
    return invalid(definition.name, text, requirement)


def _check_dead_letters(definition: ConfigDef, value: Value) -> str | None:
    """Check a queue's name.  As in Kafka, neither the rules for topics' names nor the broker's
    prefix is checked here."""
    if str(value).startswith("__"):
        return invalid(definition.name, value, "it must not start with __")
    return None


_4_4: Final = (4, 4)
_INT_0: Final = Spec("INT", 0)
_INT_1: Final = Spec("INT", 1)
_STRING: Final = Spec("STRING", since=_4_4)
_DEAD_LETTERS: Final = Spec("STRING", check=_check_dead_letters, since=_4_4)
_COPY_FLAG: Final = Spec("BOOLEAN", since=_4_4)
_OFFLOAD: Final = Spec("BOOLEAN", obeyed=False, internal=True, since=_4_4)
_TAGS: Final = Spec("LIST", since=_4_4)
_WARMUP_LAG: Final = Spec("LONG", 0, internal=True, since=_4_4)
_WARMUP_0: Final = Spec("INT", 0, obeyed=False, internal=True, since=_4_4)
_OFFSET_INTERVAL: Final = Spec("INT", 1, internal=True, since=_4_4)


ValueOf = Callable[[str], Value]
"""Returns the value of a broker config by its name."""


class GroupConfig(Struct, frozen=True):
    """The effective configs of one group.  Without arguments, they are Kafka's defaults."""

    consumer_assignment_interval_ms: Annotated[int, _INT_0] = 1_000
    consumer_assignor_offload_enable: Annotated[bool, _OFFLOAD] = True
    consumer_heartbeat_interval_ms: Annotated[int, _INT_1] = 5_000
    consumer_session_timeout_ms: Annotated[int, _INT_1] = 45_000
    errors_deadletterqueue_copy_record_enable: Annotated[bool, _COPY_FLAG] = False
    """Whether a share group copies records to its dead letter queue."""
    errors_deadletterqueue_topic_name: Annotated[str, _DEAD_LETTERS] = ""
    share_assignment_interval_ms: Annotated[int, _INT_0] = 1_000
    share_assignor_offload_enable: Annotated[bool, _OFFLOAD] = True
    share_auto_offset_reset: Annotated[str, Spec("STRING", check=_check_reset)] = "latest"
    share_delivery_count_limit: Annotated[int, Spec("INT", 2)] = 5
    share_heartbeat_interval_ms: Annotated[int, _INT_1] = 5_000
    share_isolation_level: Annotated[
        str, Spec("STRING", one_of=("read_committed", "read_uncommitted"))
    ] = "read_uncommitted"
    share_partition_max_record_locks: Annotated[int, Spec("INT", 100)] = 2_000
    share_record_lock_duration_ms: Annotated[int, Spec("INT", 1_000)] = 30_000
    share_renew_acknowledge_enable: Annotated[bool, Spec("BOOLEAN")] = True
    share_session_timeout_ms: Annotated[int, _INT_1] = 45_000
    streams_acceptable_recovery_lag: Annotated[int, _WARMUP_LAG] = 10_000
    streams_assignment_interval_ms: Annotated[int, _INT_0] = 1_000
    streams_assignor_name: Annotated[str | None, _STRING] = None
    streams_assignor_offload_enable: Annotated[bool, _OFFLOAD] = True
    streams_heartbeat_interval_ms: Annotated[int, _INT_1] = 5_000
    streams_initial_rebalance_delay_ms: Annotated[int, _INT_0] = 3_000
    streams_num_standby_replicas: Annotated[int, _INT_0] = 0
    streams_num_warmup_replicas: Annotated[int, _WARMUP_0] = 2
    streams_rack_aware_assignment_tags: Annotated[tuple[str, ...], _TAGS] = ()
    streams_session_timeout_ms: Annotated[int, _INT_1] = 45_000
    streams_task_offset_interval_ms: Annotated[int, _OFFSET_INTERVAL] = 60_000

    @classmethod
    def resolve(
        cls,
        value_of: ValueOf,
        own: Mapping[str, str] | None = None,
        release: ReleaseNumber = NEWEST,
    ) -> "GroupConfig":
        """The configs of a group: `own` (by Kafka's names) over the broker's defaults.

        Raises ConfigError for an unknown name (in `release`) or a bad value: stored configs never
        have such a value.
        """
        values = parse_overrides(GROUP_CONFIGS, own or {}, "group", release)
        fields: ConfigFields = {
            definition.field: default_of(value_of, name)
            for name, definition in GROUP_CONFIGS.items()
            if broker_default(name) != name
        }
        fields.update((field_of(name), value) for name, value in values.items())
        return structs.replace(cls(), **fields)


GROUP_CONFIGS: Final[dict[str, ConfigDef]] = definitions_of(GroupConfig, "group")
"""Every group config, by name."""

_WITHOUT_BROKER: Final = (
    "errors.deadletterqueue.copy.record.enable", "errors.deadletterqueue.topic.name",
    "share.auto.offset.reset", "share.isolation.level", "share.renew.acknowledge.enable",
)  # fmt: skip
_ASSIGNOR_NAME: Final = "streams.assignor.name"
_STREAMS_ASSIGNORS: Final = "group.streams.assignors"
_RACK_AWARE_TAGS: Final = "streams.rack.aware.assignment.tags"


def broker_default(name: str) -> str:
    """The broker config that gives a group config its default; the name itself if no broker config
    does."""
    if name == _ASSIGNOR_NAME:
        return _STREAMS_ASSIGNORS
    return name if name in _WITHOUT_BROKER else f"group.{name}"


def default_of(value_of: ValueOf, name: str) -> Value:
    """The default of a group config, from the broker's configs."""
    value = value_of(broker_default(name))
    if name == _ASSIGNOR_NAME:
        assert isinstance(value, tuple), value
        return value[0]
    return value


def broker_value(broker: BrokerConfig, name: str) -> Value:
    """A broker config's value; Kafka's default for one without an effect here."""
    definition = broker_catalog()[name]
    value: Value = getattr(broker, definition.field, definition.default)
    return value


def group_config_problem(
    value_of: ValueOf, own: Mapping[str, str], release: ReleaseNumber = NEWEST
) -> str | None:
    """The reason why Kafka (of `release`) would refuse these configs of a group (INVALID_CONFIG),
    or None."""
    try:
        config = GroupConfig.resolve(value_of, own, release)
    except ConfigError as error:
        return str(error)
    tags = [tag.strip() for tag in own.get(_RACK_AWARE_TAGS, "").split(",")]
    if len(set(tags)) < len(tags):
        return f"{_RACK_AWARE_TAGS} names a tag twice"
    assignors = value_of(_STREAMS_ASSIGNORS)
    assert isinstance(assignors, tuple), assignors
    if _ASSIGNOR_NAME in own and config.streams_assignor_name not in assignors:
        return f"{_ASSIGNOR_NAME} must be one of {', '.join(assignors)}"
    for name in own:
        kind, rest = _kind_and_rest(name)
        value = getattr(config, field_of(name))
        low, high = bounds_of(value_of, name)
        if low is not None and value < low:
            return f"{name} ({value}) is below group.{kind}.min.{rest} ({low})"
        if high is not None and value > high:
            return f"{name} ({value}) is above group.{kind}.max.{rest} ({high})"
    return _between_themselves(config)


def bounds_of(value_of: ValueOf, name: str) -> tuple[int | None, int | None]:
    """The lowest and highest value that the broker allows for a group config; None: no limit."""
    kind, rest = _kind_and_rest(name)
    low, high = (_bound(value_of, f"group.{kind}.{which}.{rest}") for which in ("min", "max"))
    return low, high


def _kind_and_rest(name: str) -> tuple[str, str]:
    """(consumer, share or streams; the end of the config's name, as it is in the names of its
    bounds)."""
    kind, _, rest = name.replace(".num.", ".").partition(".")
    return kind, rest


def _bound(value_of: ValueOf, name: str) -> int | None:
    if name not in broker_catalog():
        return None
    value = value_of(name)
    assert isinstance(value, int), (name, value)
    return value


def _between_themselves(config: GroupConfig) -> str | None:
    for kind in ("consumer", "share", "streams"):
        session_ms = getattr(config, f"{kind}_session_timeout_ms")
        heartbeat_ms = getattr(config, f"{kind}_heartbeat_interval_ms")
        if session_ms <= heartbeat_ms:
            requirement = f"must be greater than {kind}.heartbeat.interval.ms ({heartbeat_ms})"
            return f"{kind}.session.timeout.ms ({session_ms}) {requirement}"
    return None
