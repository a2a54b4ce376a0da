"""Links that are not perfect: latency, jitter, loss, bandwidth; never out of order."""

from __future__ import annotations

from random import Random

import pytest

from cluster.network.fabric import Fabric
from cluster.network.shapes import MESSAGE_BYTES, Shape, ShapedLink


def delays(shape: Shape, count: int = 4_000, seed: int = 1) -> list[int]:
    link, rng = ShapedLink(shape), Random(seed)
    return [link.delay_us(now, b"", rng) for now in range(0, count * 10_000_000, 10_000_000)]


@pytest.mark.parametrize("distribution", ["uniform", "normal"])
def test_jitter__spreads_about_the_latency(distribution: str) -> None:
    drawn = delays(Shape(20_000, 5_000, distribution))
    mean = sum(drawn) / len(drawn)
    assert 19_000 < mean < 21_000
    assert len(set(drawn)) > 1_000
    assert min(drawn) >= 0


def test_jitter__exponential_has_a_long_tail_and_its_mean() -> None:
    drawn = delays(Shape(10_000, 5_000, "exponential"))
    mean = sum(drawn) / len(drawn)
    assert min(drawn) == 10_000
    assert 14_000 < mean < 16_000
    assert max(drawn) > 30_000


def test_loss__is_sent_again_after_200_ms_and_doubling() -> None:
    drawn = delays(Shape(loss=0.5))
    assert {0, 200_000, 600_000, 1_400_000} <= set(drawn)
    share = sum(delay > 0 for delay in drawn) / len(drawn)
    assert 0.47 < share < 0.53


def test_bandwidth__messages_queue_behind_each_other() -> None:
    link = ShapedLink(Shape(bytes_per_s=1_000))
    rng = Random(1)
    message = bytes(1_000 - MESSAGE_BYTES)
    assert [link.delay_us(0, message, rng) for _ in range(3)] == [1_000_000, 2_000_000, 3_000_000]
    assert link.delay_us(10_000_000, message, rng) == 1_000_000


def test_fabric__a_shape_is_one_way_and_goes_again() -> None:
    fabric = Fabric((1, 2), rng=Random(1))
    fabric.shape(1, 2, Shape(5_000))
    assert (fabric.delay_us(1, 2), fabric.delay_us(2, 1), fabric.is_plain) == (5_000, 0, False)
    fabric.shape(1, 2, None)
    assert (fabric.delay_us(1, 2), fabric.is_plain) == (0, True)
