"""What survives a broker's process."""

from __future__ import annotations

from kcluster.events.brokers import LostRange
from kcluster.partition.disk import Disk
from tests.partition.records_for_tests import TOPIC_ID, append, sent


def test_disk__create_returns_the_existing_log() -> None:
    disk = Disk()
    log = disk.create(TOPIC_ID, 3)
    assert disk.create(TOPIC_ID, 3) is log
    assert disk.log(TOPIC_ID, 3) is log
    assert disk.log(TOPIC_ID, 4) is None
    assert disk.remove(TOPIC_ID, 3)
    assert not disk.remove(TOPIC_ID, 3)


def test_disk__power_loss_takes_the_unflushed_tails() -> None:
    disk = Disk()
    disk.clean_shutdown = True
    safe, unsafe = disk.create(TOPIC_ID, 0), disk.create(TOPIC_ID, 1, "orders")
    append(safe, sent(2))
    disk.flush()
    append(unsafe, sent(3))
    assert disk.size_bytes == safe.size_bytes + unsafe.size_bytes
    assert disk.lose_unflushed() == (LostRange("orders", 1, 0, 3),)
    assert (safe.log_end_offset, unsafe.log_end_offset) == (2, 0)
    assert not disk.clean_shutdown


def test_disk__wipe_leaves_nothing() -> None:
    disk = Disk()
    append(disk.create(TOPIC_ID, 0), sent(2))
    disk.broker_epoch = 5
    disk.clean_shutdown = True
    disk.wipe()
    assert (disk.logs, disk.size_bytes, disk.broker_epoch) == ({}, 0, -1)
    assert not disk.clean_shutdown


def test_disk__logs_of_a_removed_directory_are_in_the_first() -> None:
    disk = Disk()
    disk.mount(("/a", "/b", "/a"))
    assert disk.dirs == ("/a", "/b")
    for partition in range(2):
        disk.create(TOPIC_ID, partition)
    assert [disk.dir_of((TOPIC_ID, partition)) for partition in range(2)] == ["/a", "/b"]
    disk.mount(("/a",))
    assert disk.dir_of((TOPIC_ID, 1)) == "/a"


def test_disk__a_removed_log_leaves_no_trace_of_its_directory() -> None:
    disk = Disk()
    disk.mount(("/a", "/b"))
    disk.create(TOPIC_ID, 0)
    disk.move((TOPIC_ID, 0), "/b")
    disk.remove(TOPIC_ID, 0)
    disk.create(TOPIC_ID, 0)
    assert disk.dir_of((TOPIC_ID, 0)) == "/a"
