"""The figures of a secured listener: SASL_SSL with SCRAM-SHA-512, and an authorizer with ACLs.

Owns: starting both systems with that listener beside a plaintext one, the steps of their visit.
Never: measures a load (clients/secured.py and clients/handshakes.py do).

Both systems get the same configs, the same certificate (ECDSA P-256), the same user and ACLs.  The
plaintext load comes first: it warms the JVMs, and its figures show what security costs.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

import yaml

from bench.clients.load import RECORD_BYTES
from bench.processes import BenchError, client, run_to_end, spawn
from bench.systems import (
    BROKERS,
    KAFKA_CONTROLLER_PORTS,
    SETUP_TIMEOUT_S,
    Kafka,
    KafkaRunning,
    Kcluster,
    Running,
    System,
)
from bench.visit import CLIENT_TIMEOUT_S, Log, Progress, Sizes, new_log
from bench.wire import address_of
from kcluster.drivers.tls.authority import Authority
from kcluster.drivers.tls.credentials import certificates_pem
from kcluster.security.authorizer import STANDARD_AUTHORIZER

LISTENER: Final = "SECURE"
HOST: Final = "127.0.0.1"
SECURE_OFFSET: Final = 50
"""The distance from the port of a broker's plaintext listener to the port of its secured one."""
MECHANISM: Final = "SCRAM-SHA-512"
SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
USER: Final = "alice"
CLUSTER_ID: Final = "MkU3OEVBNTcwNTJENDM2Qk"
FORMAT_TIMEOUT_S: Final = 60.0
PERF_TEST: Final = "secured_perf_test"
TOOLS_RELEASE: Final = "4.3.1"
"""The newest release of Kafka whose tools are published."""
_RECORDS_PER_S: Final = re.compile(r"records sent, ([\d.]+) records/sec")


class Material:
    """The files of a secured cluster: its certificate, and what a client needs to log in."""

    def __init__(self, place: Path) -> None:
        authority = Authority()
        self.password = os.urandom(12).hex()
        self.ca = _secret_file(place / "ca.pem", certificates_pem([authority.certificate]))
        self.keystore = _secret_file(
            place / "broker.pem", authority.for_broker(["localhost", HOST]).pem()
        )
        self.librdkafka = place / "librdkafka.json"
        self.java = place / "client.properties"

    @property
    def broker_config(self) -> dict[str, str]:
        """The configs of every broker, by Kafka's names.  Clients of the plaintext listener may do
        everything: the user and its ACLs are created by one of them."""
        return {
            "authorizer.class.name": STANDARD_AUTHORIZER,
            "super.users": "User:ANONYMOUS",
            "sasl.enabled.mechanisms": MECHANISM,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.keystore),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.ca),
        }

    def write_clients(self, bootstrap: str) -> None:
        """Write the settings of a librdkafka and of a Java client.  They are files, as arguments
        can be read in the list of processes."""
        librdkafka = {
            "bootstrap.servers": bootstrap,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": MECHANISM,
            "sasl.username": USER,
            "sasl.password": self.password,
            "ssl.ca.location": str(self.ca),
        }
        java = {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": MECHANISM,
            "sasl.jaas.config": (
                f'{SCRAM_MODULE} required username="{USER}" password="{self.password}";'
            ),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.ca),
        }
        _secret_file(self.librdkafka, json.dumps(librdkafka).encode())
        _secret_file(self.java, _properties(java))


def _secret_file(path: Path, data: bytes) -> Path:
    path.touch(mode=0o600)
    path.write_bytes(data)
    return path


def _properties(config: dict[str, str]) -> bytes:
    return "".join(f"{key}={value}\n" for key, value in config.items()).encode()


def secured_bootstrap(running: Running) -> str:
    """The bootstrap list of the secured listener."""
    _, port = address_of(running.bootstrap)
    return ",".join(f"{HOST}:{port + SECURE_OFFSET + at}" for at in range(BROKERS))


# ------------------------------------------------------------------------------------ the systems


class SecuredKcluster(Kcluster):
    """This cluster with both listeners."""

    def __init__(self, material: Material) -> None:
        super().__init__(brokers=BROKERS, config=material.broker_config)

    def topology_text(self) -> tuple[str, int, int]:
        text, first_port, brokers = super().topology_text()
        topology = yaml.safe_load(text)
        topology["brokers"] = brokers
        topology["listeners"] = {
            "PLAINTEXT": {"protocol": "PLAINTEXT", "port": first_port},
            LISTENER: {"protocol": "SASL_SSL", "port": first_port + SECURE_OFFSET},
        }
        return yaml.safe_dump(topology), first_port, brokers


