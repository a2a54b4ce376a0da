"""Imperfect links: latency, jitter, loss, bandwidth; never out of order."""

from __future__ import annotations

from random import Random

import pytest

from kcluster.contract import Request
from kcluster.network.fabric import Arrives, Fabric, Resets
from kcluster.network.shapes import MESSAGE_BYTES, RESET_US, Layer, LinkShape, size_of
from tests.rig.requests import batch, produce_request


def outcomes(shape: LinkShape, count: int) -> list[int | None]:
    link, rng = Layer(shape), Random(1)
    return [link.delay_us(now, b"", rng) for now in range(0, count * 10_000_000, 10_000_000)]


def delays(shape: LinkShape, count: int = 4_000) -> list[int]:
    return [delay for delay in outcomes(shape, count) if delay is not None]


@pytest.mark.parametrize("distribution", ["uniform", "normal"])
def test_jitter__spreads_about_the_latency(distribution: str) -> None:
    drawn = delays(LinkShape(20_000, 5_000, distribution))
    mean = sum(drawn) / len(drawn)
    assert 19_000 < mean < 21_000
    assert len(set(drawn)) > 1_000
    assert min(drawn) >= 0


def test_jitter__exponential_has_a_long_tail_and_its_mean() -> None:
    drawn = delays(LinkShape(10_000, 5_000, "exponential"))
    mean = sum(drawn) / len(drawn)
    assert min(drawn) == 10_000
    assert 14_000 < mean < 16_000
    assert max(drawn) > 30_000


def test_loss__is_sent_again_after_200_ms_and_doubling() -> None:
    drawn = delays(LinkShape(loss=0.5))
    assert {0, 200_000, 600_000, 1_400_000} <= set(drawn)
    share = sum(delay != 0 for delay in drawn) / len(drawn)
    assert 0.47 < share < 0.53
    assert max(drawn) == 25_400_000, "seven times, and the last comes after 25.4 s"


def test_loss__beyond_retransmission_is_permanent() -> None:
    drawn = outcomes(LinkShape(loss=0.9), count=1_000)
    share = drawn.count(None) / len(drawn)
    assert 0.38 < share < 0.48, "0.9 to the 8th"
    fabric = Fabric((1, 2), streams=lambda name: Random(1))
    fabric.shape(1, 2, LinkShape(loss=0.999_999))
    assert fabric.transmit((1, 2), 5) == Resets(5 + RESET_US)


def test_bandwidth__messages_queue_behind_each_other() -> None:
    link = Layer(LinkShape(bytes_per_s=1_000))
    rng = Random(1)
    message = bytes(1_000 - MESSAGE_BYTES)
    assert [link.delay_us(0, message, rng) for _ in range(3)] == [1_000_000, 2_000_000, 3_000_000]
    assert link.delay_us(10_000_000, message, rng) == 1_000_000


def test_bandwidth__counts_the_records() -> None:
    records = batch(bytes(5_000))
    request = Request(1, 0, 11, 1, "x", produce_request("orders", 0, records))
    assert len(records) <= size_of(request) <= len(records) + 2 * MESSAGE_BYTES


def test_fabric__a_shape_is_one_way_and_can_be_removed() -> None:
    fabric = Fabric((1, 2), streams=lambda name: Random(1))
    layer = fabric.shape(1, 2, LinkShape(5_000))
    assert (fabric.transmit((1, 2)), fabric.transmit((2, 1))) == (Arrives(5_000), Arrives(0))
    assert not fabric.is_unimpaired
    assert fabric.remove_layer(1, 2, layer)
    assert (fabric.transmit((1, 2)), fabric.is_unimpaired) == (Arrives(0), True)
    assert not fabric.remove_layer(1, 2, layer), "it is removed"


def test_fabric__shapes_add_up_with_each_other_and_with_the_topology() -> None:
    fabric = Fabric((1, 2), default_latency_ms=1, streams=lambda name: Random(1))
    slow = fabric.shape(1, 2, LinkShape(5_000))
    fabric.shape(1, 2, LinkShape(bytes_per_s=MESSAGE_BYTES * 1_000))
    assert fabric.transmit((1, 2), 0, b"") == Arrives(7_000)
    assert fabric.remove_layer(1, 2, slow)
    assert fabric.transmit((1, 2), 1_000_000, b"") == Arrives(1_002_000)
    assert fabric.clear_shapes(2) == ((1, 2),)
    assert fabric.transmit((1, 2), 0, b"") == Arrives(1_000)
