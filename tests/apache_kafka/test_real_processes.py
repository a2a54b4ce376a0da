"""A real Kafka as processes.  `make test-slow` runs these tests, where there are Java and Maven."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kcluster import Topology
from kcluster.apache_kafka.class_archive import STARTED
from kcluster.apache_kafka.installation import Installation, find_installation
from kcluster.apache_kafka.processes import KafkaProcesses, wait_until
from kcluster.operations.errors import ClusterError
from tests.apache_kafka.test_reaper import ends

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout_s(300),
    pytest.mark.xdist_group("kafka programs"),  # a Kafka at a time
]

BESIDE = """
import sys
from pathlib import Path
import gevent
from kcluster import Topology
from kcluster.apache_kafka.installation import find_installation
from kcluster.apache_kafka.processes import KafkaProcesses
nodes = KafkaProcesses(find_installation(), Topology.of(brokers=1))
nodes.open()
network = nodes.network
namespace = "-" if network is None else network.namespace(1)
print(nodes.output(1).parent.parent, namespace, *nodes.pids.values(), flush=True)
gevent.sleep(600)
"""


@pytest.fixture(scope="module")
def kafka() -> Installation:
    try:
        return find_installation(log=print)
    except ClusterError as error:
        pytest.skip(str(error))


@pytest.fixture
def start(kafka: Installation) -> Iterator[Callable[[Topology], KafkaProcesses]]:
    started: list[KafkaProcesses] = []

    def starting(topology: Topology) -> KafkaProcesses:
        started.append(KafkaProcesses(kafka, topology))
        started[-1].open()
        return started[-1]

    yield starting
    for nodes in started:
        nodes.close()


def until(holds: Callable[[], bool], limit_s: float = 120) -> None:
    assert wait_until(holds, limit_s)


def starts(nodes: KafkaProcesses, node_id: int) -> int:
    """How often a node has begun to serve."""
    output = nodes.output(node_id)
    return output.read_text().count(STARTED) if output.exists() else 0


def test_processes__two_clusters_side_by_side(start: Callable[[Topology], KafkaProcesses]) -> None:
    """Each is killed, paused, restarted and shut down, and neither leaves anything."""
    one, other = start(Topology.of(brokers=1)), start(Topology.of(brokers=1))
    exits: list[tuple[int, int]] = []
    one.on_exit = lambda node_id, code: exits.append((node_id, code))
    until(lambda: all(starts(nodes, id_) for nodes in (one, other) for id_ in (1, 3000)))
    one.kill(1)
    assert exits == [(1, -signal.SIGKILL)]
    assert not one.is_running(1)
    one.start(1)
    until(lambda: starts(one, 1) == 2)
    one.pause(1)
    one.resume(1)
    one.shut_down(1)
    until(lambda: not one.is_running(1))
    assert exits[1:] == [(1, 128 + signal.SIGTERM)]
    with pytest.raises(ClusterError, match="node 1 is not running"):
        one.pause(1)
    place = one.output(1).parent.parent
    one.close()
    assert not place.exists()
    assert other.is_running(1)
    assert other.is_running(3000)


def test_processes__a_node_that_does_not_start_says_why(
    start: Callable[[Topology], KafkaProcesses],
) -> None:
    nodes = start(Topology.of(brokers=1, config={"sasl.enabled.mechanisms": "PLAIN"}))
    nodes.kill(1)
    (nodes.output(1).parent / "server.properties").write_text("process.roles=nonsense\n")
    nodes.start(1)
    until(lambda: not nodes.is_running(1))
    assert "nonsense" in nodes.why_ended(1, 1)


def test_processes__logins_tls_and_acls(start: Callable[[Topology], KafkaProcesses]) -> None:
    """An administrator creates a topic, logging in with SCRAM over TLS; alice may not write."""
    from confluent_kafka import KafkaError, Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    password = 'ad"min, [secret]'
    nodes = start(
        Topology.of(
            brokers=1,
            listeners={"SAFE": {"protocol": "SASL_SSL"}},
            security={
                "tls": "auto",
                "users": {"admin": password, "alice": "alice-secret"},
                "super_users": ["admin"],
            },
        )
    )
    assert nodes.tls is not None
    settings: dict[str, str | int | float | bool] = {
        "bootstrap.servers": nodes.addresses[1].listeners[0].told,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": nodes.tls.folder.files_of(None).authority,
        "log_level": 0,
    }
    admin = {"sasl.username": "admin", "sasl.password": password}
    until(lambda: starts(nodes, 1) == 1)
    scram = AdminClient({**settings, **admin, "sasl.mechanism": "SCRAM-SHA-256"})
    scram.create_topics([NewTopic("orders", 1, 1)])["orders"].result(60)
    alice = {"sasl.username": "alice", "sasl.password": "alice-secret"}
    answers: list[int | None] = []

    def answered(error: KafkaError | None, _: object) -> None:
        answers.append(None if error is None else error.code())

    for login in (admin, alice):
        producer = Producer({**settings, **login, "sasl.mechanism": "PLAIN"})
        producer.produce("orders", b"1", on_delivery=answered)
        producer.flush(60)
    assert answers == [None, KafkaError.TOPIC_AUTHORIZATION_FAILED]


def test_processes__kill_9_of_the_parent_leaves_nothing(kafka: Installation) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", BESIDE], stdout=subprocess.PIPE, start_new_session=True
    ) as parent:
        assert parent.stdout is not None
        place, namespace, *pids = parent.stdout.readline().decode().split()
        assert len(pids) == 2
        parent.kill()
        assert all(ends(int(pid), 5) for pid in pids)
    until(lambda: not Path(place).exists(), 5)
    assert not Path("/run/netns", namespace).exists()
