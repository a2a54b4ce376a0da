"""The demo's ledger: what was sent, acked and read, line by line, so that the count is exact.

Owns: which sequence numbers were acked and read, and where.  Never: talks to a cluster.
Kafka: VerifiableProducer and VerifiableConsumer; Jepsen's words (acked, failed, lost, duplicated).

Every line carries its number as the record's key.  Client threads call the `on_…` methods, each
kind from one thread; `count` is called when they have stopped.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct


class OrderCount(Struct, frozen=True):
    """The verdict in numbers.  `lost`: acked, never read.  `duplicated`: lines that are in the log
    more than once.  `read_again`: the same record delivered twice (a group rebalanced before it
    had committed): at-least-once, no fault of the log.  `failed`: sends that ended in an error;
    `failed_but_read`: those of them that are in the log all the same.  `changed`: lines that came
    back other than they were sent."""

    sent: int
    acked: int
    failed: int
    read: int
    lost: tuple[int, ...]
    duplicated: tuple[int, ...]
    failed_but_read: int
    read_again: int
    changed: tuple[int, ...]

    @property
    def nothing_acked_was_lost(self) -> bool:
        return not self.lost and not self.changed


class OrderLedger:
    """The book-keeping of one run over `lines`; line numbers count from 0."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.sent = 0
        self.acked: dict[int, tuple[int, int]] = {}
        """Line number -> (partition, offset) of its ack."""
        self.failed: dict[int, str] = {}
        self.places: dict[int, set[tuple[int, int]]] = {}
        """Line number -> every (partition, offset) at which it was read."""
        self.acked_of_partition: dict[int, int] = {}
        self.read_again = 0
        self.changed: set[int] = set()

    @staticmethod
    def key(number: int) -> bytes:
        """The record key of a line."""
        return b"%07d" % number

    def on_sent(self) -> None:
        self.sent += 1

    def on_acked(self, number: int, partition: int, offset: int) -> None:
        self.acked[number] = (partition, offset)
        self.acked_of_partition[partition] = self.acked_of_partition.get(partition, 0) + 1

    def on_failed(self, number: int, error: str) -> None:
        self.failed[number] = error

    def on_read(self, key: bytes, value: bytes, partition: int, offset: int) -> None:
        """A record came out of the log; `key` as made by `key`."""
        number = int(key)
        if self.lines[number].encode() != value:
            self.changed.add(number)
        places = self.places.setdefault(number, set())
        if (partition, offset) in places:
            self.read_again += 1
        places.add((partition, offset))

    def busiest_partition(self) -> int:
        """The partition with the most acks; the lowest of equals."""
        counts = self.acked_of_partition.copy()  # the producer's thread goes on counting
        return min(counts, key=lambda partition: (-counts[partition], partition), default=0)

    def is_complete(self) -> bool:
        """Every line has been answered, and every acked one read."""
        answered = len(self.acked) + len(self.failed) >= self.sent
        return answered and all(number in self.places for number in list(self.acked))

    def count(self) -> OrderCount:
        """Add it all up."""
        read = self.places
        return OrderCount(
            sent=self.sent,
            acked=len(self.acked),
            failed=len(self.failed),
            read=len(read),
            lost=tuple(sorted(number for number in self.acked if number not in read)),
            duplicated=tuple(sorted(number for number in read if len(read[number]) > 1)),
            failed_but_read=sum(1 for number in self.failed if number in read),
            read_again=self.read_again,
            changed=tuple(sorted(self.changed)),
        )


def count_lines(count: OrderCount) -> list[str]:
    """The count as the demo prints it; the rarer numbers only when there is something to tell."""
    numbers = [
        ("sent", count.sent),
        ("acked", count.acked),
        ("read", count.read),
        ("lost", len(count.lost)),
        ("duplicated", len(count.duplicated)),
    ]
    lines = ["  ".join(f"{word} {number:,}" for word, number in numbers)]
    if count.failed:
        lines.append(
            f"not acked: {count.failed:,} sends ended in an error; "
            f"{count.failed_but_read:,} of them are in the log all the same (unknown outcome)"
        )
    if count.read_again:
        lines.append(f"delivered again after a rebalance (same offsets): {count.read_again:,}")
    for word, numbers_of in (("lost", count.lost), ("changed", count.changed)):
        if numbers_of:
            shown = ", ".join(str(number + 1) for number in numbers_of[:10])
            more = f" … {len(numbers_of) - 10} more" if len(numbers_of) > 10 else ""
            lines.append(f"{word}: lines {shown}{more}")
    return lines
