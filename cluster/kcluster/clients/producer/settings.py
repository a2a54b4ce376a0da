"""How a producer is set up, and what it is to send.

Owns: the values ProducerSettings and Workload, Kafka's defaults, what Kafka refuses.  Never: sends.
Kafka: ProducerConfig of 4.3.1, by its names (`_ms` and `_bytes` at the end).
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from kcluster.clients.client_settings import ClientSettings

ACKS_ALL: Final = -1
MAX_INT: Final = 2_147_483_647
MAX_IN_FLIGHT_IDEMPOTENT: Final = 5
"""So many batches a log remembers of a producer (KIP-98)."""
PARTITIONERS: Final = ("default", "round-robin")
"""`default`: by key (murmur2), without a key sticky (KIP-794).  `round-robin`: one after the other,
whatever the key."""


class ProducerSettings(ClientSettings, frozen=True, kw_only=True):
    """Configs by Kafka's names, with its defaults.

    `enable_idempotence` None: as if not set, so it is on where acks, retries and in flight allow.
    `acks`: 0, 1, or -1 for all.
    """

    acks: int = ACKS_ALL
    enable_idempotence: bool | None = None
    retries: int = MAX_INT
    max_in_flight_requests_per_connection: int = 5
    delivery_timeout_ms: int = 120_000
    linger_ms: int = 5
    batch_size_bytes: int = 16_384
    max_request_size_bytes: int = 1_048_576
    buffer_memory_bytes: int = 33_554_432
    max_block_ms: int = 60_000
    compression_type: str = "none"
    partitioner: str = "default"

    @property
    def is_idempotent(self) -> bool:
        """Whether batches carry a producer id and sequences."""
        if self.enable_idempotence is not None:
            return self.enable_idempotence
        return (
            self.acks == ACKS_ALL
            and self.retries > 0
            and self.max_in_flight_requests_per_connection <= MAX_IN_FLIGHT_IDEMPOTENT
        )

    def problems(self) -> list[str]:
        """Why Kafka's producer would not start with these, one line each."""
        found = []
        if self.acks not in (0, 1, ACKS_ALL):
            found.append(f"acks: {self.acks} is none of 0, 1, all")
        if self.enable_idempotence:
            if self.acks != ACKS_ALL:
                found.append("enable_idempotence: needs acks all")
            if not self.retries:
                found.append("enable_idempotence: needs retries")
            if self.max_in_flight_requests_per_connection > MAX_IN_FLIGHT_IDEMPOTENT:
                found.append(
                    "enable_idempotence: needs max_in_flight_requests_per_connection of"
                    f" {MAX_IN_FLIGHT_IDEMPOTENT} or less"
                )
        if self.delivery_timeout_ms < self.linger_ms + self.request_timeout_ms:
            found.append(
                f"delivery_timeout_ms: {self.delivery_timeout_ms} is less than linger_ms and"
                " request_timeout_ms together"
            )
        if self.partitioner not in PARTITIONERS:
            found.append(f"partitioner: {self.partitioner} is none of {', '.join(PARTITIONERS)}")
        return found

    @property
    def max_in_flight(self) -> int:
        """Requests on one connection that are not answered, at most."""
        return self.max_in_flight_requests_per_connection


class Workload(Struct, frozen=True):
    """What an application gives to its producer, on and on.

    The application blocks as Kafka's send() does (metadata, buffer memory), and then catches up.
    """

    topics: tuple[str, ...] = ("orders",)
    """One after the other."""
    partitions: tuple[int, ...] = ()
    """Explicit ones, one after the other; none: the partitioner decides."""
    rate_per_s: float = 10.0
    size_bytes: int = 0
    """Of a value, at least: `name:number`, padded with dots."""
    keys: int = 0
    """How many different keys take turns; 0: no key."""
    count: int = -1
    """So many records; -1: no end."""
    start_ms: int = 0
    """After the client's start."""
    stop_ms: int = -1
    """After the client's start; -1: when told to."""
