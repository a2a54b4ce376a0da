"""Client metrics: the subscriptions to them, and each client that pushes them.

Owns: the instances of clients that ask for subscriptions, their clocks and counters.  Never: reads
or keeps pushed metrics: the handler counts them and leaves a note, like a plugin that discards
them.  Kafka: ClientMetricsManager, ClientMetricsInstance; KIP-714.

An instance is forgotten with its connection, or when it has been silent for three push intervals
and at least a minute.  As in Kafka, at most 16,384 are known; the longest silent one is evicted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kcluster.config.kafka.client_metrics import ALL_METRICS, DEFAULT_INTERVAL_MS, Subscription
from kcluster.metadata.image import MetadataImage
from kcluster.metadata.records import CLIENT_METRICS_RESOURCE
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.crc import crc32c_of

MAX_INSTANCES: Final = 16_384
"""Kafka: ClientMetricsManager.CACHE_MAX_SIZE."""
MIN_KEPT_MS: Final = 60_000
INTERVALS_KEPT: Final = 3
ASK_AGAIN_AFTER: Final = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)


class ClientInstance:
    """One client, in this broker's view."""

    __slots__ = (
        "attributes", "connection_id", "expires_ms", "instance_id", "last_error", "last_get_ms",
        "last_push_ms",
        "metrics", "push_interval_ms", "pushed_bytes", "pushes", "subscription_id", "terminating",
        "version",
    )  # fmt: skip

    def __init__(
        self, instance_id: bytes, attributes: Mapping[str, str], connection_id: int
    ) -> None:
        self.instance_id = instance_id
        self.attributes = attributes
        """The client's attributes, by the names that subscriptions match."""
        self.connection_id = connection_id
        self.version = -1
        """The version of the subscriptions with which the client was matched."""
        self.metrics: tuple[str, ...] = ()
        self.push_interval_ms = DEFAULT_INTERVAL_MS
        self.subscription_id = 0
        self.last_get_ms: int | None = None
        self.last_push_ms: int | None = None
        self.terminating = False
        self.last_error = ErrorCode.NONE
        self.expires_ms = 0
        self.pushes = 0
        self.pushed_bytes = 0

    def subscribe(self, subscriptions: list[Subscription], version: int) -> None:
        """Match the client with the current subscriptions; earlier matches and the clocks are
        reset."""
        configs = [s.config for s in subscriptions if s.matches(self.attributes)]
        names = {name for config in configs for name in config.metrics}
        self.metrics = (ALL_METRICS,) if ALL_METRICS in names else tuple(sorted(names))
        self.push_interval_ms = min([DEFAULT_INTERVAL_MS, *(c.interval_ms for c in configs)])
        self.version = version
        self.last_get_ms = self.last_push_ms = None
        self.terminating = False
        self.last_error = ErrorCode.NONE
        crc = crc32c_of(f"{self.metrics}{self.push_interval_ms}".encode() + self.instance_id)
        self.subscription_id = crc - (1 << 32) if crc >= 1 << 31 else crc

    def may_get(self, now_ms: int) -> bool:
        """Whether the client may request subscriptions now; if so, its interval restarts.  A client
        whose push failed because of its subscription may request them at any time."""
        for last_ms in (self.last_get_ms, self.last_push_ms):
            if last_ms is not None and now_ms - last_ms < self.push_interval_ms:
                return self.last_error in ASK_AGAIN_AFTER
        self.last_get_ms = now_ms
        return True

    def may_push(self, now_ms: int) -> bool:
        """Whether the client may push now: right after a request for subscriptions, then once per
        interval."""
        got_ms, pushed_ms = self.last_get_ms, self.last_push_ms
        is_first = pushed_ms is None or (got_ms is not None and got_ms > pushed_ms)
        if not is_first and now_ms - (pushed_ms or 0) < self.push_interval_ms:
            return False
        self.last_push_ms = now_ms
        return True


class ClientTelemetry:
    """All client instances of one life of one broker."""

    def __init__(self) -> None:
        self.instances: dict[bytes, ClientInstance] = {}
        """The instances by id, the longest silent first."""
        self.software: dict[int, tuple[str, str]] = {}
        """The software's name and version by connection, noted while there are subscriptions."""
        self._by_connection: dict[int, bytes] = {}
        self._subscriptions: list[Subscription] = []
        self._configs: dict[str, dict[str, str]] = {}
        self._version = 0
        self._offset = -1

    def subscriptions(self, image: MetadataImage) -> list[Subscription]:
        """The subscriptions in `image`."""
        if image.offset != self._offset:
            self._offset = image.offset
            configs = client_metrics(image)
            if configs != self._configs:
                self._configs = configs
                self._version += 1
                self._subscriptions = [Subscription.of(*item) for item in sorted(configs.items())]
        return self._subscriptions

    def instance(
        self,
        instance_id: bytes,
        attributes: Mapping[str, str],
        connection_id: int,
        image: MetadataImage,
        now_ms: int,
    ) -> ClientInstance:
        """The client with this id; it is created, or matched with changed subscriptions, if
        necessary."""
        known = self.instances.pop(instance_id, None)
        subscriptions = self.subscriptions(image)
        if known is None or known.expires_ms <= now_ms:
            known = ClientInstance(instance_id, attributes, connection_id)
        self.instances[instance_id] = known
        if known.version != self._version:
            known.subscribe(subscriptions, self._version)
            known.connection_id = connection_id
            self._by_connection[connection_id] = instance_id
        known.expires_ms = now_ms + max(MIN_KEPT_MS, INTERVALS_KEPT * known.push_interval_ms)
        if len(self.instances) > MAX_INSTANCES:
            oldest = next(iter(self.instances.values()))
            self._drop(oldest)
        return known

    def note_software(self, connection_id: int, name: str, version: str) -> None:
        """Note a client's software, which ApiVersions has from v3 on."""
        self.software[connection_id] = (name, version)

    def connection_closed(self, connection_id: int) -> None:
        """Forget the client, as Kafka does."""
        self.software.pop(connection_id, None)
        instance_id = self._by_connection.get(connection_id)
        if instance_id is not None:
            instance = self.instances.get(instance_id)
            if instance is not None:
                self._drop(instance)
            self._by_connection.pop(connection_id, None)

    def _drop(self, instance: ClientInstance) -> None:
        del self.instances[instance.instance_id]
        if self._by_connection.get(instance.connection_id) == instance.instance_id:
            del self._by_connection[instance.connection_id]


def client_metrics(image: MetadataImage) -> dict[str, dict[str, str]]:
    """The configs of each client metrics resource, by name."""
    return {
        name: dict(configs)
        for (kind, name), configs in image.configs.items()
        if kind == CLIENT_METRICS_RESOURCE
    }
