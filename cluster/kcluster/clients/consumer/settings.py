"""A consumer's settings, and the reading plan of its application.

Owns: the values ConsumerSettings and ConsumerPlan, Kafka's defaults and checks.  Never: fetches
records.  Kafka: ConsumerConfig of 4.4.0, with its names (the suffix `_ms` is not always part of
them; `_bytes` always is).
"""

from __future__ import annotations

from typing import Final

from kcluster.clients.client_settings import ClientSettings, TimedPlan
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
COMMIT_MODES: Final = (AUTO, AFTER_POLL, NEVER)
CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
STREAMS: Final = "streams"
"""Of Kafka Streams (KIP-1071)."""
GROUP_PROTOCOLS: Final = (CLASSIC, CONSUMER, STREAMS)
IMPLICIT: Final = "implicit"
EXPLICIT: Final = "explicit"
ACKNOWLEDGEMENT_MODES: Final = (IMPLICIT, EXPLICIT)
"""Of share consumers (KIP-932).  Explicit: the application acknowledges each record by itself, and
waits for the answer."""
MAX_IN_FLIGHT: Final = 100
"""ConsumerUtils.CONSUMER_MAX_INFLIGHT_REQUESTS_PER_CONNECTION."""


class ConsumerSettings(ClientSettings, frozen=True, kw_only=True):
    """Configs with Kafka's names and defaults.  Several assignors are separated by commas."""

    group_id: str = ""
    group_instance_id: str = ""
    group_protocol: str = CLASSIC
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
    share_acknowledgement_mode: str = IMPLICIT

    @property
    def assignors(self) -> tuple[str, ...]:
        """The names of the assignors, in order of preference."""
        return tuple(self.partition_assignment_strategy.split(","))

    @property
    def is_cooperative(self) -> bool:
        """Whether partitions are kept through a rebalance (KIP-429): only if every assignor is
        cooperative."""
        return self.assignors == (COOPERATIVE_STICKY,)

    @property
    def may_reset(self) -> bool:
        """Whether a position may be reset."""
        return self.auto_offset_reset != NO_RESET

    @property
    def acknowledges_each(self) -> bool:
        """Whether a share consumer acknowledges each record by itself."""
        return self.share_acknowledgement_mode == EXPLICIT

    def problems(self) -> list[str]:
        """The reasons why Kafka's consumer would refuse these settings, one line per problem."""
        problems = []
        for field, known in (
            ("auto_offset_reset", RESET_POLICIES),
            ("isolation_level", ISOLATION_LEVELS),
            ("group_protocol", GROUP_PROTOCOLS),
            ("share_acknowledgement_mode", ACKNOWLEDGEMENT_MODES),
        ):
            if getattr(self, field) not in known:
                problems.append(f"{field}: {getattr(self, field)} is not one of {', '.join(known)}")
        problems += [
            f"partition_assignment_strategy: {name} is not one of {', '.join(ASSIGNORS)}"
            for name in self.assignors
            if name not in ASSIGNORS
        ]
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            problems.append(
                f"heartbeat_interval_ms: {self.heartbeat_interval_ms} must be less than"
                f" session_timeout_ms, {self.session_timeout_ms}"
            )
        if self.fetch_max_wait_ms > self.request_timeout_ms:
            problems.append("fetch_max_wait_ms: longer than request_timeout_ms")
        if self.max_poll_records < 1:
            problems.append("max_poll_records: at least 1")
        return problems

    @property
    def max_in_flight(self) -> int:
        """The most unanswered requests on one connection."""
        return MAX_IN_FLIGHT


class ConsumerPlan(TimedPlan, frozen=True):
    """The reading plan of an application: a loop of poll(), processing, and perhaps commitSync().

    `commit`: `auto` is enable.auto.commit; `after_poll` is commitSync() after the records of a poll
    are processed; `never` is neither.  The application ignores exceptions of commitSync().
    """

    topics: tuple[str, ...] = ()
    """The topics for subscribe(), which needs a group."""
    by_pattern: bool = False
    """Whether subscribe() gets these topics as a SubscriptionPattern."""
    partitions: tuple[Partition, ...] = ()
    """The partitions for assign()."""
    commit: str = AUTO
    records_per_s: float = 0.0
    """The rate at which records are processed; 0: processing takes no time."""
    poll_timeout_ms: int = 100
    """The timeout of poll()."""

    def problems(self, settings: ConsumerSettings) -> list[str]:
        """The contradictions in the plan, one line per problem."""
        problems = []
        if bool(self.topics) == bool(self.partitions):
            problems.append("topics, partitions: one of them must be given")
        if self.topics and not settings.group_id:
            problems.append("group_id: a consumer that subscribes to topics needs one")
        if self.commit not in COMMIT_MODES:
            problems.append(f"commit: {self.commit} is not one of {', '.join(COMMIT_MODES)}")
        elif self.commit == AFTER_POLL and not settings.group_id:
            problems.append("commit: after_poll needs a group_id")
        if self.by_pattern and not (self.topics and settings.group_protocol == CONSUMER):
            problems.append("by_pattern: needs topics, and the group protocol consumer")
        return problems
