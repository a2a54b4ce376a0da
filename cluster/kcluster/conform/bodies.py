"""Request bodies that many cases share: record batches, Produce, Fetch, groups.

Owns: their default fields.  Never: defines a case.
"""

from __future__ import annotations

from collections.abc import Callable

from kcluster.conform.case import COORDINATOR, Ask, Sleep, Step, passed_on
from kcluster.conform.filling import Values
from kcluster.json_types import JsonObject
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.records.records import Record, build_batch

MakesBytes = Callable[[Values], bytes]


def batch(
    count: int = 1,
    *,
    value: bytes | None = b"v",
    key: bytes | None = None,
    time: int = 0,
    **more: object,
) -> MakesBytes:
    """Records from {now} + `time` on, 1 ms apart.  `more`: arguments of build_batch; producer_id
    may be a placeholder."""

    def make(values: Values) -> bytes:
        start = values.known["now"] + time
        records = [Record(at, start + at, key, value) for at in range(count)]
        filled = {name: values.fill(one) for name, one in more.items()}
        return bytes(build_batch(records, **passed_on(filled)))

    return make


def produce(
    topic: str = "{topic}",
    topic_id: str | bytes = "{topic_id}",
    records: object = None,
    *,
    index: int = 0,
    acks: int = -1,
    timeout_ms: int = 5_000,
    count: int = 1,
    **more: object,
) -> JsonObject:
    """Produce one batch to one partition, named by topic and by id."""
    data = {"index": index, "records": batch(count) if records is None else records}
    topics = [{"name": topic, "topic_id": topic_id, "partition_data": [data]}]
    return {"acks": acks, "timeout_ms": timeout_ms, "topic_data": topics, **more}


def fetch(
    offset: int = 0,
    topic: str = "{topic}",
    topic_id: str | bytes = "{topic_id}",
    *,
    partition: int = 0,
    partition_max_bytes: int = 1 << 20,
    request: JsonObject | None = None,
    **more: object,
) -> JsonObject:
    """Fetch one partition without waiting.  `more`: other fields of the partition; `request`: other
    fields of the request."""
    wanted = {
        "partition": partition,
        "fetch_offset": offset,
        "partition_max_bytes": partition_max_bytes,
        **more,
    }
    topics = [{"topic": topic, "topic_id": topic_id, "partitions": [wanted]}]
    return {"max_wait_ms": 0, "min_bytes": 1, "topics": topics, **(request or {})}


def configured(topic: str = "{fresh}", **configs: str) -> tuple[Step, ...]:
    """Steps that set configs of a topic; `_` in a name stands for `.`."""
    entries = [
        {"name": name.replace("_", "."), "config_operation": 0, "value": value}
        for name, value in configs.items()
    ]
    resource = {"resource_type": 2, "resource_name": topic, "configs": entries}
    return (Ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, {"resources": [resource]}), Sleep(200))


# ------------------------------------------------------------------------------------- groups


def group_configured(**configs: str) -> tuple[Step, ...]:
    """Steps that set configs of {group}; `_` in a name stands for `.`."""
    entries = [
        {"name": name.replace("_", "."), "config_operation": 0, "value": value}
        for name, value in configs.items()
    ]
    resource = {"resource_type": 32, "resource_name": "{group}", "configs": entries}
    body = {"resources": [resource]}
    return (Ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, body, note="group configs"), Sleep(500))


def join(
    *,
    group: str = "{group}",
    member: str = "",
    instance: str | None = None,
    session_timeout_ms: int = 30_000,
    protocol_type: str = "consumer",
    protocols: tuple[str, ...] = ("range",),
    metadata: str | bytes = "{subscription}",
) -> JsonObject:
    """JoinGroup of a consumer of {topic}."""
    return {
        "group_id": group,
        "session_timeout_ms": session_timeout_ms,
        "rebalance_timeout_ms": 10_000,
        "member_id": member,
        "group_instance_id": instance,
        "protocol_type": protocol_type,
        "protocols": [{"name": name, "metadata": metadata} for name in protocols],
    }


def sync(
    *,
    group: str = "{group}",
    generation: int = 1,
    member: str = "{member}",
    instance: str | None = None,
    assignments: object = None,
    protocol_type: str = "consumer",
    protocol_name: str = "range",
) -> JsonObject:
    """SyncGroup of a leader that assigns everything to itself."""
    if assignments is None:
        assignments = [{"member_id": member, "assignment": b"all of it"}]
    return {
        "group_id": group,
        "generation_id": generation,
        "member_id": member,
        "group_instance_id": instance,
        "protocol_type": protocol_type,
        "protocol_name": protocol_name,
        "assignments": assignments,
    }


