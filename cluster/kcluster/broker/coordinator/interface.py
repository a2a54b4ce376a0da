"""The coordinators' ports: their interface to their broker, and a group's to its shard.

Owns: `CoordinatorBroker`, `GroupHome`; `CoordinatorResult` and `RequestRefused`, the results of a
request to any coordinator.  Never: any behaviour (broker.py, shard.py).  Kafka: PartitionWriter,
CoordinatorTimer, AutoTopicCreationManager for GroupCoordinatorService; CoordinatorResult.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from msgspec import Struct

from kcluster.broker.access import Access
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
"""Called with (error, now_ms); NONE when the records are on all in-sync replicas."""

Settled = Callable[["ErrorCode", int], None]
"""Called with (error for a client of the coordinator, now_ms)."""

Effect = Callable[[int], None]
"""A function that is called with now_ms."""

A = TypeVar("A")


def no_effect(_now_ms: int) -> None:
    """An effect that does nothing."""


class RequestRefused(Struct, frozen=True):
    """A request that is not served.  `message` None: the log has failed, or the error needs no
    text."""

    error: ErrorCode
    message: str | None = None


def invalid(message: str) -> RequestRefused:
    """The refusal of a wrong request."""
    return RequestRefused(ErrorCode.INVALID_REQUEST, message)


class CoordinatorResult(Struct, Generic[A]):
    """The result of a request, decided on the state in effect, before anything is written."""

    records: Sequence[Any]
    """The records of one batch; none: the answer waits for earlier writes."""
    response: A
    """The response, sent when the records are committed."""
    on_written: Effect = no_effect
    """Called when the records are in the log, and in effect: sets timers, notes events."""
    on_committed: Effect = no_effect
    """Called when the records are on all in-sync replicas: sends requests to others.  It comes
    before the response, and may add to it."""
    at_once: bool = True
    """Whether the records take effect as soon as they are in the log, or when they are committed
    (log_shard.py has the rule)."""


OnAnswer = Callable[[A | RequestRefused, int], None]
"""Called with (the response, or the reason why there is none; now_ms)."""


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
    @property
    def access(self) -> Access | None: ...

    def reply(self, request: Request, body: object) -> None:
        """Answer a request that was parked."""

    def note(self, event: Event, cause: NoteId | None = None) -> NoteId: ...

    def ask_controller(
        self, body: object, on_answer: Callable[[Any, int], None], timeout_ms: int, now_ms: int
    ) -> None:
        """Send a request to the controller; `on_answer(body | None, now_ms)`, with None if no
        answer came in time."""

    def ask_broker(
        self,
        broker_id: int,
        body: object,
        on_answer: Callable[[Any, int], None],
        timeout_ms: int,
        now_ms: int,
    ) -> None:
        """Send a request to a broker, maybe this one; `on_answer` as for the controller."""

    def generate_producer_id(
        self, on_producer_id: Callable[[int | None, int], None], now_ms: int
    ) -> None:
        """Get a producer id; `on_producer_id(producer id | None, now_ms)`, with None if the
        controller gave none."""

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

    def await_committed(
        self,
        replica: Replica,
        end_offset: int,
        on_committed: Committed,
        timeout_ms: int,
        now_ms: int,
    ) -> None:
        """Call back when all before an offset is committed; otherwise as `append_internal`."""


class GroupHome(Protocol):
    """A group's interface to its shard."""

    @property
    def broker(self) -> CoordinatorBroker: ...

    @property
    def groups(self) -> Mapping[str, object]:
        """The groups of this shard by id."""

    def put_back(self, group_id: str, group: Any) -> None:
        """Restore the previous holder of this id after a group could not be written; None: there
        was none."""

    def after_writes(self, on_settled: Settled, now_ms: int) -> None:
        """Call back when everything written so far is committed; at once if it is."""

    def append(
        self, records: Iterable[LogRecord], on_settled: Settled, now_ms: int, at_once: bool = False
    ) -> bool:
        """Append `records` in one batch; with `at_once`, also replay them.  `on_settled` is called
        once, maybe before this returns, when they are committed or cannot be.  False: they are not
        in the log, and nothing has changed."""


def ignore_outcome(_error: ErrorCode, _now_ms: int) -> None:
    """The outcome of a write that no client waits for: if it fails, the next round repeats it."""
