"""Reading partitions for one fetch: who may read, from where, how far.

Owns: the order of checks and the answer for one partition.  Never: waits (handlers/fetch.py parks),
keeps anything between fetches (sessions.py does).
Kafka: ReplicaManager.readFromLog, Partition.fetchRecords; KIP-320, KIP-392, KIP-595.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

from mypy_extensions import mypyc_attr

from kcluster.broker.sessions import SessionPartition
from kcluster.partition.followers import NO_ROLE
from kcluster.partition.replica import Replica
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.records import Batch

if TYPE_CHECKING:
    from kcluster.broker.node import BrokerNode

CONSUMER_ID: Final = -1
NO_ERROR: Final = ErrorCode.NONE
NO_EPOCH: Final = -1
"""Of a fetch that does not say in which leader epoch it believes; anything below means the same."""
READ_COMMITTED: Final = 1
FIRST_VERSION_WITH_ANY_REPLICA: Final = 11
FIRST_VERSION_WITH_HINTS: Final = 16

PartitionData: Final = m.FetchResponse.PartitionData
# Shared by all answers: what is told instead takes their place, they never change.
NO_DIVERGENCE: Final = m.FetchResponse.EpochEndOffset()
_NO_HINT: Final = m.FetchResponse.LeaderIdAndEpoch()
_NO_SNAPSHOT: Final = m.FetchResponse.SnapshotId()

_HINTED: Final = frozenset((ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH))
"""Errors that come with a hint of who leads (KIP-951)."""
_UNKNOWN: Final = frozenset((ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID))
"""Errors found before anything is read: their answers have an empty list where others have null."""


@mypyc_attr(acyclic=True, free_list_len=1)
@final
class Reader:
    """Who fetches, and by which rules.

    `follower_id`: broker id, or CONSUMER_ID.  `leader_only`: False for a consumer that may read
    from any replica (KIP-392, Fetch v11+).  `wants_hints`: told who leads where this broker does
    not (KIP-951, Fetch v16+).
    """

    __slots__ = (
        "_state", "_version", "follower_epoch", "follower_id", "is_follower", "isolation_level",
        "leader_only", "wants_hints",
    )  # fmt: skip

    def __init__(self, body: m.FetchRequest, version: int) -> None:
        state = self._state = body.replica_state
        self._version = version
        # v15+ tells it, with the broker epoch, in a tagged field; before it is a field of its own.
        follower_id = state.replica_id
        if follower_id == CONSUMER_ID:
            follower_id = body.replica_id
        self.follower_id = follower_id
        self.is_follower = follower_id >= 0
        self.follower_epoch = state.replica_epoch
        self.leader_only = version < FIRST_VERSION_WITH_ANY_REPLICA
        self.isolation_level = body.isolation_level
        self.wants_hints = version >= FIRST_VERSION_WITH_HINTS

    def reads(self, body: m.FetchRequest, version: int) -> bool:
        """Is `body` known to come from this reader?  Of a follower, which sends the same replica
        state with every fetch of its life; a client's may be read anew each time."""
        return (
            body.replica_state is self._state
            and version == self._version
            and body.isolation_level == self.isolation_level
        )


@mypyc_attr(acyclic=True, free_list_len=1)
@final
class PartitionRead:
    """What one partition has to tell to who `wanted` it.

    `must_be_told`: worth an answer at once: Kafka does not let an error or a divergence wait.
    """

    __slots__ = (
        "batches", "diverging_end_offset", "diverging_epoch", "error", "high_watermark",
        "log_start_offset", "must_be_told", "size_bytes", "wanted",
    )  # fmt: skip

    def __init__(
        self, wanted: SessionPartition, error: ErrorCode, high_watermark: int = -1,
        log_start_offset: int = -1, batches: list[Batch] | None = None, size_bytes: int = 0,
        must_be_told: bool = False,
    ) -> None:  # fmt: skip
        self.wanted = wanted
        self.error = error
        self.high_watermark = high_watermark
        self.log_start_offset = log_start_offset
        self.batches = batches
        self.size_bytes = size_bytes
        self.must_be_told = must_be_told
        self.diverging_epoch = -1
        self.diverging_end_offset = -1


def refusal(wanted: SessionPartition, error: ErrorCode) -> PartitionRead:
    """Nothing could be read, and why."""
    return PartitionRead(wanted, error, must_be_told=True)


def find_replica(broker: BrokerNode, wanted: SessionPartition, by_id: bool) -> Replica | ErrorCode:
    """The replica that is to serve `wanted`, by the topic id (v13+) or name it was asked by."""
    if by_id:
        found = broker.replicas.find_by_id(wanted.topic_id, wanted.partition)
        if found is ErrorCode.UNKNOWN_TOPIC_ID and wanted.topic:
            # It was there when its name was looked up, and was deleted since.
            if wanted.topic in broker.image.topics:
                return ErrorCode.INCONSISTENT_TOPIC_ID
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return found
    return broker.replicas.find(wanted.topic, wanted.partition)


