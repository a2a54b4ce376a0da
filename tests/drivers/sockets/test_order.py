"""Whatever happens to a link, its messages keep their order and none arrives twice."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kcluster.contract import PeerDisconnected, PeerRequest
from kcluster.events.network import LinkEvent
from kcluster.network.fabric import Arrives, Fabric
from kcluster.network.shapes import DISTRIBUTIONS, RESET_US, LinkShape
from tests.runtime.net import Net

SHAPES = st.builds(
    LinkShape,
    latency_us=st.integers(0, 50_000),
    jitter_us=st.integers(0, 50_000),
    distribution=st.sampled_from(DISTRIBUTIONS),
    loss=st.sampled_from((0.0, 0.0, 0.1, 0.9)),
    bytes_per_s=st.sampled_from((0, 0, 10_000, 1_000_000)),
)
STEPS = st.lists(
    st.one_of(
        st.just("send"),
        st.just("send"),
        st.integers(0, 300_000),
        SHAPES,
        st.sampled_from(("cut", "heal", "clear")),
    ),
    max_size=60,
)


def shaped_net(seed: int) -> Net:
    """Its links draw from a generator of their own."""
    net = Net()
    rng = Random(seed)
    net.fabric._streams = lambda name: rng
    return net


def numbers(net: Net) -> list[int]:
    return [event.request_id for event in net.got(2) if isinstance(event, PeerRequest)]


@settings(max_examples=150)
@given(st.integers(0, 1_000), STEPS)
def test_link__keeps_message_order_under_every_fault(seed: int, steps: list[Any]) -> None:
    net = shaped_net(seed)
    sent = 0
    is_lossless = True
    for step in steps:
        match step:
            case "send":
                sent += 1
                net.ask(1, 2, sent, "ignore")
            case "cut":
                net.links.cut(1, 2)
                is_lossless = False
            case "heal":
                net.links.heal()
            case "clear":
                net.fabric.clear_shapes()
            case LinkShape():
                net.links.shape((1,), (2,), step)
                is_lossless = is_lossless and not step.loss
            case _:
                net.dispatcher.at(net.dispatcher.now_us + step)
    net.links.heal()
    net.dispatcher.at(net.dispatcher.now_us + 100 * RESET_US)
    arrived = numbers(net)
    assert arrived == sorted(set(arrived))
    assert len(arrived) == sent or not is_lossless


def test_loss__beyond_retransmission_resets_both_ends() -> None:
    net = shaped_net(1)
    net.links.shape((1,), (2,), LinkShape(loss=0.999_999), one_way=True)
    net.ask(1, 2, 1, "ignore")
    net.fabric.clear_shapes()
    net.fabric.shape(1, 2, LinkShape(latency_us=1_000))
    net.ask(1, 2, 2, "ignore")
    net.dispatcher.at(RESET_US - 1)
    assert net.got(2) == [], "later messages wait"
    net.dispatcher.at(RESET_US)
    assert net.got(1) == [PeerDisconnected(2)]
    net.dispatcher.at(RESET_US + 1_000)
    assert net.got(2) == [PeerRequest(1, 2, "ignore"), PeerDisconnected(1)]
    assert [note.event.kind for note in net.notes if isinstance(note.event, LinkEvent)] == [
        "link_reset"
    ]


def test_fabric__draws_random_numbers_only_for_links_that_need_them() -> None:
    class Counting:
        drawn = 0

        def random(self) -> float:
            self.drawn += 1
            return 0.5

    rng: Any = Counting()
    fabric = Fabric((1, 2, 3), streams=lambda name: rng)
    fabric.shape(1, 2, LinkShape(1_000))
    fabric.shape(1, 3, LinkShape(1_000, 500, "uniform"))
    assert (fabric.transmit((1, 2)), fabric.transmit((2, 3))) == (Arrives(1_000), Arrives(0))
    assert rng.drawn == 0
    assert (fabric.transmit((1, 3)), rng.drawn) == (Arrives(1_000), 1)
