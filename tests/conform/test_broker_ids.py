"""The brokers of the cases, whatever ids the cluster gives them."""

from __future__ import annotations

from kcluster.conform.broker_ids import SAME_IDS, BrokerIds


def test_ids__are_numbered_in_their_order() -> None:
    ids = BrokerIds((30, 10, 20))
    assert [ids.to_cluster(number) for number in (1, 2, 3)] == [10, 20, 30]
    assert [ids.to_case(id_) for id_ in (10, 20, 30)] == [1, 2, 3]


def test_ids__an_id_that_no_broker_has_stays_one() -> None:
    ids = BrokerIds((0, 1, 2))
    assert ids.to_cluster(9) == 9
    assert ids.to_cluster(0) == 3, "0 is a broker's there, so another id stands for it"
    assert {ids.to_case(ids.to_cluster(number)) for number in range(-2, 9)} == {*range(-2, 9)}


def test_ids__the_controller_may_come_first() -> None:
    ids = BrokerIds((1, 2, 3), first=3)
    assert [ids.to_cluster(number) for number in (1, 2, 3)] == [3, 1, 2]


def test_ids__of_fields_and_of_resources() -> None:
    ids = BrokerIds((10, 20))
    assert ids.field_to_cluster("broker_ids", [1, 2, 7]) == [10, 20, 7]
    assert ids.field_to_case("leader_id", 20) == 2
    assert ids.field_to_case("leader_epoch", 20) == 20
    assert ids.resource_to_cluster(4, "2") == "20"
    assert ids.resource_to_cluster(2, "2") == "2", "a topic may have this name"
    assert SAME_IDS.field_to_cluster("broker_ids", [1]) == [1]
