"""Configs of client metrics: the metrics that clients push, which clients push them, and how often.

Owns: ClientMetricsConfig, CLIENT_METRICS_CONFIGS, Subscription: the clients that its patterns
match.  Never: knows a client (broker/telemetry.py does).  Kafka: ClientMetricsConfigs,
ClientMetricsInstanceMetadata.isMatch; KIP-714.
"""

# No `from __future__ import annotations`: the annotations are used as values; see broker.py.

import re
import warnings
from collections.abc import Mapping
from typing import Annotated, Final

from msgspec import Struct, structs

from kcluster.config.kafka.values import (
    ConfigDef,
    ConfigError,
    ConfigFields,
    Spec,
    definitions_of,
    field_of,
    parse_overrides,
)
from kcluster.protocol.errors import ErrorCode

ALL_METRICS: Final = "*"
MIN_INTERVAL_MS: Final = 100
MAX_INTERVAL_MS: Final = 3_600_000
DEFAULT_INTERVAL_MS: Final = 300_000

MATCHABLE: Final = (
    "client_instance_id", "client_id", "client_software_name", "client_software_version",
    "client_source_address", "client_source_port",
)  # fmt: skip
"""The properties of clients that a pattern may match."""


class ClientMetricsConfig(Struct, frozen=True):
    """The effective configs of one client metrics resource."""

    interval_ms: Annotated[int, Spec("INT")] = DEFAULT_INTERVAL_MS
    match: Annotated[tuple[str, ...], Spec("LIST")] = ()
    metrics: Annotated[tuple[str, ...], Spec("LIST")] = ()
    """Prefixes of metrics' names; `*`: all metrics."""

    @classmethod
    def resolve(cls, own: Mapping[str, str]) -> "ClientMetricsConfig":
        """The configs of a client metrics resource: `own` (by Kafka's names) over the defaults;
        ConfigError for an invalid value."""
        values = parse_overrides(CLIENT_METRICS_CONFIGS, own, "client metrics")
        fields: ConfigFields = {field_of(name): value for name, value in values.items()}
        return structs.replace(cls(), **fields)


CLIENT_METRICS_CONFIGS: Final[dict[str, ConfigDef]] = definitions_of(
    ClientMetricsConfig, "client-metrics"
)
"""Every config of client metrics, by name."""


def client_metrics_problem(own: Mapping[str, str]) -> tuple[ErrorCode, str] | None:
    """The reason why Kafka would refuse these configs, or None.  Unknown names and intervals beyond
    their bounds are INVALID_REQUEST, any other problem is INVALID_CONFIG."""
    for name in own:
        if name not in CLIENT_METRICS_CONFIGS:
            return ErrorCode.INVALID_REQUEST, f"{name} is not a config of client metrics"
    try:
        config = ClientMetricsConfig.resolve(own)
    except ConfigError as error:
        return ErrorCode.INVALID_CONFIG, str(error)
    if not MIN_INTERVAL_MS <= config.interval_ms <= MAX_INTERVAL_MS:
        bounds = f"not between {MIN_INTERVAL_MS} and {MAX_INTERVAL_MS}"
        return ErrorCode.INVALID_REQUEST, f"interval.ms {config.interval_ms} is {bounds}"
    patterns = parse_patterns(config.match)
    if isinstance(patterns, str):
        return ErrorCode.INVALID_CONFIG, patterns
    return None


def parse_patterns(match: tuple[str, ...]) -> dict[str, re.Pattern[str]] | str:
    """The patterns by the property that they match, or the reason why they are invalid.  Of two
    patterns for one property the last counts."""
    patterns: dict[str, re.Pattern[str]] = {}
    for item in match:
        about, _, pattern = item.partition("=")
        about = about.strip()
        if about not in MATCHABLE or not pattern or "=" in pattern.rstrip("="):
            return f"{item} is not a pattern for matching clients"
        compiled = _compile(pattern.rstrip("=").strip())
        if compiled is None:
            return f"{item}: not a regular expression"
        patterns[about] = compiled
    return patterns


def _compile(pattern: str) -> re.Pattern[str] | None:
    # DIFFERS: Python's regular expressions instead of Java's; common expressions have one meaning
    # in both.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about syntax that may change its meaning
        try:
            return re.compile(pattern)
        except (re.error, OverflowError, RecursionError):
            return None


class Subscription(Struct, frozen=True):
    """One client metrics resource, ready to be matched."""

    name: str
    config: ClientMetricsConfig
    patterns: dict[str, re.Pattern[str]]

    @classmethod
    def of(cls, name: str, own: Mapping[str, str]) -> "Subscription":
        """The subscription of stored configs, which have been checked."""
        config = ClientMetricsConfig.resolve(own)
        patterns = parse_patterns(config.match)
        assert isinstance(patterns, dict), patterns
        return cls(name, config, patterns)

    def matches(self, client: Mapping[str, str]) -> bool:
        """Whether each pattern matches the whole value of its property; `client`: the client's
        properties, by the names in MATCHABLE."""
        return all(
            pattern.fullmatch(client.get(about, "")) for about, pattern in self.patterns.items()
        )
