"""Where a real Kafka is: Java, Kafka's jars, and the archive of their classes.

Owns: finding them, the cache that keeps them, the messages where one is missing.  Never: starts a
node (processes.py does).
Kafka: bin/kafka-run-class.sh, which builds the class path.

Maven resolves the jars, so its settings (a mirror, a proxy, being offline) hold here, too.  They
stay in the cache: `$KCLUSTER_CACHE`, else `$XDG_CACHE_HOME/kcluster`, else `~/.cache/kcluster`.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kcluster.apache_kafka.class_archive import make_archive
from kcluster.config.eras import TODAY, era_of
from kcluster.config.topology.model import Topology
from kcluster.operations.errors import ClusterError
from kcluster.protocol.releases import find_release, latest, releases

FIRST_RELEASE: Final = (4, 0)
"""The oldest release that can be started: earlier ones log with another library."""
FIRST_JAVA: Final = 17
"""The Java that Kafka 4 needs."""
PATCHES: Final = {"4.0": "4.0.1", "4.1": "4.1.1", "4.2": "4.2.0", "4.3": "4.3.1", "4.4": "4.4.0"}
"""The version of a release that is started unless the user names another."""
_MAVEN_LIMIT_S: Final = 600
_JAVA_LIMIT_S: Final = 30
_VERSION: Final = re.compile(r"\d{1,3}\.\d{1,3}\.\d{1,3}(-[A-Za-z0-9.-]{1,20})?")
_JAVA_VERSION: Final = re.compile(r'version "(\d+)')
_CORE_JAR: Final = re.compile(r"kafka_2\.1\d-(\d.*)\.jar")
_POM: Final = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>kcluster</groupId><artifactId>real-kafka</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId>
      <version>{version}</version></dependency>
    <dependency><groupId>org.apache.logging.log4j</groupId>
      <artifactId>log4j-slf4j-impl</artifactId><version>2.25.1</version></dependency>
  </dependencies>
</project>
"""


class Installation(Struct, frozen=True):
    """A Kafka that can be started."""

    version: str
    """Such as `4.4.0`."""
    java: Path
    class_path: str
    archive: Path | None = None
    """The archive of loaded classes, with which a JVM starts in half the time."""


def find_installation(
    version: str | None = None,
    kafka_home: Path | None = None,
    log: Callable[[str], None] = lambda line: None,
) -> Installation:
    """The installation of a version, or the one in an unpacked directory.  The first call for a
    version fetches its jars and archives their classes, and says so in the log.

    ClusterError, in one line: Java, Maven or the jars are missing.
    """
    jars = _unpacked_jars(kafka_home) if kafka_home is not None else None
    if jars is None:
        version = version or PATCHES[latest().name]
        check_version(version)
    else:
        found = _version_of(jars)
        if version not in (None, found):
            raise ClusterError(f"{kafka_home} has Kafka {found}, not {version}")
        version = found
        check_version(version)
    java, java_text = find_java(version)
    if jars is None:
        jars = fetched_jars(version, log)
    class_path = ":".join(map(str, jars))
    installation = Installation(version, java, class_path)
    key = hashlib.sha256(f"{java_text}\n{class_path}".encode()).hexdigest()[:16]
    archive = cache_directory() / "classes" / f"kafka-{version}-{key}.jsa"
    if not archive.exists():
        with _alone(archive.parent):
            problem = _archived(installation, archive, log)
        if problem is not None:
            log(f"no archive, so that each node starts more slowly: {problem}")
            return installation
    return replace(installation, archive=archive)


def _archived(installation: Installation, archive: Path, log: Callable[[str], None]) -> str | None:
    """Make the archive, unless another process has made it meanwhile.  Returns the reason if that
    fails."""
    if archive.exists():
        return None
    log(f"archiving the classes of Kafka {installation.version} for quicker starts; this once")
    return make_archive(installation.java, installation.class_path, archive)


def version_for(topology: Topology) -> str:
    """The version to start for a topology: its `kafka_version`, or the newest.  ClusterError if
    brokers are of different releases, which one installation cannot be, or lack a fix, which no
    setting of a real Kafka takes back."""
    if era_of(topology.era) != TODAY:
        eras = ", ".join(topology.era)
        raise ClusterError(f"era: {eras}: a real Kafka has the fix, and no setting takes it back")
    names = list(dict.fromkeys(topology.release_of(spec.id).name for spec in topology.brokers))
    if len(names) > 1:
        raise ClusterError(
            f"brokers of {' and '.join(names)}: on the real ground all are of one version"
        )
    check_version(names[0])
    return PATCHES.get(names[0], f"{names[0]}.0")


