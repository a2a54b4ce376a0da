"""What executors on other machines get from the driver: the package, and its dependencies if asked.

Owns: both archives, where the workers' Python looks for them, the error of a worker that cannot
import what it needs.  Never: starts a session (session.py), chooses the workers' Python
(PYSPARK_PYTHON does).
Kafka: no counterpart.  Spark: its page "Python Package Management" ships whole environments, by
venv-pack or conda-pack; an archive of the installed files needs neither, and no interpreter at the
same place on each worker (docs/decisions/023).

Dependencies with machine code fit workers of the same platform and minor version of Python.
"""

from __future__ import annotations

import atexit
import importlib
import os
import platform
import re
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.metadata import Distribution, distribution
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Final

import kcluster
from kcluster.extras import DISTRIBUTION

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGE: Final = "kcluster_package"
"""The directory in which driver and executors unpack the package."""
DEPENDENCIES: Final = "kcluster_dependencies"
"""The directory in which they unpack its dependencies."""
SWEEP_NEEDS: Final = (DISTRIBUTION,)
"""What workers need to play runs, for a sweep or a search: these distributions, and all that they
need."""
SOURCE_NEEDS: Final = (DISTRIBUTION, "numpy", "pyarrow")
"""What workers need for format("kcluster")."""
LACKS_MODULE: Final = "WorkerLacksModule"
"""The name of the error of a worker's Python that cannot import what it needs."""
_ADVICE: Final = (
    "--ship-env (in Python: ship_env=True) sends what this installation has,"
    " or install kcluster's dependencies there and name that Python in PYSPARK_PYTHON"
)
_COMPILED: Final = (".pyc", ".so", ".pyd")
_UNUSED: Final = {"include", "tests"}
"""Directories of distributions that no program imports: 30 MB of pyarrow and numpy."""


def ship(spark: SparkSession, needs: Sequence[str] = ()) -> None:
    """Send the package to the workers of a session's cluster, and `needs` with their dependencies.
    Each archive is sent once per session."""
    context = spark.sparkContext
    sent = {archive.rpartition("#")[2] for archive in context.listArchives}
    place = Path(mkdtemp(prefix="kcluster-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)  # executors fetch it until then
    if PACKAGE not in sent:
        write_package(place / "package.zip")
        context.addArchive(f"{place / 'package.zip'}#{PACKAGE}")
    if needs and DEPENDENCIES not in sent:
        write_distributions(place / "dependencies.zip", dependencies(needs))
        context.addArchive(f"{place / 'dependencies.zip'}#{DEPENDENCIES}")
    _look_there(spark)


def _look_there(spark: SparkSession) -> None:
    """Let Python processes look into both directories from their start: pyspark imports pyarrow
    before it calls a data source.  An executor unpacks archives where it runs its processes, the
    driver (whose processes plan the reading of a source) elsewhere."""
    from pyspark import SparkFiles

    names = (PACKAGE, DEPENDENCIES)
    places = [*names, *(f"{SparkFiles.getRootDirectory()}/{name}" for name in names)]
    environment: dict[str, str] = spark.sparkContext.environment
    before = environment.get("PYTHONPATH", "")
    others = [place for place in before.split(os.pathsep) if place and place not in places]
    environment["PYTHONPATH"] = os.pathsep.join(places + others)


def import_check(*modules: str) -> Callable[[], None]:
    """A function that raises an error which names the worker's Python and what to do, if a module
    cannot be imported.  It is pickled by value: it runs where this package may be missing."""
    advice = _ADVICE

    def check() -> None:
        class WorkerLacksModule(Exception):
            pass

        try:
            for module in modules:
                importlib.import_module(module)
        except ImportError as error:
            version, host = platform.python_version(), platform.node()
            raise WorkerLacksModule(
                f"a worker's Python ({sys.executable}, {version}, on {host}) cannot run kcluster:"
                f" {error}; {advice}"
            ) from None

    return check


def lacking(line: str, python: str) -> str:
    """The error of a worker in one line; `line`: its last, `python`: the workers' program."""
    name, _, text = line.partition(": ")
    if name.rpartition(".")[2] == LACKS_MODULE:
        return text
    if name in ("ImportError", "ModuleNotFoundError"):  # of pyspark, before it calls the package
        return f"the workers' Python ({python}) cannot run kcluster: {text}; {_ADVICE}"
    return line


def write_package(place: Path) -> None:
    """Write a zip file with the package, without its C extension, as the workers' platform may be
    another one."""
    root = Path(kcluster.__file__).parent
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        for file in sorted(root.rglob("*")):
            if file.is_file() and file.suffix not in _COMPILED:
                packed.write(file, Path("kcluster") / file.relative_to(root))


def write_distributions(place: Path, distributions: Iterable[Distribution]) -> None:
    """Write a zip file with the installed files of distributions."""
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        for each in distributions:
            for path in each.files or ():
                # Scripts lie outside of the directory of packages: ../../../bin/x.
                is_used = _UNUSED.isdisjoint(path.parts) and ".." not in path.parts
                if is_used and path.suffix != ".pyc":
                    packed.write(path.locate(), path)


def dependencies(names: Sequence[str] = SWEEP_NEEDS) -> Iterator[Distribution]:
    """These installed distributions and everything that they need, without extras, each once; not
    the package itself."""
    from packaging.requirements import Requirement

    seen, waiting = set(names), list(names)
    while waiting:
        found = distribution(waiting.pop())
        for text in found.requires or ():
            needed = Requirement(text)
            key = re.sub(r"[-_.]+", "-", needed.name).lower()
            if key not in seen and (needed.marker is None or needed.marker.evaluate({"extra": ""})):
                seen.add(key)
                waiting.append(key)
        if found.name != DISTRIBUTION:
            yield found
