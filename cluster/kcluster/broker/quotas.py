"""Client quotas: what clients have used lately, and how long those who used too much are not heard.

Owns: rates by client and quota, how long a client is throttled and why, whose connection is silent
until when.  Never: stores a quota (the image has them), counts topics (the controller does) or
connections (connection_quotas.py).
Kafka: ClientQuotaManager, ClientRequestQuotaManager, QuotaUtils, Rate, SampledStat; KIP-13,
KIP-124, KIP-219.

    producer_byte_rate    bytes a second of Produce requests
    consumer_byte_rate    bytes a second of Fetch answers; what is too much is not sent at all
    request_percentage    of a thread's time, for any request

A client over its quota gets its answer at once, with throttle_time_ms; then its next request waits
for so long.  Everybody is the user ANONYMOUS here.  While there are no quotas `BrokerNode.quotas`
is None, and that comparison is all they cost.
"""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Any, Final

from kcluster.config.kafka.client_quotas import (
    ANONYMOUS,
    CONNECTION_RATE,
    CONSUMER_RATE,
    IP,
    IP_QUOTAS,
    PRODUCER_RATE,
    REQUEST_PERCENTAGE,
    Limit,
    find_limit,
)
from kcluster.config.kafka.connection_limits import address_of
from kcluster.contract import Request
from kcluster.events.clients import ClientThrottled
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey, codec

if TYPE_CHECKING:
    from kcluster.broker.node import BrokerNode

REQUEST_TIME_PERCENT: Final = 0.01
"""What a request counts for request_percentage, in percent of a second of a thread: 0.1 ms.
DIFFERS: Kafka measures the time of its threads; a simulated broker has no clock, and every request
costs the same."""

MUTATIONS: Final = frozenset({ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS})
"""Their answers come from the controller with the throttle time of controller_mutation_rate."""

LENGTH_BYTES: Final = 4
"""Before every answer: Kafka counts it in Fetch answers, not in Produce requests."""

EXEMPT: Final = frozenset({ApiKey.WRITE_TXN_MARKERS})
MAX_KNOWN: Final = 4096
"""Clients whose quotas are remembered; beyond that, idle ones are forgotten."""


class _Sample:
    __slots__ = ("last_event_ms", "start_ms", "value")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.start_ms = now_ms
        self.last_event_ms = now_ms
        self.value = 0.0


class QuotaRate:
    """How much a second over the last `samples` windows of `window_ms`.  Kafka: Rate.

    All windows but the last count in full, also before they have been: so a client that comes
    after a pause may use at once what it could have used meanwhile.
    """

    __slots__ = ("_current", "_samples", "_size", "_window_ms")

    def __init__(self, samples: int, window_ms: int) -> None:
        self._size = samples
        self._window_ms = window_ms
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, amount: float, now_ms: int) -> None:
        """So much was used; less than nothing takes back what was recorded."""
        if not self._samples:
            self._samples.append(_Sample(now_ms))
        sample = self._samples[self._current]
        if now_ms - sample.start_ms >= self._window_ms:
            # One more than counts: the oldest may lie half within what is looked at.
            self._current = (self._current + 1) % (self._size + 1)
            if self._current == len(self._samples):
                self._samples.append(_Sample(now_ms))
            else:
                self._samples[self._current].reset(now_ms)
            sample = self._samples[self._current]
        sample.value += amount
        sample.last_event_ms = now_ms

    def window_ms(self, now_ms: int) -> int:
        """Over how long `measure` measures."""
        oldest_ms, keep_ms = now_ms, self._size * self._window_ms
        for sample in self._samples:
            if now_ms - sample.last_event_ms >= keep_ms:
                sample.reset(now_ms)
            oldest_ms = min(oldest_ms, sample.start_ms)
        elapsed_ms = now_ms - oldest_ms
        missing = self._size - 1 - elapsed_ms // self._window_ms
        return max(elapsed_ms + max(missing, 0) * self._window_ms, 1)

    def measure(self, now_ms: int) -> float:
        """The rate as of now, a second."""
        window_ms = self.window_ms(now_ms)
        return sum(sample.value for sample in self._samples) * 1000 / window_ms


