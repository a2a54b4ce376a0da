"""Fetch sessions and long polls while records arrive.

Owns: these conversations.  Never: sends them (running.py).
"""

from __future__ import annotations

from kcluster.conform.bodies import batch, fetch, produce
from kcluster.conform.case import Ask, Await, Conversation, Sleep, passed_on
from kcluster.protocol.apis import ApiKey

FETCH, PRODUCE = ApiKey.FETCH, ApiKey.PRODUCE
BOTH = (("{fresh}", "{fresh_id}", 0), ("{topic}", "{topic_id}", 0))


def write(note: str, *, count: int = 1, value: bytes = b"v", to: int = 1, index: int = 0) -> Ask:
    body = produce("{fresh}", "{fresh_id}", batch(count, value=value), index=index)
    return Ask(PRODUCE, body, note=note, to=to)


def poll(
    epoch: int,
    *wanted: tuple[str, str, int, int],
    note: str = "",
    id_: object = "{session}",
    forget: tuple[tuple[str, str, int], ...] = (),
    version: int = -1,
    **more: object,
) -> Ask:
    """Fetch in a session; `wanted`: topic, id, partition, offset."""
    topics = [
        {
            "topic": topic,
            "topic_id": topic_id,
            "partitions": [
                {"partition": index, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
            ],
        }
        for topic, topic_id, index, offset in wanted
    ]
    forgotten = [
        {"topic": topic, "topic_id": topic_id, "partitions": [index]}
        for topic, topic_id, index in forget
    ]
    body = {
        "max_wait_ms": 0,
        "min_bytes": 1,
        "session_id": id_,
        "session_epoch": epoch,
        "topics": topics,
        "forgotten_topics_data": forgotten,
    }
    save = {"session": "session_id"} if epoch == 0 else {}
    return Ask(FETCH, body, version, note=note, on="consumer", save=save, **passed_on(more))


def fresh(offset: int, index: int = 0) -> tuple[str, str, int, int]:
    return ("{fresh}", "{fresh_id}", index, offset)


def other(offset: int) -> tuple[str, str, int, int]:
    return ("{topic}", "{topic_id}", 0, offset)


AGAIN = {
    "timeout_ms": 10_000,
    "topics": [{
        "name": "{fresh}", "num_partitions": -1, "replication_factor": -1,
        "assignments": [{"partition_index": 0, "broker_ids": [1, 2, 3]}],
    }],
}  # fmt: skip


def session_story(name: str, version: int) -> Conversation:
    gone = ApiKey.DELETE_TOPICS
    deletion = {"topics": [{"name": "{fresh}"}], "timeout_ms": 10_000}
    return Conversation(
        name,
        (
            poll(
                0, fresh(0), other(8), id_=0, note="a full fetch opens a session", version=version
            ),
            poll(1, note="nothing has changed but what was read", version=version),
            poll(2, other(10), note="the second partition was read to its end", version=version),
            poll(3, note="nothing at all", version=version),
            write("a record", count=2),
            poll(4, note="only what changed", version=version),
            poll(5, note="it comes again while it is not asked past it", version=version),
            poll(6, fresh(2), note="past it", version=version),
            poll(6, note="an epoch twice", version=version),
            poll(7, fresh(2, index=1), note="a partition that is led elsewhere", version=version),
            poll(8, note="its error comes each time", version=version),
            poll(9, forget=(("{fresh}", "{fresh_id}", 1),), note="forgotten", version=version),
            write("another record"),
            poll(10, forget=(("{topic}", "{topic_id}", 0),), note="the rest", version=version),
            poll(11, fresh(99), note="out of range", version=version),
            poll(12, fresh(3), note="back at the end", version=version),
            Ask(gone, deletion, note="the topic is deleted"),
            Sleep(300),
            poll(13, note="what is read of it", version=version),
            Ask(ApiKey.CREATE_TOPICS, AGAIN, note="a topic of its name is created"),
            Sleep(300),
            poll(14, note="what is read of that", version=version),
            poll(-1, id_="{session}", note="closed", version=version),
            poll(15, note="it is gone", version=version),
        ),
    )


def long_poll(wait_ms: int, min_bytes: int, note: str) -> Ask:
    request = {"max_wait_ms": wait_ms, "min_bytes": min_bytes}
    body = fetch(0, "{fresh}", "{fresh_id}", request=request)
    return Ask(FETCH, body, on="consumer", later=True, note=note)


CONVERSATIONS = (
    session_story("a fetch session by ids", 18),
    session_story("a fetch session by names", 12),
    Conversation(
        "a long poll",
        (
            long_poll(5_000, 1, "waits"),
            write("a record ends it"),
            Await(1, "consumer", note="what it brings"),
            long_poll(300, 1 << 20, "wants more than there is"),
            write("a record is not enough"),
            Await(1, "consumer", note="time ends it"),
            long_poll(5_000, 200, "wants 200 bytes"),
            write("not yet", value=b"x" * 10),
            write("now", value=b"x" * 200),
            Await(1, "consumer", note="enough"),
        ),
    ),
    Conversation(
        "an idempotent producer",
        tuple(
            Ask(PRODUCE, produce("{fresh}", "{fresh_id}", batch(
                count, producer_id=77, producer_epoch=epoch, base_sequence=sequence)), note=note)
            for count, epoch, sequence, note in (
                (2, 0, 0, "first"), (1, 0, 2, "next"), (1, 0, 2, "next again"),
                (2, 0, 0, "first again"), (1, 0, 9, "a gap"), (1, 0, 3, "no gap"),
                (1, 1, 3, "epoch up, sequence goes on"), (1, 1, 0, "epoch up, from 0"),
                (1, 0, 4, "old epoch"), (1, 1, 1, "on"), (1, 1, 2, "on"), (1, 1, 3, "on"),
                (1, 1, 4, "on"), (1, 1, 5, "on"), (1, 1, 0, "six behind"),
                (1, 1, 1, "five behind"),
            )
        ),
    ),
)  # fmt: skip
