"""The coordinator of transactions: InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, EndTxn, and
what describes and lists transactions.

Owns: these cases.  Never: sends them (running.py).
"""

from __future__ import annotations

from kcluster.conform.case import Ask, Case, CaseBody, Sleep, passed_on
from kcluster.conform.transactions import (
    ABORT_V1,
    ADD,
    ADD_GROUP,
    AT,
    COMPLETE,
    ELSEWHERE,
    END_V1,
    END_V2,
    INIT,
    OFFSETS,
    OPEN,
    OPEN_V1,
    OPEN_V2,
    add,
    add_offsets,
    end,
    init,
    of_broker,
)
from kcluster.json_types import JsonObject
from kcluster.protocol.apis import ApiKey

INITIALIZE, ADD_PARTITIONS = ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_PARTITIONS_TO_TXN
ADD_OFFSETS, END = ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN
DESCRIBE, LIST, FIND = (
    ApiKey.DESCRIBE_TRANSACTIONS, ApiKey.LIST_TRANSACTIONS, ApiKey.FIND_COORDINATOR
)  # fmt: skip
DONE = (*OPEN_V1, END_V1, COMPLETE)
ABORTED = (*OPEN_V1, ABORT_V1, COMPLETE)
DONE_V2 = (*OPEN_V2, END_V2, COMPLETE)
TWICE = (INIT, INIT, INIT)
"""Its epoch is 2."""
BY_HASH = dict.fromkeys(("node_id", "host", "port"), "by the hash of the id")
KEEP: JsonObject = {"pid": "{pid}", "epoch": "{epoch}"}


def case(name: str, api: ApiKey, body: CaseBody, versions: str = "", **more: object) -> Case:
    return Case(name, api, body, versions, **passed_on({"to": AT, **more}))


def batched(*transactions: object) -> JsonObject:
    return {"transactions": list(transactions)}


def listed(**filters: object) -> JsonObject:
    return {"transactional_id_pattern": "{txn}", **filters}


