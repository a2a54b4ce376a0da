"""How many partitions clients may create and delete: controller_mutation_rate (KIP-599).

Owns: a token bucket for each client with such a quota, what became of the request at hand.
Never: knows what is created (the handlers say how much, before they do it).
Kafka: ControllerMutationQuotaManager, TokenBucket.

Requests new enough are refused topic by topic once the bucket is empty (strict); of older ones
everything is done, and their clients are throttled.  A bucket may be overdrawn by what takes it
below nothing, and holds what may be done in all windows together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kcluster.config.kafka.client_quotas import ANONYMOUS, MUTATION_RATE, Limit, find_limit
from kcluster.controller.outcome import ApiError
from kcluster.metadata.image import Envelope
from kcluster.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kcluster.controller.node import ControllerNode


class TokenBucket:
    """Tokens that come back at `rate` a second, up to `burst`."""

    __slots__ = ("_last_ms", "tokens")

    def __init__(self, burst: float, now_ms: int) -> None:
        self.tokens = burst
        self._last_ms = now_ms

    def refill(self, rate: float, burst: float, now_ms: int) -> None:
        """What has come back by now."""
        self.tokens = min(burst, self.tokens + rate * (now_ms - self._last_ms) / 1000)
        self._last_ms = now_ms

    def throttle_ms(self, rate: float) -> int:
        """Until there is no debt any more."""
        return int(-self.tokens / rate * 1000 + 0.5) if self.tokens < 0 else 0


class MutationQuotas:
    """Of one controller.  Between `begin` and `end` it knows whose request is at hand."""

    def __init__(self, node: ControllerNode) -> None:
        self._node = node
        self._buckets: dict[tuple[str, str, str], TokenBucket] = {}
        self._limit: Limit | None = None
        self._is_strict = False
        self._now_ms = 0
        self._throttle_ms = 0

    def begin(self, envelope: Envelope, now_ms: int) -> None:
        """A client's request."""
        quotas = self._node.image.client_quotas
        self._limit = find_limit(quotas, MUTATION_RATE, ANONYMOUS, envelope.client_id)
        self._is_strict = envelope.is_strict
        self._now_ms = now_ms
        self._throttle_ms = 0

    def charge(self, partitions: int) -> ApiError | None:
        """So many partitions are to be created or deleted: why not, if not."""
        limit = self._limit
        if limit is None:
            return None
        config = self._node.config
        windows_s = config.controller_quota_window_num * config.controller_quota_window_size_seconds
        burst = windows_s * limit.value
        bucket = self._buckets.get(limit.rate_key)
        if bucket is None:
            bucket = self._buckets[limit.rate_key] = TokenBucket(burst, self._now_ms)
        bucket.refill(limit.value, burst, self._now_ms)
        if self._is_strict and bucket.tokens < 0:
            self._throttle_ms = bucket.throttle_ms(limit.value)
            return ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        bucket.tokens -= partitions
        if not self._is_strict:
            self._throttle_ms = bucket.throttle_ms(limit.value)
        return None

    def end(self, answer: Any) -> None:
        """The request is answered: tell for how long its client is throttled."""
        answer.throttle_time_ms = self._throttle_ms
        self._limit = None
