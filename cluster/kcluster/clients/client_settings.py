"""What producers and consumers have in common in their settings.

Owns: ClientSettings: timeouts, backoffs, the age of metadata.  Never: what is of one of them alone.
Kafka: CommonClientConfigs of 4.3.1.
"""

from __future__ import annotations

from msgspec import Struct

from kcluster.clients.connections import NetworkSettings
from kcluster.clients.metadata import MetadataSettings


class ClientSettings(Struct, frozen=True, kw_only=True):
    """Configs by Kafka's names, with its defaults."""

    request_timeout_ms: int = 30_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    metadata_max_age_ms: int = 300_000
    reconnect_backoff_ms: int = 50
    reconnect_backoff_max_ms: int = 1_000
    socket_connection_setup_timeout_ms: int = 10_000

    @property
    def max_in_flight(self) -> int:
        """Requests on one connection that are not answered, at most."""
        raise AssertionError(f"{type(self).__name__} must say")

    @property
    def network(self) -> NetworkSettings:
        """What connections need of these."""
        return NetworkSettings(
            request_timeout_ms=self.request_timeout_ms,
            reconnect_backoff_ms=self.reconnect_backoff_ms,
            reconnect_backoff_max_ms=self.reconnect_backoff_max_ms,
            connection_setup_timeout_ms=self.socket_connection_setup_timeout_ms,
            max_in_flight=self.max_in_flight,
        )

    @property
    def metadata(self) -> MetadataSettings:
        """What the view of the cluster needs of these."""
        return MetadataSettings(
            max_age_ms=self.metadata_max_age_ms,
            retry_backoff_ms=self.retry_backoff_ms,
            retry_backoff_max_ms=self.retry_backoff_max_ms,
        )
