"""Dead letter queues of share groups (KIP-1191): what gets into them, and which cannot be used.
A release before 4.4 knows none of their configs.

Owns: these conversations.  Never: sends them (running.py).
"""

from __future__ import annotations

from kcluster.conform.bodies import fetch, group_configured
from kcluster.conform.case import Ask, Conversation, Sleep, Step
from kcluster.conform.conversations.share import (
    ACCEPT,
    GAP,
    MASK,
    REJECT,
    RELEASE,
    acknowledges,
    appended,
    fetches,
    initialized,
    stored,
)
from kcluster.protocol.apis import ApiKey

QUEUE = "dlq.{fresh}"
SENT = Sleep(1_500)
"""Time enough for a write to the queue."""


def queue(name: str = QUEUE, **configs: str) -> tuple[Step, ...]:
    """A topic of three partitions, which broker 2 leads; `_` in a config's name stands for `.`."""
    entries = [{"name": one.replace("_", "."), "value": value} for one, value in configs.items()]
    assignments = [
        {"partition_index": index, "broker_ids": [2, 1, 3]} for index in range(3)
    ]  # fmt: skip
    topic = {
        "name": name,
        "num_partitions": -1,
        "replication_factor": -1,
        "assignments": assignments,
        "configs": entries,
    }
    body = {"topics": [topic], "timeout_ms": 10_000}
    return (Ask(ApiKey.CREATE_TOPICS, body, note=f"the queue {name}"), Sleep(500))


def usable() -> tuple[Step, ...]:
    return queue(errors_deadletterqueue_group_enable="true")


def without(name: str = QUEUE) -> Ask:
    body = {"topics": [{"name": name}], "timeout_ms": 10_000}
    return Ask(ApiKey.DELETE_TOPICS, body, only_waits=True)


def read(note: str, name: str = QUEUE, partition: int = 0) -> Ask:
    return Ask(ApiKey.FETCH, fetch(0, name, partition=partition), 12, to=2, note=note)


def allowed(value: str) -> tuple[Step, ...]:
    """Whether brokers create queues."""
    name = "errors.deadletterqueue.auto.create.topics.enable"
    entry = {"name": name, "config_operation": 0, "value": value}
    resource = {"resource_type": 4, "resource_name": "", "configs": [entry]}
    body = {"resources": [resource]}
    return (Ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, body, note=f"creation: {value}"), Sleep(500))


def rejecting(name: str, duration_ms: int = 1_500) -> tuple[Step, ...]:
    """One record is rejected by a group with this queue, and what comes of it after some time."""
    return (
        *group_configured(errors_deadletterqueue_topic_name=name),
        *initialized(),
        appended(1, "a record"),
        fetches("anna", 0, "anna gets it", max_wait_ms=5_000),
        acknowledges("anna", 1, "and rejects it", (0, 0, [REJECT])),
        Sleep(duration_ms),
        stored("what is stored"),
    )


LETTERS = MASK | {
    "times": "the time of the broker that sends them",
    "size_bytes": "dead letters have the names of the topic and the group",
}

CONVERSATIONS = (
    Conversation(
        "dead letters: rejected and exhausted",
        (
            *usable(),
            *group_configured(
                errors_deadletterqueue_topic_name=QUEUE, share_delivery_count_limit="2"
            ),
            *initialized(),
            appended(5, "five records"),
            fetches("anna", 0, "anna gets them", max_wait_ms=5_000),
            acknowledges("anna", 1, "rejected, accepted, a gap, released, accepted",
                         (0, 4, [REJECT, ACCEPT, GAP, RELEASE, ACCEPT])),
            SENT,
            stored("the first is archived"),
            read("it is in the queue"),
            fetches("anna", 2, "the last delivery of one", max_wait_ms=3_000),
            acknowledges("anna", 3, "released again", (3, 3, [RELEASE])),
            SENT,
            stored("all is settled"),
            read("it is in the queue too"),
            read("not in the other partitions", partition=1),
            fetches("anna", 4, "nothing is left"),
            without(),
        ),
        mask=LETTERS,
    ),
    Conversation(
        "dead letters: copies",
        (
            *usable(),
            *group_configured(errors_deadletterqueue_topic_name=QUEUE,
                        errors_deadletterqueue_copy_record_enable="true"),
            *initialized(),
            appended(2, "two records"),
            fetches("anna", 0, "anna gets them", max_wait_ms=5_000),
            acknowledges("anna", 1, "both rejected", (0, 1, [REJECT])),
            SENT,
            read("with their values"),
            without(),
        ),
        mask=LETTERS,
    ),
    Conversation(
        "dead letters: more than fits into a message",
        (
            *queue(errors_deadletterqueue_group_enable="true", max_message_bytes="600"),
            *group_configured(errors_deadletterqueue_topic_name=QUEUE),
            *initialized(),
            appended(6, "six records"),
            fetches("anna", 0, "anna gets them", max_wait_ms=5_000),
            acknowledges("anna", 1, "all rejected", (0, 5, [REJECT])),
            SENT,
            read("in batches"),
            stored("all is settled"),
            without(),
        ),
        mask=LETTERS,
    ),
    Conversation(
        "dead letters: a lock that ends",
        (
            *usable(),
            *group_configured(errors_deadletterqueue_topic_name=QUEUE,
                        share_record_lock_duration_ms="15000", share_delivery_count_limit="2"),
            *initialized(),
            appended(2, "two records"),
            fetches("anna", 0, "anna gets them", max_wait_ms=5_000),
            acknowledges("anna", 1, "released", (0, 1, [RELEASE])),
            fetches("anna", 2, "the last delivery", max_wait_ms=5_000),
            Sleep(17_000),
            read("in the queue"),
            stored("all is settled"),
            without(),
        ),
        mask=LETTERS,
    ),
    Conversation(
        "dead letters: a queue that does not exist",
        (*rejecting(QUEUE), read("no topic")),
        mask=LETTERS,
    ),
    Conversation(
        "dead letters: a topic that is no queue",
        (*queue(), *rejecting(QUEUE), read("nothing"), without()),
        mask=LETTERS,
    ),
    Conversation(
        "dead letters: a name without the prefix",
        (
            *queue("{fresh}-dlq", errors_deadletterqueue_group_enable="true"),
            *rejecting("{fresh}-dlq"),
            read("nothing", "{fresh}-dlq"),
            without("{fresh}-dlq"),
        ),
        mask=LETTERS,
    ),
    Conversation(
        "dead letters: a message that is too large",
        (
            *queue(errors_deadletterqueue_group_enable="true", max_message_bytes="90"),
            *rejecting(QUEUE),
            read("nothing"),
            without(),
        ),
        mask=LETTERS,
    ),
    Conversation(
        "dead letters: a queue that is created",
        (
            *allowed("true"),
            *rejecting(QUEUE, 5_000),
            Ask(ApiKey.DESCRIBE_CONFIGS, {
                "resources": [{"resource_type": 2, "resource_name": QUEUE, "configuration_keys": [
                    "errors.deadletterqueue.group.enable", "message.timestamp.type"]}]},
                note="its configs"),
            *allowed("false"),
            without(),
        ),
        mask=LETTERS,
    ),
)  # fmt: skip