CASES = (
    case("init: no transactional id", INITIALIZE, init(None, 0), to=1),
    case("init: first", INITIALIZE, init()),
    case("init: again", INITIALIZE, init(), before=(INIT,)),
    case("init: empty transactional id", INITIALIZE, init(""), to=1),
    case("init: wrong broker", INITIALIZE, init(), to=ELSEWHERE),
    case("init: timeout 0", INITIALIZE, init(timeout_ms=0)),
    case("init: timeout -1", INITIALIZE, init(timeout_ms=-1)),
    case("init: longest timeout", INITIALIZE, init(timeout_ms=900_000)),
    case("init: timeout too long", INITIALIZE, init(timeout_ms=900_001)),
    case("init: wrong broker and timeout", INITIALIZE, init(timeout_ms=0), to=ELSEWHERE),
    case("init: goes on", INITIALIZE, init(**KEEP), "3+", before=TWICE),
    case("init: goes on, again", INITIALIZE, init(**KEEP), "3+",
         before=(*TWICE, Ask(INITIALIZE, init(**KEEP), to=AT))),
    case("init: goes on with an old epoch", INITIALIZE, init(pid="{pid}", epoch="{epoch-1}"), "3+",
         before=TWICE),
    case("init: goes on with an epoch to come", INITIALIZE, init(pid="{pid}", epoch="{epoch+1}"),
         "3+", before=TWICE),
    case("init: goes on with another id", INITIALIZE, init(pid="{pid+9}", epoch="{epoch}"), "3+",
         before=TWICE),
    case("init: goes on, but is unknown", INITIALIZE, init(pid=4711, epoch=3), "3+"),
    case("init: id without an epoch", INITIALIZE, init(pid=4711), "3+"),
    case("init: epoch without an id", INITIALIZE, init(epoch=3), "3+"),
    case("init: id -2", INITIALIZE, init(pid=-2, epoch=3), "3+"),
    case("init: last epoch", INITIALIZE, init(pid="{pid}", epoch=32766), "3+", before=TWICE),
    case("init: epoch above the last", INITIALIZE, init(pid="{pid}", epoch=32767), "3+",
         before=TWICE),
    case("init: while a transaction is open", INITIALIZE, init(), before=OPEN_V1),
    case("init: while one of V2 is open", INITIALIZE, init(), before=OPEN_V2),
    case("init: goes on while one is open", INITIALIZE, init(**KEEP), "3+", before=OPEN_V1),
    case("init: after a commit", INITIALIZE, init(), before=DONE),
    case("init: after an abort", INITIALIZE, init(), before=ABORTED),
    case("init: after a commit of V2", INITIALIZE, init(), before=DONE_V2),
    case("init: goes on after a commit of V2", INITIALIZE, init(**KEEP), "3+", before=DONE_V2),
    case("init: old epoch after a commit of V2", INITIALIZE, init(pid="{pid}", epoch="{epoch-1}"),
         "3+", before=DONE_V2),

    case("add: a partition", ADD_PARTITIONS, add(), "0-3", before=(INIT,)),
    case("add: again", ADD_PARTITIONS, add(), "0-3", before=OPEN),
    case("add: two topics", ADD_PARTITIONS, add(("{fresh}", [0, 1]), ("{topic}", [2])), "0-3",
         before=(INIT,)),
    case("add: another", ADD_PARTITIONS, add(("{fresh}", [0, 1])), "0-3", before=OPEN_V1),
    case("add: partitions that are none", ADD_PARTITIONS,
         add(("{fresh}", [0, 9]), ("{missing}", [0])), "0-3", before=(INIT,)),
    case("add: partition -1", ADD_PARTITIONS, add(("{fresh}", [-1])), "0-3", before=(INIT,)),
    case("add: a partition twice", ADD_PARTITIONS, add(("{fresh}", [0, 0])), "0-3", before=(INIT,)),
    case("add: a topic twice", ADD_PARTITIONS, add(("{fresh}", [0]), ("{fresh}", [1])), "0-3",
         before=(INIT,)),
    case("add: no partitions", ADD_PARTITIONS, add(("{fresh}", [])), "0-3", before=(INIT,)),
    case("add: no topic name", ADD_PARTITIONS, add(("", [0])), "0-3", before=(INIT,)),
    case("add: internal topic", ADD_PARTITIONS, add((OFFSETS, [0])), "0-3", before=(INIT,)),
    case("add: old epoch", ADD_PARTITIONS, add(epoch="{epoch-1}"), "0-3", before=TWICE),
    case("add: epoch to come", ADD_PARTITIONS, add(epoch="{epoch+1}"), "0-3", before=TWICE),
    case("add: another producer id", ADD_PARTITIONS, add(pid="{pid+9}"), "0-3", before=TWICE),
    case("add: unknown id", ADD_PARTITIONS, add(pid=4711, epoch=0), "0-3"),
    case("add: empty id", ADD_PARTITIONS, add(txn="", pid=4711, epoch=0), "0-3", to=1),
    case("add: wrong broker", ADD_PARTITIONS, add(pid=4711, epoch=0), "0-3", to=ELSEWHERE),
    case("add: after a commit", ADD_PARTITIONS, add(), "0-3", before=DONE),
    case("add: after a commit of V2", ADD_PARTITIONS, add(), "0-3", before=DONE_V2),

    case("add by a broker", ADD_PARTITIONS, batched(of_broker()), "4-5", before=(INIT,)),
    case("add by a broker: unknown topic", ADD_PARTITIONS,
         batched(of_broker(("{missing}", [0]), ("{fresh}", [1]))), "4-5", before=(INIT,)),
    case("add by a broker: old epoch", ADD_PARTITIONS, batched(of_broker(epoch="{epoch-1}")), "4-5",
         before=TWICE),
    case("verify", ADD_PARTITIONS, batched(of_broker(verify=True)), "4-5", before=OPEN),
    case("verify: not in it", ADD_PARTITIONS,
         batched(of_broker(("{fresh}", [0, 1]), verify=True)), "4-5", before=OPEN),
    case("verify: no transaction", ADD_PARTITIONS, batched(of_broker(verify=True)), "4-5",
         before=(INIT,)),
    case("verify: unknown topic", ADD_PARTITIONS,
         batched(of_broker(("{missing}", [0]), ("{fresh}", [0]), verify=True)), "4-5", before=OPEN),
    case("verify: old epoch", ADD_PARTITIONS, batched(of_broker(verify=True, epoch="{epoch-1}")),
         "4-5", before=TWICE),
    case("verify: another producer id", ADD_PARTITIONS,
         batched(of_broker(verify=True, pid="{pid+9}")), "4-5", before=OPEN),
    case("verify: unknown id", ADD_PARTITIONS,
         batched(of_broker(verify=True, pid=4711, epoch=0)), "4-5"),
    case("verify: empty id", ADD_PARTITIONS,
         batched(of_broker(verify=True, txn="", pid=4711, epoch=0)), "4-5", to=1),
    case("verify: wrong broker", ADD_PARTITIONS,
         batched(of_broker(verify=True, pid=4711, epoch=0)), "4-5", to=ELSEWHERE),
    case("verify: after a commit", ADD_PARTITIONS, batched(of_broker(verify=True)), "4-5",
         before=DONE),

    case("add offsets", ADD_OFFSETS, add_offsets(), before=(INIT,)),
    case("add offsets: again", ADD_OFFSETS, add_offsets(), before=(INIT, ADD_GROUP)),
    case("add offsets: empty group", ADD_OFFSETS, add_offsets(""), before=(INIT,)),
    case("add offsets: old epoch", ADD_OFFSETS, add_offsets(epoch="{epoch-1}"), before=TWICE),
    case("add offsets: epoch to come", ADD_OFFSETS, add_offsets(epoch="{epoch+1}"), before=TWICE),
    case("add offsets: another producer id", ADD_OFFSETS, add_offsets(pid="{pid+9}"),
         before=TWICE),
    case("add offsets: unknown id", ADD_OFFSETS, add_offsets(pid=4711, epoch=0)),
    case("add offsets: empty id", ADD_OFFSETS, add_offsets(txn="", pid=4711, epoch=0), to=1),
    case("add offsets: wrong broker", ADD_OFFSETS, add_offsets(pid=4711, epoch=0), to=ELSEWHERE),

    case("end: commit", END, end(), before=OPEN_V1),
    case("end: abort", END, end(False), before=OPEN_V1),
    case("end: commit of V2", END, end(), before=OPEN_V2),
    case("end: abort of V2", END, end(False), before=OPEN_V2),
    case("end: commit without records", END, end(), before=OPEN),
    case("end: commit of nothing", END, end(), before=(INIT,)),
    case("end: abort of nothing", END, end(False), before=(INIT,)),
    case("end: commit again", END, end(), before=DONE),
    case("end: abort after a commit", END, end(False), before=DONE),
    case("end: abort again", END, end(False), before=ABORTED),
    case("end: commit after an abort", END, end(), before=ABORTED),
    case("end: commit of V2 again", END, end(epoch="{epoch-1}"), before=DONE_V2),
    case("end: abort after a commit of V2", END, end(False, epoch="{epoch-1}"), before=DONE_V2),
    case("end: next one of V2, commit of nothing", END, end(), before=DONE_V2),
    case("end: next one of V2, abort of nothing", END, end(False), before=DONE_V2),
    case("end: last epoch after a commit", END, end(epoch=32766), before=DONE),
    case("end: epoch before a commit of V1", END, end(epoch="{epoch-1}"),
         before=(*TWICE, ADD, END_V1, COMPLETE)),
    case("end: old epoch", END, end(epoch="{epoch-1}"), before=(*TWICE, ADD)),
    case("end: epoch to come", END, end(epoch="{epoch+1}"), before=(*TWICE, ADD)),
    case("end: epoch -1", END, end(epoch=-1), before=OPEN),
    case("end: another producer id", END, end(pid="{pid+9}"), before=OPEN),
    case("end: unknown id", END, end(pid=4711, epoch=0)),
    case("end: empty id", END, end(txn="", pid=4711, epoch=0), to=1),
    case("end: wrong broker", END, end(pid=4711, epoch=0), to=ELSEWHERE),

    case("describe: open", DESCRIBE, {"transactional_ids": ["{txn}"]}, before=OPEN_V1),
    case("describe: its topics", DESCRIBE, {"transactional_ids": ["{txn}"]},
         before=(INIT, Ask(ADD_PARTITIONS, add(("{topic}", [2, 0]), ("{fresh}", [1])), 3, to=AT))),
    case("describe: a group's", DESCRIBE, {"transactional_ids": ["{txn}"]},
         before=(INIT, ADD_GROUP)),
    case("describe: wrong broker", DESCRIBE, {"transactional_ids": ["{txn}"]}, to=ELSEWHERE,
         before=OPEN),
    case("describe: twice", DESCRIBE, {"transactional_ids": ["{txn}", "{txn}"]}, before=OPEN),
    case("list: open", LIST, listed(), "2", before=OPEN),
    case("list: wrong broker", LIST, listed(), "2", before=OPEN, to=ELSEWHERE),
    case("list: by state", LIST, listed(state_filters=["Ongoing"]), "2", before=OPEN),
    case("list: by another state", LIST, listed(state_filters=["Empty", "Nowhere"]), "2",
         before=OPEN),
    case("list: by producer", LIST, listed(producer_id_filters=["{pid}"]), "2", before=OPEN),
    case("list: by another producer", LIST, listed(producer_id_filters=["{pid+9}", -1]), "2",
         before=OPEN),
    case("list: by duration", LIST, listed(duration_filter=60_000), "2", before=OPEN),
    case("list: duration 0", LIST, listed(duration_filter=0), "2", before=(*OPEN, Sleep(20))),
    case("list: duration of one that is not open", LIST, listed(duration_filter=0), "2",
         before=(*DONE, Sleep(20))),
    case("list: a part of the id", LIST, {"transactional_id_pattern": "tx"}, "2", before=OPEN),
    case("list: a pattern", LIST, {"transactional_id_pattern": "{txn}|none"}, "2", before=OPEN),
    case("list: look-ahead", LIST, {"transactional_id_pattern": "(?=a)"}, "2", to=1),
    case("list: back-reference", LIST, {"transactional_id_pattern": "(a)\\1"}, "2", to=1),
    case("list: possessive", LIST, {"transactional_id_pattern": "a++"}, "2", to=1),
    case("list: Unicode class", LIST, {"transactional_id_pattern": "\\pL+none"}, "2", to=1),
    case("list: by producer, v0", LIST, {"producer_id_filters": ["{pid}"]}, "0-1", before=OPEN),

    case("find: a transaction", FIND,
         {"key_type": 1, "key": "{txn}", "coordinator_keys": ["{txn}"]}, "1+", to=1, mask=BY_HASH),
    case("find: transactions", FIND, {"key_type": 1, "coordinator_keys": ["{txn}", "", "{txn}"]},
         "4+", to=1, mask=BY_HASH),
    case("find: no key", FIND, {"key_type": 1, "key": "", "coordinator_keys": []}, "1+", to=1,
         mask=BY_HASH),
)  # fmt: skip
