"""Transactional producers: whole stories with each protocol, failures, timeouts.

Owns: these conversations.  Never: sends them (running.py).
"""

from __future__ import annotations

from kcluster.conform.bodies import fetch, produce
from kcluster.conform.case import COORDINATOR, Ask, Conversation, Sleep, Step, passed_on
from kcluster.conform.transactions import (
    ABORT_V1,
    ADD,
    ADD_GROUP_HERE,
    AT,
    BUSY,
    COMPLETE,
    END_V1,
    END_V2,
    INIT,
    OFFSETS_V1,
    WRITE_V1,
    WRITE_V2,
    add,
    end,
    init,
    marker,
    of_broker,
    offsets,
    records,
)
from kcluster.protocol.apis import ApiKey

SAVED = {"pid": "producer_id", "epoch": "producer_epoch"}
ABORT_V2 = Ask(ApiKey.END_TXN, end(False), 5, to=AT, retry=BUSY, save=SAVED, note="abort")
MASK = {"last_timestamp": "when the last record came"}


def read(note: str, offset: int = 0, isolation: int = 1) -> Ask:
    wanted = {"isolation_level": isolation}
    body = fetch(offset, "{fresh}", "{fresh_id}", request=wanted)
    return Ask(ApiKey.FETCH, body, 13, note=note)


def write(value: bytes, sequence: int, note: str, version: int = 11, **more: object) -> Ask:
    body = records(value, sequence=sequence, **passed_on(more))
    return Ask(ApiKey.PRODUCE, body, version, note=note, retry=BUSY)


def ends(note: str, commit: bool = True, version: int = 4, **more: object) -> Ask:
    """EndTxn, whose new epoch is not taken over."""
    return Ask(ApiKey.END_TXN, end(commit, **passed_on(more)), version, to=AT, note=note)


def state(note: str) -> Ask:
    body = {"transactional_ids": ["{txn}"]}
    return Ask(ApiKey.DESCRIBE_TRANSACTIONS, body, to=AT, note=note)


def producers(note: str) -> Ask:
    body = {"topics": [{"name": "{fresh}", "partition_indexes": [0]}]}
    return Ask(ApiKey.DESCRIBE_PRODUCERS, body, note=note)


def committed(note: str, stable: bool = True) -> Ask:
    group = {"group_id": "{group}", "topics": [{"name": "{topic}", "partition_indexes": [0]}]}
    body = {"groups": [group], "require_stable": stable}
    return Ask(ApiKey.OFFSET_FETCH, body, 8, to=COORDINATOR, note=note)


def noted(step: Ask, note: str, **more: object) -> Ask:
    return Ask(step.api, step.body, step.version, to=step.to, note=note, **passed_on(more))


PLAIN = Ask(ApiKey.PRODUCE, produce("{fresh}", "{fresh_id}"), note="a record outside of it")

V1_STORY: tuple[Step, ...] = (
    INIT,
    ADD,
    WRITE_V1,
    PLAIN,
    state("it is open"),
    read("neither is visible"),
    read("both are there", isolation=0),
    producers("one producer with an open transaction"),
    END_V1,
    COMPLETE,
    read("all is visible"),
    ends("commit again"),
    ends("abort after that", commit=False),
    write(b"2", 1, "without adding the partition"),
    ADD,
    write(b"2", 1, "the second transaction"),
    ends("abort", commit=False),
    COMPLETE,
    read("the second one is aborted"),
    read("from the middle", 3),
    producers("it has no open transaction"),
)

V2_STORY: tuple[Step, ...] = (
    INIT,
    ends("commit of nothing", version=5),
    WRITE_V2,
    noted(ADD, "the first write added it"),
    state("it is open"),
    END_V2,
    COMPLETE,
    ends("the answer was lost: again", version=5, pid="{pid}", epoch="{epoch-1}"),
    ends("abort in place of it", commit=False, version=5, pid="{pid}", epoch="{epoch-1}"),
    write(b"late", 1, "a late record of the first one", 12, epoch="{epoch-1}"),
    write(b"2", 1, "the second one does not begin with 1", 12),
    write(b"2", 0, "the second one", 12),
    write(b"2", 0, "the same record again", 12),
    ABORT_V2,
    COMPLETE,
    read("the first is visible"),
    producers("the epoch is that of the marker"),
    noted(ABORT_V2, "abort of nothing", save=SAVED),
    COMPLETE,
    producers("no marker was written"),
    Ask(ApiKey.INIT_PRODUCER_ID, init(pid="{pid}", epoch="{epoch}"), to=AT, note="it goes on"),
    Ask(ApiKey.INIT_PRODUCER_ID, init(pid="{pid}", epoch="{epoch}"), to=AT, note="and again"),
)

BOTH_PROTOCOLS: tuple[Step, ...] = (
    INIT,
    ADD,
    WRITE_V1,
    END_V1,
    COMPLETE,
    ends("V2 asks for an epoch before", version=5, pid="{pid}", epoch="{epoch-1}"),
    write(b"2", 1, "V2 goes on with the sequence", 12),
    ends("V1 ends what V2 wrote"),
    COMPLETE,
    ADD,
    write(b"3", 2, "V1 again"),
    END_V2,
    COMPLETE,
    read("all is visible"),
    ADD,
    write(b"4", 0, "V1 with the epoch that V2 left"),
    END_V1,
    COMPLETE,
    producers("one epoch later"),
)

