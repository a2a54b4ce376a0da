"""The handle: threads, waiting, messages of refusals, and what remains after close()."""

from __future__ import annotations

import gc
import signal
import socket
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import structs

from kcluster.config.topology.model import Topology
from kcluster.config.topology.specs import TopicSpec
from kcluster.drivers.live import prepare_watcher
from kcluster.events.partitions import LeaderElected
from kcluster.handle.cluster import Cluster
from kcluster.handle.world_cluster import WorldCluster
from kcluster.operations.errors import ClusterError
from kcluster.operations.status import NoteEntry
from kcluster.protocol import messages as m
from kcluster.protocol.apis import ApiKey
from kcluster.protocol.framing import encode_request_frame
from kcluster.scenario.perform import do
from tests.rig.patience import PATIENCE_S

TOPICS = {"orders": {"partitions": 1, "replication_factor": 3, "assignment": [[1, 2, 3]]}}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(Topology.of(brokers=3, topics=TOPICS, profile="fast")) as running:
        yield running


def test_open__all_brokers_serve_and_the_bootstrap_list_names_them(cluster: Cluster) -> None:
    addresses = [tuple(address.split(":")) for address in cluster.bootstrap.split(",")]
    assert len(addresses) == 3
    for host, port in addresses:
        socket.create_connection((host, int(port)), timeout=PATIENCE_S).close()
    status = cluster.status()
    assert [(broker.id, broker.state, broker.fenced) for broker in status.brokers] == [
        (1, "up", False),
        (2, "up", False),
        (3, "up", False),
    ]
    assert [(part.topic, part.leader) for part in status.partitions] == [("orders", 1)]


def test_close__ports_are_free_again_and_later_calls_are_refused() -> None:
    cluster = Cluster(Topology.of(brokers=1))
    cluster.open()
    address = cluster.plan.addresses[1]
    cluster.close()
    with socket.socket() as other:
        other.bind(address)
    with pytest.raises(ClusterError, match="not running"):
        cluster.status()


def test_close__a_cluster_that_was_never_opened_holds_no_port() -> None:
    cluster = Cluster(Topology.of(brokers=1))
    cluster.close()
    with socket.socket() as other:
        other.bind(cluster.plan.addresses[1])


def test_cluster__a_port_in_use_is_named_with_its_broker() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(
            ClusterError, match=rf"broker 2 cannot listen on 127.0.0.1:{port}: .* in use"
        ):
            Cluster(Topology.of(brokers=[{"id": 1}, {"id": 2, "port": port}]))


def test_cluster__two_at_a_time_are_independent(cluster: Cluster) -> None:
    with Cluster(Topology.of(brokers=1, profile="fast")) as other:
        assert other.broker_ids == (1,)
        other.kill(1)
        assert [broker.state for broker in cluster.status().brokers] == ["up"] * 3


def test_kill__returns_when_the_others_have_a_new_leader(cluster: Cluster) -> None:
    cluster.kill(1)
    assert cluster.leader("orders", 0) == 2
    with pytest.raises(ClusterError, match="broker 1 is down"):
        cluster.kill(1)
    with pytest.raises(
        ClusterError, match="how=hard: no such way to die; there are kill, clean, power, wipe"
    ):
        cluster.kill(2, "hard")


def test_leader__none_is_an_error(cluster: Cluster) -> None:
    for broker_id in (1, 2, 3):
        cluster.kill(broker_id, wait=broker_id == 3)
    with pytest.raises(ClusterError, match="orders-0 has no leader"):
        cluster.leader("orders", 0)


def test_start__a_restarted_broker_is_in_the_isr_and_listens_on_its_port(cluster: Cluster) -> None:
    address = cluster.plan.addresses[2]
    cluster.kill(2)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, timeout=PATIENCE_S)
    cluster.start(2)
    socket.create_connection(address, timeout=PATIENCE_S).close()
    assert sorted(cluster.status().partitions[0].isr) == [1, 2, 3]


