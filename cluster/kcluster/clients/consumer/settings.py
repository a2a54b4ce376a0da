"""How a consumer is set up, and what its application does with it.

Owns: the values ConsumerSettings and Reading, Kafka's defaults, what Kafka refuses.  Never: reads.
Kafka: ConsumerConfig of 4.3.1 with group.protocol=classic, by its names (`_ms` at the end is not
always Kafka's; `_bytes` always is).
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from kcluster.clients.client_settings import ClientSettings
from kcluster.clients.consumer.assignors import ASSIGNORS, COOPERATIVE_STICKY, RANGE
from kcluster.clients.ledger import Partition

READ_COMMITTED: Final = "read_committed"
ISOLATION_LEVELS: Final = ("read_uncommitted", READ_COMMITTED)
EARLIEST: Final = "earliest"
LATEST: Final = "latest"
NO_RESET: Final = "none"
RESET_POLICIES: Final = (EARLIEST, LATEST, NO_RESET)
AUTO: Final = "auto"
AFTER_POLL: Final = "after_poll"
NEVER: Final = "never"
COMMIT_STYLES: Final = (AUTO, AFTER_POLL, NEVER)
MAX_IN_FLIGHT: Final = 100
"""ConsumerUtils.CONSUMER_MAX_INFLIGHT_REQUESTS_PER_CONNECTION."""


class ConsumerSettings(ClientSettings, frozen=True, kw_only=True):
    """Configs by Kafka's names, with its defaults.  Several assignors: names with commas."""

    group_id: str = ""
    group_instance_id: str = ""
    auto_offset_reset: str = LATEST
    isolation_level: str = "read_uncommitted"
    auto_commit_interval_ms: int = 5_000
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    max_poll_records: int = 500
    fetch_min_bytes: int = 1
    fetch_max_bytes: int = 52_428_800
    max_partition_fetch_bytes: int = 1_048_576
    fetch_max_wait_ms: int = 500
    check_crcs: bool = True
    client_rack: str = ""
    partition_assignment_strategy: str = f"{RANGE},{COOPERATIVE_STICKY}"
    default_api_timeout_ms: int = 60_000

    @property
    def assignors(self) -> tuple[str, ...]:
        """Those it can do, the one it likes best first."""
        return tuple(self.partition_assignment_strategy.split(","))

    @property
    def is_cooperative(self) -> bool:
        """Whether it keeps what it reads through a rebalance (KIP-429): only if all can."""
        return self.assignors == (COOPERATIVE_STICKY,)

    @property
    def may_reset(self) -> bool:
        """Whether it may choose a position by itself where it has none."""
        return self.auto_offset_reset != NO_RESET

    def problems(self) -> list[str]:
        """Why Kafka's consumer would not start with these, one line each."""
        found = []
        for field, known in (
            ("auto_offset_reset", RESET_POLICIES),
            ("isolation_level", ISOLATION_LEVELS),
        ):
            if getattr(self, field) not in known:
                found.append(f"{field}: {getattr(self, field)} is none of {', '.join(known)}")
        found += [
            f"partition_assignment_strategy: {name} is none of {', '.join(ASSIGNORS)}"
            for name in self.assignors
            if name not in ASSIGNORS
        ]
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            found.append(
                f"heartbeat_interval_ms: {self.heartbeat_interval_ms} must be less than"
                f" session_timeout_ms, {self.session_timeout_ms}"
            )
        if self.fetch_max_wait_ms > self.request_timeout_ms:
            found.append("fetch_max_wait_ms: longer than request_timeout_ms")
        if self.max_poll_records < 1:
            found.append("max_poll_records: at least 1")
        return found

    @property
    def max_in_flight(self) -> int:
        """Requests on one connection that are not answered, at most."""
        return MAX_IN_FLIGHT


class Reading(Struct, frozen=True):
    """What an application reads, and how: a loop of poll, work, and perhaps commit.

    `commit`: `auto` is enable.auto.commit, `after_poll` is commitSync() when the records of a poll
    are done, `never` is neither.  What commitSync() throws is caught, and the next poll comes.
    """

    topics: tuple[str, ...] = ()
    """Subscribed to, in a group."""
    partitions: tuple[Partition, ...] = ()
    """Assigned by itself."""
    commit: str = AUTO
    records_per_s: float = 0.0
    """How fast it works; 0: it takes no time."""
    poll_timeout_ms: int = 100
    """poll() returns after that even if nothing came."""
    start_ms: int = 0
    """After the client's start."""
    stop_ms: int = -1
    """After the client's start: it closes its consumer; -1: when told to."""

    def problems(self, settings: ConsumerSettings) -> list[str]:
        """What cannot be, one line each."""
        found = []
        if bool(self.topics) == bool(self.partitions):
            found.append("topics, partitions: one of them must be given")
        if self.topics and not settings.group_id:
            found.append("group_id: a consumer that subscribes to topics needs one")
        if self.commit not in COMMIT_STYLES:
            found.append(f"commit: {self.commit} is none of {', '.join(COMMIT_STYLES)}")
        elif self.commit == AFTER_POLL and not settings.group_id:
            found.append("commit: after_poll needs a group_id")
        return found
