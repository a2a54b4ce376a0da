"""A broker that is unregistered while it runs: what 4.3.1 does."""

from __future__ import annotations

from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.errors import ErrorCode
from tests.rig.cluster import Simulated


def unregister(t: Simulated, broker: int) -> ErrorCode:
    request = m.UnregisterBrokerRequest(broker_id=broker)
    return ErrorCode(t.ask(1, ApiKey.UNREGISTER_BROKER, 0, request).body.error_code)


def known(t: Simulated, broker: int) -> list[int]:
    """The brokers in the Metadata responses of `broker`."""
    request = m.DescribeClusterRequest(include_fenced_brokers=True)
    body = t.ask(broker, ApiKey.DESCRIBE_CLUSTER, 2, request).body
    return [one.broker_id for one in body.brokers]


def test_unregister__a_running_broker_leaves_the_isr_and_stays_out() -> None:
    t = Simulated()
    assert unregister(t, 3) is ErrorCode.NONE
    t.run_for(60_000)
    assert (t.isr, known(t, 1)) == ([1, 2], [1, 2])
    acked = t.produce(b"without it")
    assert acked.error == "NONE"
    t.run_for(1_000)
    assert unregister(t, 3) is ErrorCode.BROKER_ID_NOT_REGISTERED


def test_unregister__its_leaders_move_and_a_new_process_rejoins() -> None:
    t = Simulated()
    assert unregister(t, 1) is ErrorCode.NONE
    t.wait(lambda: t.leader_id == 2)
    t.kill(1)
    t.start(1)
    t.wait(lambda: t.isr == [1, 2, 3])
    assert known(t, 2) == [1, 2, 3]


def test_unregister__of_the_last_active_replica_leaves_no_leader() -> None:
    t = Simulated(replicas=(3,))
    assert unregister(t, 3) is ErrorCode.NONE
    t.run_for(20_000)
    assert t.state.leader is None
