"""A consumer's interface to its membership in a group, for any group protocol.

Owns: that interface.  Never: joins (group.py: classic; epoch_membership.py: the others).
Kafka: ConsumerCoordinator, ConsumerMembershipManager.
"""

from __future__ import annotations

from kcluster.clients.connections import NetworkClient
from kcluster.clients.consumer.commits import Commits
from kcluster.clients.consumer.coordinator import Coordinator, MembershipState
from kcluster.clients.consumer.positions import Positions
from kcluster.clients.consumer.settings import ConsumerSettings
from kcluster.clients.metadata import Metadata
from kcluster.timers import NEVER_MS


class MembershipParts:
    """The parts of a consumer that its membership works on.  `topics`: its subscription;
    `by_pattern`: whether it names them by a regular expression."""

    def __init__(
        self,
        settings: ConsumerSettings,
        topics: tuple[str, ...],
        by_pattern: bool,
        metadata: Metadata,
        network: NetworkClient,
        positions: Positions,
        coordinator: Coordinator,
        commits: Commits,
    ) -> None:
        self.settings = settings
        self.topics = topics
        self.by_pattern = by_pattern
        self.metadata = metadata
        self.network = network
        self.positions = positions
        self.coordinator = coordinator
        self.commits = commits


class ClientMembership:
    """The membership of one consumer.  `fatal`: the error that poll() throws, "" for none.
    `retry_ms`: the time at which `poll` must be called without a response.  `is_leaving`: whether
    the request to leave is in flight."""

    def __init__(self, parts: MembershipParts, member: MembershipState) -> None:
        self.fatal = ""
        self.retry_ms = NEVER_MS
        self.member = member
        self.is_leaving = False
        self._settings = parts.settings
        self._topics = parts.topics
        self._by_pattern = parts.by_pattern
        self._metadata = parts.metadata
        self._network = parts.network
        self._positions = parts.positions
        self._coordinator = parts.coordinator
        self._commits = parts.commits

    @property
    def is_settled(self) -> bool:
        """Whether `poll` has nothing to do."""
        raise AssertionError(f"{type(self).__name__} must define is_settled")

    def poll(self, now_ms: int) -> bool:
        """Do the group's part of a poll.  Returns False if it must wait for the coordinator."""
        raise AssertionError(f"{type(self).__name__} must define poll")

    def leave(self, reason: str, now_ms: int) -> bool:
        """Leave the group.  Returns whether a request was sent."""
        raise AssertionError(f"{type(self).__name__} must define leave")

    # ------------------------------------------------------------------------ heartbeats

    @property
    def heartbeat_ms(self) -> int:
        """The time at which `run_heartbeats` must be called; NEVER_MS for never."""
        raise AssertionError(f"{type(self).__name__} must define heartbeat_ms")

    @property
    def heartbeat_error(self) -> str:
        """The error that the next poll() throws, "" for none."""
        raise AssertionError(f"{type(self).__name__} must define heartbeat_error")

    def run_heartbeats(self, now_ms: int) -> None:
        """Do all due work of heartbeats, even while the application processes records."""
        raise AssertionError(f"{type(self).__name__} must define run_heartbeats")

    def reset_poll_timer(self, now_ms: int) -> None:
        """Restart the poll interval, because the application has called poll()."""
        raise AssertionError(f"{type(self).__name__} must define reset_poll_timer")