def commit(
    offset: int = 5,
    *,
    group: str = "{group}",
    generation: int = -1,
    member: str = "",
    topic: str = "{topic}",
    topic_id: object = "{topic_id}",
    partition: int = 0,
    **more: object,
) -> JsonObject:
    """OffsetCommit of one partition; `more`: its other fields."""
    wanted = {
        "partition_index": partition,
        "committed_offset": offset,
        "committed_metadata": "",
        **more,
    }
    return {
        "group_id": group,
        "generation_id_or_member_epoch": generation,
        "member_id": member,
        "topics": [{"name": topic, "topic_id": topic_id, "partitions": [wanted]}],
    }


def assigned_group() -> tuple[Step, ...]:
    """A step that creates {group} by committing offsets without a member."""
    return (Ask(ApiKey.OFFSET_COMMIT, commit(), to=COORDINATOR),)


# -------------------------------------------------------------------------- streams groups


def subtopology(
    subtopology_id: str,
    sources: list[str],
    *,
    changelogs: list[JsonObject] | None = None,
    sinks: list[str] | None = None,
    repartition: list[JsonObject] | None = None,
    together: tuple[list[int], list[int]] | None = None,
    **more: object,
) -> JsonObject:
    """A part of a Kafka Streams application.  `together`: positions of a copartition group's
    sources and repartition topics."""
    groups = []
    if together is not None:
        groups.append({"source_topics": together[0], "repartition_source_topics": together[1]})
    return {
        "subtopology_id": subtopology_id,
        "source_topics": sources,
        "state_changelog_topics": changelogs or [],
        "repartition_sink_topics": sinks or [],
        "repartition_source_topics": repartition or [],
        "copartition_groups": groups,
        **more,
    }


def streams_topology(*subtopologies: JsonObject, epoch: int = 0) -> JsonObject:
    return {"epoch": epoch, "subtopologies": list(subtopologies)}


def beats_streams(epoch: int, **more: object) -> JsonObject:
    """StreamsGroupHeartbeat of anna."""
    return {"group_id": "{group}", "member_id": "anna", "member_epoch": epoch, **more}


def joins_streams(**more: object) -> JsonObject:
    """As above, as the first one: she reads {topic}."""
    first = {
        "rebalance_timeout_ms": 60_000,
        "topology": streams_topology(subtopology("0", ["{topic}"])),
        "active_tasks": [],
        "standby_tasks": [],
        "warmup_tasks": [],
        "process_id": "p1",
    }
    return beats_streams(0, **{**first, **more})


# -------------------------------------------------------------------------------- share groups

Acks = list[tuple[int, int, list[int]]]
"""(first offset, last offset, types)."""


def share_fetch(
    topic_id: str = "{fresh_id}",
    *,
    partition: int | tuple[int, ...] = 0,
    group: str | None = "{group}",
    member: str | None = "anna",
    epoch: int = 0,
    acks: Acks | None = None,
    max_records: int = 500,
    max_bytes: int = 1 << 20,
    batch_size: int = 500,
    max_wait_ms: int = 0,
    mode: int = 0,
    forget: tuple[int, ...] = (),
) -> JsonObject:
    """Fetch one partition, or several, as a member of a share group; `acks` are of the first."""
    indexes = (partition,) if isinstance(partition, int) else partition
    if acks and not indexes:
        indexes = (0,)
    partitions = [{"partition_index": index} for index in indexes]
    if acks:
        partitions[0] |= _acknowledged(acks)
    return {
        "group_id": group,
        "member_id": member,
        "share_session_epoch": epoch,
        "max_wait_ms": max_wait_ms,
        "min_bytes": 1,
        "max_bytes": max_bytes,
        "max_records": max_records,
        "batch_size": batch_size,
        "share_acquire_mode": mode,
        "topics": [{"topic_id": topic_id, "partitions": partitions}] if partitions else [],
        "forgotten_topics_data": (
            [{"topic_id": topic_id, "partitions": list(forget)}] if forget else []
        ),
    }


def share_acknowledge(
    topic_id: str = "{fresh_id}",
    *,
    partition: int = 0,
    group: str | None = "{group}",
    member: str | None = "anna",
    epoch: int = 1,
    acks: Acks | None = None,
    renew: bool = False,
) -> JsonObject:
    """Acknowledge records of one partition."""
    wanted = {"partition_index": partition, **_acknowledged(acks or [])}
    return {
        "group_id": group,
        "member_id": member,
        "share_session_epoch": epoch,
        "is_renew_ack": renew,
        "topics": [{"topic_id": topic_id, "partitions": [wanted]}],
    }


def _acknowledged(acks: Acks) -> JsonObject:
    return {
        "acknowledgement_batches": [
            {"first_offset": first, "last_offset": last, "acknowledge_types": types}
            for first, last, types in acks
        ]
    }
