"""The transactions of sends: what their producers know of them, and which a late EndTxn committed.

Owns: the join of sends with transactions.jsonl.  Never: decides a record's fate (audit.py).
Kafka: no counterpart; KAFKA-17754 is such a late EndTxn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kcluster.clients.ledger import TransactionOutcome
from kcluster.clients.producer.settings import TRANSACTIONS_V1
from kcluster.events.network import RuleHit
from kcluster.events.transactions import TransactionEnded
from kcluster.pipeline.contents import SMALL_ROWS
from kcluster.pipeline.notes import field, is_a
from kcluster.pipeline.tables import Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_KEYS: Final = ("run", "producer", "number")


def with_transactions(sends: DataFrame, tables: Tables, count: int) -> DataFrame:
    """Sends with `transaction_outcome` and `transaction_error` (null without a transaction), and
    `ended_late`: whether a late EndTxn committed it.  `count`: the number of transactions."""
    from pyspark.sql import functions as F

    if not count:
        columns = {
            "transaction_outcome": "string",
            "transaction_error": "string",
            "ended_late": "boolean",
        }
        return sends.withColumns({name: F.lit(None).cast(t) for name, t in columns.items()})
    late = _ended_late(tables).withColumn("ended_late", F.lit(True))
    known = tables["transactions"].join(F.broadcast(late), list(_KEYS), "left")
    known = known.select(
        "run",
        "producer",
        F.col("number").alias("transaction"),
        F.col("outcome").alias("transaction_outcome"),
        F.col("error").alias("transaction_error"),
        "ended_late",
    )
    known = F.broadcast(known) if count <= SMALL_ROWS else known
    return sends.join(known, ["run", "producer", "transaction"], "left")


def _ended_late(tables: Tables) -> DataFrame:
    """The transactions of version 1 that were committed, although their producers called them
    aborted, after a rule had hit an earlier EndTxn.  (A hit names a client.id, no producer.)"""
    from pyspark.sql import functions as F

    notes = tables["notes"]
    first_hits = notes.where(is_a(RuleHit) & (field("api") == "EndTxn")).select(
        "run", F.col("at_ms").alias("hit_ms")
    )
    hits = first_hits.groupBy("run").agg(F.min("hit_ms").alias("hit_ms"))
    ends = notes.where(is_a(TransactionEnded) & field("committed")).select(
        "run", field("transactional_id"), F.col("at_ms").alias("decided_ms")
    )
    is_wrong = F.col("outcome") == TransactionOutcome.ABORTED.value
    return (
        tables["transactions"]
        .where((F.col("version") == TRANSACTIONS_V1) & is_wrong)
        .join(F.broadcast(hits), "run")
        .where("hit_ms < began_ms")
        .join(F.broadcast(ends), ["run", "transactional_id"])
        .where("decided_ms between began_ms and ended_ms")
        .select(*_KEYS)
        .distinct()
    )
