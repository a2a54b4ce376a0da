"""Client quotas: the recent use of clients, and the time for which a client over its quota is
muted.

Owns: rates by client and quota, the time and reason of throttling, the muted connections.  Never:
stores a quota (the image has them), counts topics (the controller does) or connections
(connection_quotas.py).  Kafka: ClientQuotaManager, ClientRequestQuotaManager, QuotaUtils; KIP-13,
KIP-124, KIP-219.

    producer_byte_rate    bytes per second of Produce requests
    consumer_byte_rate    bytes per second of Fetch answers; an answer above it is not sent
    request_percentage    of a thread's time, for any request

A client over its quota gets its answer at once, with throttle_time_ms; its next request then waits
for that long.  A client is known by its user (ANONYMOUS if it did not log in) and its id.  While
there are no quotas `is_active` is False, and checking it is their only cost.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from typing import Any, Final, final

from kcluster.broker.ports import BrokerView, Outbox
from kcluster.broker.quotas.sampled_rate import SampledRate
from kcluster.broker.serving.sessions import FetchSessions
from kcluster.config.kafka.client_quotas import (
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
from kcluster.timers import Timers

REQUEST_TIME_PERCENT: Final = 0.01
"""The share of each request in request_percentage, in percent of a thread's second: 0.1 ms.
DIFFERS: Kafka measures the time of its threads; a simulated broker has no clock, and every request
costs the same."""

MUTATIONS: Final = frozenset({ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS})
"""APIs that the controller answers: their answers have the throttle time of the quota
controller_mutation_rate."""

LENGTH_BYTES: Final = 4
"""The size of the length field, which Kafka counts in Fetch answers, but not in Produce
requests."""

EXEMPT: Final = frozenset({ApiKey.WRITE_TXN_MARKERS})
MAX_KNOWN: Final = 4096
"""The number of clients whose quotas are remembered; beyond it, idle ones are forgotten."""


def throttle_ms(rate: float, limit: float, window_ms: int) -> int:
    """The time for which a client must pause until `rate`, measured over `window_ms`, is down to
    `limit`.  Kafka: QuotaUtils.throttleTime."""
    return int((rate - limit) / limit * window_ms + 0.5) if rate > limit else 0


@final
class ClientQuotas:
    """All quotas, as one broker enforces them.

    `is_active`: whether there are quotas, or clients are still muted because of earlier ones.
    """

    def __init__(
        self,
        view: BrokerView,
        timers: Timers,
        outbox: Outbox,
        sessions: FetchSessions,
        serve: Callable[[Request, int], None],
    ) -> None:
        self._view = view
        self._timers = timers
        self._outbox = outbox
        self._sessions = sessions
        self._serve = serve
        self.is_active = False
        self._forget_usage()

    def _forget_usage(self) -> None:
        self._rates: dict[tuple[str, str, str], SampledRate] = {}
        self._limits: dict[tuple[str, str, str], Limit | None] = {}
        """The limits that were looked up, by quota, user and client id."""
        self._muted_until_ms: dict[int, int] = {}
        """The time until which a connection's next request waits, by connection."""
        self._produced_bytes: dict[int, int] = {}
        """The size of the Produce request that is being served, by connection."""
        self._held = 0
        """The number of waiting requests."""
        self._violated: set[tuple[str, str, str]] = set()
        self._connection_rates: dict[str | None, int] | None = None
        """The limits by address, None for all other addresses; None until they are looked up."""

    def on_changed(self) -> None:
        """Drop all limits and look them up again, because the quotas of the image have changed."""
        if not self.is_active:
            self.is_active = True
            self._forget_usage()
        self._limits.clear()
        self._connection_rates = None

    @property
    def limits(self) -> Mapping[tuple[str, str, str], Limit | None]:
        """The limits that clients have now, as far as they were needed, by quota, user and client
        id."""
        return self._limits

    def connection_rate(self, address: str) -> int:
        """The number of connections per second that an address may open; 2**31 - 1 if unlimited."""
        rates = self._connection_rates
        if rates is None:
            rates = self._connection_rates = {None: IP_QUOTAS[CONNECTION_RATE] or 0}
            for ((kind, name), *_), values in self._view.image.client_quotas.items():
                if kind == IP and CONNECTION_RATE in values:
                    value = values[CONNECTION_RATE]
                    # NaN means 0, as in Kafka, which converts it to an int.
                    rates[name and address_of(name)] = 0 if math.isnan(value) else int(value)
        return rates.get(address, rates[None])

    # ----------------------------------------------------------------------------------- muting

    def holds(self, request: Request, now_ms: int) -> bool:
        """Whether a request must wait because its connection is muted; it is served later."""
        if request.api_key == ApiKey.PRODUCE and self._limit(PRODUCER_RATE, request):
            # The size is measured now, because the request drops its records once they are
            # appended.
            self._produced_bytes[request.connection_id] = _request_bytes(request)
        until_ms = self._muted_until_ms.pop(request.connection_id, 0)
        if until_ms <= now_ms:
            if not self._view.image.client_quotas and not self._muted_until_ms and not self._held:
                self.is_active = False
            return False

        def serve(now_ms: int) -> None:
            self._held -= 1
            self._serve(request, now_ms)

        self._held += 1
        self._timers.set(("throttled", request.connection_id), until_ms, serve)
        return True

    def connection_closed(self, connection_id: int) -> None:
        """Forget the connection; its waiting request will not be served."""
        self._muted_until_ms.pop(connection_id, None)
        self._produced_bytes.pop(connection_id, None)
        if ("throttled", connection_id) in self._timers:
            self._held -= 1
            self._timers.cancel(("throttled", connection_id))

    # -------------------------------------------------------------------------------- the rates

    def throttle(self, request: Request, body: Any, now_ms: int) -> Any:
        """Count a request's use of its quotas, mute its connection if that exceeds one, and return
        the answer to send.  `body` None: no answer is due."""
        api_key = request.api_key
        mute_ms = size_bytes = 0
        if api_key == ApiKey.PRODUCE:
            size_bytes = self._produced_bytes.pop(request.connection_id, 0)
            mute_ms = self._use(PRODUCER_RATE, request, size_bytes, now_ms)
        elif api_key == ApiKey.FETCH or api_key == ApiKey.SHARE_FETCH:
            size_bytes = self._answer_bytes(request, body)
            mute_ms = self._use(CONSUMER_RATE, request, size_bytes, now_ms)
        elif api_key in MUTATIONS:
            mute_ms = body.throttle_time_ms
        if body is not None and api_key not in EXEMPT:
            busy_ms = self._use(REQUEST_PERCENTAGE, request, REQUEST_TIME_PERCENT, now_ms)
            # At most one window, because the time of a thread is harder to foresee than bytes.
            longest_ms = self._view.config.quota_window_size_seconds * 1000
            mute_ms = max(mute_ms, min(busy_ms, longest_ms))
        if not mute_ms:
            return body
        if api_key != ApiKey.PRODUCE and size_bytes:
            self._use(CONSUMER_RATE, request, -size_bytes, now_ms)
        self._muted_until_ms[request.connection_id] = now_ms + mute_ms
        if api_key == ApiKey.FETCH:
            return self._without_records(request, body, mute_ms)
        if api_key == ApiKey.SHARE_FETCH:
            body = _without_acquired(body)
        return _with_throttle_time(body, mute_ms)

    def _without_records(
        self, request: Request, body: m.FetchResponse, mute_ms: int
    ) -> m.FetchResponse:
        """The answer in place of one that is too large: an incremental session continues as if the
        fetch had not been made, a full fetch creates no session."""
        sessions = self._sessions
        if request.body.session_epoch > 0:
            sessions.forget_answer(body.session_id)
            return m.FetchResponse(throttle_time_ms=mute_ms, session_id=request.body.session_id)
        sessions.remove(body.session_id)
        return m.FetchResponse(throttle_time_ms=mute_ms)

    def fetch_limit_bytes(self, request: Request, max_bytes: int) -> int:
        """The most bytes that a client may fetch after a pause; a larger answer would never be
        sent."""
        limit = self._limit(CONSUMER_RATE, request)
        if limit is None:
            return max_bytes
        config = self._view.config
        windows_s = (config.quota_window_num - 1) * config.quota_window_size_seconds
        return min(max_bytes, int(min(limit.value * windows_s, max_bytes)))

    def _limit(self, quota: str, request: Request) -> Limit | None:
        """The quota of a request's client."""
        user, client_id = request.identity.principal.name, request.client_id or ""
        key = quota, user, client_id
        if key not in self._limits:
            if len(self._limits) >= MAX_KNOWN:
                self._limits.clear()
            limit = find_limit(self._view.image.client_quotas, quota, user, client_id)
            self._limits[key] = limit
        return self._limits[key]

    def _use(self, quota: str, request: Request, amount: float, now_ms: int) -> int:
        """Record a client's use; return the time in ms for which it is muted."""
        limit = self._limit(quota, request)
        if limit is None:
            return 0
        rate = self._rate(limit.rate_key, now_ms)
        rate.record(amount, now_ms)
        measured = rate.measure(now_ms)
        mute_ms = throttle_ms(measured, limit.value, rate.measured_ms(now_ms))
        if measured <= limit.value:
            self._violated.discard(limit.rate_key)
        elif limit.rate_key not in self._violated:
            self._violated.add(limit.rate_key)
            self._outbox.note(
                ClientThrottled(
                    request.client_id or "", quota, limit.entity, measured, limit.value, mute_ms
                )
            )
        return mute_ms

    def _rate(self, key: tuple[str, str, str], now_ms: int) -> SampledRate:
        rate = self._rates.get(key)
        if rate is None:
            if len(self._rates) >= MAX_KNOWN:
                for idle in [k for k, known in self._rates.items() if not known.measure(now_ms)]:
                    del self._rates[idle]
            config = self._view.config
            window_ms = config.quota_window_size_seconds * 1000
            rate = self._rates[key] = SampledRate(config.quota_window_num, window_ms)
        return rate

    def _answer_bytes(self, request: Request, body: object) -> int:
        """The size of a Fetch or ShareFetch answer; 0 if no quota needs the size."""
        if self._limit(CONSUMER_RATE, request) is None:
            return 0
        buffers = codec(request.api_key, request.api_version).encode_response(body)
        return LENGTH_BYTES + sum(map(len, buffers))


def _request_bytes(request: Request) -> int:
    """The size of a request on the wire, without its length field."""
    spoken = codec(request.api_key, request.api_version)
    header_bytes = 10 + len((request.client_id or "").encode())
    buffers = spoken.encode_request(request.body)
    return header_bytes + (spoken.request_header_version >= 2) + sum(map(len, buffers))


def _without_acquired(body: m.ShareFetchResponse) -> m.ShareFetchResponse:
    """The answer in place of one that is too large.  As in Kafka the member does not learn of its
    acquired records, which are delivered again when the locks end."""
    for topic in body.responses:
        for partition in topic.partitions:
            partition.records = b""
            partition.acquired_records = []
    return body


def _with_throttle_time(body: object, mute_ms: int) -> object:
    """The answer with this throttle time, if it has such a field."""
    if body is None or not hasattr(body, "throttle_time_ms"):
        return body
    throttled = copy.copy(body)
    throttled.throttle_time_ms = mute_ms
    return throttled
