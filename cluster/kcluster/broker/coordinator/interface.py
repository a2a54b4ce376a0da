"""The coordinators' ports: what they use of their broker, and a group of its shard.

Owns: `CoordinatorBroker`, `GroupHome`; `CoordinatorResult` and `RequestRefused`, what a request to
any coordinator comes down to.  Never: any behaviour (broker.py, shard.py).
Kafka: PartitionWriter, CoordinatorTimer, AutoTopicCreationManager as GroupCoordinatorService sees
them; CoordinatorResult.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from msgspec import Struct

from kcluster.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from kcluster.broker.coordinator.group_log import LogRecord
    from kcluster.broker.coordinator.share_state.persister import SharePersister
    from kcluster.config.kafka.definitions import BrokerConfig
    from kcluster.contract import Event, NoteId, Request, Rng
    from kcluster.metadata.image import MetadataImage
    from kcluster.partition.replica import Replica
    from kcluster.protocol.releases import Release
    from kcluster.timers import Timers

Committed = Callable[["ErrorCode", int], None]
"""(error, now_ms): NONE when the records are on all in-sync replicas."""

Settled = Callable[["ErrorCode", int], None]
"""(error as a client of the coordinator should see it, now_ms)."""

Effect = Callable[[int], None]
"""Called with now_ms."""

A = TypeVar("A")


def no_effect(_now_ms: int) -> None:
    """Nothing but the records."""


class RequestRefused(Struct, frozen=True):
    """Why a request is not served.  `message` None: the log has failed, or the error says all."""

    error: ErrorCode
    message: str | None = None


def invalid(message: str) -> RequestRefused:
    """The request itself is wrong."""
    return RequestRefused(ErrorCode.INVALID_REQUEST, message)


class CoordinatorResult(Struct, Generic[A]):
    """What a request comes down to, decided on what is in effect, before anything is written."""

    records: Sequence[Any]
    """One batch; none: the answer waits for what was written before."""
    response: A
    """Sent when the records are committed."""
    on_written: Effect = no_effect
    """The records are in the log, and in effect: set timers, note events."""
    on_committed: Effect = no_effect
    """They are on all in-sync replicas: ask others.  It comes before the response, and may add to
    it."""
    at_once: bool = True
    """Whether the records take effect as soon as they are in the log, or when they are committed
    (log_shard.py says which do)."""


OnAnswer = Callable[[A | RequestRefused, int], None]
"""(the response, or why there is none; now_ms)."""


class CoordinatorBroker(Protocol):
    """The part of a broker that coordinators need."""

    @property
    def node_id(self) -> int: ...
    @property
    def config(self) -> BrokerConfig: ...
    @property
    def image(self) -> MetadataImage: ...
    @property
    def release(self) -> Release: ...
    @property
    def rng(self) -> Rng: ...
    @property
    def timers(self) -> Timers: ...
    @property
    def persister(self) -> SharePersister: ...

    def reply(self, request: Request, body: Any) -> None:
        """Answer a request that was parked."""

    def note(self, event: Event, cause: NoteId | None = None) -> NoteId: ...

    def ask_controller(
        self, body: Any, on_answer: Callable[[Any, int], None], timeout_ms: int, now_ms: int
    ) -> None:
        """`on_answer(body | None, now_ms)`: None when no answer came in time."""

    def ask_broker(
        self,
        broker_id: int,
        body: Any,
        on_answer: Callable[[Any, int], None],
        timeout_ms: int,
        now_ms: int,
    ) -> None:
        """Ask a broker, maybe this one; `on_answer` as for the controller."""

    def generate_producer_id(
        self, on_producer_id: Callable[[int | None, int], None], now_ms: int
    ) -> None:
        """`on_producer_id(producer id | None, now_ms)`: None when the controller gave none."""

    def leader_replica(self, topic: str, partition: int) -> Replica | ErrorCode: ...

    def delete_internal_records(self, replica: Replica, before: int) -> None:
        """Delete the records before an offset, of a partition that this broker leads."""

    def append_internal(
        self,
        topic: str,
        partition: int,
        records: bytearray,
        on_committed: Committed,
        timeout_ms: int,
        now_ms: int,
    ) -> None:
        """Append with acks=all to a partition that this broker leads.  `on_committed` is called
        once, maybe before this returns; with REQUEST_TIMED_OUT after `timeout_ms`,
        when the records are in the log but not known to be committed."""


class GroupHome(Protocol):
    """The shard that a group belongs to, as the group sees it."""

    @property
    def broker(self) -> CoordinatorBroker: ...

    @property
    def groups(self) -> Mapping[str, object]:
        """The groups of this shard by id."""

    def put_back(self, group_id: str, group: Any) -> None:
        """What had this id before a group that could not be written; None: nothing had."""

    def after_writes(self, on_settled: Settled, now_ms: int) -> None:
        """Call back when everything written so far is committed; at once if it is."""

    def append(
        self, records: Iterable[LogRecord], on_settled: Settled, now_ms: int, at_once: bool = False
    ) -> bool:
        """Append `records` in one batch; `at_once`: and replay them.  `on_settled` is called once,
        maybe before this returns: when they are committed, or cannot be.  False: they are not in
        the log, and nothing has changed."""


def ignore_outcome(_error: ErrorCode, _now_ms: int) -> None:
    """For a write that no client waits for: if it fails, the next round repeats it."""
