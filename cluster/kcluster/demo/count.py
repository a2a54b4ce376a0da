"""The demo's ledger: the lines that were sent, acked and read, for an exact count.

Owns: the outcome of every line, and the places at which it was read.  Never: talks to a cluster.
Kafka: VerifiableProducer and VerifiableConsumer; Jepsen's words (acked, failed, lost, duplicated).

A line's number is its record's key.  Client threads call the `on_…` methods, each method from one
thread; `count` is called when they have stopped.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct


class DemoCount(Struct, frozen=True):
    """The verdict in numbers.

    `lost`: lines acked and never read.  `duplicated`: lines that are in the log more than once.
    `read_again`: deliveries of a record that had been delivered before, after a rebalance without a
    commit; this is the promise of at-least-once delivery, not a fault of the log.  `failed`: sends
    that ended in an error.  `failed_but_read`: failed sends whose line is in the log.  `changed`:
    lines whose text differs between sending and reading.
    """

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


class DemoLedger:
    """The outcomes of one run's `lines`; line numbers count from 0."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.sent = 0
        self.acked: dict[int, tuple[int, int]] = {}
        """The acks: line number -> (partition, offset)."""
        self.failed: dict[int, str] = {}
        self.places: dict[int, set[tuple[int, int]]] = {}
        """The places of lines that were read: line number -> each (partition, offset)."""
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
        """Record that a record was read from the log; its key is `key(number)`."""
        number = int(key)
        if self.lines[number].encode() != value:
            self.changed.add(number)
        places = self.places.setdefault(number, set())
        if (partition, offset) in places:
            self.read_again += 1
        places.add((partition, offset))

    def busiest_partition(self) -> int:
        """The partition with the most acks; of several, the lowest."""
        counts = self.acked_of_partition.copy()  # the producer's thread still changes the original
        return min(counts, key=lambda partition: (-counts[partition], partition), default=0)

    def is_complete(self) -> bool:
        """Whether every line sent has an outcome, and every acked line has been read."""
        answered = len(self.acked) + len(self.failed) >= self.sent
        return answered and all(number in self.places for number in list(self.acked))

    def count(self) -> DemoCount:
        """The verdict so far."""
        read = self.places
        return DemoCount(
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


def count_lines(count: DemoCount) -> list[str]:
    """The lines of the count that the demo prints; rare numbers are shown only if they are not
    zero."""
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
            f"{count.failed_but_read:,} of them are in the log nevertheless (unknown outcome)"
        )
    if count.read_again:
        lines.append(f"delivered again after a rebalance (same offsets): {count.read_again:,}")
    for word, numbers_of in (("lost", count.lost), ("changed", count.changed)):
        if numbers_of:
            shown = ", ".join(str(number + 1) for number in numbers_of[:10])
            more = f" … and {len(numbers_of) - 10} more" if len(numbers_of) > 10 else ""
            lines.append(f"{word}: lines {shown}{more}")
    return lines
