"""Requests of a transactional producer: bodies and steps that cases and conversations share.

Owns: their default fields.  Never: defines a case.

The producer is {pid} with {epoch}, which `INIT` saves.
"""

from __future__ import annotations

from typing import Final

from kcluster.conform.bodies import batch, produce
from kcluster.conform.case import COORDINATOR, Ask
from kcluster.json_types import JsonObject
from kcluster.protocol.apis import ApiKey

AT: Final = "{transactions}"
"""As `to`: the coordinator of {txn}."""
ELSEWHERE: Final = "{elsewhere}"
OFFSETS: Final = "__consumer_offsets"
BUSY: Final = ("CONCURRENT_TRANSACTIONS", "COORDINATOR_LOAD_IN_PROGRESS", "NOT_ENOUGH_REPLICAS")
"""What a client retries."""
NO_ID: Final = -1


def init(
    txn: object = "{txn}", timeout_ms: int = 60_000, pid: object = NO_ID, epoch: object = NO_ID
) -> JsonObject:
    return {
        "transactional_id": txn,
        "transaction_timeout_ms": timeout_ms,
        "producer_id": pid,
        "producer_epoch": epoch,
    }


def added(*topics: tuple[str, list[int]]) -> list[JsonObject]:
    return [{"name": name, "partitions": partitions} for name, partitions in topics]


def add(
    *topics: tuple[str, list[int]],
    txn: str = "{txn}",
    pid: object = "{pid}",
    epoch: object = "{epoch}",
) -> JsonObject:
    """AddPartitionsToTxn of a client; without `topics`, partition 0 of {fresh}."""
    return {
        "v3_and_below_transactional_id": txn,
        "v3_and_below_producer_id": pid,
        "v3_and_below_producer_epoch": epoch,
        "v3_and_below_topics": added(*(topics or (("{fresh}", [0]),))),
    }


def of_broker(
    *topics: tuple[str, list[int]],
    txn: str = "{txn}",
    pid: object = "{pid}",
    epoch: object = "{epoch}",
    verify: bool = False,
) -> JsonObject:
    """One transaction of a broker's AddPartitionsToTxn."""
    return {
        "transactional_id": txn,
        "producer_id": pid,
        "producer_epoch": epoch,
        "verify_only": verify,
        "topics": added(*(topics or (("{fresh}", [0]),))),
    }


def add_offsets(
    group: str = "readers", txn: str = "{txn}", pid: object = "{pid}", epoch: object = "{epoch}"
) -> JsonObject:
    return {
        "transactional_id": txn, "producer_id": pid, "producer_epoch": epoch, "group_id": group
    }  # fmt: skip


def offsets(
    offset: int = 5,
    *,
    group: str = "{group}",
    txn: str = "{txn}",
    pid: object = "{pid}",
    epoch: object = "{epoch}",
    topic: str = "{topic}",
    topic_id: str | bytes = "{topic_id}",
    partition: int = 0,
    metadata: str | None = "",
    generation: int = -1,
    **member: object,
) -> JsonObject:
    """TxnOffsetCommit of one partition; `member`: member_id, group_instance_id."""
    wanted = {
        "partition_index": partition,
        "committed_offset": offset,
        "committed_metadata": metadata,
    }
    return {
        "transactional_id": txn,
        "group_id": group,
        "producer_id": pid,
        "producer_epoch": epoch,
        "generation_id_or_member_epoch": generation,
        "topics": [{"name": topic, "topic_id": topic_id, "partitions": [wanted]}],
        **member,
    }


def end(
    commit: bool = True, txn: str = "{txn}", pid: object = "{pid}", epoch: object = "{epoch}"
) -> JsonObject:
    return {
        "transactional_id": txn, "producer_id": pid, "producer_epoch": epoch, "committed": commit
    }  # fmt: skip


def marker(
    *topics: tuple[str, list[int]],
    pid: object = "{pid}",
    epoch: object = "{epoch}",
    commit: bool = False,
    coordinator_epoch: int = 0,
    version: int = 0,
) -> JsonObject:
    """One marker of WriteTxnMarkers."""
    named = topics or (("{fresh}", [0]),)
    return {
        "producer_id": pid,
        "producer_epoch": epoch,
        "transaction_result": commit,
        "topics": [{"name": name, "partition_indexes": indexes} for name, indexes in named],
        "coordinator_epoch": coordinator_epoch,
        "transaction_version": version,
    }


def records(
    value: bytes = b"v",
    *,
    sequence: int = 0,
    pid: object = "{pid}",
    epoch: object = "{epoch}",
    index: int = 0,
    txn: object = "{txn}",
    transactional: bool = True,
) -> JsonObject:
    """Produce of one record of the transaction to {fresh}."""
    made = batch(
        value=value,
        producer_id=pid,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=transactional,
    )
    return produce("{fresh}", "{fresh_id}", made, index=index, transactional_id=txn)


INIT: Final = Ask(
    ApiKey.INIT_PRODUCER_ID, init(), to=AT, retry=BUSY,
    save={"pid": "producer_id", "epoch": "producer_epoch"}, note="the producer starts",
)  # fmt: skip
ADD: Final = Ask(ApiKey.ADD_PARTITIONS_TO_TXN, add(), 3, to=AT, retry=BUSY, note="a partition")
WRITE_V1: Final = Ask(ApiKey.PRODUCE, records(), 11, note="a record")
WRITE_V2: Final = Ask(ApiKey.PRODUCE, records(), 12, note="a record")
ADD_GROUP: Final = Ask(ApiKey.ADD_OFFSETS_TO_TXN, add_offsets(), to=AT, retry=BUSY, note="a group")
ADD_GROUP_HERE: Final = Ask(
    ApiKey.ADD_OFFSETS_TO_TXN, add_offsets("{group}"), to=AT, retry=BUSY, note="its group"
)
OFFSETS_V1: Final = Ask(
    ApiKey.TXN_OFFSET_COMMIT, offsets(), 4, to=COORDINATOR, retry=BUSY, note="an offset"
)
END_V1: Final = Ask(ApiKey.END_TXN, end(), 4, to=AT, retry=BUSY, note="commit")
ABORT_V1: Final = Ask(ApiKey.END_TXN, end(False), 4, to=AT, retry=BUSY, note="abort")
END_V2: Final = Ask(
    ApiKey.END_TXN, end(), 5, to=AT, retry=BUSY,
    save={"pid": "producer_id", "epoch": "producer_epoch"}, note="commit",
)  # fmt: skip
COMPLETE: Final = Ask(
    ApiKey.DESCRIBE_TRANSACTIONS, {"transactional_ids": ["{txn}"]}, to=AT, until="Complete",
    note="when all markers are written",
)  # fmt: skip
OPEN: Final = (INIT, ADD)
OPEN_V1: Final = (*OPEN, WRITE_V1)
OPEN_V2: Final = (INIT, WRITE_V2)