def throttle_ms(rate: float, limit: float, window_ms: int) -> int:
    """How long nothing may be used for `rate`, measured over `window_ms`, to sink to `limit`.
    Kafka: QuotaUtils.throttleTime."""
    return int((rate - limit) / limit * window_ms + 0.5) if rate > limit else 0


class ClientQuotas:
    """All quotas as one broker enforces them."""

    def __init__(self, broker: BrokerNode) -> None:
        self._broker = broker
        self._rates: dict[tuple[str, str, str], QuotaRate] = {}
        self._limits: dict[tuple[str, str], Limit | None] = {}
        """By quota and client id, as far as asked for."""
        self._silent_until_ms: dict[int, int] = {}
        """By connection: its next request waits until then."""
        self._produced_bytes: dict[int, int] = {}
        """By connection: size of the Produce request that is being served."""
        self._held = 0
        """Requests that wait."""
        self._violated: set[tuple[str, str, str]] = set()
        self._connection_rates: dict[str | None, int] | None = None
        """By address, None for all others; None while nobody has asked."""

    def changed(self) -> None:
        """The quotas of the image have changed."""
        self._limits.clear()
        self._connection_rates = None

    def connection_rate(self, address: str) -> int:
        """How many connections a second may come from an address; 2**31 - 1: any number."""
        rates = self._connection_rates
        if rates is None:
            rates = self._connection_rates = {None: IP_QUOTAS[CONNECTION_RATE] or 0}
            for ((kind, name), *_), values in self._broker.image.client_quotas.items():
                if kind == IP and CONNECTION_RATE in values:
                    value = values[CONNECTION_RATE]
                    # NaN is none, as where Kafka makes an int of it.
                    rates[name and address_of(name)] = 0 if math.isnan(value) else int(value)
        return rates.get(address, rates[None])

    # -------------------------------------------------------------------------- the silence

    def holds(self, request: Request, now_ms: int) -> bool:
        """Whether a request has to wait, as its connection is throttled; it is served later."""
        client_id = request.client_id or ""
        if request.api_key == ApiKey.PRODUCE and self._limit(PRODUCER_RATE, client_id):
            # Now, as the records are let go once they are appended.
            self._produced_bytes[request.connection_id] = _request_bytes(request)
        until_ms = self._silent_until_ms.pop(request.connection_id, 0)
        if until_ms <= now_ms:
            if (
                not self._broker.image.client_quotas
                and not self._silent_until_ms
                and not self._held
            ):
                self._broker.quotas = None
            return False
        broker = self._broker

        def serve(now_ms: int) -> None:
            self._held -= 1
            broker.serve(request, now_ms)

        self._held += 1
        broker.timers.set(("throttled", request.connection_id), until_ms, serve)
        return True

    def connection_closed(self, connection_id: int) -> None:
        """Its request will find nobody to answer."""
        self._silent_until_ms.pop(connection_id, None)
        self._produced_bytes.pop(connection_id, None)
        if ("throttled", connection_id) in self._broker.timers:
            self._held -= 1
            self._broker.timers.cancel(("throttled", connection_id))

    # ----------------------------------------------------------------------------- the rates

    def throttle(self, request: Request, body: Any, now_ms: int) -> Any:
        """The answer as it is given to a client, which is silent from now on if it used too much.
        `body` None: no answer is due."""
        api_key, client_id = request.api_key, request.client_id or ""
        silent_ms = size_bytes = 0
        if api_key == ApiKey.PRODUCE:
            size_bytes = self._produced_bytes.pop(request.connection_id, 0)
            silent_ms = self._use(PRODUCER_RATE, client_id, size_bytes, now_ms)
        elif api_key == ApiKey.FETCH:
            size_bytes = self._answer_bytes(request, body)
            silent_ms = self._use(CONSUMER_RATE, client_id, size_bytes, now_ms)
        elif api_key in MUTATIONS:
            silent_ms = body.throttle_time_ms
        if body is not None and api_key not in EXEMPT:
            busy_ms = self._use(REQUEST_PERCENTAGE, client_id, REQUEST_TIME_PERCENT, now_ms)
            # No more than a window, as the time of a thread is not as easily foreseen as bytes.
            longest_ms = self._broker.config.quota_window_size_seconds * 1000
            silent_ms = max(silent_ms, min(busy_ms, longest_ms))
        if not silent_ms:
            return body
        if api_key == ApiKey.FETCH and size_bytes:
            self._use(CONSUMER_RATE, client_id, -size_bytes, now_ms)
        self._silent_until_ms[request.connection_id] = now_ms + silent_ms
        if api_key == ApiKey.FETCH:
            return self._without_records(request, body, silent_ms)
        return _told(body, silent_ms)

    def _without_records(self, request: Request, body: Any, silent_ms: int) -> m.FetchResponse:
        """What a Fetch is told instead: an incremental session goes on as if it had not been, a
        full fetch makes none."""
        sessions = self._broker.sessions
        if request.body.session_epoch > 0:
            sessions.forget_answer(body.session_id)
            return m.FetchResponse(throttle_time_ms=silent_ms, session_id=request.body.session_id)
        sessions.remove(body.session_id)
        return m.FetchResponse(throttle_time_ms=silent_ms)

    def fetch_limit_bytes(self, client_id: str | None, max_bytes: int) -> int:
        """No more than a client may fetch after a pause: larger answers would never be sent."""
        limit = self._limit(CONSUMER_RATE, client_id or "")
        if limit is None:
            return max_bytes
        config = self._broker.config
        windows_s = (config.quota_window_num - 1) * config.quota_window_size_seconds
        return min(max_bytes, int(min(limit.value * windows_s, max_bytes)))

    def _limit(self, quota: str, client_id: str) -> Limit | None:
        key = quota, client_id
        if key not in self._limits:
            if len(self._limits) >= MAX_KNOWN:
                self._limits.clear()
            found = find_limit(self._broker.image.client_quotas, quota, ANONYMOUS, client_id)
            self._limits[key] = found
        return self._limits[key]

    def _use(self, quota: str, client_id: str, amount: float, now_ms: int) -> int:
        """Record what a client used; for how long it is throttled, in ms."""
        limit = self._limit(quota, client_id)
        if limit is None:
            return 0
        rate = self._rate(limit.rate_key, now_ms)
        rate.record(amount, now_ms)
        measured = rate.measure(now_ms)
        silent_ms = throttle_ms(measured, limit.value, rate.window_ms(now_ms))
        if measured <= limit.value:
            self._violated.discard(limit.rate_key)
        elif limit.rate_key not in self._violated:
            self._violated.add(limit.rate_key)
            self._broker.note(
                ClientThrottled(client_id, quota, limit.entity, measured, limit.value, silent_ms)
            )
        return silent_ms

    def _rate(self, key: tuple[str, str, str], now_ms: int) -> QuotaRate:
        rate = self._rates.get(key)
        if rate is None:
            if len(self._rates) >= MAX_KNOWN:
                for idle in [k for k, known in self._rates.items() if not known.measure(now_ms)]:
                    del self._rates[idle]
            config = self._broker.config
            window_ms = config.quota_window_size_seconds * 1000
            rate = self._rates[key] = QuotaRate(config.quota_window_num, window_ms)
        return rate

    def _answer_bytes(self, request: Request, body: Any) -> int:
        """Size of a Fetch answer, where that matters."""
        if self._limit(CONSUMER_RATE, request.client_id or "") is None:
            return 0
        buffers = codec(request.api_key, request.api_version).encode_response(body)
        return LENGTH_BYTES + sum(map(len, buffers))


def on_client_quotas(broker: BrokerNode) -> None:
    """The quotas of the broker's image have changed: keep track as long as there are any."""
    if broker.quotas is None:
        broker.quotas = ClientQuotas(broker)
    broker.quotas.changed()


def _request_bytes(request: Request) -> int:
    """Size of a request as it came, without the length before it."""
    spoken = codec(request.api_key, request.api_version)
    header_bytes = 10 + len((request.client_id or "").encode())
    buffers = spoken.encode_request(request.body)
    return header_bytes + (spoken.request_header_version >= 2) + sum(map(len, buffers))


def _told(body: Any, silent_ms: int) -> Any:
    """An answer with its throttle time, if it has one."""
    if body is None or not hasattr(body, "throttle_time_ms"):
        return body
    told = copy.copy(body)
    told.throttle_time_ms = silent_ms
    return told
