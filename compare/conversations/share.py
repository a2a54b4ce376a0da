"""Members of share groups: who gets which records, and what acknowledgements are refused."""

from __future__ import annotations

from typing import Any

from compare.bodies import produce, share_acknowledge, share_fetch
from compare.case import Ask, Close, Conversation, Step, Wait
from compare.filling import Values
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.uuids import uuid_text

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)


def _key(values: Values) -> str:
    return f"{values.known['group']}:{uuid_text(values.known['fresh_id'])}:0"


def initialized(start_offset: int = 0, epoch: int = 1) -> tuple[Step, ...]:
    """The share state of {fresh}-0 begins at an offset, as the group coordinator does it."""
    partition = {"partition": 0, "state_epoch": epoch, "start_offset": start_offset}
    topics = [{"topic_id": "{fresh_id}", "partitions": [partition]}]
    return (
        Ask(ApiKey.FIND_COORDINATOR, {"key_type": 2, "coordinator_keys": [_key]},
            retry=("COORDINATOR_NOT_AVAILABLE", "INVALID_REPLICATION"),
            save={"share_coordinator": "coordinators[0].node_id"}, note="its coordinator"),
        Ask(ApiKey.INITIALIZE_SHARE_GROUP_STATE, {"group_id": "{group}", "topics": topics},
            to="{share_coordinator}", retry=("NOT_COORDINATOR", "LOAD_IN_PROGRESS",
            "COORDINATOR_NOT_AVAILABLE", "UNKNOWN_TOPIC"), note=f"begins at {start_offset}"),
    )  # fmt: skip


def appended(count: int, note: str) -> Ask:
    return Ask(ApiKey.PRODUCE, produce("{fresh}", "{fresh_id}", count=count), note=note)


def fetches(who: str, epoch: int, note: str, **more: Any) -> Ask:
    body = share_fetch(member=who, epoch=epoch, **({"max_wait_ms": 100} | more))
    return Ask(ApiKey.SHARE_FETCH, body, on=who, note=note)


def acknowledges(who: str, epoch: int, note: str, *acks: Any, **more: Any) -> Ask:
    body = share_acknowledge(member=who, epoch=epoch, acks=list(acks), **more)
    return Ask(ApiKey.SHARE_ACKNOWLEDGE, body, on=who, note=note)


def stored(note: str) -> Ask:
    """The state as a share-partition leader without an epoch would read it."""
    topics = [{"topic_id": "{fresh_id}", "partitions": [{"partition": 0, "leader_epoch": -1}]}]
    body = {"group_id": "{group}", "topics": topics}
    return Ask(ApiKey.READ_SHARE_GROUP_STATE, body, to="{share_coordinator}", note=note)


MASK = {
    "node_id": "depends on the partition of the state",
    "port": "as node_id",
    "key": "has the id of a new topic",
}

