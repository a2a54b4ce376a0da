"""The coordinator of a consumer group is stopped, or killed: what its successor has loaded.

A transaction with offsets of the group is open meanwhile.  {coordinator} is the broker that stops,
{heir} the one that coordinates the group afterwards, {txn_heir} the one of the transaction.

Owns: these conversations.  Never: sends them (running.py).
"""

from __future__ import annotations

from kcluster.conform.bodies import commit
from kcluster.conform.case import (
    COORDINATOR,
    NOT_COORDINATOR,
    Ask,
    Conversation,
    Operate,
    Sleep,
    Step,
)
from kcluster.conform.cases.consumer_groups import beat, joins
from kcluster.conform.transactions import ADD_GROUP_HERE, BUSY, INIT, end, offsets
from kcluster.protocol.apis import ApiKey

BEAT = ApiKey.CONSUMER_GROUP_HEARTBEAT
DYING, HEIR, TXN_HEIR = "{coordinator}", "{heir}", "{txn_heir}"
MOVING = (*BUSY, "NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "UNKNOWN_TOPIC")
"""What a client retries while a coordinator moves."""
PAUSE = Sleep(1_100)
"""Longer than the assignment interval."""
BROKER = "{'broker_id': '<number>', 'host': '<text>', 'port': '<number>'}"
GONE = Ask(
    ApiKey.DESCRIBE_CLUSTER, to=NOT_COORDINATOR, retry=(", ".join([BROKER] * 3),),
    only_waits=True
)  # fmt: skip


def found(what: str, kind: int, key: str, saved: str) -> Ask:
    return Ask(
        ApiKey.FIND_COORDINATOR,
        {"key_type": kind, "coordinator_keys": [key]},
        to=NOT_COORDINATOR,
        retry=MOVING,
        save={saved: "coordinators[0].node_id"},
        note=f"the coordinator of the {what}",
    )


def beats(
    member: str, epoch: int, note: str, to: str = HEIR, owned: list[int] | None = None
) -> Ask:
    return Ask(BEAT, beat(member, epoch, owned), 1, to=to, note=note, retry=BUSY)


def described(note: str, to: str = HEIR) -> Ask:
    body = {"group_ids": ["{group}"]}
    return Ask(ApiKey.CONSUMER_GROUP_DESCRIBE, body, 1, to=to, note=note, retry=MOVING)


def committed(note: str, to: str = HEIR, stable: bool = True) -> Ask:
    wanted = [{"name": "{topic}", "topic_id": "{topic_id}", "partition_indexes": [0, 1]}]
    body = {"groups": [{"group_id": "{group}", "topics": wanted}], "require_stable": stable}
    return Ask(ApiKey.OFFSET_FETCH, body, 9, to=to, note=note, retry=("COORDINATOR",))


def listed(note: str, until: str) -> Ask:
    body = {"transactional_id_pattern": "{txn}"}
    return Ask(ApiKey.LIST_TRANSACTIONS, body, to=TXN_HEIR, note=note, until=until)


def commits(offset: int, partition: int, epoch: int, note: str, to: str = HEIR) -> Ask:
    body = commit(offset, generation=epoch, member="a", partition=partition)
    return Ask(ApiKey.OFFSET_COMMIT, body, 9, to=to, note=note)


TXN_OFFSETS = Ask(
    ApiKey.TXN_OFFSET_COMMIT, offsets(5, generation=2, member_id="a"), 4, to=COORDINATOR,
    retry=BUSY, note="an offset in the transaction",
)  # fmt: skip
COMMITS = Ask(ApiKey.END_TXN, end(), 4, to=TXN_HEIR, retry=MOVING, note="commit")
BACK = Ask(
    ApiKey.METADATA,
    {"topics": [{"name": "{fresh}"}], "allow_auto_topic_creation": False},
    to=NOT_COORDINATOR, retry=("[1, 2]", "[1, 3]", "[2, 3]"), only_waits=True
)  # fmt: skip
ELECTED = Ask(
    ApiKey.ELECT_LEADERS,
    {"election_type": 0, "timeout_ms": 30_000, "topic_partitions": None},
    to=NOT_COORDINATOR, only_waits=True
)  # fmt: skip


def story(verb: str) -> tuple[Step, ...]:
    return (
        Ask(BEAT, joins("a"), 1, to=COORDINATOR, note="a has everything"),
        commits(3, 1, 2, "a commits", COORDINATOR),
        INIT,
        ADD_GROUP_HERE,
        TXN_OFFSETS,
        committed("one offset is pending", COORDINATOR),
        Operate(verb, DYING),
        GONE,
        found("group", 0, "{group}", "heir"),
        found("transaction", 1, "{txn}", "txn_heir"),
        described("the group is as it was"),
        beats("a", 2, "a goes on"),
        beats("a", 1, "an old epoch"),
        beats("z", 2, "a member that never joined"),
        committed("the offset is still pending"),
        committed("the committed ones", stable=False),
        listed("the transaction is open", "Ongoing"),
        COMMITS,
        listed("when all markers are written", "Complete"),
        committed("the offset of the transaction"),
        commits(4, 1, 2, "a commits again"),
        PAUSE,
        Ask(BEAT, joins("b"), 1, to=HEIR, note="b joins"),
        beats("a", 2, "a is asked to revoke"),
        Operate("start", DYING),
        BACK,
        Sleep(2_000),
        ELECTED,
        Sleep(2_000),
        beats("a", 2, "at the successor, which is none any more"),
        described("the group where it began", DYING),
        committed("all offsets", DYING),
        beats("a", 2, "a has revoked", DYING, [0, 1]),
        beats("b", 3, "b has its part", DYING),
        beats("a", -1, "a leaves", DYING),
        beats("b", -1, "b leaves", DYING),
    )


PLACED = {
    **dict.fromkeys(
        ("node_id", "broker_id", "host", "port", "leader_id", "leader_epoch", "controller_id"),
        "by the hash of the name",
    )
}
CONVERSATIONS = (
    Conversation("the coordinator is stopped", story("stop"), PLACED, needs_operations=True),
    Conversation("the coordinator is killed", story("kill"), PLACED, needs_operations=True),
)
