"""All programs with a bug, by name.

Owns: the list, and what a find of each must say.  Never: has a program (programs/ does), runs one.
Kafka: no counterpart.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

PROGRAMS: Final = Path(__file__).parent / "programs"


class ProgramBug(Struct, frozen=True):
    """A program with a bug and its repaired twin, one test of each.  `expects`: the words of the
    right find."""

    name: str
    expects: str

    @property
    def file(self) -> Path:
        """Its file."""
        return PROGRAMS / f"{self.name}.py"

    @property
    def text(self) -> str:
        """Its text, with that of the helpers."""
        return self.program + (PROGRAMS / "shop.py").read_text("utf-8")

    @property
    def bug(self) -> str:
        """What is wrong with it: the first line of its file."""
        described = ast.get_docstring(ast.parse(self.program))
        assert described is not None, self.file
        return described.partition("\n\n")[0]

    @property
    def library(self) -> str:
        """The client library whose calls have the bug."""
        is_async = "aiokafka" in self.program or "async_" in self.program
        return "aiokafka" if is_async else "kafka-python"

    @property
    def program(self) -> str:
        """Its text alone."""
        return self.file.read_text("utf-8")


_NOT_CHARGED: Final = "an order was not charged"
_NOT_SENT: Final = "an order was never sent"
_NO_BILL: Final = "an order has no bill"
_TWICE: Final = "an order has arrived twice"

GROUPS: Final[Mapping[str, Mapping[str, str]]] = {
    "What is committed, and when": {
        "pool": _NOT_CHARGED,
        "tasks": _NOT_CHARGED,
        "commit_first": _NOT_CHARGED,
        "queue_worker": _NOT_CHARGED,
        "own_offsets": _NOT_CHARGED,
        "one_offset": _NOT_CHARGED,
        "latest": _NOT_CHARGED,
        "window": "an order is in no sum",
        "at_last": _NO_BILL,
        "skipped": _NO_BILL,
        "unawaited": _NO_BILL,
        "dead_letter": "an order is neither charged nor a dead letter",
        "tracker": "the tracker has lost its place",
        "sought_once": "an order has two bills",
        "paused": _NOT_CHARGED,
        "dashboard": _NOT_CHARGED,
        "late_binding": "an order was not marked as billed",
        "replay": "an order was not checked again",
        "lag": "a lag is negative",
    },
    "What a program remembers": {
        "remembered": "an order was charged twice",
        "in_progress": "an order is in progress for ever",
        "totals": "a total is too small",
        "buffer": "a write has an order twice",
        "table": "a price is missing from the table",
        "reply": "a reply was missed",
        "deduplicated": "an order was charged twice",
        "empty_poll": "a bill has no price",
    },
    "What is sent, and what comes of it": {
        "counted": "an order has not arrived",
        "acks_one": "an acked order is gone",
        "reordered": "orders have changed places",
        "doubled": _TWICE,
        "sent_again": _TWICE,
        "relay": _TWICE,
        "half_batch": _NOT_SENT,
        "outbox": _NOT_SENT,
        "dual_write": "an event has no row",
        "halves": "a debit has no credit",
        "retry_topic": "a customer has an old address",
        "partitioner": "a customer has two partitions",
        "held_lock": _NO_BILL,
    },
    "Transactions": {
        "aborted": _NO_BILL,
        "uncommitted": "a debit has no credit",
        "outside": "an order has two bills",
        "hanging": "a bill cannot be read",
    },
    "Who does what": {
        "singleton": "two jobs ran at once",
        "back_off": "two members had the same order",
        "limiter": "a customer has got two coupons",
        "lazy": "a mail was never sent",
        "instance_id": "two members had one id",
        "lease": "the total is wrong",
        "dead_thread": _NOT_CHARGED,
    },
}
"""The words of the right find, by the name of the program and what the bug is about."""
CATALOG: Final = {
    name: ProgramBug(name, expects)
    for programs in GROUPS.values()
    for name, expects in programs.items()
}
"""The programs by their name."""
OF_THE_REVIEW: Final = (
    *("pool", "dual_write", "aborted", "tracker", "sought_once", "counted", "reordered", "table"),
    *("singleton", "half_batch", "tasks", "doubled", "back_off", "totals", "dead_letter"),
    "limiter",
)
"""Those that plain chance was tried on before there was a search."""
