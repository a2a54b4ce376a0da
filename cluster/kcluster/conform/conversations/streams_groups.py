"""Members of a streams group share tasks, move them, leave and come back.

Owns: these conversations.  Never: sends them (running.py).
"""

from __future__ import annotations

from kcluster.conform.bodies import (
    beats_streams,
    commit,
    group_configured,
    joins_streams,
    streams_topology,
    subtopology,
)
from kcluster.conform.case import COORDINATOR, Ask, Conversation, Sleep, passed_on
from kcluster.protocol.apis import ApiKey

BEAT, DESCRIBE = ApiKey.STREAMS_GROUP_HEARTBEAT, ApiKey.STREAMS_GROUP_DESCRIBE
DELAY = Sleep(3_200)
"""A little more than group.streams.initial.rebalance.delay.ms."""
INTERVAL = Sleep(1_200)
"""A little more than group.streams.assignment.interval.ms."""

COUNTING = streams_topology(
    subtopology("0", ["{topic}"], sinks=["{group}-words"]),
    subtopology(
        "1", [], repartition=[{"name": "{group}-words", "topic_configs": []}], together=([], [0])
    ),
)


STATEFUL = streams_topology(subtopology(
    "0", ["{topic}"], changelogs=[{"name": "{group}-log", "topic_configs": []}]))  # fmt: skip


def held(who: str, epoch: int, note: str, active: list[int], standby: list[int]) -> Ask:
    """A heartbeat with these tasks."""
    rows = ([{"subtopology_id": "0", "partitions": some}] if some else [] for some in (
        active, standby))  # fmt: skip
    names = ("active_tasks", "standby_tasks")
    body = beats_streams(
        epoch, member_id=who, warmup_tasks=[], **dict(zip(names, rows, strict=True))
    )
    return Ask(BEAT, body, to=COORDINATOR, on=who, note=note)


def joins(who: str, note: str, process: str = "", **more: object) -> Ask:
    body = joins_streams(member_id=who, process_id=process or f"p-{who}", **more)
    return Ask(BEAT, body, to=COORDINATOR, on=who, note=note)


def beats(who: str, epoch: int, note: str, *tasks: tuple[str, list[int]], **more: object) -> Ask:
    """With the tasks that `who` has; `tasks` empty: none."""
    listed = [{"subtopology_id": id_, "partitions": partitions} for id_, partitions in tasks]
    owned = {"active_tasks": listed, "standby_tasks": [], "warmup_tasks": []}
    body = beats_streams(epoch, **passed_on({"member_id": who, **owned, **more}))
    return Ask(BEAT, body, to=COORDINATOR, on=who, note=note)


def leaves(who: str, note: str, **more: object) -> Ask:
    body = beats_streams(-1, member_id=who, **more)
    return Ask(BEAT, body, to=COORDINATOR, on=who, note=note)


def described(note: str) -> Ask:
    return Ask(DESCRIBE, {"group_ids": ["{group}"]}, to=COORDINATOR, note=note)


def commits(who: str, epoch: int, note: str, version: int = 9) -> Ask:
    body = commit(3, generation=epoch, member=who)
    return Ask(ApiKey.OFFSET_COMMIT, body, version, to=COORDINATOR, on=who, note=note)