def read_partition(
    replica: Replica, wanted: SessionPartition, reader: Reader, max_bytes: int, at_least_one: bool
) -> PartitionRead:
    """Read from `wanted.fetch_offset` on: whole batches, `max_bytes` at most.

    `at_least_one`: the first batch is returned however large (KIP-74).
    """
    if not (
        replica.is_leader
        and wanted.current_leader_epoch == replica.leader_epoch
        and (not reader.is_follower or reader.follower_id in replica.followers)
    ):
        # Not the plain case: find out what speaks against it, if anything does.
        error = _may_read(replica, wanted, reader)
        if error:
            return refusal(wanted, error)
    log, offset = replica.log, wanted.fetch_offset
    log_end_offset = log.log_end_offset
    epoch = wanted.last_fetched_epoch
    if epoch >= 0 and (epoch != log.epochs.latest or offset > log_end_offset):
        diverging = _divergence(replica, wanted)
        if diverging is not None:
            return diverging
    if not log.log_start_offset <= offset <= log_end_offset:
        return refusal(wanted, ErrorCode.OFFSET_OUT_OF_RANGE)
    end_offset = log_end_offset if reader.is_follower else replica.high_watermark
    batches: list[Batch] | None = None
    size_bytes = 0
    if offset < end_offset:
        limit = min(max_bytes, wanted.max_bytes)
        if limit < 0:
            return refusal(wanted, ErrorCode.UNKNOWN_SERVER_ERROR)
        if limit > 0 or at_least_one:
            batches = log.read(offset, limit, end_offset, at_least_one)
            for batch in batches:
                size_bytes += batch.size_bytes
    return PartitionRead(
        wanted, NO_ERROR, replica.high_watermark, log.log_start_offset, batches, size_bytes
    )


def _may_read(replica: Replica, wanted: SessionPartition, reader: Reader) -> ErrorCode:
    asked_epoch = max(NO_EPOCH, wanted.current_leader_epoch)
    if reader.leader_only or reader.is_follower:
        error = replica.check_leader(asked_epoch)
        if error:
            return error
    else:
        if replica.role is NO_ROLE:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        error = replica.check_epoch(asked_epoch)
        if error:
            return error
    if reader.is_follower and reader.follower_id not in replica.followers:
        # Kafka: the leader's metadata may be behind the follower's, or the other way round.
        if asked_epoch >= 0:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return NO_ERROR


def _divergence(replica: Replica, wanted: SessionPartition) -> PartitionRead | None:
    """Where the fetcher's log left ours, if it did (KIP-595's truncation on fetch)."""
    epoch, end_offset = replica.log.epochs.end_offset_for(
        wanted.last_fetched_epoch, replica.log.log_end_offset
    )
    if epoch < 0 or end_offset < 0:
        return refusal(wanted, ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch < wanted.last_fetched_epoch or end_offset < wanted.fetch_offset:
        read = PartitionRead(
            wanted,
            NO_ERROR,
            replica.high_watermark,
            replica.log.log_start_offset,
            must_be_told=True,
        )
        read.diverging_epoch = epoch
        read.diverging_end_offset = end_offset
        return read
    return None


def partition_data(
    broker: BrokerNode, read: PartitionRead, reader: Reader
) -> m.FetchResponse.PartitionData:
    """The part of a FetchResponse for one partition."""
    wanted = read.wanted
    batches = read.batches
    data = PartitionData(
        wanted.partition,
        read.error,
        read.high_watermark,
        read.high_watermark,  # the last stable offset
        read.log_start_offset,
        NO_DIVERGENCE,
        _NO_HINT,
        _NO_SNAPSHOT,
        []
        if reader.isolation_level == READ_COMMITTED
        or (read.must_be_told and read.error in _UNKNOWN)
        else None,
        -1,
        b"" if batches is None else batches,
    )
    if read.diverging_end_offset >= 0:
        data.diverging_epoch = m.FetchResponse.EpochEndOffset(
            epoch=read.diverging_epoch, end_offset=read.diverging_end_offset
        )
    if read.must_be_told and reader.wants_hints and read.error in _HINTED:
        data.current_leader = m.FetchResponse.LeaderIdAndEpoch(
            *current_leader(broker, wanted.topic, wanted.topic_id, wanted.partition)
        )
    return data


def current_leader(
    broker: BrokerNode, topic: str, topic_id: bytes, partition: int
) -> tuple[int, int]:
    """(leader id, leader epoch) as this broker knows them: the hint of KIP-951."""
    image = broker.image.topic_by_id(topic_id) or broker.image.topics.get(topic)
    if image is None or not 0 <= partition < len(image.partitions):
        return -1, -1
    registration = image.partitions[partition]
    return registration.leader, registration.leader_epoch


def node_endpoints(broker: BrokerNode, leaders: dict[int, None], endpoint: Any) -> list[Any]:
    """Addresses of the leaders hinted at, so that the client need not ask (KIP-951)."""
    brokers = broker.image.brokers
    return [
        endpoint(node_id=leader, host=known.host, port=known.port, rack=known.rack)
        for leader in leaders
        if (known := brokers.get(leader)) is not None and not known.fenced
    ]
