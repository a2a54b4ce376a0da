"""Connect and MirrorMaker, distributed: exactly once while leaders and coordinators die.

Each takes half a minute, so `make tools` runs them and `make test` does not.  On a fifth of a core
MirrorMaker needs three and a half minutes to start: the limits are for such machines.
"""

from __future__ import annotations

import json
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import confluent_kafka as ck
import pytest

from kcluster import Cluster, Topology
from tests.compat.kafka_tools.conftest import LONG, java
from tests.compat.programs.processes import (
    Program,
    break_along,
    check_exactly_once,
    committed_values,
    wait_committed,
    wait_until,
)
from tests.foreign_clients.real_clients import confluent_settings

pytestmark = [
    pytest.mark.clients,
    pytest.mark.slow,
    pytest.mark.timeout_s(900),
    pytest.mark.xdist_group("kafka programs"),
    LONG,
]

COUNT = 900
LIMIT_S = 200
"""For anything to come about; a wait ends when it has."""
STORE_REPLICATION = "".join(
    f"{store}.storage.replication.factor=3\n" for store in ("offset", "config", "status")
)


@contextmanager
def fed(feed: Callable[[int], object], flush: Callable[[], object]) -> Iterator[None]:
    """Feeds the numbers below COUNT by tens, twenty times per second, in a thread."""
    paused = threading.Event()

    def run() -> None:
        for number in range(COUNT):
            feed(number)
            if number % 10 == 9:
                flush()
                paused.wait(0.05)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield
    thread.join()


def create(worker: Program, address: str, name: str, **config: str) -> None:
    """Create a connector, as soon as the worker answers and has joined its group."""
    body = json.dumps({key.replace("_", "."): value for key, value in config.items()})

    def accepted() -> bool:
        request = urllib.request.Request(
            f"{address}/connectors/{name}/config",
            method="PUT",
            data=body.encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            urllib.request.urlopen(request, timeout=LIMIT_S).close()
        except urllib.error.HTTPError as refused:
            refused.close()
            return False
        except urllib.error.URLError:
            return False
        return True

    wait_until(accepted, f"connector {name}", [worker], LIMIT_S)


def free_address() -> str:
    """An address that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_connect__source_and_sink_copy_a_file_exactly_once(tmp_path: Path) -> None:
    topics = {"lines": {"partitions": 1, "replication_factor": 3}}
    address = free_address()
    source, sink = tmp_path / "source.txt", tmp_path / "sink.txt"
    with Cluster(Topology.of(brokers=3, profile="fast", topics=topics)) as cluster:
        properties = tmp_path / "worker.properties"
        properties.write_text(
            f"""bootstrap.servers={cluster.bootstrap}
group.id=connect
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter=org.apache.kafka.connect.storage.StringConverter
offset.storage.topic=connect-offsets
config.storage.topic=connect-configs
status.storage.topic=connect-status
{STORE_REPLICATION}offset.storage.partitions=1
listeners={address}
exactly.once.source.support=enabled
offset.flush.interval.ms=1000
"""
        )
        command = java("org.apache.kafka.connect.cli.ConnectDistributed", properties)
        with source.open("w") as lines, Program(command, tmp_path) as program:
            create(
                program,
                address,
                "source",
                connector_class="FileStreamSource",
                file=str(source),
                topic="lines",
                exactly_once_support="required",
            )
            sinks = "FileStreamSink"
            create(program, address, "sink", connector_class=sinks, file=str(sink), topics="lines")
            kills = [
                (1, "leader(lines-0)"),
                (COUNT // 5, "txn connect-source-0"),
                (2 * COUNT // 5, "coordinator(connect-sink)"),
                (3 * COUNT // 5, "leader(connect-offsets-0)"),
            ]
            with fed(lambda number: lines.write(f"{number}\n"), lines.flush):
                break_along(cluster, [program], "lines", 1, kills, limit_s=LIMIT_S)
            expected = {str(number) for number in range(COUNT)}
            wait_until(
                lambda: sink.exists() and expected <= set(sink.read_text().split()),
                "all lines in the sink's file",
                [program],
                LIMIT_S,
            )
        check_exactly_once(cluster.bootstrap, "lines", 1, COUNT)


def test_mirror_maker__mirrors_a_topic_and_its_group_exactly_once(tmp_path: Path) -> None:
    """Two nodes of the dedicated form, from cluster a to cluster b."""
    topics = {"orders": {"partitions": 2, "replication_factor": 3}}
    a = Cluster(Topology.of(name="a", brokers=3, profile="fast", topics=topics))
    b = Cluster(Topology.of(name="b", brokers=3, profile="fast"))
    with a, b:
        properties = tmp_path / "mirror.properties"
        properties.write_text(
            f"""clusters=a,b
a.bootstrap.servers={a.bootstrap}
b.bootstrap.servers={b.bootstrap}
a->b.enabled=true
a->b.topics=orders
a->b.groups=readers
replication.factor=3
checkpoints.topic.replication.factor=3
heartbeats.topic.replication.factor=3
offset-syncs.topic.replication.factor=3
{STORE_REPLICATION}b.exactly.once.source.support=enabled
dedicated.mode.enable.internal.rest=true
listeners=http://127.0.0.1:0
tasks.max=2
refresh.topics.interval.seconds=2
refresh.groups.interval.seconds=2
sync.group.offsets.enabled=true
sync.group.offsets.interval.seconds=2
emit.checkpoints.interval.seconds=2
"""
        )
        producer = ck.Producer(confluent_settings(a.bootstrap, enable_idempotence=True))
        settings = confluent_settings(a.bootstrap, group_id="readers", enable_auto_commit=False)
        reader = ck.Consumer(settings)
        reader.commit(
            offsets=[ck.TopicPartition("orders", partition, 10) for partition in range(2)],
            asynchronous=False,
        )
        reader.close()
        command = java("org.apache.kafka.connect.mirror.MirrorMaker", properties)
        with Program(command, tmp_path) as first, ExitStack() as stack:
            wait_until(
                lambda: any(one.topic == "a.orders" for one in b.status().partitions),
                "the mirrored topic",
                [first],
                2 * LIMIT_S,
            )
            nodes = [first, stack.enter_context(Program(command, tmp_path))]
            kills = [
                (1, "leader(a.orders-0)"),
                (COUNT // 4, "coordinator(a-mm2)"),
                (COUNT // 2, "leader(mm2-offsets.a.internal-0)"),
            ]

            def feed(number: int) -> None:
                producer.produce("orders", b"%d" % number, partition=number % 2)

            with fed(feed, lambda: producer.flush(LIMIT_S)):
                break_along(b, nodes, "a.orders", 2, kills, limit_s=LIMIT_S)
                a.start(a.kill("leader(orders-0)"))
            wait_committed(b, "readers", "a.orders", 2, 2, limit_s=LIMIT_S)
            wait_until(
                lambda: len(committed_values(b.bootstrap, "a.orders", 2)) >= COUNT,
                "all records mirrored",
                nodes,
                LIMIT_S,
            )
        check_exactly_once(b.bootstrap, "a.orders", 2, COUNT)
