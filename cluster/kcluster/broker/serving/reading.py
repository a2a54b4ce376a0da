"""Reads partitions for one fetch: the checks, and the end up to which a reader may read.

Owns: the order of checks, and the result.  Never: waits or answers (handlers/data/fetch.py does),
keeps anything between fetches (sessions.py does).  Kafka: ReplicaManager.readFromLog,
Partition.fetchRecords; KIP-320, KIP-392, KIP-595.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import mypyc_attr

from kcluster.broker.serving.sessions import Reader, SessionPartition
from kcluster.partition.producers import AbortedTransaction
from kcluster.partition.replica import NO_ROLE, Replica
from kcluster.protocol import messages as m
from kcluster.protocol.errors import ErrorCode
from kcluster.protocol.records.records import Batch

NO_ERROR: Final = ErrorCode.NONE
READ_COMMITTED: Final = 1
NO_EPOCH: Final = -1
"""The epoch of a fetch that names no leader epoch; any lower number has that meaning, too."""
NO_PREFERENCE: Final = -1
NO_DIVERGENCE: Final = m.FetchResponse.EpochEndOffset()
"""The value that all answers without a divergence share; it is replaced, never changed."""


@final
class Bounds:
    """The limits that transactions, or a last offset, set to a read.

    `aborted`: the aborted transactions with records in the read, for a read_committed consumer.
    `is_cut`: there are records after the requested last offset.
    """

    __slots__ = ("aborted", "is_cut", "last_stable_offset")

    def __init__(
        self, last_stable_offset: int, aborted: list[AbortedTransaction], is_cut: bool
    ) -> None:
        self.last_stable_offset = last_stable_offset
        self.aborted = aborted
        self.is_cut = is_cut


@mypyc_attr(free_list_len=1)
@final
class PartitionRead:
    """The result of reading one partition for a fetcher, which `wanted` it.

    `is_urgent`: the fetch must be answered at once, because Kafka does not let an error, a
    divergence or a preferred replica wait.  `bounds`: None if every transaction up to the high
    watermark is decided, and no last offset was requested.  `preferred_read_replica`: the follower
    from which the consumer should read instead; NO_PREFERENCE for none (KIP-392).
    """

    __slots__ = (
        "batches", "bounds", "diverging_end_offset", "diverging_epoch", "error", "high_watermark",
        "is_urgent", "log_start_offset", "preferred_read_replica", "size_bytes", "wanted",
    )  # fmt: skip

    def __init__(
        self,
        wanted: SessionPartition,
        error: ErrorCode,
        high_watermark: int = -1,
        log_start_offset: int = -1,
        batches: list[Batch] | None = None,
        size_bytes: int = 0,
        is_urgent: bool = False,
    ) -> None:
        self.wanted = wanted
        self.error = error
        self.high_watermark = high_watermark
        self.log_start_offset = log_start_offset
        self.batches = batches
        self.size_bytes = size_bytes
        self.is_urgent = is_urgent
        self.diverging_epoch = -1
        self.diverging_end_offset = -1
        self.preferred_read_replica = NO_PREFERENCE
        self.bounds: Bounds | None = None


def refusal(wanted: SessionPartition, error: ErrorCode) -> PartitionRead:
    """A read that failed with `error`."""
    return PartitionRead(wanted, error, is_urgent=True)


def read_partition(
    replica: Replica,
    wanted: SessionPartition,
    reader: Reader,
    max_bytes: int,
    at_least_one: bool,
    last_offset: int | None = None,
) -> PartitionRead:
    """Read from `wanted.fetch_offset` on: whole batches, `max_bytes` at most.

    `at_least_one`: the first batch is returned however large (KIP-74).  `last_offset`: the batch
    that holds this offset is the last one.
    """
    if not (
        replica.is_leader
        and wanted.current_leader_epoch == replica.leader_epoch
        and (not reader.is_follower or reader.follower_id in replica.followers)
    ):
        # Not the common case: find the reason to refuse the read, if there is one.
        error = _reading_error(replica, wanted, reader)
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
    high_watermark = replica.high_watermark
    end_offset = log_end_offset if reader.is_follower else high_watermark
    producers = log.producer_table
    if last_offset is not None or (
        producers is not None
        and (producers.has_unstable or reader.isolation_level == READ_COMMITTED)
    ):
        return _read_within(
            replica, wanted, reader, max_bytes, at_least_one, end_offset, last_offset
        )
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
        wanted, NO_ERROR, high_watermark, log.log_start_offset, batches, size_bytes
    )


def _read_within(
    replica: Replica,
    wanted: SessionPartition,
    reader: Reader,
    max_bytes: int,
    at_least_one: bool,
    end_offset: int,
    last_offset: int | None,
) -> PartitionRead:
    """Read as `read_partition` does, where transactions or a last offset may end the read before
    `end_offset`."""
    log, offset, producers = replica.log, wanted.fetch_offset, replica.log.producer_table
    is_committed = reader.isolation_level == READ_COMMITTED
    stable_offset = replica.last_stable_offset
    if is_committed and producers is not None and producers.has_unstable:
        end_offset = stable_offset
    is_cut = False
    if last_offset is not None and last_offset < end_offset:
        batch_end_offset = log.end_of_batch_with(last_offset)
        is_cut = batch_end_offset < end_offset
        end_offset = min(end_offset, batch_end_offset)
    limit = min(max_bytes, wanted.max_bytes)
    if offset < end_offset and limit < 0:
        return refusal(wanted, ErrorCode.UNKNOWN_SERVER_ERROR)
    batches: list[Batch] | None = None
    size_bytes = 0
    if offset < end_offset and (limit > 0 or at_least_one):
        batches = log.read(offset, limit, end_offset, at_least_one)
        for batch in batches:
            size_bytes += batch.size_bytes
    read = PartitionRead(
        wanted, NO_ERROR, replica.high_watermark, log.log_start_offset, batches, size_bytes
    )
    aborted: list[AbortedTransaction] = []
    if batches and is_committed and producers is not None:
        aborted = producers.aborted_within(offset, batches[-1].last_offset + 1)
    read.bounds = Bounds(stable_offset, aborted, is_cut)
    return read


def _reading_error(replica: Replica, wanted: SessionPartition, reader: Reader) -> ErrorCode:
    """The error if `reader` may not read from `replica`; NONE if it may."""
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
        # In Kafka the leader's metadata may be behind the follower's, or the other way round.
        if asked_epoch >= 0:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return NO_ERROR


def _divergence(replica: Replica, wanted: SessionPartition) -> PartitionRead | None:
    """The offset at which the fetcher's log diverges from this one; None if it does not
    (KIP-595)."""
    epoch, end_offset = replica.log.epochs.end_offset_for(
        wanted.last_fetched_epoch, replica.log.log_end_offset
    )
    if epoch < 0 or end_offset < 0:
        return refusal(wanted, ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch < wanted.last_fetched_epoch or end_offset < wanted.fetch_offset:
        read = PartitionRead(
            wanted, NO_ERROR, replica.high_watermark, replica.log.log_start_offset, is_urgent=True
        )
        read.diverging_epoch = epoch
        read.diverging_end_offset = end_offset
        return read
    return None
