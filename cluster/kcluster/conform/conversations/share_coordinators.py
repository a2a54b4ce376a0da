"""The coordinator of a share partition's state stops, or is killed: what its successor has loaded.

{share_coordinator} is the broker that stops, {heir} the one that coordinates afterwards.  {leader}
leads {fresh}-0, which first moves to the other two brokers, so that only its state fails over.

Owns: these conversations.  Never: sends them (running.py).
"""

from __future__ import annotations

from msgspec import structs

from kcluster.conform.bodies import group_configured
from kcluster.conform.case import Ask, Conversation, Operate, Sleep, Step
from kcluster.conform.conversations.coordinators import BROKER, PLACED
from kcluster.conform.conversations.coordinators import ELECTED as _ELECTED
from kcluster.conform.conversations.coordinators import MOVING as _MOVING
from kcluster.conform.conversations.share import (
    ACCEPT,
    MASK,
    RELEASE,
    acknowledges,
    appended,
    fetches,
    initialized,
    stored,
)
from kcluster.conform.filling import Values
from kcluster.conform.systems import BROKERS
from kcluster.json_types import JsonObject
from kcluster.protocol.apis import ApiKey

MOVING = ("COORDINATOR_LOAD_IN_PROGRESS", *_MOVING)
"""What a leader retries while the coordinator moves."""
DYING, HEIR, LEADER = "{share_coordinator}", "{heir}", "{leader}"
GONE = Ask(
    ApiKey.DESCRIBE_CLUSTER, to=LEADER, retry=(", ".join([BROKER] * len(BROKERS)),),
    only_waits=True
)  # fmt: skip
BACK = Ask(
    ApiKey.METADATA,
    {"topics": [{"name": "{topic}"}], "allow_auto_topic_creation": False},
    to=LEADER, retry=("[1, 2]", "[1, 3]", "[2, 3]"), only_waits=True
)  # fmt: skip
ELECTED = structs.replace(_ELECTED, to=LEADER)


def _others(values: Values) -> list[int]:
    return [id_ for id_ in BROKERS if id_ != values.known["share_coordinator"]]


MOVED: tuple[Step, ...] = (
    Ask(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        {"topics": [{"name": "{fresh}", "partitions": [
            {"partition_index": 0, "replicas": _others}]}]},
        note="{fresh}-0 moves to the others",
    ),
    Sleep(3_000),
    Ask(
        ApiKey.METADATA,
        {"topics": [{"name": "{fresh}"}], "allow_auto_topic_creation": False},
        save={"leader": "topics[0].partitions[0].leader_id",
              "leader_epoch": "topics[0].partitions[0].leader_epoch"}, only_waits=True,
    ),
)  # fmt: skip


def at_leader(step: Ask) -> Ask:
    return structs.replace(step, to=LEADER)


def at_heir(step: Ask, retry: tuple[str, ...] = ()) -> Ask:
    return structs.replace(step, to=HEIR, retry=retry)


def found(saved: str) -> Ask:
    """The coordinator of the share partition's state, as its leader finds it."""
    key = initialized()[0]
    assert isinstance(key, Ask)
    return structs.replace(key, to=LEADER, retry=MOVING, save={saved: "coordinators[0].node_id"})


def written(epoch: int, note: str) -> Ask:
    """A write of the state by a leader whose state epoch is `epoch`."""
    batch: JsonObject = {
        "first_offset": 0, "last_offset": 0, "delivery_state": 2, "delivery_count": 1
    }  # fmt: skip
    partition = {
        "partition": 0, "state_epoch": epoch, "leader_epoch": "{leader_epoch}",
        "start_offset": 0,
        "state_batches": [batch],
    }  # fmt: skip
    topics = [{"topic_id": "{fresh_id}", "partitions": [partition]}]
    body = {"group_id": "{group}", "topics": topics}
    return Ask(ApiKey.WRITE_SHARE_GROUP_STATE, body, to=HEIR, note=note)


def state(note: str) -> Ask:
    return stored(note, "{leader_epoch}")


def story(verb: str) -> tuple[Step, ...]:
    return (
        *group_configured(share_record_lock_duration_ms="60000"),
        structs.replace(found("share_coordinator"), to=1),
        *MOVED,
        *initialized(),
        at_leader(appended(4, "four records")),
        at_leader(fetches("anna", 0, "anna gets them", max_wait_ms=5_000)),
        at_leader(acknowledges("anna", 1, "one accepted, one released",
                               (0, 1, [ACCEPT, RELEASE]))),
        state("what is stored"),
        Operate(verb, DYING),
        GONE,
        found("heir"),
        at_heir(state("the state is as it was"), MOVING),
        at_heir(written(0, "by an old state epoch")),
        at_leader(fetches("bert", 0, "bert gets what anna released", max_wait_ms=5_000)),
        at_leader(acknowledges("anna", 2, "anna accepts another", (2, 2, [ACCEPT]))),
        at_leader(acknowledges("bert", 1, "bert accepts his", (1, 1, [ACCEPT]))),
        at_heir(state("the successor has stored it")),
        Operate("start", DYING),
        BACK,
        Sleep(2_000),
        ELECTED,
        Sleep(2_000),
        structs.replace(
            at_heir(state("at the successor, which is none any more")), until="NOT_COORDINATOR"
        ),
        structs.replace(state("the state where it began"), retry=MOVING),
        at_leader(acknowledges("anna", 3, "anna accepts her last", (3, 3, [ACCEPT]))),
        state("all is settled"),
    )  # fmt: skip


HIDDEN = MASK | PLACED
CONVERSATIONS = (
    Conversation("share: the coordinator is stopped", story("stop"), HIDDEN, needs_operations=True),
    Conversation("share: the coordinator is killed", story("kill"), HIDDEN, needs_operations=True),
)
