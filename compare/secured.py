"""The cluster with SASL and an authorizer: its configs, the same on both sides, and its users.

Owns: the secured topology, Apache Kafka's server.properties for the same, starting it.  Never: logs
in (logins.py does), knows a case.

Every broker has a listener PLAINTEXT, whose clients are the super user ANONYMOUS, for what a case
needs around it, and one of SASL_PLAINTEXT for the users that a case is about.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from bench.processes import end, free_ports
from bench.systems import SETUP_TIMEOUT_S, START_TIMEOUT_S, Kafka, kafka_folder
from bench.wire import brokers_named
from compare.systems import SERVER_CONFIG, OverTcp
from kcluster.config.topology.model import Topology
from kcluster.conform.logins import PLAIN_USERS, REAUTH_MS
from kcluster.conform.references import NEWEST, Reference
from kcluster.conform.systems import BROKERS, PLAINTEXT, SASL
from kcluster.security.authorizer import STANDARD_AUTHORIZER

_PLAIN_JAAS: Final = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required"
    + "".join(f' user_{name}="{password}"' for name, password in PLAIN_USERS.items())
    + ";"
)
SECURED_CONFIG: Final[dict[str, Any]] = {
    **SERVER_CONFIG,
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "super.users": "User:ANONYMOUS;User:root",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
    "listener.name.sasl.plain.sasl.jaas.config": _PLAIN_JAAS,
    "listener.name.sasl.scram-sha-512.connections.max.reauth.ms": REAUTH_MS,
    "delegation.token.secret.key": "compare",
}
"""The configs of both sides."""

_LOGIN_MODULES: Final = {
    "scram-sha-256": "scram.ScramLoginModule",
    "scram-sha-512": "scram.ScramLoginModule",
    "oauthbearer": "oauthbearer.OAuthBearerLoginModule",
}
_LOG_LEVEL: Final = """\
status=error
rootLogger.level=warn
rootLogger.appenderRef.c.ref=C
appender.c.type=Console
appender.c.name=C
appender.c.layout.type=PatternLayout
appender.c.layout.pattern=%d %p %m%n
"""
CONTROLLER_OFFSET: Final = 6
"""Ports of a cluster: 3 of PLAINTEXT, 3 of SASL, 3 of controllers."""


def our_secured_topology(reference: Reference) -> Topology:
    """Our cluster, with the listeners and configs of both sides."""
    older: dict[str, Any] = {} if reference == NEWEST else {"kafka_version": reference.name}
    advertised = {"advertised": "127.0.0.1"}
    return Topology.of(
        brokers=len(BROKERS),
        profile="kafka",
        listeners={
            PLAINTEXT: {"protocol": "PLAINTEXT", **advertised},
            SASL: {"protocol": "SASL_PLAINTEXT", **advertised},
        },
        config=SECURED_CONFIG,
        **older,
    )


def server_properties(broker: int, port: int, folder: Path) -> str:
    """The server.properties of one broker of Apache Kafka.  `port`: the first port of the
    cluster."""
    controllers = [f"{id_}@127.0.0.1:{port + CONTROLLER_OFFSET + id_ - 1}" for id_ in BROKERS]
    listeners = (
        f"{PLAINTEXT}://127.0.0.1:{port + broker - 1},"
        f"{SASL}://127.0.0.1:{port + len(BROKERS) + broker - 1}"
    )
    protocols = f"{PLAINTEXT}:PLAINTEXT,{SASL}:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"
    configs: Mapping[str, Any] = {
        "process.roles": "broker,controller",
        "node.id": broker,
        "controller.quorum.voters": ",".join(controllers),
        "controller.listener.names": "CONTROLLER",
        "listeners": f"{listeners},CONTROLLER://{controllers[broker - 1].partition('@')[2]}",
        "advertised.listeners": listeners,
        "listener.security.protocol.map": protocols,
        "inter.broker.listener.name": PLAINTEXT,
        "log.dirs": folder / "logs",
        "transaction.state.log.replication.factor": 3,
        "share.coordinator.state.topic.replication.factor": 3,
        "share.coordinator.state.topic.min.isr": 1,
        **SECURED_CONFIG,
        **{
            f"listener.name.sasl.{mechanism}.sasl.jaas.config": (
                f"org.apache.kafka.common.security.{module} required;"
            )
            for mechanism, module in _LOGIN_MODULES.items()
        },
    }
    return "".join(f"{name}={value}\n" for name, value in configs.items())


@contextlib.contextmanager
def own_secured_kafka(reference: Reference) -> Iterator[OverTcp]:
    """Start Apache Kafka with SASL and an authorizer, and stop it at the end."""
    peer = Kafka(reference.version)
    with TemporaryDirectory() as place, contextlib.ExitStack() as stack:
        peer.call("setup", timeout_s=SETUP_TIMEOUT_S, log=Path(place) / "setup")
        port = free_ports(3 * len(BROKERS), (), lambda port: kafka_folder(port).exists())
        folder = kafka_folder(port)
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        processes: list[subprocess.Popen[bytes]] = []
        stack.callback(_stop, processes)
        processes.extend(
            _start(broker, port, folder / f"n{broker}", peer.libraries) for broker in BROKERS
        )
        began_s = time.monotonic()
        while brokers_named(("127.0.0.1", port)) < len(BROKERS):
            assert time.monotonic() - began_s < START_TIMEOUT_S, f"see {folder}/n1/out.log"
            time.sleep(0.05)
        system = OverTcp(",".join(f"127.0.0.1:{port + broker - 1}" for broker in BROKERS))
        for broker in BROKERS:
            logins = system.endpoints[broker][SASL] = "127.0.0.1", port + len(BROKERS) + broker - 1
            _wait_for(logins)
            system.controller_ports[broker] = port + CONTROLLER_OFFSET + broker - 1
            stack.callback(system.close_all, broker)
        yield system


def _wait_for(address: tuple[str, int]) -> None:
    """Wait until a listener accepts connections: SASL's opens after PLAINTEXT's."""
    until_s = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            socket.create_connection(address, 5).close()
        except ConnectionRefusedError:
            assert time.monotonic() < until_s, f"nothing listens at {address}"
            time.sleep(0.05)
        else:
            return


def _stop(processes: list[subprocess.Popen[bytes]]) -> None:
    """End all of them at once: the last one would wait for the quorum of the others."""
    for process in processes:
        process.terminate()
    for process in processes:
        end(process)


def _start(broker: int, port: int, home: Path, libraries: Path) -> subprocess.Popen[bytes]:
    """Format a broker's directory and start it."""
    home.mkdir(parents=True)
    properties = home / "server.properties"
    properties.write_text(server_properties(broker, port, home))
    logging = home / "log4j2.properties"
    logging.write_text(_LOG_LEVEL)
    java = ["java", "-Xms256m", "-Xmx1g", f"-Dlog4j2.configurationFile={logging}"]
    java += ["-cp", f"{libraries}/*"]
    cluster = "MkU3OEVBNTcwNTJENDM2Qk"
    with (home / "out.log").open("wb") as out:
        subprocess.run(
            [*java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(properties)],
            stdout=out, stderr=out, check=True, timeout=120,
        )  # fmt: skip
        return subprocess.Popen(
            [*java, "kafka.Kafka", str(properties)],
            stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
        )  # fmt: skip
