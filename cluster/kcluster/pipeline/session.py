"""A Spark session for the jobs, or a one-line reason why there is none.

Owns: the settings and log level of a session, the check of the master before Spark waits a minute
for it, pyspark's look-ups of Java's classes, the errors for missing pyspark, Java or master.
Never: writes what is shipped to workers (shipping.py), imports pyspark before a session is
requested.  Kafka: no counterpart.
"""

from __future__ import annotations

import atexit
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Final

from kcluster.extras import how_to_install
from kcluster.pipeline.shipping import lacking, ship

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_MIN: Final = 17
_JAVA_HOW: Final = (
    "Spark needs Java 17 or newer, as of `apt-get install openjdk-17-jre-headless`"
    " or `brew install openjdk@17`; set JAVA_HOME if it is elsewhere"
)
JAVA_HELP: Final = f"no Java found: {_JAVA_HOW}"
TRIES: Final = 4
"""Attempts per task: Spark's default on a cluster (spark.task.maxFailures).  Local mode has 1."""

_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "8",
    # Otherwise each operation on a column records its place in the program, which doubles its time.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.dataFrameQueryContext.enabled": "false",
}
SMALL: Final = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "1",
    # The driver lists the files itself; otherwise, from 33 paths on, a job would list them.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
}
"""Settings for little data, where compiling a plan takes longer than running it.  The demo takes
28 s instead of 46 with them."""
SMALL_BYTES: Final = 32 << 20
"""The size up to which data counts as little."""
_LOCAL: Final = re.compile(r"local(?:\[(\*|\d+)(?:, *\d+)?\])?")
_STANDALONE: Final = re.compile(r"([^:,/]+):(\d+)")
_CONNECT_S: Final = 5
_OFTEN_CALLED: Final = (
    "functions",
    "org.apache.spark.sql.functions",
    "PythonUtils",
    "PythonSQLUtils",
)
"""Names, as pyspark has them, of the Java classes that it calls most often."""
_KNOWN: Final = ("local", "local-cluster[", "spark://", "yarn", "k8s://")


class SessionError(Exception):
    """The error for a session that cannot be opened; the text is one line."""


def open_session(
    master: str = "local[*]",
    settings: dict[str, str] | None = None,
    verbose: bool = False,
    needs: Sequence[str] = (),
) -> SparkSession:
    """A new session, or the existing one.  `settings` override the defaults; `verbose`: Spark logs
    to stderr.  Workers of a cluster get the package, and the distributions `needs` with their
    dependencies (shipping.py).  A task has TRIES attempts, on local masters too.  SessionError."""
    if not has_java():
        raise SessionError(JAVA_HELP)
    try:
        import pyspark  # noqa: F401  # checks that it is installed
    except ModuleNotFoundError:
        raise SessionError(f"no pyspark found: {how_to_install('spark')}") from None
    _check_master(master)
    level = {"spark.log.level": "WARN" if verbose else "OFF"}
    chosen = {**_SETTINGS, **level, **(settings or {})}
    if verbose:
        spark = _start(master, chosen)
    else:
        with _without_stderr():
            spark = _start(master, chosen)
    if is_local(master):
        spark.sparkContext.pythonExec = _worker_python()  # for an existing session, too
    else:
        ship(spark, needs)
    _look_up_once(spark)
    return spark


class _JavaClass:
    """A Java class whose static methods are looked up once."""

    def __init__(self, java_class: object) -> None:
        self._java_class = java_class

    def __getattr__(self, name: str) -> object:
        method = getattr(self._java_class, name)
        setattr(self, name, method)
        return method


def _look_up_once(spark: SparkSession) -> None:
    """Keep the Java classes that pyspark calls most.  By default, it looks up the class and the
    method at each call, which is nearly half of its messages to Java; for a class, Java searches
    its jars."""
    jvm: object = spark._jvm
    for name in _OFTEN_CALLED:
        if not isinstance(vars(jvm).get(name), _JavaClass):
            setattr(jvm, name, _JavaClass(getattr(jvm, name)))


def has_java() -> bool:
    """Whether there is a Java where Spark looks for one."""
    return _java() is not None


