from __future__ import annotations

from kcluster.network.fabric import CUT, Arrives, Fabric


def test_fabric__is_unimpaired_until_something_is_slow_or_cut() -> None:
    fabric = Fabric((3, 1, 2))
    seen = [fabric.is_unimpaired]
    for change in (
        lambda: fabric.cut(1, 2),
        fabric.heal,
        lambda: fabric.set_latency(1, 2, 0.25),
        lambda: fabric.set_latency(1, 2, 0),
    ):
        change()
        seen.append(fabric.is_unimpaired)
    assert seen == [True, False, True, False, True]
    assert not Fabric((1, 2), default_latency_ms=1).is_unimpaired


def test_fabric__latency_is_kept_in_microseconds_and_may_differ_by_direction() -> None:
    fabric = Fabric((1, 2, 3), default_latency_ms=2)
    fabric.set_latency(1, 2, 0.25, one_way=True)
    assert (fabric.transmit((1, 2)), fabric.transmit((2, 1))) == (Arrives(250), Arrives(2000))


def test_fabric__a_one_way_cut_leaves_the_way_back() -> None:
    fabric = Fabric((1, 2, 3))
    assert fabric.cut(1, 2, one_way=True) == ((1, 2),)
    assert (fabric.transmit((1, 2)), fabric.transmit((2, 1))) == (CUT, Arrives(0))
    assert fabric.cut(1, 2) == ((2, 1),)
    assert fabric.cuts == ((1, 2), (2, 1))


def test_heal__undoes_all_cuts_those_of_a_node_or_those_of_a_pair() -> None:
    fabric = Fabric((1, 2, 3))
    fabric.cut(1, 2)
    fabric.cut(1, 3)
    fabric.cut(2, 3, one_way=True)
    assert fabric.heal(1, 2) == ((1, 2), (2, 1))
    assert fabric.heal(1) == ((1, 3), (3, 1))
    assert fabric.heal() == ((2, 3),)
    assert fabric.cuts == ()
