"""Members of share groups: epochs, assignments, leaving; then their offsets, and their deletion.

Owns: these conversations.  Never: sends them (running.py).
"""

from __future__ import annotations

from kcluster.conform.case import COORDINATOR, Ask, Conversation, Sleep
from kcluster.protocol.apis import ApiKey

BEAT, DESCRIBE = ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.SHARE_GROUP_DESCRIBE
OFFSETS, ALTER = ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, ApiKey.ALTER_SHARE_GROUP_OFFSETS
DELETE = ApiKey.DELETE_SHARE_GROUP_OFFSETS
INTERVAL = Sleep(1_200)
"""For the assignment interval to pass, and for share partitions to be initialized."""


def joins(who: str, note: str, *topics: str) -> Ask:
    body = {"group_id": "{group}", "member_id": who, "subscribed_topic_names": list(topics)}
    return Ask(BEAT, body, to=COORDINATOR, on=who, note=note, save={who: "member_epoch"})


def beats(who: str, note: str, epoch: object = None, **more: object) -> Ask:
    its_epoch = f"{{{who}}}" if epoch is None else epoch
    body = {"group_id": "{group}", "member_id": who, "member_epoch": its_epoch, **more}
    save = {who: "member_epoch"} if epoch is None else {}
    return Ask(BEAT, body, to=COORDINATOR, on=who, note=note, save=save)


def described(note: str) -> Ask:
    return Ask(DESCRIBE, {"group_ids": ["{group}"]}, to=COORDINATOR, note=note)


def offsets(note: str) -> Ask:
    body = {"groups": [{"group_id": "{group}", "topics": None}]}
    return Ask(OFFSETS, body, to=COORDINATOR, note=note)


def alters(note: str, topic: str, *partitions: tuple[int, int]) -> Ask:
    cells = [{"partition_index": one, "start_offset": start} for one, start in partitions]
    body = {"group_id": "{group}", "topics": [{"topic_name": topic, "partitions": cells}]}
    return Ask(ALTER, body, to=COORDINATOR, note=note)


def deletes(note: str, *topics: str) -> Ask:
    body = {"group_id": "{group}", "topics": [{"topic_name": name} for name in topics]}
    return Ask(DELETE, body, to=COORDINATOR, note=note)


def group_deleted(note: str) -> Ask:
    return Ask(ApiKey.DELETE_GROUPS, {"groups_names": ["{group}"]}, to=COORDINATOR, note=note)


CONVERSATIONS = (
    Conversation(
        "share group: members come and go",
        (
            joins("anna", "anna joins: nothing is initialized yet", "{fresh}"),
            INTERVAL,
            beats("anna", "she gets both partitions"),
            beats("anna", "nothing has changed"),
            described("stable with one"),
            joins("anna", "she joins again, and keeps her place", "{fresh}"),
            joins("bert", "bert joins", "{fresh}"),
            INTERVAL,
            beats("bert", "his part"),
            beats("anna", "what is left to her"),
            beats("anna", "an old epoch", epoch=1),
            beats("anna", "an epoch to come", epoch=99),
            beats("bert", "bert subscribes to another topic too",
                  subscribed_topic_names=["{topic}", "{fresh}"]),
            INTERVAL,
            beats("bert", "the other topic is his alone"),
            INTERVAL,
            beats("bert", "nothing has changed"),
            beats("anna", "hers"),
            beats("bert", "he leaves", epoch=-1),
            beats("bert", "and is not known any more"),
            INTERVAL,
            beats("anna", "she has all of hers again"),
            beats("anna", "she leaves", epoch=-1),
            described("empty"),
        ),
        mask=dict.fromkeys(
            ("partitions", "topic_id"), "which one a member loses depends on Java's hash codes"
        ),
    ),
    Conversation(
        "share group: offsets of an empty group",
        (
            joins("anna", "anna joins", "{topic}"),
            INTERVAL,
            beats("anna", "she gets three partitions"),
            alters("not while she is there", "{topic}", (0, 4)),
            deletes("nor this", "{topic}"),
            group_deleted("nor this"),
            beats("anna", "she leaves", epoch=-1),
            offsets("the leaders have still to choose where to begin"),
            alters("all begin at 4", "{topic}", (0, 4), (1, 4), (2, 4)),
            offsets("there they are"),
            alters("one is not there", "{topic}", (0, 2), (7, 2)),
            alters("none of them is", "{new}", (0, 2)),
            offsets("0 begins at 2"),
            deletes("a topic that it never read", "{fresh}"),
            deletes("all that it has read", "{topic}"),
            offsets("nothing is left"),
            deletes("once more", "{topic}"),
            described("the group is still there"),
            group_deleted("it goes"),
            described("it is gone"),
            group_deleted("once more"),
        ),
    ),
)  # fmt: skip