def is_local(master: str) -> bool:
    """Whether tasks run on this machine, from this installation."""
    return _LOCAL.fullmatch(master) is not None


def waits_for_executors(spark: SparkSession) -> bool:
    """Whether a cluster has not given this session a single executor yet."""
    context: Any = spark.sparkContext
    # The driver is listed beside the executors; on a local master it is the only one.
    return not is_local(context.master) and context._jsc.sc().getExecutorMemoryStatus().size() <= 1


def why(error: Exception) -> str:
    """The line of a Spark error that names the problem: a worker's Python error if there is one,
    without Java's stack."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    traces = [at for at, line in enumerate(lines) if "Traceback (most recent" in line]
    if traces:
        for line in lines[traces[-1] + 1 :]:
            # Indented: a place in the program, or its source.
            if not line[0].isspace() and ": " in line.split(" ")[0] + " ":
                return lacking(line, _workers_python())
    # Py4J's first lines only say that something was thrown.
    text = next((line for line in lines if "xception: " in line), "".join(lines[:1])).strip()
    return text.rpartition("xception: ")[2] or type(error).__name__


def _workers_python() -> str:
    """The program that runs Python on the workers, as the session names it."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    return context.pythonExec if context is not None else "python3"


@cache
def _worker_python() -> str:
    """A program that starts this Python with the import path of this process.

    Spark puts its own archive of pyspark first in the path.  The archive has no bytecode, so each
    worker would compile its imports, in half a second."""
    if os.name != "posix":
        return sys.executable
    place = Path(mkdtemp(prefix="kcluster-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    program = place / "python"
    path = shlex.quote(os.pathsep.join(filter(None, sys.path)))
    program.write_text(
        f'#!/bin/sh\nPYTHONPATH={path} exec {shlex.quote(sys.executable)} "$@"\n', "utf-8"
    )
    program.chmod(0o755)
    may_run = os.access(program, os.X_OK)  # not where the file system forbids it
    return str(program) if may_run else sys.executable


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
        # Workers use this installation, not the python3 on the PATH.
        with _environment(PYSPARK_PYTHON=_worker_python()) if is_local(master) else nullcontext():
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
    """The reason why this Java is too old; None if it is not."""
    java = _java() or "java"
    version = subprocess.run([java, "-version"], capture_output=True, text=True).stderr
    match = re.search(r'version "(?:1\.)?(\d+)', version)
    if match is None or int(match[1]) >= JAVA_MIN:
        return None
    return f"Java {match[1]} found: {_JAVA_HOW}"


@contextmanager
def _environment(**variables: str) -> Iterator[None]:
    """Set environment variables for the processes that are started inside."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _without_stderr() -> Iterator[None]:
    """Give a null stderr to the processes that are started inside.  This hides Java's output before
    its log level is set, and its stacks when a worker dies."""
    sys.stderr.flush()
    stderr = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(nowhere)
        os.close(stderr)


def _patient(master: str) -> str:
    """The master with four attempts per task, `local[2]` -> `local[2,4]`: the job survives the
    death of a worker."""
    match = _LOCAL.fullmatch(master)
    return master if match is None or "," in master else f"local[{match[1] or 1},{TRIES}]"


def _check_master(master: str) -> None:
    """Check a master; SessionError if the text is no master, or no process listens at its
    address."""
    if not (is_local(master) or master.startswith(_KNOWN[1:])):
        raise SessionError(
            f"no Spark at {master}:"
            " a master is local[2], local[*], spark://host:7077, yarn or k8s://"
        )
    if not master.startswith("spark://"):
        return
    reasons = []
    addresses = _STANDALONE.findall(master.removeprefix("spark://"))
    for host, port in addresses:
        try:
            socket.create_connection((host, int(port)), timeout=_CONNECT_S).close()
        except (OSError, OverflowError) as error:
            reasons.append(f"{host}:{port}: {getattr(error, 'strerror', None) or error}")
    if len(reasons) == len(addresses):
        raise SessionError(
            f"no Spark at {master}: {reasons[0] if reasons else 'no host:port in it'}"
        )
