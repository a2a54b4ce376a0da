"""A leader dies, comes back, moves or is paused under the load of a real producer: no acked record
is lost, and with idempotence none is duplicated."""

from __future__ import annotations

from typing import Any

import pytest

from kcluster.checks.manners import Habit
from kcluster.contract import Reply
from kcluster.handle.cluster import Cluster
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from tests.foreign_clients.real_clients import LOADS, READERS, Load, Read, check

LIBRARIES = ("kafka-python", "confluent-kafka")
pytestmark = pytest.mark.parametrize("library", LIBRARIES)

IMPATIENT = {
    "kafka-python": {"request_timeout_ms": 300},
    "confluent-kafka": {"request_timeout_ms": 100, "socket_timeout_ms": 300},
}


def load_of(library: str, cluster: Cluster, **more: Any) -> Load:
    settings: dict[str, Any] = {"acks": "all", "enable_idempotence": True, **more}
    return LOADS[library](cluster.bootstrap, "orders", **settings)


def read_all(library: str, cluster: Cluster) -> list[Read]:
    return READERS[library](cluster.bootstrap, "orders")


class ProduceErrors:
    """Errors that brokers answered to Produce requests: (broker, error)."""

    def __init__(self, cluster: Cluster) -> None:
        self.seen: set[tuple[int, ErrorCode]] = set()
        cluster.driver.dispatcher.reply_sinks += (self.note,)

    def note(self, broker_id: int, reply: Reply, _now_ms: int) -> None:
        if reply.request.api_key == ApiKey.PRODUCE and reply.body is not None:
            for topic in reply.body.responses:
                for partition in topic.partition_responses:
                    if partition.error_code:
                        self.seen.add((broker_id, ErrorCode(partition.error_code)))


@pytest.mark.parametrize("how", ["kill", "clean", "power"])
def test_failover__the_leader_stops_under_load_and_nothing_acked_is_lost(
    own: Cluster, library: str, how: str
) -> None:
    with load_of(library, own) as load:
        load.wait_acked(200)
        own.kill(1, how)
        assert own.leader("orders", 0) == 2
        load.wait_acked(200)
    assert not load.failed
    check(load, read_all(library, own))
    if library == "confluent-kafka":  # kafka-python: docs/explanation/findings-virtual-clients.md
        habits = {manner.habit for manner in own.manners()}
        assert habits <= {Habit.SINGLE_RECORD_REQUESTS}  # the load waits for nothing, nor lingers


def test_failover__a_leader_that_comes_back_catches_up_and_leads_again(
    own: Cluster, library: str
) -> None:
    with load_of(library, own) as load:
        load.wait_acked()
        own.kill(1)
        load.wait_acked()
        own.start(1)
        own.wait_for(isr=("orders", 0, 3))
        load.wait_acked()
        assert own.elect("orders", 0) == 1
        load.wait_acked()
    check(load, read_all(library, own))
    (partition,) = [part for part in own.status().partitions if part.topic == "orders"]
    assert (partition.leader, partition.lag) == (1, {2: 0, 3: 0})


def test_failover__leadership_moved_under_load_is_reported_by_the_old_leader(
    own: Cluster, library: str
) -> None:
    errors = ProduceErrors(own)
    with load_of(library, own) as load:
        load.wait_acked()
        for to in (2, 3, 1) * 5:
            own.move("orders", 0, to)
            load.wait_acked()
            if to == 1 and errors.seen:  # unless the client's metadata was updated first every time
                break
    assert not load.failed
    assert {error for _, error in errors.seen} == {ErrorCode.NOT_LEADER_OR_FOLLOWER}
    check(load, read_all(library, own))


def test_failover__every_broker_restarted_in_turn(own: Cluster, library: str) -> None:
    with load_of(library, own) as load:
        for broker_id in own.broker_ids:
            load.wait_acked()
            own.kill(broker_id, "clean")
            load.wait_acked()
            own.start(broker_id)
    assert not load.failed
    check(load, read_all(library, own))


def test_failover__a_paused_leader_is_replaced_and_its_acked_records_remain(
    own: Cluster, library: str
) -> None:
    # The broker is silent, not gone, so the client must time out: the timeouts are short.
    with load_of(library, own, **IMPATIENT[library]) as load:
        load.wait_acked()
        own.pause(1)
        own.wait_for(leader=("orders", 0, 2))
        if library == "confluent-kafka":
            # The other library may have asked the paused broker for metadata; it waits 10 s.
            load.wait_acked()
        own.resume(1)
        own.wait_for(isr=("orders", 0, 3))
        load.wait_acked()
    assert not load.failed
    check(load, read_all(library, own))


def test_failover__without_idempotence_nothing_acked_is_lost(own: Cluster, library: str) -> None:
    with load_of(library, own, enable_idempotence=False) as load:
        load.wait_acked()
        own.kill(1)
        load.wait_acked()
    check(load, read_all(library, own), exactly_once=False)
