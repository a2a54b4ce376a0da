"""Produce and Fetch before 0.11: message sets on the wire, v2 batches in the log.

Owns: the conversions between both, and the errors that such old clients understand.  Never: knows
the formats (protocol/records/message_sets.py), appends.  Kafka: LogValidator (up-conversion),
KafkaApis.maybeConvertFetchedData, LazyDownConversionRecords; KIP-31, KIP-32, KIP-110, KIP-283.

Brokers of 0.11 to 3.x stored v2 batches by default (log.message.format.version), as is done here.
DIFFERS: they could be configured to store the older formats; here the log is always v2.
"""

from __future__ import annotations

from typing import Final

from kcluster.broker.replication.replicas import Replicas
from kcluster.broker.serving.reading import PartitionRead
from kcluster.broker.versions import error_of_release
from kcluster.partition.replica import Replica
from kcluster.protocol import messages as m
from kcluster.protocol.errors import NONE, ErrorCode, error_of
from kcluster.protocol.records.batches import InvalidRecords
from kcluster.protocol.records.compression import Allowance
from kcluster.protocol.records.message_sets import down_convert, is_batch, up_convert
from kcluster.protocol.releases import Release

FIRST_PRODUCE_OF_BATCHES: Final = 3
FIRST_FETCH_OF_BATCHES: Final = 4
FIRST_FETCH_OF_FORMAT_1: Final = 2
FIRST_FETCH_WITH_A_SOFT_LIMIT: Final = 3
"""KIP-74.  Earlier versions cut off bytes beyond the limit, even of the first message."""
FIRST_FETCH_OF_ZSTD: Final = 10
FIRST_TO_TAKE_ONE_WRAPPER: Final = (2, 4)
"""Observed: 2.3.1 takes a compressed message among others, 2.8.2 does not."""


# ------------------------------------------------------------------------------------ Produce


def take_message_set(
    release: Release, data: m.ProduceRequest.PartitionProduceData, allowance: Allowance | None
) -> ErrorCode:
    """Convert the records of a partition in a ProduceRequest before v3 to a v2 batch; an error, or
    NONE. `allowance`: the request's allowance for decompressing; None: an allowance for this
    partition alone.

    A batch of format v2 is accepted as it is, as by Kafka.  A set without a whole message becomes
    empty, which is no error: nothing is appended.
    """
    if is_batch(data.records):
        return NONE
    try:
        takes_many = release.number < FIRST_TO_TAKE_ONE_WRAPPER
        data.records = up_convert(data.records, takes_many, allowance)
    except InvalidRecords as problem:
        return problem.error
    return NONE


def replace_newer_errors(release: Release, response: m.ProduceResponse) -> None:
    """Replace errors in a ProduceResponse that the broker's release does not have yet."""
    for topic in response.responses:
        for answer in topic.partition_responses:
            if answer.error_code > release.highest_error:
                answer.error_code = error_of_release(release, error_of(answer.error_code))


# -------------------------------------------------------------------------------------- Fetch


def convert_fetched(
    release: Release,
    replicas: Replicas,
    data: m.FetchResponse.PartitionData,
    read: PartitionRead,
    version: int,
    allowance: Allowance,
) -> None:
    """Convert `data`, a partition of a FetchResponse before v10, to the formats of its version.
    `allowance`: the whole response's allowance for decompressing."""
    if read.error:
        data.error_code = error_of_release(release, read.error)
        return
    replica = replicas.find(read.wanted.topic, read.wanted.partition)
    if not isinstance(replica, Replica):
        return
    if replica.config.compression_type == "zstd":
        _refuse(release, data, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    elif version < FIRST_FETCH_OF_BATCHES:
        _down_convert(release, data, read, replica, version, allowance)


def _down_convert(
    release: Release,
    data: m.FetchResponse.PartitionData,
    read: PartitionRead,
    replica: Replica,
    version: int,
    allowance: Allowance,
) -> None:
    wanted, batches = read.wanted, read.batches or []
    is_hard = version < FIRST_FETCH_WITH_A_SOFT_LIMIT
    if not batches and is_hard and wanted.fetch_offset < read.high_watermark:
        # A limit withholds the records: a partial first batch makes the client ask for more.
        batches = replica.log.read(wanted.fetch_offset, wanted.max_bytes, read.high_watermark, True)
    if batches and is_hard and batches[0].size_bytes > wanted.max_bytes:
        data.records = bytes(memoryview(batches[0].buffer)[: max(0, wanted.max_bytes)])
        return
    magic = 0 if version < FIRST_FETCH_OF_FORMAT_1 else 1
    try:
        data.records = down_convert(batches, magic, wanted.fetch_offset, allowance)
    except InvalidRecords as problem:
        _refuse(release, data, problem.error)


def _refuse(release: Release, data: m.FetchResponse.PartitionData, error: ErrorCode) -> None:
    data.error_code = error_of_release(release, error)
    data.high_watermark = data.last_stable_offset = data.log_start_offset = -1
    data.aborted_transactions = []
    data.records = b""