class SecuredKafka(Kafka):
    """Apache Kafka with both listeners; the script's `start` knows only a plaintext one."""

    def __init__(self, material: Material) -> None:
        super().__init__()
        self._material = material

    def start(self, place: Path) -> KafkaRunning:
        self.call("setup", timeout_s=SETUP_TIMEOUT_S, log=place / "setup")
        running = self.reserve(place)
        began_s = time.perf_counter()
        with running.stopped_unless_up():
            for node in range(1, BROKERS + 1):
                self._start_node(running, node)
            running.find_pids()
            running.wait((HOST, running.port), BROKERS, began_s)
        return running

    def _start_node(self, running: KafkaRunning, node: int) -> None:
        home = running.folder / f"n{node}"
        home.mkdir(parents=True)
        file = home / "server.properties"
        file.write_bytes(_properties(self.node_config(running.port, node, home)))
        formatting = self.java(
            "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(file)
        )
        run_to_end("formatting", formatting, home / "format.log", FORMAT_TIMEOUT_S)
        process = spawn(self.java("kafka.Kafka", str(file)), home / "out.log")
        (home / "pid").write_text(str(process.pid))

    def node_config(self, port: int, node: int, home: Path) -> dict[str, str]:
        """server.properties of a node.  `port`: the cluster's first; `home`: its directory."""
        controllers = [
            f"{number}@{HOST}:{port + offset}"
            for number, offset in enumerate(KAFKA_CONTROLLER_PORTS, 1)
        ]
        controller_port = port + KAFKA_CONTROLLER_PORTS[node - 1]
        clients = (
            f"PLAINTEXT://{HOST}:{port + node - 1},"
            f"{LISTENER}://{HOST}:{port + SECURE_OFFSET + node - 1}"
        )
        return {
            "process.roles": "broker,controller",
            "node.id": str(node),
            "controller.quorum.voters": ",".join(controllers),
            "listeners": f"{clients},CONTROLLER://{HOST}:{controller_port}",
            "advertised.listeners": clients,
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": (
                f"CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,{LISTENER}:SASL_SSL"
            ),
            "inter.broker.listener.name": "PLAINTEXT",
            f"listener.name.{LISTENER.lower()}.{MECHANISM.lower()}.sasl.jaas.config": (
                f"{SCRAM_MODULE} required;"
            ),
            "log.dirs": str(home / "logs"),
            "offsets.topic.replication.factor": str(BROKERS),
            "default.replication.factor": str(BROKERS),
            "group.initial.rebalance.delay.ms": "0",
            **self._material.broker_config,
        }


SECURED: Final[dict[str, Callable[[Material], System]]] = {
    "kcluster": SecuredKcluster,
    "kafka": SecuredKafka,
}
"""By the system's name; the other peers have neither TLS nor an authorizer."""


# --------------------------------------------------------------------------------------- the visit


def visit_secured(name: str, wanted: Collection[str], sizes: Sizes, progress: Progress) -> Log:
    """Start a system with both listeners, measure the wanted figures (keys), stop it."""
    log = new_log(progress)
    with tempfile.TemporaryDirectory(prefix="kcb") as folder:
        material = Material(Path(folder))
        try:
            running = SECURED[name](material).start(Path(folder))
        except BenchError as error:
            log.reasons["start, secured"] = str(error)
            progress(f"does not start: {error}")
            return log
        with running:
            material.write_clients(secured_bootstrap(running))
            log.attempt("secured", lambda: _load(running, material, sizes))
            log.attempt("handshakes", lambda: _handshakes(running, material, sizes))
            if PERF_TEST in wanted:
                log.attempt(PERF_TEST, lambda: _perf_test(running, material, sizes))
    log.values = {key: value for key, value in log.values.items() if key in wanted}
    return log


def _load(running: Running, material: Material, sizes: Sizes) -> dict[str, float]:
    return client(
        "secured",
        running.bootstrap,
        str(material.librdkafka),
        "--mb",
        str(sizes.mb),
        "--acks",
        str(sizes.acks),
        "--pids",
        running.pid_list,
        timeout_s=CLIENT_TIMEOUT_S,
    )


def _handshakes(running: Running, material: Material, sizes: Sizes) -> dict[str, float]:
    return client(
        "handshakes",
        secured_bootstrap(running),
        str(material.ca),
        "--count",
        str(sizes.handshakes),
        "--pids",
        running.pid_list,
        timeout_s=CLIENT_TIMEOUT_S,
    )


def _perf_test(running: Running, material: Material, sizes: Sizes) -> dict[str, float]:
    """kafka-producer-perf-test.sh, acks=all: MB/s of 1 KB records, in the second half of them."""
    tools = Kafka(TOOLS_RELEASE)
    if reason := tools.missing_requirement():
        raise BenchError(reason)
    log = running.place / "perf-test"
    tools.call("setup", timeout_s=SETUP_TIMEOUT_S, log=log)
    topic = client("topics", running.bootstrap, timeout_s=CLIENT_TIMEOUT_S)["topic"]
    command = tools.java(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", topic, "--throughput", "-1"),
        *("--num-records", str(sizes.mb * 1_000), "--warmup-records", str(sizes.mb * 500)),
        *("--record-size", str(RECORD_BYTES)),
        *("--bootstrap-server", secured_bootstrap(running)),
        *("--command-config", str(material.java)),
        *("--command-property", "acks=all"),
    )
    run_to_end("kafka-producer-perf-test", command, log, CLIENT_TIMEOUT_S)
    return {PERF_TEST: perf_test_mb_s(log.read_text())}


def perf_test_mb_s(text: str) -> float:
    """MB/s of 1,000,000 bytes in the last line that the tool printed: without the warm-up."""
    found = _RECORDS_PER_S.findall(text)
    if not found:
        raise BenchError("kafka-producer-perf-test printed no result")
    return float(found[-1]) * RECORD_BYTES / 1e6
