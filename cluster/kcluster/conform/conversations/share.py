"""Members of share groups: who gets which records, and what acknowledgements are refused.

Owns: these conversations.  Never: sends them (running.py).
"""

from __future__ import annotations

from kcluster.conform.bodies import batch, group_configured, produce, share_acknowledge, share_fetch
from kcluster.conform.case import Ask, Conversation, Disconnect, Sleep, Step, passed_on
from kcluster.conform.filling import Values
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


def fetches(who: str, epoch: int, note: str, **more: object) -> Ask:
    body = share_fetch(member=who, epoch=epoch, **passed_on({"max_wait_ms": 100, **more}))
    return Ask(ApiKey.SHARE_FETCH, body, on=who, note=note)


def acknowledges(
    who: str, epoch: int, note: str, *acks: tuple[int, int, list[int]], **more: object
) -> Ask:
    body = share_acknowledge(member=who, epoch=epoch, acks=list(acks), **passed_on(more))
    return Ask(ApiKey.SHARE_ACKNOWLEDGE, body, on=who, note=note)


def stored(note: str, leader_epoch: int | str = 0) -> Ask:
    """The state as the share-partition leader reads it."""
    partition = {"partition": 0, "leader_epoch": leader_epoch}
    topics = [{"topic_id": "{fresh_id}", "partitions": [partition]}]
    body = {"group_id": "{group}", "topics": topics}
    return Ask(ApiKey.READ_SHARE_GROUP_STATE, body, to="{share_coordinator}", note=note)


def added() -> tuple[Step, ...]:
    """{fresh}-0 is part of the transaction."""
    body = {
        "v3_and_below_transactional_id": "{group}",
        "v3_and_below_producer_id": "{pid}",
        "v3_and_below_producer_epoch": "{epoch}",
        "v3_and_below_topics": [{"name": "{fresh}", "partitions": [0]}],
    }
    return (
        Ask(ApiKey.ADD_PARTITIONS_TO_TXN, body, 3, to="{transaction_coordinator}",
            retry=("CONCURRENT_TRANSACTIONS",), note="begins"),
    )  # fmt: skip


def written(count: int, sequence: int, note: str) -> Ask:
    """Records of the transaction."""
    records = batch(
        count, producer_id="{pid}", producer_epoch="{epoch}", base_sequence=sequence,
        transactional=True,
    )  # fmt: skip
    body = produce("{fresh}", "{fresh_id}", records, transactional_id="{group}")
    return Ask(ApiKey.PRODUCE, body, 11, note=note)


def ended(commit: bool) -> tuple[Step, ...]:
    body = {
        "transactional_id": "{group}",
        "producer_id": "{pid}",
        "producer_epoch": "{epoch}",
        "committed": commit,
    }
    return (
        Ask(ApiKey.END_TXN, body, 4, to="{transaction_coordinator}",
            note="commits" if commit else "aborts"),
        Sleep(500),
    )  # fmt: skip


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
            Disconnect(1, "anna"),
            Sleep(300),
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
    Conversation(
        "share: a window of a hundred records",
        (
            *group_configured(share_partition_max_record_locks="100"),
            *initialized(),
            *(appended(30, f"batch {number}") for number in range(5)),
            fetches("anna", 0, "four batches: the last is not divided", max_wait_ms=5_000),
            fetches("bert", 0, "nothing for bert"),
            acknowledges("anna", 1, "one in the middle is released", (40, 40, [RELEASE])),
            fetches("bert", 1, "bert gets that one alone"),
            acknowledges("anna", 2, "the first ten", (0, 9, [ACCEPT])),
            fetches("bert", 2, "the window is still full"),
            acknowledges("anna", 3, "the next thirty", (10, 39, [ACCEPT])),
            fetches("bert", 3, "room for the last batch", mode=1),
            stored("what is stored"),
        ),
        mask=MASK,
    ),
    Conversation(
        "share: a lock that ends",
        (
            *group_configured(
                share_record_lock_duration_ms="15000", share_delivery_count_limit="2"
            ),
            *initialized(),
            appended(3, "three records"),
            fetches("anna", 0, "anna gets them", max_wait_ms=5_000),
            Sleep(10_000),
            acknowledges("anna", 1, "she needs more time for one", (1, 1, [RENEW]), renew=True),
            Sleep(6_000),
            fetches("bert", 0, "bert gets the others", max_wait_ms=3_000),
            acknowledges("anna", 2, "too late", (0, 0, [ACCEPT])),
            acknowledges("anna", 3, "in time", (1, 1, [ACCEPT])),
            Sleep(16_000),
            fetches("bert", 1, "archived after two deliveries"),
            stored("all is settled"),
        ),
        mask=MASK,
    ),
    Conversation(
        "share: transactions",
        (
            *group_configured(share_isolation_level="read_committed"),
            *initialized(),
            Ask(ApiKey.FIND_COORDINATOR, {"key_type": 1, "coordinator_keys": ["{group}"]},
                retry=("COORDINATOR_NOT_AVAILABLE",),
                save={"transaction_coordinator": "coordinators[0].node_id"}, note="for it"),
            Ask(ApiKey.INIT_PRODUCER_ID,
                {"transactional_id": "{group}", "transaction_timeout_ms": 60_000}, 4,
                to="{transaction_coordinator}", retry=("COORDINATOR", ),
                save={"pid": "producer_id", "epoch": "producer_epoch"}, note="a producer"),
            appended(1, "a record"),
            *added(), written(2, 0, "two in a transaction"),
            appended(1, "another record"),
            fetches("anna", 0, "up to the transaction", max_wait_ms=5_000),
            *ended(commit=False),
            fetches("anna", 1, "behind it, with its marker", max_wait_ms=3_000),
            acknowledges("anna", 2, "accepted, the marker is a gap", (0, 0, [ACCEPT]),
                         (3, 4, [ACCEPT, GAP])),
            stored("the aborted records are no state"),
            *added(), written(2, 2, "two that will be committed"),
            *ended(commit=True),
            fetches("anna", 3, "with their marker", max_wait_ms=3_000),
            stored("what is stored"),
        ),
        mask=MASK | {"transactional_id": "the group's name"},
    ),
)  # fmt: skip