def test_move__to_a_broker_outside_the_isr_is_refused(cluster: Cluster) -> None:
    cluster.kill(3)
    with pytest.raises(ClusterError, match=r"broker 3 is not in the ISR of orders-0 \(1, 2\)"):
        cluster.move("orders", 0, 3)


def test_wait_for__a_condition_may_hold_for_a_moment_only(cluster: Cluster) -> None:
    is_over = threading.Event()

    def move_back(entry: NoteEntry) -> None:
        event = entry.note.event
        if isinstance(event, LeaderElected) and event.new_leader == 2:
            cluster.driver.call(lambda: cluster.verbs.move("orders", 0, 1))

    def move_again_and_again() -> None:
        while not is_over.wait(0.01):
            cluster.move("orders-0", to=2, wait=False)

    cluster.subscribe(move_back)
    moving = threading.Thread(target=move_again_and_again)
    moving.start()
    try:
        cluster.wait_for("leader(orders-0) = 2", within="5s")
    finally:
        is_over.set()
        moving.join()


def test_wait_for__the_timeout_error_names_the_condition(cluster: Cluster) -> None:
    with pytest.raises(ClusterError, match=r"broker 2 does not lead orders-0 within 0\.05 s"):
        cluster.wait_for(leader=("orders", 0, 2), timeout_s=0.05)
    cluster.wait_for(isr=("orders", 0, 3))


def test_events__are_numbered_and_delivered_to_subscribers(cluster: Cluster) -> None:
    before = cluster.events()[-1].sequence
    seen: list[NoteEntry] = []
    end = cluster.subscribe(seen.append)
    cluster.cut(1, 2)
    cluster.wait_for(event="link_cut", since=before)
    end()
    cluster.heal()
    cut = [entry for entry in cluster.events(since=before) if entry.kind == "link_cut"]
    assert [entry.event.subject for entry in cut] == ["link 1>2", "link 2>1"]
    assert [entry for entry in seen if entry.kind.startswith("link")] == cut


def test_status__shows_cuts_and_sides(cluster: Cluster) -> None:
    for other in (1, 2, 3000):
        cluster.cut(3, other)
    status = cluster.status()
    assert status.sides == [(1, 2, 3000), (3,)]
    assert (3, 3000) in status.cuts


def test_status__its_parts_are_read_alone(cluster: Cluster) -> None:
    cluster.kill(3)
    status = cluster.status()
    assert cluster.brokers() == status.brokers
    assert cluster.topics() == {"orders": 1}
    assert [cluster.partition("orders", 0)] == status.partitions
    with pytest.raises(ClusterError, match="there is no partition 1 of orders, which has 1"):
        cluster.partition("orders", 1)


