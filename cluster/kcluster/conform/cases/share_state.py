"""The share state APIs, as brokers use them: initialize, read, write, delete, summary.

Owns: these cases.  Never: sends them (running.py).
"""

from __future__ import annotations

from kcluster.conform.case import Ask, Body, Case, Step, passed_on
from kcluster.conform.filling import Values
from kcluster.json_types import JsonObject
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.uuids import uuid_text

FIND = ApiKey.FIND_COORDINATOR
INITIALIZE, READ = ApiKey.INITIALIZE_SHARE_GROUP_STATE, ApiKey.READ_SHARE_GROUP_STATE
WRITE, DELETE = ApiKey.WRITE_SHARE_GROUP_STATE, ApiKey.DELETE_SHARE_GROUP_STATE
SUMMARY = ApiKey.READ_SHARE_GROUP_STATE_SUMMARY
COORDINATOR = "{share_coordinator}"
PASSING = ("NOT_COORDINATOR", "LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "UNKNOWN_TOPIC")


def found_of(topic_id: str) -> tuple[Step, ...]:
    """A step that finds the coordinator of partition 0; `topic_id`: the name of a placeholder."""

    def key(values: Values) -> str:
        return f"{values.known['group']}:{uuid_text(values.known[topic_id])}:0"

    return (
        Ask(FIND, {"key_type": 2, "coordinator_keys": [key]},
            retry=("COORDINATOR_NOT_AVAILABLE", "INVALID_REPLICATION"),
            save={"share_coordinator": "coordinators[0].node_id"},
            note=f"the coordinator of {{group}}:{{{topic_id}}}:0"),
    )  # fmt: skip


FOUND = found_of("fresh_id")


def of(topic_id: str = "{fresh_id}", group: str = "{group}", **row: object) -> JsonObject:
    """A request about one share partition."""
    return {"group_id": group, "topics": [{"topic_id": topic_id, "partitions": [
        {"partition": 0, **row}]}]}  # fmt: skip


def begun(epoch: int = 1, start: int = 5) -> JsonObject:
    return of(state_epoch=epoch, start_offset=start)


def written(*batches: tuple[int, int, int, int], **more: object) -> JsonObject:
    names = ("first_offset", "last_offset", "delivery_state", "delivery_count")
    row = {"state_epoch": 1, "leader_epoch": 0, "start_offset": -1, **more}
    return of(
        **passed_on(row), state_batches=[dict(zip(names, one, strict=True)) for one in batches]
    )


def ask(api: ApiKey, body: Body) -> Ask:
    return Ask(api, body, to=COORDINATOR, retry=PASSING)


BEGUN = (*FOUND, ask(INITIALIZE, begun()))
READ_AT_3 = (*BEGUN, ask(READ, of(leader_epoch=3)))
STORED = (ask(SUMMARY, of()), ask(READ, of(leader_epoch=9)))


def case(
    name: str, api: ApiKey, body: Body, before: tuple[Step, ...] = BEGUN, **more: object
) -> Case:
    return Case(name, api, body, to=COORDINATOR, before=before, **passed_on(more))


CASES = (
    case("initialize", INITIALIZE, begun(), FOUND, after=STORED),
    case("initialize: no offset yet", INITIALIZE, begun(start=-1), FOUND, after=STORED),
    case("initialize: again", INITIALIZE, begun(2, 9), after=STORED),
    case("initialize: the same epoch", INITIALIZE, begun(1, 9), after=STORED),
    case("initialize: an older epoch", INITIALIZE, begun(0, 9), after=STORED),
    case("initialize: epoch -1", INITIALIZE, begun(-1, 9), after=STORED),
    case("initialize: no group", INITIALIZE, of(group="", state_epoch=1, start_offset=0), FOUND),
    case("initialize: no topics", INITIALIZE, {"group_id": "{group}", "topics": []}, FOUND),
    case("initialize: no partitions", INITIALIZE, {"group_id": "{group}", "topics": [
        {"topic_id": "{fresh_id}", "partitions": []}]}, FOUND),

    case("read", READ, of(leader_epoch=0)),
    case("read: a new leader", READ, of(leader_epoch=4), READ_AT_3, after=STORED),
    case("read: an old leader", READ, of(leader_epoch=2), READ_AT_3, after=STORED),
    case("read: no epoch", READ, of(leader_epoch=-1), READ_AT_3),
    case("read: not initialized", READ, of(leader_epoch=0), FOUND),
    case("read: no group", READ, of(group="", leader_epoch=0), FOUND),
    case("read: no partitions", READ, {"group_id": "{group}", "topics": [
        {"topic_id": "{fresh_id}", "partitions": []}]}, FOUND),

    case("write", WRITE, written((5, 9, 2, 1)), after=STORED),
    case("write: several", WRITE, written((5, 9, 2, 1), (10, 14, 0, 1), (15, 19, 4, 5)),
         after=STORED),
    case("write: a start offset", WRITE, written(start_offset=8), after=STORED),
    case("write: complete records", WRITE,
         written((6, 9, 2, 1), start_offset=5, delivery_complete_count=4), after=STORED),
    case("write: over what is there", WRITE, written((7, 11, 2, 2), (6, 6, 4, 3)), (
        *BEGUN, ask(WRITE, written((5, 9, 0, 1), (10, 14, 0, 2)))), after=STORED),
    case("write: less progress than what is there", WRITE, written((0, 20, 0, 1)), (
        *BEGUN, ask(WRITE, written((5, 9, 2, 1), (12, 14, 0, 2)))), after=STORED),
    case("write: neighbours in one state", WRITE, written((10, 14, 2, 1)), (
        *BEGUN, ask(WRITE, written((5, 9, 2, 1), (15, 19, 2, 1)))), after=STORED),
    case("write: before the start", WRITE, written((0, 9, 2, 1), start_offset=7), after=STORED),
    case("write: an old leader", WRITE, written((5, 9, 2, 1), leader_epoch=2), READ_AT_3,
         after=STORED),
    case("write: a leader that has not read", WRITE, written((5, 9, 2, 1), leader_epoch=9),
         READ_AT_3, after=STORED),
    case("write: an old state", WRITE, written((5, 9, 2, 1), state_epoch=0), after=STORED),
    case("write: no epochs", WRITE, written((5, 9, 2, 1), state_epoch=-1, leader_epoch=-1),
         READ_AT_3, after=STORED),
    case("write: not initialized", WRITE, written((5, 9, 2, 1)), FOUND),

    case("delete", DELETE, of(), after=(ask(SUMMARY, of()),)),
    case("delete: not initialized", DELETE, of(), FOUND),
    case("delete: twice", DELETE, of(), (*BEGUN, ask(DELETE, of()))),
    case("summary", SUMMARY, of(), READ_AT_3),
    case("summary: not initialized", SUMMARY, of(), FOUND),
    case("summary: no group", SUMMARY, of(group=""), FOUND),

    Case("find: key", FIND, {"key_type": 2, "coordinator_keys": ["a:AAAAAAAAAAAAAAAAAAAAAQ:0"]},
         "6", mask=dict.fromkeys(("node_id", "port"), "placed at random")),
    *(
        Case(f"find: {key!r}", FIND, {"key_type": 2, "coordinator_keys": [key]}, "6",
             mask=dict.fromkeys(("node_id", "port"), "placed at random"))
        for key in (
            "", ":", "::", "g:t:0", "a:b:AAAAAAAAAAAAAAAAAAAAAQ:12", "AAAAAAAAAAAAAAAAAAAAAQ:0",
            " :AAAAAAAAAAAAAAAAAAAAAQ:0", "g:AAAAAAAAAAAAAAAAAAAAAQ:x",
            "g:AAAAAAAAAAAAAAAAAAAAAQ:-1", "g:AAAAAAAAAAAAAAAAAAAAAQ==:0",
            "g:AAAAAAAAAAAAAAAAAAAAAQ:99999999999",
        )
    ),
)  # fmt: skip
