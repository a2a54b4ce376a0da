"""DescribeProducers, DescribeTransactions, ListTransactions.

Owns: these cases.  Never: sends them (running.py).
"""

from __future__ import annotations

from kcluster.conform.bodies import batch, produce
from kcluster.conform.case import Ask, Case
from kcluster.json_types import JsonObject
from kcluster.protocol.apis import ApiKey

PRODUCERS, TRANSACTIONS = ApiKey.DESCRIBE_PRODUCERS, ApiKey.DESCRIBE_TRANSACTIONS
LIST = ApiKey.LIST_TRANSACTIONS
STATES = (
    "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead",
    "PrepareEpochFence",
)  # fmt: skip


def described(*topics: tuple[str, list[int]]) -> JsonObject:
    named = [{"name": name, "partition_indexes": partitions} for name, partitions in topics]
    return {"topics": named}


def sent(producer_id: int, epoch: int, sequence: int, count: int) -> Ask:
    records = batch(count, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
    return Ask(ApiKey.PRODUCE, produce("{fresh}", "{fresh_id}", records))


TWO = (
    Ask(ApiKey.PRODUCE, produce("{fresh}", "{fresh_id}")), sent(7001, 3, 0, 2), sent(7001, 3, 2, 2),
    sent(7002, 0, 5, 1), sent(7001, 4, 0, 1),
)  # fmt: skip

CASES = (
    Case("producers", PRODUCERS, described(("{fresh}", [0])), before=TWO),
    Case("producers as a follower has them", PRODUCERS, described(("{topic}", [1]))),
    Case("no producers", PRODUCERS, described(("{fresh}", [0]))),
    Case("producers of unknown partitions", PRODUCERS, described(("{fresh}", [9, -1, 0]))),
    Case("producers of an unknown topic", PRODUCERS, described(("{missing}", [0, 1]))),
    Case("producers of invalid topics", PRODUCERS, described(("a b", [0]), ("", [0]))),
    Case("producers of nothing", PRODUCERS, described()),
    Case("producers of no partitions", PRODUCERS, described(("{fresh}", []))),
    Case(
        "producers twice", PRODUCERS, described(("{fresh}", [0, 0]), ("{topic}", [1])), before=TWO
    ),

    Case("no such transactions", TRANSACTIONS, {"transactional_ids": ["{group}", "", "{group}"]}),
    Case("no transactions asked for", TRANSACTIONS, {"transactional_ids": []}),
    Case("transactions", LIST),
    Case(
        "transactions, filtered", LIST,
        {"state_filters": list(STATES), "producer_id_filters": [1, -1], "duration_filter": 5,
         "transactional_id_pattern": "a.*"},
    ),
    Case("transactions in unknown states", LIST, {"state_filters": ["Gone", "ongoing", ""]}),
    Case("transactions, no pattern", LIST, {"transactional_id_pattern": "a("}),
    Case("transactions, no pattern and unknown states", LIST, {
        "transactional_id_pattern": "a(", "state_filters": ["Gone"],
    }),
    Case("transactions, empty pattern", LIST, {"transactional_id_pattern": ""}),
)  # fmt: skip
