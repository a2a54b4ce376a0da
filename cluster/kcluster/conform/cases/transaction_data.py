"""Transactions in partitions: Produce, WriteTxnMarkers, Fetch, ListOffsets, DescribeProducers, and
offsets in transactions.

Owns: these cases.  Never: sends them (running.py).
"""

from __future__ import annotations

from kcluster.conform.bodies import batch, fetch, produce
from kcluster.conform.case import COORDINATOR, NOT_COORDINATOR, Ask, Case, CaseBody, passed_on
from kcluster.conform.transactions import (
    ABORT_V1,
    ADD,
    ADD_GROUP_HERE,
    COMPLETE,
    END_V1,
    END_V2,
    INIT,
    OFFSETS_V1,
    OPEN,
    OPEN_V1,
    OPEN_V2,
    WRITE_V1,
    WRITE_V2,
    marker,
    offsets,
    records,
)
from kcluster.json_types import JsonObject
from kcluster.protocol.apis import ApiKey

PRODUCE, FETCH, MARK = ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.WRITE_TXN_MARKERS
COMMIT, LIST, PRODUCERS = (
    ApiKey.TXN_OFFSET_COMMIT, ApiKey.LIST_OFFSETS, ApiKey.DESCRIBE_PRODUCERS
)  # fmt: skip
VERSIONS = "3,7-13"
"""Of Produce: formats, what the client knows of errors (10, 11), V2 (12)."""
TWICE = (INIT, INIT, INIT)
PLAIN = Ask(PRODUCE, produce("{fresh}", "{fresh_id}"), note="a record outside of it")
COMMITTED = (*OPEN_V1, PLAIN, END_V1, COMPLETE)
ABORTED = (*OPEN_V1, PLAIN, ABORT_V1, COMPLETE)
COMMITTED_V2 = (*OPEN_V2, PLAIN, END_V2, COMPLETE)
STILL_OPEN = (*OPEN_V1, PLAIN)
GROUP_IN_IT = (INIT, ADD_GROUP_HERE)
WHEN = {"last_timestamp": "when the last record or marker came"}
DESCRIBED = Ask(
    PRODUCERS, {"topics": [{"name": "{fresh}", "partition_indexes": [0]}]}, note="its producers"
)


def case(name: str, api: ApiKey, body: CaseBody, versions: str = "", **more: object) -> Case:
    return Case(name, api, body, versions, **passed_on(more))


def commit(name: str, body: CaseBody, versions: str = "", **more: object) -> Case:
    return Case(name, COMMIT, body, versions, **passed_on({"to": COORDINATOR, **more}))


def marked(name: str, *markers: object, **more: object) -> Case:
    fields = passed_on(more)
    mask = {**WHEN, **fields.pop("mask", {})}
    return Case(name, MARK, {"markers": list(markers)}, after=(DESCRIBED,), mask=mask, **fields)


def read(offset: int = 0, **more: object) -> JsonObject:
    """Fetch of {fresh} as a read_committed consumer."""
    return fetch(offset, "{fresh}", "{fresh_id}", request={"isolation_level": 1}, **passed_on(more))


def ends(timestamp: int, isolation: int = 1) -> JsonObject:
    wanted = {"partition_index": 0, "timestamp": timestamp, "current_leader_epoch": -1}
    return {
        "replica_id": -1,
        "isolation_level": isolation,
        "topics": [{"name": "{fresh}", "partitions": [wanted]}],
    }


def two_batches() -> JsonObject:
    """A batch inside of the transaction and one outside of it."""
    make = (
        batch(producer_id="{pid}", producer_epoch="{epoch}", base_sequence=0, transactional=True),
        batch(),
    )
    both = [{"index": at, "records": one} for at, one in enumerate(make)]
    topics = [{"name": "{fresh}", "topic_id": "{fresh_id}", "partition_data": both}]
    return {"acks": -1, "timeout_ms": 5_000, "topic_data": topics, "transactional_id": "{txn}"}


def three_batches() -> JsonObject:
    """Batches of two producers, and one outside of any transaction."""
    body = two_batches()
    other = batch(producer_id=4711, producer_epoch=0, base_sequence=0, transactional=True)
    data = [{"index": 0, "records": other}]
    topics = [*body["topic_data"], {"name": "{topic}", "topic_id": "{topic_id}"}]
    topics[1]["partition_data"] = data
    return {**body, "topic_data": topics}