CONVERSATIONS = (
    Conversation(
        "streams: two members share tasks",
        (
            joins("anna", "anna joins an empty group"),
            beats("anna", 1, "and waits for others"),
            joins("bert", "bert joins"),
            described("before the first assignment"),
            DELAY,
            beats("anna", 1, "anna gets her tasks"),
            beats("bert", 1, "bert gets his"),
            described("stable"),
            joins("carl", "carl joins too soon after the last assignment"),
            commits("anna", 3, "she commits"),
            commits("anna", 1, "with an epoch from before her tasks"),
            commits("anna", 9, "with an epoch to come"),
            commits("anna", 3, "with an old version", 8),
            commits("dora", 3, "a stranger commits"),
            INTERVAL,
            beats("bert", 3, "bert has to give one back", ("0", [0, 2])),
            commits("bert", 3, "he may commit what he gives back"),
            beats("carl", 3, "carl waits for it"),
            beats("bert", 3, "it is given back", ("0", [0])),
            beats("carl", 4, "carl gets it"),
            beats("anna", 3, "anna is not concerned", ("0", [1])),
            described("stable again"),
            leaves("anna", "anna leaves"),
            beats("anna", 4, "and is unknown", ("0", [1])),
            INTERVAL,
            beats("bert", 4, "bert may take over", ("0", [0])),
            beats("carl", 4, "so may carl", ("0", [2])),
            described("two of them again"),
        ),
    ),
    Conversation(
        "streams: internal topics are created",
        (
            joins("anna", "the repartition topic is missing", topology=COUNTING),
            Sleep(500),
            beats("anna", 1, "it has been created"),
            DELAY,
            beats("anna", 1, "there are tasks"),
            described("with the numbers of partitions"),
            leaves("anna", "she leaves"),
            described("empty"),
            joins("anna", "an empty group waits again", topology=COUNTING),
        ),
    ),
    Conversation(
        "streams: a topic that cannot be created",
        (
            joins("anna", "a changelog with a bad config", topology=streams_topology(subtopology(
                "0", ["{topic}"], changelogs=[{"name": "{group}-log", "topic_configs": [
                    {"key": "cleanup.policy", "value": "nonsense"}]}]))),
            Sleep(500),
            beats("anna", 1, "is told why"),
            DELAY,
            beats("anna", 1, "and told again"),
            described("not ready"),
        ),
    ),
    Conversation(
        "streams: a static member comes back",
        (
            joins("anna", "anna joins as an instance", instance_id="i1"),
            joins("bert", "bert joins"),
            DELAY,
            beats("anna", 1, "anna gets her tasks", instance_id="i1"),
            beats("bert", 1, "bert gets his"),
            Ask(BEAT, beats_streams(-2, member_id="anna", instance_id="i1"), to=COORDINATOR,
                note="anna goes for a while"),
            described("her tasks stay hers"),
            beats("bert", 3, "bert is not concerned", ("0", [0])),
            joins("anna-2", "she is back with the same tasks", "p-anna", instance_id="i1"),
            described("under another id"),
            beats("anna", 3, "the old id is fenced", instance_id="i1"),
            commits("anna-2", 3, "she commits"),
            Ask(BEAT, beats_streams(-1, member_id="anna-2", instance_id="i1"), to=COORDINATOR,
                note="she leaves for good"),
            INTERVAL,
            beats("bert", 3, "bert takes over", ("0", [0])),
            described("bert alone"),
        ),
    ),
    Conversation(
        "streams: standbys take over",
        (
            *group_configured(streams_num_standby_replicas="1"),
            joins("anna", "anna joins", topology=STATEFUL),
            Sleep(500),
            joins("bert", "bert joins", topology=STATEFUL),
            DELAY,
            beats("anna", 1, "anna gets her tasks"),
            beats("bert", 1, "bert gets his"),
            described("with standbys"),
            leaves("anna", "anna leaves"),
            INTERVAL,
            held("bert", 3, "bert's standbys are active now", [0], [1, 2]),
            described("without standbys"),
            joins("carl", "carl joins", topology=STATEFUL),
            INTERVAL,
            held("bert", 4, "one of his becomes a standby", [0, 1, 2], []),
            described("on the way"),
            held("bert", 4, "he has given it back", [0, 1], [2]),
            beats("carl", 4, "carl gets it"),
            described("at the end"),
        ),
    ),
    Conversation(
        "streams: a lost answer",
        (
            joins("anna", "anna joins"),
            DELAY,
            beats("anna", 1, "this answer is lost"),
            beats("anna", 1, "she asks again: the epoch, without the tasks"),
            beats("anna", 1, "with tasks that are hers", ("0", [0])),
            beats("anna", 0, "zero joins, and needs a topology"),
            joins("anna", "she joins again: here they are"),
        ),
    ),
    Conversation(
        "streams: the application shuts down",
        (
            joins("anna", "anna joins", user_endpoint={"host": "a", "port": 1}),
            joins("bert", "bert joins", user_endpoint={"host": "b", "port": 2}),
            DELAY,
            beats("anna", 1, "anna gets tasks"),
            beats("bert", 1, "bert gets tasks"),
            beats("anna", 3, "she hears of his", ("0", [1]), endpoint_information_epoch=1),
            beats("anna", 3, "nothing new", ("0", [1]), endpoint_information_epoch=2),
            beats("anna", 3, "she asks to shut down", ("0", [1]), shutdown_application=True),
            beats("bert", 3, "he hears of it", ("0", [0, 2])),
            leaves("anna", "anna leaves"),
            leaves("bert", "bert leaves"),
            joins("anna", "an empty group has forgotten it"),
        ),
    ),
)  # fmt: skip
