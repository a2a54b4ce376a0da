"""The count is exact: lost, duplicated and delivered again are distinguished."""

from __future__ import annotations

from kcluster.demo.count import DemoLedger, count_lines


def ledger_after(lines: int = 3) -> DemoLedger:
    ledger = DemoLedger([f"line {number}" for number in range(lines)])
    for number in range(lines):
        ledger.on_sent()
        ledger.on_acked(number, number % 2, number // 2)
    return ledger


def read(ledger: DemoLedger, number: int, partition: int, offset: int) -> None:
    ledger.on_read(ledger.key(number), f"line {number}".encode(), partition, offset)


def test_count__all_acked_and_read() -> None:
    ledger = ledger_after()
    for number in range(3):
        read(ledger, number, number % 2, number // 2)
    count = ledger.count()
    assert ledger.is_complete()
    assert count.nothing_acked_was_lost
    assert count_lines(count) == ["sent 3  acked 3  read 3  lost 0  duplicated 0"]


def test_count__an_acked_line_that_is_never_read_is_lost() -> None:
    ledger = ledger_after()
    read(ledger, 0, 0, 0)
    read(ledger, 1, 1, 0)
    count = ledger.count()
    assert count.lost == (2,)
    assert not ledger.is_complete()
    assert not count.nothing_acked_was_lost
    assert count_lines(count)[-1] == "lost: lines 3"


def test_count__the_same_line_at_two_offsets_is_duplicated() -> None:
    ledger = ledger_after(1)
    read(ledger, 0, 0, 0)
    read(ledger, 0, 0, 7)
    assert ledger.count().duplicated == (0,)
    assert ledger.count().read_again == 0


def test_count__the_same_offset_twice_is_delivery_again_not_a_duplicate() -> None:
    ledger = ledger_after(1)
    read(ledger, 0, 0, 0)
    read(ledger, 0, 0, 0)
    count = ledger.count()
    assert count.duplicated == ()
    assert count.read_again == 1
    assert count.nothing_acked_was_lost


def test_count__a_line_whose_text_changed_is_lost() -> None:
    ledger = ledger_after(1)
    ledger.on_read(ledger.key(0), b"line X", 0, 0)
    assert ledger.count().changed == (0,)
    assert not ledger.count().nothing_acked_was_lost


def test_count__a_failed_send_is_unknown_not_lost() -> None:
    ledger = DemoLedger(["a", "b"])
    for number in range(2):
        ledger.on_sent()
        ledger.on_failed(number, "KafkaTimeoutError")
    ledger.on_read(ledger.key(1), b"b", 0, 0)
    count = ledger.count()
    assert count.nothing_acked_was_lost
    assert (count.failed, count.failed_but_read) == (2, 1)
    assert "2 sends ended in an error; 1 of them" in count_lines(count)[1]


def test_busiest_partition__most_acks_then_the_lowest() -> None:
    ledger = DemoLedger([])
    for partition, acks in ((3, 2), (1, 5), (0, 5)):
        for offset in range(acks):
            ledger.on_acked(100 * partition + offset, partition, offset)
    assert ledger.busiest_partition() == 0


def test_ledger__busiest_partition_tolerates_a_concurrent_ack() -> None:
    ledger = ledger_after()

    class AckedMeanwhile(dict[int, int]):
        """The producer's thread runs while another one reads the counts."""

        def __getitem__(self, partition: int) -> int:
            ledger.acked_of_partition.setdefault(7, 1)
            return super().__getitem__(partition)

    ledger.acked_of_partition = AckedMeanwhile(ledger.acked_of_partition)
    assert ledger.busiest_partition() == 0
