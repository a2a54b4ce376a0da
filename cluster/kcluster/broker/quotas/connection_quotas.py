"""Limits on connections, by which new ones are served, delayed or refused.

Owns: the number of a broker's connections by address, the rate of their arrival, and the decisions.
Never: sees a socket (drivers/sockets/listener.py asks, and obeys), waits.  Kafka: SocketServer's
ConnectionQuotas, ClientQuotaMetadataManager.handleIpQuota; KIP-402, KIP-612.

    max.connection.creation.rate      per second; above it, accepting pauses: `arrived`
    max.connections                   above it, accepting pauses; if it is lowered, the longest idle
                                      connections are closed: `excess`
    connection_creation_rate          quota of an address: above it, closed after a delay: `admit`
    max.connections.per.ip            and .overrides: above it, closed at once: `admit`

The first two may also be set for a listener (`listener.name.plaintext.…`), whose own connections
then count.
Simulated clients of the virtual driver have no sockets, and none of these limits.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from kcluster.broker.ports import BrokerView
from kcluster.broker.quotas.client_quotas import MAX_KNOWN, ClientQuotas, throttle_ms
from kcluster.broker.quotas.sampled_rate import SampledRate
from kcluster.config.kafka.catalog import listener_prefix
from kcluster.config.kafka.client_quotas import CONNECTION_RATE
from kcluster.config.kafka.connection_limits import parse_overrides
from kcluster.config.kafka.definitions import BROKER_CONFIGS, parse_value
from kcluster.metadata.records import BROKER_RESOURCE, CLUSTER_DEFAULT

UNLIMITED: Final = 2**31 - 1


class RefusedConnection(Struct, frozen=True):
    """A connection that is refused."""

    keep_ms: int
    """The time for which the connection stays open, unserved, so that its client does not reconnect
    at once."""
    reason: str
    """The reason for the log; empty if it was reported already."""


class _OfListener:
    """The connections of one listener."""

    __slots__ = ("count", "rate")

    def __init__(self, rate: SampledRate) -> None:
        self.count = 0
        self.rate = rate


class ConnectionQuotas:
    """The connections of one broker in one life."""

    __slots__ = (
        "_by_address", "_by_listener", "_quotas", "_rate", "_rates", "_throttled", "_total", "_view"
    )  # fmt: skip

    def __init__(self, view: BrokerView, quotas: ClientQuotas) -> None:
        self._view = view
        self._quotas = quotas
        self._total = 0
        self._by_address: dict[str, int] = {}
        self._by_listener: dict[str, _OfListener] = {}
        self._rate = self._new_rate()
        self._rates: dict[str, SampledRate] = {}
        """The rates by address, for addresses with a quota."""
        self._throttled: set[str] = set()
        """The addresses above their quota for which this was already reported."""

    # ----------------------------------------------------------------------------- the limits

    def _limit(self, listener: str, name: str) -> int:
        """The limit of a listener; UNLIMITED if it has none of its own."""
        configs = self._view.image.configs
        for level in (str(self._view.node_id), CLUSTER_DEFAULT):
            own = configs.get((BROKER_RESOURCE, level), {})
            text = own.get(listener_prefix(listener) + name)
            value = None if text is None else parse_value(BROKER_CONFIGS[name], text)
            if isinstance(value, int):
                return value
        return UNLIMITED

    def _of(self, listener: str) -> _OfListener:
        own = self._by_listener.get(listener)
        if own is None:
            own = self._by_listener[listener] = _OfListener(self._new_rate())
        return own

    def max_of(self, address: str) -> int:
        """The number of connections that an address may have."""
        config = self._view.config
        if config.max_connections_per_ip_overrides:
            limits = parse_overrides(config.max_connections_per_ip_overrides)
            if not isinstance(limits, str) and address in limits:
                return limits[address]
        return config.max_connections_per_ip

    def max_rate_of(self, address: str) -> int:
        """The number of new connections per second that an address may open."""
        quotas = self._quotas
        return quotas.connection_rate(address) if quotas.is_active else UNLIMITED

    # -------------------------------------------------------------------------- the decisions

    def arrived(self, listener: str, now_ms: int) -> int:
        """Count a connection that has arrived; return the time in ms for which it and all later
        connections of its listener must wait."""
        own, limit = self._of(listener), self._limit(listener, "max.connection.creation.rate")
        self._rate.record(1, now_ms)
        own.rate.record(1, now_ms)
        return max(
            self._wait_ms(self._rate, self._view.config.max_connection_creation_rate, now_ms),
            self._wait_ms(own.rate, limit, now_ms),
        )

    def has_room(self, listener: str) -> bool:
        """Whether one more connection may be served; otherwise new connections of the listener wait
        until one is closed."""
        return self._total < self._view.config.max_connections and self._of(
            listener
        ).count < self._limit(listener, "max.connections")

    @property
    def excess(self) -> int:
        """The number of connections above the broker's limit; as in Kafka the listener's own limit
        does not count here."""
        return max(0, self._total - self._view.config.max_connections)

    def admit(self, listener: str, address: str, now_ms: int) -> RefusedConnection | None:
        """Decide whether to serve a connection that has waited long enough.  A served connection
        counts until it is `closed`; a refused connection does not count."""
        limit = self.max_rate_of(address)
        if limit != UNLIMITED:
            refusal = self._throttle(listener, address, limit, now_ms)
            if refusal is not None:
                return refusal
        count, most = self._by_address.get(address, 0), self.max_of(address)
        if count >= most:
            return RefusedConnection(
                0, f"{address} has too many connections, one refused (of {most})"
            )
        self._by_address[address] = count + 1
        self._of(listener).count += 1
        self._total += 1
        return None

    def closed(self, listener: str, address: str) -> None:
        """Stop counting a connection that was admitted."""
        self._total -= 1
        self._of(listener).count -= 1
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]

    # ------------------------------------------------------------------------------ the rates

    def _throttle(
        self, listener: str, address: str, limit: int, now_ms: int
    ) -> RefusedConnection | None:
        rate = self._rates.get(address)
        if rate is None:
            self._forget_idle(now_ms)
            rate = self._rates[address] = self._new_rate()
        rate.record(1, now_ms)
        keep_ms = self._wait_ms(rate, limit, now_ms)
        if not keep_ms:
            self._throttled.discard(address)
            return None
        # A refused connection counts neither for the address nor for listener and broker.
        for counted in (rate, self._rate, self._of(listener).rate):
            counted.record(-1, now_ms)
        if address in self._throttled:
            return RefusedConnection(keep_ms, "")
        self._throttled.add(address)
        words = f"{address} connects too often, one is not served: {CONNECTION_RATE} is {limit}"
        return RefusedConnection(keep_ms, words)

    def _forget_idle(self, now_ms: int) -> None:
        if len(self._rates) >= MAX_KNOWN:
            for idle in [a for a, rate in self._rates.items() if not rate.measure(now_ms)]:
                del self._rates[idle]
                self._throttled.discard(idle)

    def _new_rate(self) -> SampledRate:
        config = self._view.config
        return SampledRate(config.quota_window_num, config.quota_window_size_seconds * 1000)

    def _wait_ms(self, rate: SampledRate, limit: int, now_ms: int) -> int:
        """The time to wait, at most one window.  Kafka: boundedThrottleTime."""
        if limit == UNLIMITED:
            return 0
        measured, longest_ms = rate.measure(now_ms), self._view.config.quota_window_size_seconds
        if limit <= 0:
            return longest_ms * 1000 if measured > 0 else 0
        return min(throttle_ms(measured, limit, rate.measured_ms(now_ms)), longest_ms * 1000)
