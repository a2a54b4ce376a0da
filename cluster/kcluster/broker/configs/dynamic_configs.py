"""The dynamic configs that a running broker accepts, and the reasons for refusals.

Owns: the checks that Kafka's broker makes of a change for itself, or for all brokers, before the
controller sees it.  Never: changes anything; knows a request.
Kafka: DynamicBrokerConfig.validate, DynamicThreadPool, DynamicListenerConfig, DynamicLogConfig,
SocketServer and LogCleaner.validateReconfiguration; KIP-226.

The check is of the whole level after the change, not of the change itself: a read-only config may
be deleted, because the level then no longer has it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msgspec.structs import replace

from kcluster.broker.configs.settings import BrokerSettings
from kcluster.config.kafka.catalog import listener_config
from kcluster.config.kafka.definitions import ConfigError, check_broker_config, parse_value
from kcluster.config.kafka.values import Dynamic

SECURITY: Final = frozenset(
    f"ssl.{rest}" for rest in (
        "key.password", "keystore.certificate.chain", "keystore.key", "keystore.location",
        "keystore.password", "keystore.type", "truststore.certificates", "truststore.location",
        "truststore.password", "truststore.type",
    )
)  # fmt: skip
"""Configs of a listener only: `listener.name.<listener>.ssl.…`."""
FOR_ALL_LISTENERS: Final = (
    "max.connections",
    "max.connection.creation.rate",
    "num.network.threads",
)
POOLS: Final = (
    "num.io.threads",
    "num.replica.fetchers",
    "num.recovery.threads.per.data.dir",
    "background.threads",
    "num.network.threads",
    "log.cleaner.threads",
)
NOT_HERE: Final = ("listeners", "listener.security.protocol.map")
"""Configs that are dynamic in Kafka but not here.  DIFFERS: the topology sets a broker's only
listener."""

_MIB: Final = 1 << 20

_Check = Callable[[BrokerSettings, BrokerSettings], str | None]


def change_problem(settings: BrokerSettings, level: Mapping[str, str], for_one: bool) -> str | None:
    """The reason for refusing `level`, by Kafka's names, as the dynamic configs of this broker (or
    of all brokers, unless `for_one`); None if it is accepted."""
    fixed = [name for name in level if _when(settings, name) == "read-only"]
    if fixed:
        return f"a running broker cannot change {', '.join(fixed)}"
    bare = [name for name in level if name in SECURITY]
    if bare:
        return f"of a listener only (listener.name.<listener>.…): {', '.join(bare)}"
    for name, text in level.items():
        problem = _value_problem(settings, name, text)
        if problem is not None:
            return problem
    own = [name for name in level if _is_per_broker(settings, name)]
    if own and not for_one:
        return f"set for one broker at a time: {', '.join(own)}"
    return _whole_problem(settings, level, for_one)


def _when(settings: BrokerSettings, name: str) -> Dynamic | None:
    """The moment at which a broker applies a new value; None for the configs of listeners and
    unknown names."""
    definition = settings.definition(name)
    return None if definition is None or definition.name != name else definition.dynamic


def _value_problem(settings: BrokerSettings, name: str, text: str) -> str | None:
    definition = settings.definition(name)
    if definition is None:
        return None  # a plugin may define it
    if definition.type == "CLASS" and text != definition.default:
        return f"{name}: there is no class {text}"
    value = parse_value(definition, text)
    return str(value) if isinstance(value, ConfigError) else None


def _is_per_broker(settings: BrokerSettings, name: str) -> bool:
    base = listener_config(name)
    if base is not None:
        return base not in FOR_ALL_LISTENERS
    return _when(settings, name) == "per-broker"


def _whole_problem(settings: BrokerSettings, level: Mapping[str, str], for_one: bool) -> str | None:
    after = after_change(settings, level, for_one)
    if after.config is not settings.config:
        for name, reason in check_broker_config(after.config):
            return f"{name}: {reason}"
    for check in _CHECKS:
        problem = check(settings, after)
        if problem is not None:
            return problem
    return None


def after_change(
    settings: BrokerSettings, level: Mapping[str, str], for_one: bool
) -> BrokerSettings:
    """All levels after a change of one of them."""
    if for_one:
        after = replace(settings, dynamic=level)
    else:
        after = replace(settings, dynamic_default=level)
    config = settings.static_config.override(
        after.dynamic_default, after.dynamic, release=settings.release
    )
    return replace(after, config=config)


# ------------------------------------------------------------------------ checks of the whole level


def _check_pools(before: BrokerSettings, after: BrokerSettings) -> str | None:
    for name in POOLS:
        old, new = before.number(name), after.number(name)
        if new != old and not (max(1, old // 2) <= new <= old * 2):
            return f"{name}: {new}; from {old} it may become {max(1, old // 2)} to {old * 2}"
    return None


def _check_cleaner(_before: BrokerSettings, after: BrokerSettings) -> str | None:
    threads = max(1, after.number("log.cleaner.threads"))
    buffer_bytes = after.number("log.cleaner.dedupe.buffer.size")
    if buffer_bytes // threads <= _MIB:
        return f"log.cleaner.dedupe.buffer.size: {buffer_bytes} is not above 1 MiB per thread"
    return None


def _check_connections(before: BrokerSettings, after: BrokerSettings) -> str | None:
    for name in ("max.connections", "max.connection.creation.rate"):
        for prefix in ("", *after.listener_prefixes):
            number = after.number(prefix + name)
            if number <= 0 and number != before.number(prefix + name):
                return f"{prefix}{name}: {number} admits no connections"
    config = after.config
    if not config.max_connections_per_ip_overrides and config.max_connections_per_ip == 0:
        return "max.connections.per.ip: 0 needs max.connections.per.ip.overrides"
    return None


def _check_listeners(before: BrokerSettings, after: BrokerSettings) -> str | None:
    for name in NOT_HERE:
        if after.value(name) != before.value(name):
            return f"{name}: listeners are set by the topology"
    return None


def _check_plugins(before: BrokerSettings, after: BrokerSettings) -> str | None:
    reporters = after.value("metric.reporters")
    if reporters and reporters != before.value("metric.reporters"):
        return f"metric.reporters: there is no class {reporters}"
    return None


def _check_log_dirs(_before: BrokerSettings, after: BrokerSettings) -> str | None:
    cordoned = after.value("cordoned.log.dirs")
    dirs = after.config.log_dirs or after.config.log_dir
    assert isinstance(cordoned, tuple)
    if cordoned != ("*",) and not set(cordoned) <= set(dirs):
        return f"cordoned.log.dirs: {', '.join(cordoned)} are not all directories of this broker"
    return None


def _check_local_retention(before: BrokerSettings, after: BrokerSettings) -> str | None:
    if after.config == before.config:
        return None
    config = after.config
    for what, whole, local in (
        ("ms", config.effective_retention_ms, config.log_local_retention_ms),
        ("bytes", config.log_retention_bytes, config.log_local_retention_bytes),
    ):
        if whole > -1 and local != -2 and not -1 < local <= whole:
            return f"log.local.retention.{what}: {local} is beyond log.retention.{what}, {whole}"
        kept, lag = (whole, local)[local != -2], getattr(config, f"log_remote_copy_lag_{what}")
        if 0 <= kept < lag:
            return f"log.remote.copy.lag.{what}: {lag} is beyond what is kept locally, {kept}"
    return None


def _check_assignment_intervals(_before: BrokerSettings, after: BrokerSettings) -> str | None:
    for kind in ("consumer", "share", "streams"):
        name = f"group.{kind}.assignment.interval.ms"
        low, high = (
            after.number(f"group.{kind}.{which}.assignment.interval.ms") for which in ("min", "max")
        )
        if not low <= after.number(name) <= high:
            return f"{name}: {after.number(name)} is not between {low} and {high}"
    return None


_CHECKS: Final[tuple[_Check, ...]] = (
    _check_connections,
    _check_cleaner,
    _check_assignment_intervals,
    _check_log_dirs,
    _check_listeners,
    _check_pools,
    _check_plugins,
    _check_local_retention,
)