def test_cluster__many_threads_may_use_it_at_once(cluster: Cluster) -> None:
    seen: list[int] = []
    threads = [
        threading.Thread(target=lambda: seen.extend(cluster.leader("orders", 0) for _ in range(50)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [1] * 200


def test_open__a_cluster_that_does_not_come_up_leaves_nothing_running() -> None:
    cluster = Cluster(Topology.of(brokers=1))
    # Links so slow that no broker registers in time.
    cluster.plan.fabric.set_default_latency(60_000)
    with pytest.raises(ClusterError, match=r"not all brokers started within 0\.05 s"):
        cluster.open(timeout_s=0.05)
    with socket.socket() as other:
        other.bind(cluster.plan.addresses[1])


def test_open__a_topic_that_cannot_be_created_is_an_error() -> None:
    topology = structs.replace(
        Topology.of(brokers=1, profile="fast"), topics={"t": TopicSpec("t", assignment=((9,),))}
    )
    cluster = Cluster(topology)
    with pytest.raises(ClusterError, match=r"topic t of the topology cannot be created: INVALID_R"):
        cluster.open()
    with socket.socket() as other:
        other.bind(cluster.plan.addresses[1])
    with pytest.raises(ClusterError, match=r"topic t of the topology cannot be created: INVALID_R"):
        WorldCluster(topology, 1).open()


def test_run__serves_in_the_calling_thread_whose_greenlets_may_use_the_handle() -> None:
    cluster = Cluster(Topology.of(brokers=3, topics=TOPICS, profile="fast"))
    seen: list[int] = []

    def on_ready() -> None:
        cluster.kill(1)
        seen.append(cluster.leader("orders", 0))
        cluster.close()

    cluster.run(on_ready)
    assert seen == [2]
    assert not cluster.driver.bugs


def test_wait_for__a_topic_deleted_during_the_wait_is_an_error_at_once(cluster: Cluster) -> None:
    body = m.DeleteTopicsRequest(
        topics=[m.DeleteTopicsRequest.DeleteTopicState(name="orders")], timeout_ms=1000
    )
    address = cluster.plan.addresses[1]
    request = b"".join(encode_request_frame(ApiKey.DELETE_TOPICS, 6, 1, "test", body))
    with socket.create_connection(address, timeout=PATIENCE_S) as sock:
        sock.sendall(request)
        with pytest.raises(ClusterError, match="no topic 'orders'; the topics are: none"):
            cluster.wait_for(isr=("orders", 0, 7))


@pytest.mark.pure_python
def test_exit__a_step_that_raised_is_reported(capfd: pytest.CaptureFixture[str]) -> None:
    cluster = Cluster(Topology.of(brokers=1, profile="fast"))
    cluster.open()

    def harm() -> None:
        node: Any = cluster.driver.dispatcher.processes[1].node
        node.step = None

    cluster.driver.call(harm).result()
    cluster.wait_for(event="broker_fenced", since=0)
    assert [broker.state for broker in cluster.status().brokers] == ["down"]
    with pytest.raises(ClusterError, match="a bug in the simulator: TypeError"):
        cluster.__exit__(None, None, None)
    assert "TypeError" in capfd.readouterr().err


def test_live__a_loop_without_prepare_watchers_still_serves() -> None:
    class Libuv:
        def prepare(self) -> None:
            raise TypeError("prepare watchers are not currently supported in libuv")

    class Hub:
        loop = Libuv()

    assert prepare_watcher(Hub()) is None


@pytest.mark.parametrize("action", ["nothing", "heal"])
def test_close__frees_the_memory_of_the_cluster(action: str) -> None:
    cluster = Cluster(Topology.of(brokers=1, profile="fast"))
    with cluster:
        if action != "nothing":
            do(cluster, action)
    left = weakref.ref(cluster)
    del cluster
    gc.collect()
    assert left() is None


def test_wait_until__is_forgotten_if_it_is_interrupted_before_the_cluster_has_heard_of_it() -> None:
    topology = Topology.of(brokers=1, profile="fast")
    with Cluster(topology) as cluster:
        driver, main = cluster.driver, threading.get_ident()
        begun, go_on = threading.Event(), threading.Event()

        def interrupt_the_wait() -> None:
            while not driver._commands:
                pass
            signal.pthread_kill(main, signal.SIGUSR1)

        def interrupted(_signal: int, _frame: object) -> None:
            raise Interrupted

        def be_busy() -> None:
            begun.set()
            go_on.wait(PATIENCE_S)

        driver.call(be_busy)
        assert begun.wait(PATIENCE_S)
        before = signal.signal(signal.SIGUSR1, interrupted)
        thread = threading.Thread(target=interrupt_the_wait)
        thread.start()
        try:
            with pytest.raises(Interrupted):
                cluster.wait_until(lambda: False, PATIENCE_S, None)
        finally:
            go_on.set()
            thread.join()
            signal.signal(signal.SIGUSR1, before)
        assert cluster.call(lambda: not driver._conditions)


class Interrupted(Exception):
    """Raised where a thread waits."""
