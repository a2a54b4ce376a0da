"""A leader is stopped or killed, and what a client sees at each step.

Owns: these conversations.  Never: sends them (running.py).
"""

from __future__ import annotations

from kcluster.conform.bodies import batch, fetch, produce
from kcluster.conform.case import Ask, Await, Conversation, Operate, Sleep, Step, passed_on
from kcluster.protocol.apis import ApiKey

RETRIED = ("NOT_LEADER", "LEADER_NOT_AVAILABLE", "UNKNOWN_TOPIC", "NOT_ENOUGH", "FENCED_LEADER",
           "UNKNOWN_LEADER", "OFFSET_NOT_AVAILABLE")  # fmt: skip


def write(note: str, to: int = 1, *, acks: int = -1, retry: tuple[str, ...] = ()) -> Ask:
    body = produce("{fresh}", "{fresh_id}", batch(2), acks=acks)
    return Ask(ApiKey.PRODUCE, body, to=to, note=note, retry=retry)


def read(note: str, to: int, offset: int = 0, **more: object) -> Ask:
    body = fetch(offset, "{fresh}", "{fresh_id}", **passed_on(more))
    return Ask(ApiKey.FETCH, body, to=to, note=note)


def topic(note: str, to: int = 2, until: str = "") -> Ask:
    body = {"topics": [{"name": "{fresh}"}], "allow_auto_topic_creation": False}
    return Ask(ApiKey.METADATA, body, to=to, note=note, until=until, on="meta")


def epoch_end(note: str, epoch: int, to: int) -> Ask:
    wanted = [{"partition": 0, "leader_epoch": epoch}]
    body = {"replica_id": -2, "topics": [{"topic": "{fresh}", "partitions": wanted}]}
    return Ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, body, to=to, note=note)


def end_of_log(note: str, to: int) -> Ask:
    wanted = [{"partition_index": 0, "timestamp": -1, "current_leader_epoch": -1}]
    body = {"replica_id": -1, "topics": [{"name": "{fresh}", "partitions": wanted}]}
    return Ask(ApiKey.LIST_OFFSETS, body, to=to, note=note, retry=RETRIED)


def elected(note: str) -> Ask:
    body = {
        "election_type": 0,
        "timeout_ms": 10_000,
        "topic_partitions": [{"topic": "{fresh}", "partitions": [0]}],
    }
    return Ask(ApiKey.ELECT_LEADERS, body, to=2, note=note)


def waiting_fetch() -> Ask:
    request = {"max_wait_ms": 60_000, "min_bytes": 1}
    body = fetch(2, "{fresh}", "{fresh_id}", request=request)
    return Ask(ApiKey.FETCH, body, to=1, on="waiting", later=True)


def story(verb: str) -> tuple[Step, ...]:
    return (
        write("before, acks=all"),
        topic("the leader is 1"),
        waiting_fetch(),
        Operate(verb, 1),
        Await(1, "waiting", note="a fetch that waited there"),
        topic("2 leads", until="'leader_id': 2"),
        write("to the new leader", 2, retry=RETRIED),
        write("to a follower", 3),
        read("all of it", 2),
        Sleep(1_500),
        read("at a follower, once it has heard of the watermark", 3),
        read("with the old epoch", 2, current_leader_epoch=0),
        read("with the new one", 2, current_leader_epoch=1),
        read("with one to come", 2, current_leader_epoch=2),
        read("after records of epoch 0", 2, 2, current_leader_epoch=1, last_fetched_epoch=0),
        epoch_end("the end of epoch 0", 0, 2),
        epoch_end("the end of epoch 1", 1, 2),
        end_of_log("the end of the log", 2),
        elected("the preferred leader is away"),
        Operate("start", 1),
        topic("1 is back in the ISR", until="'isr_nodes': [1, 2, 3]"),
        topic("as 1 sees it", to=1, until="'isr_nodes': [1, 2, 3]"),
        write("to the old leader, a follower now", 1),
        write("to the leader", 2),
        elected("the preferred leader is elected"),
        topic("1 leads again", until="'leader_id': 1"),
        write("to 1", 1, retry=RETRIED),
        write("to 2, which led", 2),
        read("at 2, which led, with its epoch", 2, current_leader_epoch=1),
        read("all of it, once more", 1),
    )


CONVERSATIONS = (
    Conversation("the leader is stopped", story("stop"), needs_operations=True),
    Conversation("the leader is killed", story("kill"), needs_operations=True),
)
