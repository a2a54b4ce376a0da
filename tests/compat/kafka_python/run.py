"""kafka-python's own integration tests against a cluster of ours: `make compat`.

Owns: fetching kafka-python's source distribution through pip, a cluster with the configs that its
fixtures give a real broker, the comparison of what passed with tests.allow.  Never: keeps or copies
their code; the distribution is unpacked outside of what git tracks.

tests.allow names the tests that must pass, one per line; FINDINGS.md explains why the others do
not.  Exit code: 0 all of them passed, or pip could not fetch the distribution (reported on stderr);
1 some did not; 2 the list itself is wrong (an unknown test, or one that passes and is missing).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

from kcluster.config.topology.model import Topology
from kcluster.handle.cluster import Cluster
from kcluster.proxy.proxy import ProxySettings
from kcluster.proxy.running import RunningProxy

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[2]
DISTRIBUTION: Final = "kafka-python==3.0.12"
KAFKA_VERSION: Final = "4.3.0"
"""The newest in the client's table of versions: what it infers from our ApiVersions."""

FETCH_LIMIT_S: Final = 180
RUN_LIMIT_S: Final = 600

TOPOLOGY: Final = Topology.of(
    brokers=[{"id": 0}],
    profile="fast",
    config={"num.partitions": 4, "group.initial.rebalance.delay.ms": 0},
)
"""One broker with id 0, as theirs: one test wants the records of six partitions from a single poll,
which no client gets from more than one broker."""

SERVICE: Final = '''
"""Stands in for the module of the same name, which the distribution does not carry."""


class SpawnedService:
    """Never made: the broker is an external one."""


class ExternalService:
    """A broker that is started and stopped elsewhere."""

    def __init__(self, host, port):
        self.host, self.port = host, port

    def open(self):
        pass

    def close(self):
        pass

    def dump_logs(self):
        pass
'''


class Outcome(NamedTuple):
    """The outcomes of their tests, by name (`test_x.py::test_y[z]`)."""

    passed: tuple[str, ...]
    failed: tuple[str, ...]
    skipped: tuple[str, ...]


def fetch(directory: Path) -> Path | None:
    """The unpacked source distribution; None, with a line on stderr, if pip cannot get it."""
    name, version = DISTRIBUTION.split("==")
    unpacked = directory / f"{name.replace('-', '_')}-{version}"
    if not unpacked.is_dir():
        directory.mkdir(parents=True, exist_ok=True)
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--no-binary",
            ":all:",
            "--dest",
            str(directory),
            DISTRIBUTION,
        ]
        try:
            subprocess.run(
                command, check=True, timeout=FETCH_LIMIT_S, capture_output=True, text=True
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            stderr = str(error.stderr or "").strip().splitlines()
            reason = stderr[-1] if stderr else type(error).__name__
            print(f"compat: skipped; pip cannot fetch {DISTRIBUTION}: {reason}", file=sys.stderr)
            return None
        with tarfile.open(unpacked.with_name(unpacked.name + ".tar.gz")) as archive:
            archive.extractall(directory, filter="data")
    # Without these `test` would be the standard library's, and the fixtures could not be imported.
    (unpacked / "test" / "__init__.py").touch()
    (unpacked / "test" / "service.py").write_text(SERVICE)
    return unpacked


def run(unpacked: Path, bootstrap: str, arguments: Sequence[str]) -> Outcome:
    """Their tests, in a process of their own, against one broker's address."""
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory) / "report.xml"
        subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "test/integration",
                "-c",
                os.devnull,
                "--ignore-glob=*_ssl_*",
                "--ignore-glob=*_sasl_*",
                f"--rootdir={unpacked}",
                "-p",
                "no:cacheprovider",
                "-p",
                "no:xdist",
                "-q",
                "-rf",
                "--show-capture=no",
                "--tb=line",
                "-W",
                "ignore",
                "--durations=8",
                f"--junit-xml={report}",
                *arguments,
            ],
            cwd=unpacked,
            env={
                **os.environ,
                "KAFKA_URI": f"kafka://{bootstrap}",
                "KAFKA_VERSION": KAFKA_VERSION,
                "KAFKA_ROOT": str(unpacked),  # any directory: nothing in it is started
                "PYTHONPATH": os.pathsep.join([str(unpacked), os.environ.get("PYTHONPATH", "")]),
            },
            timeout=RUN_LIMIT_S,
            check=False,
        )
        return read_report(report)


def read_report(path: Path) -> Outcome:
    """The outcome of each test in a JUnit report."""
    passed, failed, skipped = [], [], []
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        module = case.get("classname", "").removeprefix("test.integration.").replace(".", "::")
        name = f"{module.split('::')[0]}.py::{case.get('name')}"
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(name)
        elif case.find("skipped") is not None:
            skipped.append(name)
        else:
            passed.append(name)
    return Outcome(tuple(passed), tuple(failed), tuple(skipped))


def allowed() -> tuple[str, ...]:
    """The tests that must pass."""
    lines = (HERE / "tests.allow").read_text().splitlines()
    return tuple(line for line in lines if line and not line.startswith("#"))


def verdict(outcome: Outcome, allow: Sequence[str]) -> int:
    """The exit code, its reasons on stdout."""
    # A test skipped for lack of a compression library is not our failure.
    missing = sorted(set(allow) - set(outcome.passed) - set(outcome.skipped))
    unlisted = sorted(set(outcome.passed) - set(allow))
    for name in missing:
        problem = "failed" if name in outcome.failed else "is missing"
        print(f"compat: {name} must pass and {problem}")
    for name in unlisted:
        print(f"compat: {name} passes now: add it to tests.allow, take it out of FINDINGS.md")
    print(
        f"compat: {len(outcome.passed)} passed, {len(outcome.failed)} failed, "
        f"{len(outcome.skipped)} skipped; {len(allow)} must pass"
    )
    if any(name in outcome.failed for name in missing):
        return 1
    return 2 if missing or unlisted else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it all; arguments that are not ours go to pytest (then nothing is compared)."""
    parser = argparse.ArgumentParser(description="kafka-python's own tests against kcluster")
    parser.add_argument("--directory", type=Path, default=ROOT / ".venv" / "compat")
    parser.add_argument("--bootstrap", help="a broker of another cluster, such as a real Kafka")
    parser.add_argument("--proxied", action="store_true", help="through an idle kcluster proxy")
    options, others = parser.parse_known_args(arguments)
    unpacked = fetch(options.directory)
    if unpacked is None:
        return 0
    with ExitStack() as running:
        bootstrap = options.bootstrap
        if bootstrap is None:
            bootstrap = running.enter_context(Cluster(TOPOLOGY)).bootstrap.split(",")[0]
        if options.proxied:
            host, _, port = bootstrap.rpartition(":")
            settings = ProxySettings(((host, int(port)),), base_port=0)
            bootstrap = running.enter_context(RunningProxy(settings)).bootstrap
        outcome = run(unpacked, bootstrap, others)
    return (1 if outcome.failed else 0) if others else verdict(outcome, allowed())


if __name__ == "__main__":
    raise SystemExit(main())
