"""A Spark session for the jobs over run directories, and what stands in its way in one line.

Owns: the settings of a session, the words for no pyspark, no Java, no master.  Never: imports
pyspark before it is asked for one.
Kafka: no counterpart.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_HELP: Final = (
    "no Java found: Spark needs Java 17 or newer, as of `apt-get install openjdk-17-jre-headless`"
    " or `brew install openjdk@17`; set JAVA_HOME if it is elsewhere"
)
PYSPARK_HELP: Final = "no pyspark found: pip install 'kcluster[spark]'"
_QUIET: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "FATAL",
    "spark.sql.shuffle.partitions": "8",
}


class SessionError(Exception):
    """There can be no session; the text says why, in one line."""


def open_session(master: str = "local[*]", settings: dict[str, str] | None = None) -> SparkSession:
    """A session, or the one there is; `settings` win.  SessionError where there can be none."""
    if not has_java():
        raise SessionError(JAVA_HELP)
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ModuleNotFoundError:
        raise SessionError(PYSPARK_HELP) from None
    from py4j.protocol import Py4JError

    builder = SparkSession.builder.appName("kcluster").master(master)
    if master.startswith("local"):
        builder = builder.config("spark.driver.host", "127.0.0.1")
        builder = builder.config("spark.driver.bindAddress", "127.0.0.1")
    for name, value in {**_QUIET, **(settings or {})}.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except (PySparkException, Py4JError, OSError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        # The first lines of Py4J's words only say that something was thrown.
        told = next((line for line in lines if "xception: " in line), lines[0] if lines else "")
        raise SessionError(f"no Spark at {master}: {told.rpartition('xception: ')[2]}") from None


def has_java() -> bool:
    """Whether a Java is where Spark looks for it."""
    home = os.environ.get("JAVA_HOME")
    if home:
        return (Path(home) / "bin" / "java").exists()
    return shutil.which("java") is not None
