"""Settings that producers and consumers have in common.

Owns: ClientSettings: timeouts, backoffs, the maximum age of metadata; TimedPlan.  Never: settings
of producers or of consumers alone (their own settings.py).
Kafka: CommonClientConfigs of 4.4.0.
"""

from __future__ import annotations

from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from kcluster.clients.connections import NetworkSettings
from kcluster.clients.metadata import MetadataSettings


class TimedPlan(Struct, frozen=True, kw_only=True):
    """When an application runs, in ms after its client's start."""

    start_ms: int = 0
    """The time of the first record, or of the first poll()."""
    stop_ms: int = -1
    """The time at which it ends; -1: when it is stopped."""

    def later(self, age_ms: int) -> Self:
        """The plan of a process that starts again, this long after the client's first start."""
        stop_ms = self.stop_ms if self.stop_ms < 0 else max(0, self.stop_ms - age_ms)
        return replace(self, start_ms=max(0, self.start_ms - age_ms), stop_ms=stop_ms)


class ClientSettings(Struct, frozen=True, kw_only=True):
    """The settings that producers and consumers share, by Kafka's names and with its defaults."""

    request_timeout_ms: int = 30_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    metadata_max_age_ms: int = 300_000
    reconnect_backoff_ms: int = 50
    reconnect_backoff_max_ms: int = 1_000
    socket_connection_setup_timeout_ms: int = 10_000
    metadata_cluster_check_enable: bool = True

    @property
    def max_in_flight(self) -> int:
        """The most unanswered requests on one connection."""
        raise AssertionError(f"{type(self).__name__} must define max_in_flight")

    @property
    def network(self) -> NetworkSettings:
        """The settings of the NetworkClient."""
        return NetworkSettings(
            request_timeout_ms=self.request_timeout_ms,
            reconnect_backoff_ms=self.reconnect_backoff_ms,
            reconnect_backoff_max_ms=self.reconnect_backoff_max_ms,
            connection_setup_timeout_ms=self.socket_connection_setup_timeout_ms,
            max_in_flight=self.max_in_flight,
            cluster_check=self.metadata_cluster_check_enable,
        )

    @property
    def metadata(self) -> MetadataSettings:
        """The settings of the client's Metadata."""
        return MetadataSettings(
            max_age_ms=self.metadata_max_age_ms,
            retry_backoff_ms=self.retry_backoff_ms,
            retry_backoff_max_ms=self.retry_backoff_max_ms,
        )