CASES = (
    case("produce: unknown transactional id", PRODUCE, records(pid=4711, epoch=0), "10-13"),
    case("produce: in a transaction", PRODUCE, records(), VERSIONS, before=OPEN),
    case("produce: partition not added", PRODUCE, records(), VERSIONS, before=(INIT,)),
    case("produce: another partition", PRODUCE, records(index=1), "10-12", before=OPEN, to=2),
    case("produce: next record", PRODUCE, records(sequence=1), VERSIONS, before=OPEN_V1),
    case("produce: again", PRODUCE, records(), "10-13", before=OPEN_V1),
    case("produce: gap", PRODUCE, records(sequence=5), "10-13", before=OPEN_V1),
    case("produce: first with sequence 5", PRODUCE, records(sequence=5), "10-13", before=OPEN),
    case("produce: old epoch", PRODUCE, records(epoch="{epoch-1}"), "10-13", before=(*TWICE, ADD)),
    case("produce: epoch to come", PRODUCE, records(epoch="{epoch+1}"), "10-13",
         before=(*TWICE, ADD)),
    case("produce: another producer id", PRODUCE, records(pid="{pid+9}"), "10-13", before=OPEN),
    case("produce: no transactional id", PRODUCE, records(txn=None), "10-13", before=OPEN),
    case("produce: empty transactional id", PRODUCE, records(txn=""), "10-13", before=OPEN),
    case("produce: plain batch, transactional id", PRODUCE, records(transactional=False), "10-13",
         before=OPEN),
    case("produce: plain batch in an open one", PRODUCE,
         records(sequence=1, transactional=False, txn=None), "10-13", before=OPEN_V1),
    case("produce: no producer id", PRODUCE, records(pid=-1, epoch=-1, sequence=-1), "10-13",
         before=OPEN),
    case("produce: one inside, one outside", PRODUCE, two_batches(), "10-13", before=OPEN),
    case("produce: two producers, one outside", PRODUCE, three_batches(), "10-13", before=OPEN),
    case("produce: after a commit", PRODUCE, records(sequence=1), "10-13", before=COMMITTED),
    case("produce: after a commit, added again", PRODUCE, records(sequence=1), "10-13",
         before=(*COMMITTED, ADD)),
    case("produce: after a commit of V2", PRODUCE, records(), "10-13", before=COMMITTED_V2),
    case("produce: after a commit of V2, sequence 1", PRODUCE, records(sequence=1), "12-13",
         before=COMMITTED_V2),
    case("produce: after a commit of V2, old epoch", PRODUCE,
         records(sequence=1, epoch="{epoch-1}"), "12-13", before=COMMITTED_V2),
    case("produce: acks=1 in a transaction", PRODUCE, {**records(), "acks": 1}, "10-13",
         before=OPEN),

    marked("marker: abort of an open one", marker(), before=STILL_OPEN),
    marked("marker: commit of an open one", marker(commit=True), before=STILL_OPEN),
    marked("marker: of V2", marker(epoch="{epoch+1}", version=2), before=STILL_OPEN),
    marked("marker: of V2, same epoch", marker(version=2), before=STILL_OPEN),
    marked("marker: epoch to come", marker(epoch="{epoch+7}"), before=STILL_OPEN),
    marked("marker: old epoch", marker(epoch="{epoch-1}"), before=(*TWICE, ADD, WRITE_V1)),
    marked("marker: no transaction", marker(pid=4711, epoch=3)),
    marked("marker: no transaction, V2", marker(pid=4711, epoch=3, version=2)),
    marked("marker: no transaction, epoch 0 of V2", marker(pid=4711, epoch=0, version=2)),
    marked("marker: version 9", marker(pid=4711, epoch=3, version=9)),
    marked("marker: epoch -1", marker(pid=4711, epoch=-1)),
    marked("marker: epoch -2", marker(pid=4711, epoch=-2)),
    marked("marker: producer id -1", marker(pid=-1, epoch=0)),
    marked("marker: producer id -5", marker(pid=-5, epoch=0)),
    marked("marker: epoch 32767", marker(pid=4711, epoch=32767)),
    marked("marker: coordinator epoch -1", marker(coordinator_epoch=-1), before=STILL_OPEN),
    marked("marker: coordinator epoch 9", marker(coordinator_epoch=9), before=STILL_OPEN),
    marked("marker: of a zombie", marker(coordinator_epoch=3), before=(
        *STILL_OPEN, Ask(MARK, {"markers": [marker(coordinator_epoch=4)]}), WRITE_V2,
    )),
    marked("marker: of a zombie, no transaction", marker(coordinator_epoch=3), before=(
        *STILL_OPEN, Ask(MARK, {"markers": [marker(coordinator_epoch=4)]}),
    )),
    marked("marker: twice", marker(), before=(*STILL_OPEN, Ask(MARK, {"markers": [marker()]}))),
    marked("marker: of V2 twice", marker(epoch="{epoch+1}", version=2), before=(
        *STILL_OPEN, Ask(MARK, {"markers": [marker(epoch="{epoch+1}", version=2)]}),
    )),
    marked("marker: two of one producer", marker(), marker(("{fresh}", [1]), ("{topic}", [0])),
           before=STILL_OPEN, mask={"topics": "merged in Kafka"}),
    marked("marker: two producers", marker(), marker(pid=4711, epoch=0, commit=True),
           before=STILL_OPEN, mask={"producer_id": "the order of a hash table"}),
    marked("marker: partitions that are none", marker(("{fresh}", [0, 9]), ("{missing}", [0])),
           before=STILL_OPEN),
    marked("marker: only partitions that are none", marker(("{missing}", [0]), pid=4711, epoch=0)),
    marked("marker: another broker leads it", marker(("{fresh}", [1]), pid=4711, epoch=0)),
    marked("marker: partition twice", marker(("{fresh}", [0, 0])), before=STILL_OPEN),
    marked("marker: no partitions", marker(("{fresh}", []), pid=4711, epoch=0)),
    marked("marker: none"),

    case("fetch: committed", FETCH, read(), "4,7,11-18", before=COMMITTED),
    case("fetch: aborted", FETCH, read(), "4,7,11-18", before=ABORTED),
    case("fetch: open", FETCH, read(), "4,7,11-18", before=STILL_OPEN),
    case("fetch: committed in V2", FETCH, read(), "13", before=COMMITTED_V2),
    case("fetch: aborted, uncommitted wanted", FETCH, fetch(0, "{fresh}", "{fresh_id}"), "4,13",
         before=ABORTED),
    case("fetch: open, uncommitted wanted", FETCH, fetch(0, "{fresh}", "{fresh_id}"), "4,13",
         before=STILL_OPEN),
    case("fetch: the middle of an aborted one", FETCH, read(1), "13", before=(
        *OPEN_V1, Ask(PRODUCE, records(b"w", sequence=1), 11), PLAIN, ABORT_V1, COMPLETE,
    )),
    case("fetch: behind an aborted one", FETCH, read(3), "13", before=ABORTED),
    case("fetch: above the last stable offset", FETCH, read(1), "13", before=STILL_OPEN),
    case("fetch: isolation level 2", FETCH,
         fetch(0, "{fresh}", "{fresh_id}", request={"isolation_level": 2}), "4,13",
         before=STILL_OPEN),
    case("list offsets: open", LIST, ends(-1), "2+", before=STILL_OPEN),
    case("list offsets: open, uncommitted wanted", LIST, ends(-1, 0), "2+", before=STILL_OPEN),
    case("list offsets: aborted", LIST, ends(-1), "2,7", before=ABORTED),
    case("list offsets: by time above the last stable", LIST, ends(1), "2,7", before=STILL_OPEN),
    case("list offsets: largest time, open", LIST, ends(-3), "7+", before=STILL_OPEN),
    case("list offsets: isolation level 2", LIST, ends(-1, 2), "2,7", before=STILL_OPEN),
    case("producers: open", PRODUCERS, DESCRIBED.body, mask=WHEN, before=STILL_OPEN),
    case("producers: committed", PRODUCERS, DESCRIBED.body, mask=WHEN, before=COMMITTED),
    case("producers: committed in V2", PRODUCERS, DESCRIBED.body, mask=WHEN, before=COMMITTED_V2),
    case("producers: aborted without records", PRODUCERS, DESCRIBED.body, mask=WHEN,
         before=(*OPEN, ABORT_V1, COMPLETE)),

    commit("offsets: in a transaction", offsets(), before=GROUP_IN_IT),
    commit("offsets: again", offsets(7), before=(*GROUP_IN_IT, OFFSETS_V1)),
    commit("offsets: group not added", offsets(), before=(INIT,)),
    commit("offsets: after a commit", offsets(), before=(
        *GROUP_IN_IT, OFFSETS_V1, END_V1, COMPLETE,
    )),
    commit("offsets: old epoch", offsets(epoch="{epoch-1}"), before=(*TWICE, ADD_GROUP_HERE)),
    commit("offsets: epoch to come", offsets(epoch="{epoch+1}"), before=(*TWICE, ADD_GROUP_HERE)),
    commit("offsets: another producer id", offsets(pid="{pid+9}"), before=GROUP_IN_IT),
    commit("offsets: unknown id", offsets(pid=4711, epoch=0)),
    commit("offsets: empty id", offsets(txn="", pid=4711, epoch=0)),
    commit("offsets: wrong broker", offsets(), to=NOT_COORDINATOR, before=GROUP_IN_IT),
    commit("offsets: unknown topic", offsets(topic="{missing}", topic_id="{missing_id}"),
           before=GROUP_IN_IT),
    commit("offsets: no topic id", offsets(topic_id=b"\0" * 16), "6", before=GROUP_IN_IT),
    commit("offsets: some unknown", {**offsets(), "topics": [
        *offsets(topic="{missing}", topic_id="{missing_id}")["topics"], *offsets()["topics"],
        *offsets(partition=9)["topics"], *offsets(partition=1, metadata="x" * 4097)["topics"],
    ]}, before=GROUP_IN_IT),
    commit("offsets: some unknown, unknown member", {
        **offsets(generation=3, member_id="me"), "topics": [
            *offsets(topic="{missing}", topic_id="{missing_id}")["topics"],
            *offsets(metadata="x" * 4097)["topics"], *offsets(partition=9)["topics"],
    ]}, "3+", before=GROUP_IN_IT),
    commit("offsets: a topic twice", {
        **offsets(), "topics": [*offsets()["topics"], *offsets(partition=1)["topics"]],
    }, before=GROUP_IN_IT),
    commit("offsets: partition that is none", offsets(partition=9), before=GROUP_IN_IT),
    commit("offsets: negative", offsets(-5), before=GROUP_IN_IT),
    commit("offsets: no metadata", offsets(metadata=None), before=GROUP_IN_IT),
    commit("offsets: metadata too large", offsets(metadata="x" * 4097), before=GROUP_IN_IT),
    commit("offsets: no topics", {**offsets(), "topics": []}, before=GROUP_IN_IT),
    commit("offsets: empty group", offsets(group=""), before=GROUP_IN_IT),
    commit("offsets: generation without a member", offsets(generation=3), "3+",
           before=GROUP_IN_IT),
    commit("offsets: unknown member", offsets(generation=3, member_id="me"), "3+",
           before=GROUP_IN_IT),
    commit("offsets: member without a generation", offsets(member_id="me"), "3+",
           before=GROUP_IN_IT),
    commit("offsets: unknown instance", offsets(group_instance_id="i1"), "3+", before=GROUP_IN_IT),
    Case("offset fetch: one is open", ApiKey.OFFSET_FETCH,
         {"groups": [{"group_id": "{group}", "topics": None}], "require_stable": True}, "8-9",
         to=COORDINATOR, before=(*GROUP_IN_IT, OFFSETS_V1)),
    Case("offset fetch: one is open, unstable wanted", ApiKey.OFFSET_FETCH,
         {"groups": [{"group_id": "{group}", "topics": None}]}, "8-9",
         to=COORDINATOR, before=(*GROUP_IN_IT, OFFSETS_V1)),
    Case("offset fetch: committed", ApiKey.OFFSET_FETCH,
         {"groups": [{"group_id": "{group}", "topics": None}], "require_stable": True}, "8-9",
         to=COORDINATOR, before=(*GROUP_IN_IT, OFFSETS_V1, END_V1, COMPLETE)),
    Case("offset fetch: aborted", ApiKey.OFFSET_FETCH,
         {"groups": [{"group_id": "{group}", "topics": None}], "require_stable": True}, "8-9",
         to=COORDINATOR, before=(*GROUP_IN_IT, OFFSETS_V1, ABORT_V1, COMPLETE)),
    Case("offset commit: while one is open", ApiKey.OFFSET_COMMIT, {
        "group_id": "{group}", "topics": [{"name": "{topic}", "topic_id": "{topic_id}",
        "partitions": [{"partition_index": 0, "committed_offset": 8}]}],
    }, "8-10", to=COORDINATOR, before=(*GROUP_IN_IT, OFFSETS_V1)),
    Case("delete a group with open offsets", ApiKey.DELETE_GROUPS, {"groups_names": ["{group}"]},
         to=COORDINATOR, before=(*GROUP_IN_IT, OFFSETS_V1)),
    Case("delete offsets that are open", ApiKey.OFFSET_DELETE,
         {"group_id": "{group}", "topics": [{"name": "{topic}", "partitions": [
             {"partition_index": 0}]}]},
         to=COORDINATOR, before=(*GROUP_IN_IT, OFFSETS_V1)),
)  # fmt: skip
