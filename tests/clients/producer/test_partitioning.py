from __future__ import annotations

from collections import Counter

import pytest

from kcluster.clients.ledger import Ledger
from kcluster.clients.producer.partitioning import murmur2, partition_of_key
from kcluster.clients.producer.producer import Producer
from kcluster.clients.producer.settings import ProducerPlan, ProducerSettings
from tests.clients.worlds import started


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2__has_the_values_of_kafkas_own_test(data: bytes, expected: int) -> None:
    assert murmur2(data) == expected & 0xFFFFFFFF
    assert 0 <= partition_of_key(data, 7) < 7


def partitions_of(workload: ProducerPlan, settings: ProducerSettings | None = None) -> list[int]:
    driver = started(partitions=3)
    ledger = Ledger()
    driver.add_client(Producer("p", ledger, workload, settings))
    driver.run_for(20_000)
    return [send.partition[1] for send in ledger.sends]


def test_partitioning__a_key_always_goes_to_the_same_partition() -> None:
    found = partitions_of(ProducerPlan(rate_per_s=100, count=60, keys=6))
    assert found[:6] * 10 == found
    assert len(set(found)) > 1


def test_partitioning__without_keys_it_stays_for_two_batches_worth_of_bytes() -> None:
    found = partitions_of(ProducerPlan(rate_per_s=100, count=400, size_bytes=200))
    stays = Counter(found)
    assert len(stays) > 1
    switches = [at for at in range(1, 400) if found[at] != found[at - 1]]
    assert len(switches) <= 400 * 280 // (2 * 16_384) + 1


def test_partitioning__explicit_and_round_robin_take_turns() -> None:
    assert partitions_of(ProducerPlan(rate_per_s=100, count=6, partitions=(2, 0))) == [2, 0] * 3
    round_robin = ProducerSettings(partitioner="round-robin")
    assert partitions_of(ProducerPlan(rate_per_s=100, count=6), round_robin) == [0, 1, 2] * 2