OFFSETS_STORY: tuple[Step, ...] = (
    INIT,
    noted(OFFSETS_V1, "the group was not added"),
    ADD_GROUP_HERE,
    OFFSETS_V1,
    committed("pending"),
    committed("or none, if it need not be stable", stable=False),
    END_V1,
    COMPLETE,
    committed("5"),
    ADD_GROUP_HERE,
    Ask(ApiKey.TXN_OFFSET_COMMIT, offsets(9), 4, to=COORDINATOR, note="9"),
    committed("pending again"),
    ABORT_V1,
    COMPLETE,
    committed("still 5"),
    Ask(ApiKey.TXN_OFFSET_COMMIT, offsets(7), 5, to=COORDINATOR, note="V2 adds the group itself"),
    END_V2,
    COMPLETE,
    committed("7"),
)

FENCED: tuple[Step, ...] = (
    INIT,
    ADD,
    WRITE_V1,
    Ask(ApiKey.INIT_PRODUCER_ID, init(), to=AT, note="another producer comes"),
    COMPLETE,
    state("aborted, with an epoch that nobody has"),
    write(b"2", 1, "the first one goes on"),
    ends("it commits"),
    noted(ADD, "it adds"),
    Ask(ApiKey.INIT_PRODUCER_ID, init(pid="{pid}", epoch="{epoch}"), to=AT, note="goes on"),
    Ask(ApiKey.INIT_PRODUCER_ID, init(), to=AT, save=SAVED, note="the other one asks again"),
    ADD,
    write(b"3", 0, "and writes"),
    END_V1,
    COMPLETE,
    read("what it wrote is visible"),
    producers("epochs"),
)


def timed_out(v2: bool) -> tuple[Step, ...]:
    short = init(timeout_ms=1_000)
    version = 5 if v2 else 4
    begins: tuple[Step, ...] = (WRITE_V2,) if v2 else (ADD, WRITE_V1)
    return (
        Ask(ApiKey.INIT_PRODUCER_ID, short, to=AT, save=SAVED, retry=BUSY, note="1 s at most"),
        *begins,
        Sleep(13_000),
        state("aborted"),
        write(b"2", 1, "the producer goes on", 12 if v2 else 11),
        ends("it commits", version=version, pid="{pid}", epoch="{epoch}"),
        ends("it aborts", commit=False, version=version, pid="{pid}", epoch="{epoch}"),
        Ask(ApiKey.INIT_PRODUCER_ID, init(pid="{pid}", epoch="{epoch}"), to=AT, note="goes on"),
        producers("its epoch"),
    )


ZOMBIE: tuple[Step, ...] = (
    INIT,
    ADD,
    WRITE_V1,
    Ask(ApiKey.WRITE_TXN_MARKERS, {"markers": [marker(coordinator_epoch=5)]}, 1, note="an abort"),
    state("the coordinator knows nothing of it"),
    read("nothing is left"),
    write(b"2", 1, "the producer goes on", 11),
    Ask(
        ApiKey.WRITE_TXN_MARKERS, {"markers": [marker(coordinator_epoch=4, commit=True)]}, 1,
        note="of a coordinator before that",
    ),
    END_V1,
    Sleep(500),
    state("its own marker is of an older coordinator too"),
    producers("and the transaction in the partition is open"),
)  # fmt: skip

VERIFIED: tuple[Step, ...] = (
    INIT,
    Ask(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        {"transactions": [of_broker(verify=True)]}, 4, to=AT, note="not in it",
    ),
    Ask(
        ApiKey.ADD_PARTITIONS_TO_TXN, {"transactions": [of_broker()]}, 5, to=AT, retry=BUSY,
        note="a broker adds it",
    ),
    Ask(
        ApiKey.ADD_PARTITIONS_TO_TXN, {"transactions": [of_broker(verify=True)]}, 5, to=AT,
        note="in it",
    ),
    Ask(ApiKey.ADD_PARTITIONS_TO_TXN, add(("{topic}", [1])), 3, to=AT, note="a client adds one"),
    state("both"),
    END_V1,
    COMPLETE,
    Ask(
        ApiKey.ADD_PARTITIONS_TO_TXN, {"transactions": [of_broker(verify=True)]}, 5, to=AT,
        note="the next one is not open",
    ),
)  # fmt: skip

CONVERSATIONS = (
    Conversation("transactions of V1", V1_STORY, MASK),
    Conversation("transactions of V2", V2_STORY, MASK),
    Conversation("transactions of both protocols", BOTH_PROTOCOLS, MASK),
    Conversation("offsets in transactions", OFFSETS_STORY, MASK),
    Conversation("a fenced producer", FENCED, MASK),
    Conversation("a transaction of V1 that times out", timed_out(False), MASK),
    Conversation("a transaction of V2 that times out", timed_out(True), MASK),
    Conversation("markers of a zombie", ZOMBIE, MASK),
    Conversation("partitions that brokers verify", VERIFIED, MASK),
)
