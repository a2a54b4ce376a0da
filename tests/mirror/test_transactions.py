"""Which transactions of a real Kafka no coordinator will end: told by looks that take turns."""

from __future__ import annotations

from kcluster.mirror.transactions import TransactionWatch

ORDERS = ("orders", 0)
OPEN = (ORDERS, 7, 40)
"""Producer 7 has a transaction open from offset 40 on."""


def is_owned(watch: TransactionWatch) -> list[bool]:
    return [each.is_owned for each in watch.open_in(ORDERS)]


def test_watch__a_transaction_that_its_coordinator_knows_is_owned() -> None:
    watch = TransactionWatch()
    for _ in range(3):
        watch.take([OPEN], [(ORDERS, 7)])
        assert is_owned(watch) == [True]


def test_watch__hangs_if_no_coordinator_knew_it_between_two_looks() -> None:
    watch = TransactionWatch()
    watch.take([OPEN], [])
    assert is_owned(watch) == [True], "it may have ended since"
    watch.take([OPEN], [])
    assert is_owned(watch) == [False]
    assert watch.open_in(("orders", 1)) == []


def test_watch__one_that_began_between_two_looks_is_owned() -> None:
    watch = TransactionWatch()
    watch.take([(ORDERS, 7, 20)], [])
    watch.take([OPEN], [(ORDERS, 7)])
    assert is_owned(watch) == [True]


def test_watch__without_all_coordinators_nothing_hangs() -> None:
    watch = TransactionWatch()
    for _ in range(3):
        watch.take([OPEN], None)
    assert is_owned(watch) == [True]


def test_watch__lists_them_by_their_first_offsets() -> None:
    watch = TransactionWatch()
    watch.take([OPEN, (ORDERS, 9, 12), (("bills", 0), 3, 1)], [])
    assert [each.first_offset for each in watch.open_in(ORDERS)] == [12, 40]
