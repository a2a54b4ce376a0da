"""An archive of the classes that a node of Kafka loads, with which its JVM starts in half the time.

Owns: the one node that runs for the archive to know its classes; the options of every JVM.  Never:
is needed: without an archive a JVM loads the classes from the jars.
Kafka: no counterpart; Java's class data sharing (JEP 350).
"""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

from kcluster.apache_kafka.last_words import ended_with, error_in
from kcluster.drivers.sockets.acceptor import ReservedPort

STARTED: Final = "Kafka Server started"
"""What a node logs when it serves."""
HEAP: Final = ("-Xms64m", "-Xmx512m")
LOG_CONFIG: Final = """status=error
rootLogger.level=info
rootLogger.appenderRef.console.ref=CONSOLE
appender.console.type=Console
appender.console.name=CONSOLE
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=[%d] %p %m (%c)%n
"""
_LIMIT_S: Final = 120
_CLUSTER: Final = "a2NsdXN0ZXItYXJjaGl2ZQ"
_HOST: Final = "127.0.0.1"


def java_options(archive: Path | None, log_config: Path) -> list[str]:
    """The options of the JVM of a node.  The quick compiler alone, and the collector with the
    fewest threads: several JVMs share a developer's machine.  `KAFKA_HEAP_OPTS` and `KAFKA_OPTS`
    are Kafka's own variables."""
    heap = shlex.split(os.environ.get("KAFKA_HEAP_OPTS", "")) or HEAP
    more = shlex.split(os.environ.get("KAFKA_OPTS", ""))
    shared = [f"-XX:SharedArchiveFile={archive}"] if archive is not None else []
    quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xlog:disable", "-Xlog:all=error"]
    # Otherwise a JVM that is killed leaves a file in /tmp/hsperfdata_USER.
    quick += ["-XX:-UsePerfData", f"-XX:ErrorFile={log_config.parent}/java-%p.log"]
    return [*shared, *quick, *heap, f"-Dlog4j2.configurationFile={log_config}", *more]


def make_archive(java: Path, class_path: str, archive: Path) -> str | None:
    """Run a node for a moment, and archive the classes that it has loaded.  Returns the reason if
    that fails."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent, prefix=".making-") as temporary:
        place = Path(temporary)
        made = place / "classes.jsa"
        try:
            _run_node(java, class_path, place, made)
        except subprocess.CalledProcessError as error:
            words = error_in((error.stderr + error.stdout).decode(errors="replace"))
            return f"Java {ended_with(error.returncode)}: {words or 'it has logged no error'}"
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        if not made.exists():
            return "Java wrote none"
        made.replace(archive)
    return None


def _run_node(java: Path, class_path: str, place: Path, made: Path) -> None:
    properties, output = place / "server.properties", place / "output"
    (place / "log4j2.properties").write_text(LOG_CONFIG)
    ports = [ReservedPort(_HOST, 0) for _ in range(2)]
    broker, controller = (f"{_HOST}:{port.port}" for port in ports)
    properties.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
        f"controller.quorum.voters=1@{controller}\nlog.dirs={place}/data\n"
        f"listeners=PLAINTEXT://{broker},CONTROLLER://{controller}\n"
    )
    options = java_options(None, place / "log4j2.properties")
    command = [str(java), *options, "-cp", class_path]
    storage = ["kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(properties)]
    subprocess.run([*command, *storage], capture_output=True, timeout=_LIMIT_S, check=True)
    for port in ports:
        port.release()
    archiving = [str(java), f"-XX:ArchiveClassesAtExit={made}", *command[1:]]
    with output.open("wb") as out:
        node = subprocess.Popen(
            [*archiving, "kafka.Kafka", str(properties)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        )
    try:
        until_s = time.monotonic() + _LIMIT_S
        while node.poll() is None and STARTED.encode() not in output.read_bytes():
            if time.monotonic() > until_s:
                return
            time.sleep(0.05)
        node.terminate()
        node.wait(_LIMIT_S)
    finally:
        node.kill()
        node.wait()
