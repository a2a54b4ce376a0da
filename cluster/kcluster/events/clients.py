"""Events of clients and of their groups, as brokers see them.

Owns: their facts.  Never: words for them (words.py).
Kafka: the logs of ClientQuotaManager and GroupCoordinator; KIP-714 for telemetry.
"""

from __future__ import annotations

from kcluster.events.base import TaggedEvent
from kcluster.events.rebalance_reasons import AnyRebalanceReason


class ClientThrottled(TaggedEvent, frozen=True):
    """A client's `rate` exceeded the `limit` of a quota, both in the quota's unit per second.
    Noted once, until the rate is within the limit again.  `entity`: the entity of the quota, as
    (type, name) pairs; a null name means the default."""

    client_id: str
    quota: str
    entity: tuple[tuple[str, str | None], ...]
    rate: float
    limit: float
    throttle_ms: int

    @property
    def subject(self) -> str:
        return self.client_id


class TelemetryPushed(TaggedEvent, frozen=True):
    """A client pushed metrics.  `pushes`, `total_bytes`: its totals so far."""

    client_id: str
    client_instance_id: str
    size_bytes: int
    pushes: int
    total_bytes: int

    @property
    def subject(self) -> str:
        return self.client_id or self.client_instance_id


class GroupEvent(TaggedEvent, frozen=True):
    """Something happened to a consumer group."""

    group: str

    @property
    def subject(self) -> str:
        return f"group {self.group}"


class GroupRebalanced(GroupEvent, frozen=True):
    """A rebalance is complete.  `trigger`: why it began."""

    generation: int
    members: tuple[str, ...]
    trigger: AnyRebalanceReason


class GroupMemberExpired(GroupEvent, frozen=True):
    """A member sent no heartbeat for its session timeout."""

    member: str
    session_timeout_ms: int
