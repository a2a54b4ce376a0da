"""Members of consumer groups (KIP-848) join, reconcile, leave and fail; with classic ones, too.

Owns: these conversations.  Never: sends them (running.py).
"""

from __future__ import annotations

from kcluster.conform.bodies import commit, join, sync
from kcluster.conform.case import COORDINATOR, Ask, Conversation, Sleep
from kcluster.conform.cases.consumer_groups import beat, joins
from kcluster.protocol.apis import ApiKey

PAUSE = Sleep(1_100)
"""Longer than the assignment interval."""
BEAT = ApiKey.CONSUMER_GROUP_HEARTBEAT
BY_HASH = {"partitions": "which of the members gets more depends on a hash of their ids there"}


def beats(member: str, epoch: int, note: str, owned: object = None, **more: object) -> Ask:
    return Ask(BEAT, beat(member, epoch, owned, **more), 1, to=COORDINATOR, note=note)


def comes(member: str, note: str, **more: object) -> Ask:
    return Ask(BEAT, joins(member, **more), 1, to=COORDINATOR, note=note)


def commits(member: str, epoch: int, note: str, partition: int = 0) -> Ask:
    body = commit(3, generation=epoch, member=member, partition=partition)
    return Ask(ApiKey.OFFSET_COMMIT, body, 9, to=COORDINATOR, note=note)


def described(note: str) -> tuple[Sleep, Ask]:
    body = {"group_ids": ["{group}"]}
    return Sleep(100), Ask(ApiKey.CONSUMER_GROUP_DESCRIBE, body, 1, to=COORDINATOR, note=note)


CONVERSATIONS = (
    Conversation(
        "consumer members come and go",
        (
            comes("a", "a has everything"),
            *described("stable"),
            PAUSE,
            comes("b", "b has nothing yet"),
            *described("reconciling"),
            beats("b", 3, "b waits"),
            beats("a", 2, "a is asked to revoke"),
            commits("a", 2, "a commits what it has yet to revoke", 2),
            beats("a", 2, "a has revoked", [0, 1]),
            beats("b", 3, "b has its part"),
            commits("b", 3, "b commits", 2),
            commits("b", 3, "b commits what it does not have"),
            commits("a", 3, "a commits"),
            commits("a", 2, "in the epoch in which it got the partition"),
            *described("stable with two"),
            PAUSE,
            comes("c", "a third one"),
            beats("a", 3, "a revokes", [0, 1]),
            beats("a", 3, "and has revoked", [0]),
            beats("b", 3, "b keeps its partition", [2]),
            beats("c", 4, "c has its part"),
            *described("one each"),
            beats("a", -1, "a leaves"),
            PAUSE,
            beats("c", 4, "c"),
            beats("b", 4, "b"),
            beats("c", 5, "c again"),
            beats("b", 5, "b again"),
            *described("two left"),
            beats("b", -1, "b leaves"),
            beats("c", -1, "c leaves"),
            *described("empty"),
        ),
    ),
    Conversation(
        "consumer member: orders that no client sends",
        (
            comes("a", "a joins"),
            beats("a", 0, "joins again with partitions", [0], rebalance_timeout_ms=1,
                  subscribed_topic_names=["{topic}"]),
            beats("a", 2, "reports partitions of others", [7, 8]),
            beats("a", 1, "goes back"),
            beats("a", -1, "leaves"),
            beats("a", -1, "leaves twice"),
            beats("a", 2, "goes on"),
            comes("a", "joins an empty group"),
            *described("it has what it had"),
            beats("a", 2**31 - 1, "the highest epoch"),
            comes("a", "gives up its topics at once", subscribed_topic_names=[]),
            PAUSE,
            beats("a", 4, "and says that nothing is left", []),
            *described("without partitions"),
        ),
    ),
    Conversation(
        "consumer member: a static one restarts",
        (
            comes("a", "a has everything", instance_id="i1"),
            PAUSE,
            comes("b", "b joins", instance_id="i2"),
            beats("a", 2, "a revokes", [0, 1], instance_id="i1"),
            beats("a", 2, "a has revoked", [0, 1], instance_id="i1"),
            beats("b", 3, "b has its part", [], instance_id="i2"),
            beats("a", -2, "a is away", instance_id="i1"),
            *described("it keeps its place"),
            comes("a2", "back under a new id", instance_id="i1"),
            beats("a", 3, "the old one is fenced", instance_id="i1"),
            *described("as before"),
            comes("a3", "another one takes its name", instance_id="i1"),
            beats("b", -1, "b leaves for good", instance_id="i2"),
            PAUSE,
            beats("a2", 3, "a2 has everything", [0, 1], instance_id="i1"),
            *described("alone"),
        ),
    ),
    Conversation(
        "consumer member: a regular expression",
        (
            comes("a", "no topics yet", subscribed_topic_names=None,
                  subscribed_topic_regex="{topic}"),
            Sleep(1_500),
            beats("a", 1, "they have been looked up", []),
            beats("a", 2, "nothing new", [0, 1, 2]),
            *described("stable"),
            PAUSE,
            beats("a", 2, "another expression, invalid", subscribed_topic_regex="*"),
            beats("a", 2, "by name besides", [0, 1, 2], subscribed_topic_names=["{fresh}"]),
            beats("a", 3, "nothing new"),
            PAUSE,
            beats("a", 3, "no expression any more", subscribed_topic_regex=""),
            beats("a", 3, "has revoked", []),
            *described("by name only"),
        ),
        mask={"topic_partitions": "in the order of a hash map there"},
    ),
    Conversation(
        "classic member of a consumer group",
        (
            comes("a", "a has everything"),
            PAUSE,
            Ask(ApiKey.JOIN_GROUP, join(instance="i1"), 9, to=COORDINATOR, on="old",
                save={"old": "member_id"}, note="a classic one joins"),
            Ask(ApiKey.SYNC_GROUP, sync(member="{old}", instance="i1", generation=3), 5,
                to=COORDINATOR, on="old", note="it has nothing yet"),
            *described("reconciling"),
            beats("a", 2, "a revokes", [0, 1, 2]),
            Ask(ApiKey.HEARTBEAT, {"group_id": "{group}", "generation_id": 3,
                "member_id": "{old}", "group_instance_id": "i1"}, 4, to=COORDINATOR, on="old",
                note="it waits"),
            beats("a", 2, "a has revoked", [0]),
            beats("a", 3, "whichever is left", [0, 1]),
            Ask(ApiKey.HEARTBEAT, {"group_id": "{group}", "generation_id": 3,
                "member_id": "{old}", "group_instance_id": "i1"}, 4, to=COORDINATOR, on="old",
                note="it may have its part"),
            Ask(ApiKey.JOIN_GROUP, join(instance="i1", member="{old}"), 9, to=COORDINATOR,
                on="old", note="it joins again"),
            Ask(ApiKey.SYNC_GROUP, sync(member="{old}", instance="i1", generation=3), 5,
                to=COORDINATOR, on="old", note="and has its part"),
            *described("stable"),
            Ask(ApiKey.OFFSET_COMMIT, commit(3, generation=2, member="{old}"), 8,
                to=COORDINATOR, on="old", note="with an old generation"),
            beats("a", -1, "a leaves: the group is classic again"),
            *described("no consumer group any more"),
            Ask(ApiKey.DESCRIBE_GROUPS, {"groups": ["{group}"]}, 6, to=COORDINATOR,
                note="it rebalances"),
        ),
        mask={**BY_HASH, "assignment": "as partitions", "topic_partitions": "as partitions",
              "member_assignment": "as partitions"},
    ),
)  # fmt: skip