def check_version(version: str) -> None:
    """ClusterError if no such version can be started."""
    release = find_release(version.partition("-")[0])
    known = ", ".join(name for name in releases() if releases()[name].number >= FIRST_RELEASE)
    if release is None or release.number < FIRST_RELEASE:
        raise ClusterError(f"Kafka {version} cannot be started; the releases are {known}")


# ----------------------------------------------------------------------------------- Java


def find_java(version: str) -> tuple[Path, str]:
    """Java, and what it says of its version.  ClusterError if it is missing or too old."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(str(Path(home, "bin", "java")) if home else "java")
    if found is None:
        where = f"JAVA_HOME ({home}) has no bin/java" if home else "there is no `java` in PATH"
        raise ClusterError(f"a real Kafka needs Java {FIRST_JAVA} or later: {where}")
    try:
        ended = subprocess.run(
            [found, "-version"], capture_output=True, text=True, timeout=_JAVA_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ClusterError(f"{found} -version failed: {error}") from error
    text = ended.stderr + ended.stdout
    number = _JAVA_VERSION.search(text)
    if ended.returncode or number is None:
        raise ClusterError(f"{found} -version failed: {_first_line(text)}")
    if int(number[1]) < FIRST_JAVA:
        raise ClusterError(
            f"Kafka {version} needs Java {FIRST_JAVA} or later; {found} is Java {number[1]}"
        )
    return Path(found), text


# ----------------------------------------------------------------------------------- jars


def cache_directory() -> Path:
    """Where fetched jars and archives of classes are kept."""
    own = os.environ.get("KCLUSTER_CACHE")
    if own:
        return Path(own).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "kcluster"


def fetched_jars(version: str, log: Callable[[str], None]) -> list[Path]:
    """The jars of a version, from the cache, or else from Maven."""
    if not _VERSION.fullmatch(version):
        raise ClusterError(f"{version} is no version such as {PATCHES[latest().name]}")
    place = cache_directory() / f"kafka-{version}"
    if not place.is_dir():
        with _alone(place.parent):
            if not place.is_dir():
                _fetch(version, place, log)
    return sorted(place.glob("*.jar"))


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """One process at a time: two Mavens at once remove each other's partial files."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w") as lock:
        flock(lock, LOCK_EX)
        yield


def _fetch(version: str, place: Path, log: Callable[[str], None]) -> None:
    """Fetch the jars into a new directory, which appears as a whole: others look for it."""
    maven = shutil.which("mvn")
    if maven is None:
        raise ClusterError(
            f"Maven fetches the jars of Kafka {version}, and there is no `mvn` in PATH; or name an"
            " unpacked Kafka with --kafka-home DIR"
        )
    log(f"fetching the jars of Kafka {version} with Maven (60 MB); this once")
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".fetching-") as temporary:
        pom, jars = Path(temporary, "pom.xml"), Path(temporary, "jars")
        pom.write_text(_POM.format(version=version))
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={jars}"]
        try:
            ended = subprocess.run(
                [maven, "-q", "-B", "-f", str(pom), *goal],
                capture_output=True,
                text=True,
                timeout=_MAVEN_LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise ClusterError(
                f"Maven did not fetch Kafka {version} in {_MAVEN_LIMIT_S} s"
            ) from None
        if ended.returncode or not any(jars.glob("kafka_2.*.jar")):
            reason = _first_line(ended.stdout + ended.stderr).removeprefix("[ERROR] ")
            raise ClusterError(f"Maven could not fetch Kafka {version}: {reason}")
        jars.rename(place)


def _unpacked_jars(home: Path) -> list[Path]:
    if not home.is_dir():
        raise ClusterError(f"{home}: no such directory")
    jars = sorted((home.absolute() / "libs").glob("*.jar"))
    if not any(_CORE_JAR.fullmatch(jar.name) for jar in jars):
        raise ClusterError(f"{home} is not an unpacked Kafka: it has no libs/kafka_2.13-*.jar")
    return jars


def _version_of(jars: list[Path]) -> str:
    return next(found[1] for jar in jars if (found := _CORE_JAR.fullmatch(jar.name)))


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "it says nothing")
