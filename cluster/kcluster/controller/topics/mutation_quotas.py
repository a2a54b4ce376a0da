"""The limit on partitions that clients create and delete: controller_mutation_rate (KIP-599).

Owns: a token bucket for each client with such a quota, and the throttle of the current request.
Never: knows the partitions (the handlers pass the number of partitions before they act). Kafka:
ControllerMutationQuotaManager, TokenBucket.

Strict requests, which have newer versions, are refused topic by topic once the bucket is empty.
Older requests are carried out in full, and their clients are throttled.  A bucket holds as many
tokens as all windows together allow; the change that empties a bucket may overdraw it.
"""

from __future__ import annotations

from typing import Any

from kcluster.config.kafka.client_quotas import MUTATION_RATE, Limit, find_limit
from kcluster.controller.outcome import ApiError
from kcluster.controller.ports import MetadataPort
from kcluster.metadata.records import Envelope
from kcluster.protocol.errors import ErrorCode


class TokenBucket:
    """Tokens that are refilled at `rate` per second, up to `burst`."""

    __slots__ = ("_last_ms", "tokens")

    def __init__(self, burst: float, now_ms: int) -> None:
        self.tokens = burst
        self._last_ms = now_ms

    def refill(self, rate: float, burst: float, now_ms: int) -> None:
        """Add the tokens that are due since the last call."""
        self.tokens = min(burst, self.tokens + rate * (now_ms - self._last_ms) / 1000)
        self._last_ms = now_ms

    def throttle_ms(self, rate: float) -> int:
        """The time for which the bucket will stay overdrawn, in ms."""
        return int(-self.tokens / rate * 1000 + 0.5) if self.tokens < 0 else 0


class MutationQuotas:
    """The quotas of one controller.  Between `begin` and `end`, the client of the current request
    is known."""

    def __init__(self, metadata: MetadataPort) -> None:
        self._metadata = metadata
        self._buckets: dict[tuple[str, str, str], TokenBucket] = {}
        self._limit: Limit | None = None
        self._is_strict = False
        self._now_ms = 0
        self._throttle_ms = 0

    def begin(self, envelope: Envelope, now_ms: int) -> None:
        """Begin a client's request."""
        quotas = self._metadata.image.client_quotas
        user = envelope.identity.principal.name
        self._limit = find_limit(quotas, MUTATION_RATE, user, envelope.client_id)
        self._is_strict = envelope.is_strict is True
        self._now_ms = now_ms
        self._throttle_ms = 0

    def charge(self, partitions: int) -> ApiError | None:
        """Charge partitions to be created or deleted; returns the refusal if there is one."""
        limit = self._limit
        if limit is None:
            return None
        config = self._metadata.config
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
        """End the request: put its client's throttle time into the answer."""
        answer.throttle_time_ms = self._throttle_ms
        self._limit = None
