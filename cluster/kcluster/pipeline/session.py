"""A Spark session for the jobs, and what stands in its way in one line.

Owns: the settings of a session, its silence, a look at the master before Spark waits a minute for
it, the package's way to the workers, the words for no pyspark, no Java, no master.  Never: imports
pyspark before it is asked for a session.
Kafka: no counterpart.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Final

import kcluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_MIN: Final = 17
_JAVA_HOW: Final = (
    "Spark needs Java 17 or newer, as of `apt-get install openjdk-17-jre-headless`"
    " or `brew install openjdk@17`; set JAVA_HOME if it is elsewhere"
)
JAVA_HELP: Final = f"no Java found: {_JAVA_HOW}"
PYSPARK_HELP: Final = "no pyspark found: pip install 'kcluster-sim[spark]'"
ARCHIVE: Final = "kcluster_package"
"""The directory in which an executor unpacks the package that was sent to it."""
TRIES: Final = 4
"""Of a task: Spark's default on a cluster (spark.task.maxFailures), which local mode has not."""

_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "8",
}
SMALL: Final = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "1",
}
"""Settings for little data: a plan begins sooner than it could be compiled.  The demo takes 28 s
instead of 46 with them."""
SMALL_BYTES: Final = 32 << 20
"""So much is little."""
_LOCAL: Final = re.compile(r"local(?:\[(\*|\d+)(?:, *\d+)?\])?")
_STANDALONE: Final = re.compile(r"([^:,/]+):(\d+)")
_CONNECT_S: Final = 5
_KNOWN: Final = ("local", "local-cluster[", "spark://", "yarn", "k8s://")


class SessionError(Exception):
    """There can be no session; the text says why, in one line."""


def open_session(
    master: str = "local[*]", settings: dict[str, str] | None = None, verbose: bool = False
) -> SparkSession:
    """A session, or the one there is; `settings` win.  `verbose`: with Spark's own words on stderr.
    A task that fails is tried TRIES times, on local masters too.  SessionError."""
    if not has_java():
        raise SessionError(JAVA_HELP)
    try:
        import pyspark  # noqa: F401  # whether it is there
    except ModuleNotFoundError:
        raise SessionError(PYSPARK_HELP) from None
    _check_master(master)
    level = {"spark.log.level": "WARN" if verbose else "OFF"}
    chosen = {**_SETTINGS, **level, **(settings or {})}
    if verbose:
        spark = _start(master, chosen)
    else:
        with _without_stderr():
            spark = _start(master, chosen)
    if is_local(master):
        # The workers are of this installation, not whatever python3 is in the PATH.
        spark.sparkContext.pythonExec = sys.executable
    else:
        _ship(spark)
    return spark


def has_java() -> bool:
    """Whether a Java is where Spark looks for it."""
    return _java() is not None


def is_local(master: str) -> bool:
    """Whether tasks run on this machine, from this installation."""
    return _LOCAL.fullmatch(master) is not None


def why(error: Exception) -> str:
    """Of what Spark raised, the line that says what was wrong: a worker's Python error where there
    is one, not Java's stack around it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    traces = [at for at, line in enumerate(lines) if "Traceback (most recent" in line]
    if traces:
        for line in lines[traces[-1] + 1 :]:
            if not line.startswith(("File ", "^", "~")) and ": " in line.split(" ")[0] + " ":
                return line
    # The first lines of Py4J's words only say that something was thrown.
    told = next((line for line in lines if "xception: " in line), lines[0] if lines else "")
    return told.rpartition("xception: ")[2] or type(error).__name__


def _start(master: str, settings: dict[str, str]) -> SparkSession:
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("kcluster").master(_patient(master))
    if is_local(master):
        builder = builder.config("spark.driver.host", "127.0.0.1")
        builder = builder.config("spark.driver.bindAddress", "127.0.0.1")
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except (PySparkException, Py4JError, OSError) as error:
        raise SessionError(_too_old() or f"no Spark at {master}: {why(error)}") from None


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        return str(java) if java.exists() else None
    return shutil.which("java")


def _too_old() -> str | None:
    """Why this Java will not do, where that is so."""
    told = subprocess.run([_java() or "java", "-version"], capture_output=True, text=True).stderr
    match = re.search(r'version "(?:1\.)?(\d+)', told)
    if match is None or int(match[1]) >= JAVA_MIN:
        return None
    return f"Java {match[1]} found: {_JAVA_HOW}"


@contextmanager
def _without_stderr() -> Iterator[None]:
    """Processes that are started in here write their stderr nowhere: what Java says before its log
    level is set, and its stacks when a worker dies, are no use to who waits for a job."""
    sys.stderr.flush()
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(nowhere)
        os.close(kept)


def _patient(master: str) -> str:
    """`local[2]` -> `local[2,4]`: a worker that dies is no end of the job."""
    match = _LOCAL.fullmatch(master)
    return master if match is None or "," in master else f"local[{match[1] or 1},{TRIES}]"


def _check_master(master: str) -> None:
    """SessionError where it is none, or nobody listens there."""
    if not (is_local(master) or master.startswith(_KNOWN[1:])):
        raise SessionError(
            f"no Spark at {master}:"
            " a master is local[2], local[*], spark://host:7077, yarn or k8s://"
        )
    if not master.startswith("spark://"):
        return
    whys = []
    found = _STANDALONE.findall(master.removeprefix("spark://"))
    for host, port in found:
        try:
            socket.create_connection((host, int(port)), timeout=_CONNECT_S).close()
        except (OSError, OverflowError) as error:
            whys.append(f"{host}:{port}: {getattr(error, 'strerror', None) or error}")
    if len(whys) == len(found):
        raise SessionError(f"no Spark at {master}: {whys[0] if whys else 'no host:port in it'}")


def _ship(spark: SparkSession) -> None:
    """Send the package to the workers.  They need what it depends on, in the same Python."""
    place = Path(mkdtemp(prefix="kcluster-")) / "package.zip"
    root = Path(kcluster.__file__).parent
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as packed:
        for file in sorted(root.rglob("*")):
            if file.is_file() and file.suffix not in (".pyc", ".so", ".pyd"):
                packed.write(file, Path("kcluster") / file.relative_to(root))
    spark.sparkContext.addArchive(f"{place}#{ARCHIVE}")
