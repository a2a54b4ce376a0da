"""The archive that executors on other machines get from the driver: the package, and its
dependencies if requested.

Owns: both archives, and the error of a worker whose Python cannot import them.  Never: starts a
session (session.py), chooses the workers' Python (PYSPARK_PYTHON does).
Kafka: no counterpart.  Spark: its page "Python Package Management" ships whole environments, by
venv-pack or conda-pack; an archive of the installed files needs neither, and no interpreter at the
same place on each worker (docs/decisions/023).

Dependencies with machine code fit workers of the same platform and minor version of Python.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Final

import kcluster
from kcluster.extras import DISTRIBUTION

ARCHIVE: Final = "kcluster_package"
"""The directory in which an executor unpacks the archive."""
COMPILED: Final = (".pyc", ".so", ".pyd")


def write_archive(place: Path, ships_dependencies: bool) -> None:
    """Write a zip file with the package, and with its dependencies if wanted.  The package comes
    without its C extension, because the workers' platform may differ."""
    root = Path(kcluster.__file__).parent
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        for file in sorted(root.rglob("*")):
            if file.is_file() and file.suffix not in COMPILED:
                packed.write(file, Path("kcluster") / file.relative_to(root))
        for each in dependencies() if ships_dependencies else ():
            for path in each.files or ():
                # The paths of scripts lie outside of the directory of packages: ../../../bin/x.
                if ".." not in path.parts and path.suffix != ".pyc":
                    packed.write(path.locate(), path)


def dependencies(name: str = DISTRIBUTION) -> Iterator[Distribution]:
    """The installed distributions that a distribution requires, without extras, each once; not the
    distribution itself."""
    from packaging.requirements import Requirement

    seen, waiting = {name}, [name]
    while waiting:
        for text in distribution(waiting.pop()).requires or ():
            needed = Requirement(text)
            key = re.sub(r"[-_.]+", "-", needed.name).lower()
            if key not in seen and (needed.marker is None or needed.marker.evaluate({"extra": ""})):
                seen.add(key)
                waiting.append(key)
                yield distribution(key)
