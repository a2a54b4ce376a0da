"""Members of classic groups join, leave and fail.

Owns: these conversations.  Never: sends them (running.py).
"""

from __future__ import annotations

from kcluster.conform.bodies import commit, join, sync
from kcluster.conform.case import COORDINATOR, Ask, Await, Conversation, Sleep, passed_on
from kcluster.protocol.apis import ApiKey

JOIN, SYNC = ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP
BEAT, LEAVE, DESCRIBE = ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP, ApiKey.DESCRIBE_GROUPS


def joins(who: str, note: str, **more: object) -> Ask:
    """Join with the id of `who`, without waiting for the response."""
    return Ask(
        JOIN,
        join(member=f"{{{who}}}", **passed_on(more)),
        to=COORDINATOR,
        on=who,
        later=True,
        note=note,
    )


def gets_id(who: str) -> Ask:
    return Ask(
        JOIN, join(), to=COORDINATOR, on=who, save={who: "member_id"}, note=f"{who} gets an id"
    )


def received(who: str, note: str) -> Await:
    return Await(COORDINATOR, who, note=note)


def syncs(
    who: str, generation: int, note: str, members: tuple[str, ...] = (), **more: object
) -> Ask:
    assignments = [{"member_id": f"{{{name}}}", "assignment": name.encode()} for name in members]
    body = sync(member=f"{{{who}}}", generation=generation, assignments=assignments)
    return Ask(SYNC, body, to=COORDINATOR, on=who, note=note, **passed_on(more))


def beats(who: str, generation: int, note: str) -> Ask:
    body = {"group_id": "{group}", "generation_id": generation, "member_id": f"{{{who}}}"}
    return Ask(BEAT, body, to=COORDINATOR, on=who, note=note)


def leaves(who: str, note: str) -> Ask:
    body = {"group_id": "{group}", "members": [{"member_id": f"{{{who}}}"}]}
    return Ask(LEAVE, body, to=COORDINATOR, on=who, note=note)


def described(note: str) -> tuple[Sleep, Ask]:
    return Sleep(100), Ask(DESCRIBE, {"groups": ["{group}"]}, to=COORDINATOR, note=note)


def commits(who: str, generation: int, note: str) -> Ask:
    body = commit(3, generation=generation, member=f"{{{who}}}")
    return Ask(ApiKey.OFFSET_COMMIT, body, 9, to=COORDINATOR, on=who, note=note)


FIRST = (
    gets_id("anna"),
    joins("anna", "anna joins"),
    received("anna", "she leads alone"),
    syncs("anna", 1, "takes all", ("anna",)),
)

CONVERSATIONS = (
    Conversation(
        "a second member",
        (
            *FIRST,
            *described("stable with one"),
            gets_id("bert"),
            joins("bert", "bert joins and waits"),
            Sleep(200),
            *described("a rebalance is prepared"),
            beats("anna", 1, "anna hears of it"),
            commits("anna", 1, "she commits"),
            joins("anna", "anna joins again"),
            received("anna", "she still leads"),
            received("bert", "he follows"),
            *described("the assignment is awaited"),
            beats("bert", 2, "his heartbeat"),
            commits("bert", 2, "his commit comes too early"),
            syncs("bert", 2, "bert waits for his part", later=True),
            syncs("anna", 2, "anna gives both theirs", ("anna", "bert")),
            received("bert", "his part"),
            *described("stable with two"),
            commits("bert", 2, "he commits"),
            commits("bert", 1, "with the old generation"),
            leaves("bert", "he leaves"),
            beats("bert", 2, "and is not known any more"),
            beats("anna", 2, "she hears of it"),
            joins("anna", "anna joins once more"),
            received("anna", "alone"),
            leaves("anna", "leaves before her sync"),
            *described("empty"),
        ),
    ),
    Conversation(
        "a member that falls silent",
        (
            gets_id("anna"),
            joins("anna", "anna joins, session 6 s", session_timeout_ms=6_000),
            received("anna", "leads"),
            syncs("anna", 1, "takes all", ("anna",)),
            Sleep(4_000),
            beats("anna", 1, "in time"),
            Sleep(4_000),
            beats("anna", 1, "in time again"),
            Sleep(7_500),
            beats("anna", 1, "too late"),
            *described("empty"),
            joins("anna", "with the id of before"),
            received("anna", "it is not known"),
        ),
    ),
    Conversation(
        "a static member comes back",
        (
            Ask(JOIN, join(instance="i1"), to=COORDINATOR, on="anna",
                save={"anna": "member_id"}, note="joins at once"),
            Ask(SYNC, sync(instance="i1", member="{anna}"), to=COORDINATOR, on="anna",
                note="takes all"),
            *described("stable"),
            Ask(JOIN, join(instance="i1"), to=COORDINATOR, on="again",
                save={"again": "member_id"}, note="restarted: no rebalance"),
            Ask(SYNC, sync(instance="i1", member="{again}"), to=COORDINATOR, on="again",
                note="gets what it had"),
            *described("stable as before"),
            Ask(BEAT, {"group_id": "{group}", "generation_id": 1, "member_id": "{anna}",
                "group_instance_id": "i1"}, to=COORDINATOR, on="anna", note="fenced"),
            Ask(BEAT, {"group_id": "{group}", "generation_id": 1, "member_id": "{again}",
                "group_instance_id": "i1"}, to=COORDINATOR, on="again", note="not fenced"),
            Ask(JOIN, join(instance="i1", protocols=("other",)), to=COORDINATOR, on="third",
                save={"third": "member_id"}, note="restarted with another protocol"),
        ),
    ),
    Conversation(
        "two protocols in common",
        (
            gets_id("anna"),
            joins("anna", "knows range and sticky", protocols=("range", "sticky")),
            received("anna", "range"),
            syncs("anna", 1, "takes all", ("anna",)),
            gets_id("bert"),
            joins("bert", "knows sticky and rr", protocols=("sticky", "rr")),
            Sleep(200),
            joins("anna", "again", protocols=("range", "sticky")),
            received("anna", "what both know"),
            received("bert", "what both know"),
            Ask(JOIN, join(protocols=("rr",)), to=COORDINATOR, on="carl",
                note="knows nothing in common"),
        ),
    ),
)  # fmt: skip