CONVERSATIONS = (
    Conversation(
        "share: two members",
        (
            *initialized(),
            appended(3, "three records"),
            appended(2, "two more"),
            fetches("anna", 0, "anna gets one batch", max_records=2, max_wait_ms=5_000),
            fetches("bert", 0, "bert gets the other"),
            acknowledges("bert", 1, "bert has not those of anna", (0, 2, [ACCEPT])),
            acknowledges("bert", 2, "nobody has these", (5, 6, [ACCEPT])),
            acknowledges("bert", 3, "half of them nobody has", (3, 6, [ACCEPT])),
            acknowledges("anna", 1, "accepted, released, rejected",
                         (0, 2, [ACCEPT, RELEASE, REJECT])),
            acknowledges("anna", 2, "once more", (0, 0, [ACCEPT])),
            stored("what is stored"),
            fetches("bert", 4, "bert gets what anna released, and accepts his own",
                    acks=[(3, 4, [ACCEPT])]),
            acknowledges("bert", 5, "he accepts it", (1, 1, [ACCEPT])),
            acknowledges("bert", 6, "once more: it is behind the start", (1, 1, [ACCEPT])),
            stored("all is settled"),
            appended(1, "another"),
            fetches("bert", 7, "his"),
            acknowledges("bert", 7, "an old epoch", (5, 5, [ACCEPT])),
            fetches("bert", 9, "an epoch to come"),
            acknowledges("bert", -1, "he leaves"),
            fetches("bert", 8, "his session has ended"),
            fetches("anna", 3, "anna gets it", max_wait_ms=2_000),
            fetches("anna", -1, "and leaves, accepting it", acks=[(5, 5, [ACCEPT])]),
            stored("all is settled again"),
        ),
        mask=MASK,
    ),
    Conversation(
        "share: malformed acknowledgements",
        (
            *initialized(),
            appended(4, "four records"),
            fetches("anna", 0, "anna gets them", max_wait_ms=5_000),
            acknowledges("anna", 1, "first behind last", (2, 1, [ACCEPT])),
            acknowledges("anna", 2, "overlapping", (0, 2, [ACCEPT]), (1, 3, [ACCEPT])),
            acknowledges("anna", 3, "no types", (0, 3, [])),
            acknowledges("anna", 4, "too few types", (0, 3, [ACCEPT, ACCEPT])),
            acknowledges("anna", 5, "unknown type", (0, 3, [9])),
            acknowledges("anna", 6, "renewal that is not announced", (0, 3, [RENEW])),
            acknowledges("anna", 7, "no batches"),
            acknowledges("anna", 8, "unknown partition", (0, 3, [ACCEPT]), partition=9),
            acknowledges("anna", 9, "unknown topic", (0, 3, [ACCEPT]), topic_id="{missing_id}"),
            acknowledges("anna", 10, "partition never fetched", (0, 3, [ACCEPT]), partition=1),
            acknowledges("anna", 11, "renewal", (0, 1, [RENEW]), renew=True),
            acknowledges("anna", 12, "gaps", (0, 1, [GAP, GAP]), (2, 3, [GAP])),
            fetches("anna", 13, "nothing is left"),
        ),
        mask=MASK,
    ),
    Conversation(
        "share: limits",
        (
            *initialized(),
            *(appended(4, f"batch {number}") for number in range(3)),
            fetches("anna", 0, "three records at most", max_records=3, mode=1, max_wait_ms=5_000),
            fetches("anna", 1, "three more", max_records=3, mode=1),
            fetches("anna", 2, "in batches of four", batch_size=4),
            acknowledges("anna", 3, "released one by one", (0, 3, [RELEASE] * 4),
                         (4, 11, [RELEASE])),
            fetches("anna", 4, "again", batch_size=4),
            fetches("anna", 5, "a third time", batch_size=4, acks=[(0, 11, [RELEASE])]),
            fetches("anna", 6, "a fourth time", batch_size=4, acks=[(0, 11, [RELEASE])]),
            fetches("anna", 7, "a fifth time", batch_size=4, acks=[(0, 1, [RELEASE])]),
            fetches("anna", 8, "not a sixth time", batch_size=4, acks=[(0, 0, [RELEASE])]),
            stored("the first is archived"),
        ),
        mask=MASK,
    ),
    Conversation(
        "share: sessions",
        (
            *initialized(),
            appended(1, "a record"),
            fetches("anna", 0, "two partitions, one is not initialized", partition=(0, 1),
                    max_wait_ms=5_000),
            fetches("anna", 1, "nothing new", partition=()),
            fetches("anna", 2, "a partition that is not there", partition=7),
            fetches("anna", 3, "still not", partition=()),
            fetches("anna", 4, "forgotten", partition=(), forget=(7, 1)),
            fetches("anna", 0, "a new session; the record stays hers", partition=0),
            acknowledges("anna", 1, "accepted", (0, 0, [ACCEPT])),
            appended(1, "another"),
            fetches("anna", 2, "hers", partition=()),
            Close(1, "anna"),
            Wait(300),
            fetches("bert", 0, "anna is gone: bert gets it", max_wait_ms=5_000),
        ),
        mask=MASK,
    ),
    Conversation(
        "share: requests that make no sense",
        (
            *initialized(),
            appended(2, "two records"),
            fetches("anna", 0, "unknown acquire mode", mode=9),
            fetches("anna", 1, "no records wanted", max_records=0),
            fetches("anna", 2, "a negative number of them", max_records=-1),
            fetches("anna", 3, "batches of a negative size", batch_size=-1, mode=1, max_records=1),
            fetches("anna", 4, "a negative number of bytes", max_bytes=-1),
            fetches("anna", 5, "no bytes", max_bytes=0),
            fetches("anna", 6, "an unknown topic", topic_id="{missing_id}"),
            fetches("anna", 7, "one byte", max_bytes=1),
            acknowledges("anna", 8, "offsets below all", (-5, -3, [ACCEPT]), (-2, -1, [ACCEPT])),
            acknowledges("anna", 9, "offsets above all", (2**62, 2**63 - 1, [ACCEPT])),
        ),
        mask=MASK,
    ),
    Conversation(
        "share: initialized again",
        (
            *initialized(),
            appended(3, "three records"),
            fetches("anna", 0, "anna gets them", max_wait_ms=5_000),
            *initialized(2, epoch=2),
            acknowledges("anna", 1, "her state is of the past", (0, 2, [ACCEPT])),
            fetches("anna", 2, "from the new start", max_wait_ms=3_000),
        ),
        mask=MASK,
    ),
)  # fmt: skip
