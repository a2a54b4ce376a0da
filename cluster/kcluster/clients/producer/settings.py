"""A producer's settings, and the sending plan of its application.

Owns: the values ProducerSettings and ProducerPlan, Kafka's defaults and checks.  Never: sends a
record.  Kafka: ProducerConfig of 4.4.0, with its names (plus the suffixes `_ms` and `_bytes`).
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from kcluster.clients.client_settings import ClientSettings, TimedPlan

ACKS_ALL: Final = -1
MAX_INT: Final = 2_147_483_647
MAX_IN_FLIGHT_IDEMPOTENT: Final = 5
"""The number of batches that a log remembers per producer (KIP-98)."""
TRANSACTIONS_V1: Final = 1
TRANSACTIONS_V2: Final = 2
"""The transaction protocols: V1 is KIP-98; V2 is KIP-890, with an epoch for each transaction."""
PARTITIONERS: Final = ("default", "round-robin")
"""The ways to choose a partition.  `default`: by key (murmur2), or sticky without a key (KIP-794).
`round-robin`: partitions in turn, whatever the key."""


_SPREAD: Final = 2_654_435_761
"""A factor that spreads consecutive numbers over 32 bits (Knuth)."""


class ProducerSettings(ClientSettings, frozen=True, kw_only=True):
    """Configs with Kafka's names and defaults.

    `enable_idempotence` None: not set, so it is on if acks, retries and max.in.flight allow it.
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
    transactional_id: str = ""
    transaction_timeout_ms: int = 60_000

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
        """The reasons why Kafka's producer would refuse these settings, one line per problem."""
        problems = []
        if self.acks not in (0, 1, ACKS_ALL):
            problems.append(f"acks: {self.acks} is not one of 0, 1, all")
        if self.enable_idempotence:
            if self.acks != ACKS_ALL:
                problems.append("enable_idempotence: needs acks all")
            if not self.retries:
                problems.append("enable_idempotence: needs retries")
            if self.max_in_flight_requests_per_connection > MAX_IN_FLIGHT_IDEMPOTENT:
                problems.append(
                    "enable_idempotence: needs max_in_flight_requests_per_connection of"
                    f" {MAX_IN_FLIGHT_IDEMPOTENT} or less"
                )
        if self.transactional_id and not self.is_idempotent:
            problems.append("transactional_id: needs enable_idempotence")
        if self.delivery_timeout_ms < self.linger_ms + self.request_timeout_ms:
            problems.append(
                f"delivery_timeout_ms: {self.delivery_timeout_ms} is less than linger_ms and"
                " request_timeout_ms together"
            )
        if self.partitioner not in PARTITIONERS:
            problems.append(
                f"partitioner: {self.partitioner} is not one of {', '.join(PARTITIONERS)}"
            )
        return problems

    @property
    def max_in_flight(self) -> int:
        """The most unanswered requests on one connection."""
        return self.max_in_flight_requests_per_connection


class TransactionPlan(Struct, frozen=True):
    """An application's use of transactions."""

    every: int = 20
    """The number of records per transaction."""
    abort_share: float = 0.0
    """The share of transactions that the application aborts, evenly spread."""
    max_version: int = TRANSACTIONS_V2
    """The latest protocol that the client library speaks, used if the cluster has it."""

    def is_aborted(self, number: int) -> bool:
        """Whether the application aborts this transaction, counted from 1."""
        return int(number * self.abort_share) > int((number - 1) * self.abort_share)


class ProducerPlan(TimedPlan, frozen=True):
    """The records that an application sends.

    The application blocks where Kafka's send() does (metadata, buffer memory), and then catches up.
    """

    topics: tuple[str, ...] = ("orders",)
    """The topics, used in turn."""
    partitions: tuple[int, ...] = ()
    """Explicit partitions, used in turn; none: the partitioner decides."""
    rate_per_s: float = 10.0
    size_bytes: int = 0
    """The minimum size of a value, which is `name:number`, padded with dots."""
    keys: int = 0
    """The number of different keys, used in turn; 0: no key."""
    tombstone_share: float = 0.0
    """The share of records without a value, spread over all keys."""
    count: int = -1
    """The number of records; -1: no limit."""
    transactions: TransactionPlan | None = None
    """The use of transactions; None: records are sent outside of transactions."""

    def is_tombstone(self, number: int) -> bool:
        """Whether the record of this number has no value."""
        return number * _SPREAD % 2**32 < self.tombstone_share * 2**32
