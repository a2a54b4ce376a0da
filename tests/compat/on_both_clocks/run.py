"""Other projects' own integration tests on both clocks, compared test by test:

    python -m tests.compat.on_both_clocks.run kafka-python
    python -m tests.compat.on_both_clocks.run aiokafka --checkout DIRECTORY

Owns: where the suites come from, their runs, the comparison as Markdown.  Never: keeps their code.

aiokafka's source distribution has no tests, so they come from a checkout of its tag v0.14.0.  Exit
code: 0 if each test has the same outcome on both clocks, 1 if not.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.compat.kafka_python.run import ROOT, fetch

HERE: Final = Path(__file__).parent
LIMIT_S: Final = 1800
CLOCKS: Final = ("live", "virtual")
SLOW_S: Final = 2.0
"""Tests that take longer live are listed one by one."""
MODULES: Final = {
    "kafka-python": (
        "test_admin_integration",
        "test_consumer_integration",
        "test_producer_integration",
        "test_sasl_integration",
        "test_ssl_integration",
    ),
    "aiokafka": (
        "test_admin",
        "test_client",
        "test_conn",
        "test_consumer",
        "test_coordinator",
        "test_pep492",
        "test_producer",
        "test_sasl",
        "test_sender",
        "test_transactional_consumer",
        "test_transactional_producer",
    ),
}
"""The files of each suite that need a broker."""
FOLDERS: Final = {"kafka-python": "test/integration", "aiokafka": "tests"}


class Line(NamedTuple):
    """What the plugin wrote about one test on one clock."""

    test: str
    clock: str
    outcome: str
    wall_s: float
    cpu_s: float
    cluster_s: float
    requests: dict[str, int]


class Pair(NamedTuple):
    """One test on both clocks."""

    live: Line
    virtual: Line

    @property
    def name(self) -> str:
        """Without its file and class."""
        return self.live.test.rpartition("::")[2]

    @property
    def differing(self) -> dict[str, tuple[int, int]]:
        """By API, the requests live and in virtual time, where they differ."""
        one, other = self.live.requests, self.virtual.requests
        counts = {api: (one.get(api, 0), other.get(api, 0)) for api in sorted({*one, *other})}
        return {api: both for api, both in counts.items() if both[0] != both[1]}


def run(suite: str, directory: Path, clock: str, arguments: Sequence[str]) -> list[Line]:
    """The suite on one clock, in a process of its own; a line for each test."""
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.jsonl"
        files = [f"{FOLDERS[suite]}/{module}.py" for module in MODULES[suite]]
        command = [
            *(sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir=.", "-q", "-rf"),
            *("-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:asyncio", "-p", "no:timeout"),
            *("-W", "ignore", "--tb=line", "--show-capture=no"),
            *("-p", "on_both_clocks.plugin", "--kcluster-suite", suite),
            *("--kcluster-suite-clock", clock, "--kcluster-suite-report", str(report)),
            *(("--docker-image=kcluster:4.3.1",) if suite == "aiokafka" else ()),
            *files,
            *arguments,
        ]
        # In virtual time the hash seed is part of the seed: sets of strings have an order.
        path = os.pathsep.join([str(directory), str(HERE.parent), str(ROOT / "cluster")])
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": "0"}
        print(f"{suite}, {clock}:", flush=True)
        subprocess.run(command, cwd=directory, env=environment, timeout=LIMIT_S, check=False)
        return [Line(**json.loads(line)) for line in report.read_text().splitlines()]


def paired(live: Sequence[Line], virtual: Sequence[Line]) -> list[Pair]:
    """By test."""
    by_name = {line.test: line for line in virtual}
    return [Pair(line, by_name[line.test]) for line in live if line.test in by_name]


def markdown(suite: str, pairs: Sequence[Pair]) -> Iterator[str]:
    """The comparison, as a section of a page."""
    live, virtual = [pair.live for pair in pairs], [pair.virtual for pair in pairs]
    same = [pair for pair in pairs if not pair.differing]
    yield f"## {suite}"
    yield ""
    yield "| | live | virtual |"
    yield "|---|---|---|"
    yield f"| {_outcomes(live)[0]} | {_outcomes(live)[1]} | {_outcomes(virtual)[1]} |"
    for name, field in (("wall time", "wall_s"), ("CPU time", "cpu_s"), ("time of the cluster",
                                                                         "cluster_s")):  # fmt: skip
        yield f"| {name} | {_sum(live, field):.1f} s | {_sum(virtual, field):.1f} s |"
    yield ""
    yield f"{len(same)} of {len(pairs)} tests send the same number of requests of each API on both"
    yield "clocks. The others, live / virtual:"
    yield ""
    for pair in pairs:
        if pair.differing:
            counts = ", ".join(f"{api} {a}/{b}" for api, (a, b) in pair.differing.items())
            yield f"- `{pair.name}`: {counts}"
    yield ""
    slow = sorted(
        (pair for pair in pairs if pair.live.wall_s > SLOW_S), key=lambda pair: -pair.live.wall_s
    )
    if slow:
        yield f"Tests that take more than {SLOW_S:g} s live:"
        yield ""
        yield "| test | live | virtual |"
        yield "|---|---|---|"
    for pair in slow:
        yield f"| `{pair.name}` | {pair.live.wall_s:.1f} s | {pair.virtual.wall_s:.2f} s |"
    if slow:
        yield ""
    yield "Not passed, on either clock:"
    yield ""
    for pair in pairs:
        if not pair.live.outcome.startswith("passed"):
            yield f"- `{pair.name}` {pair.live.outcome}"
    yield ""


def _outcomes(lines: Sequence[Line]) -> tuple[str, str]:
    counted = Counter(line.outcome.split(" ")[0].rstrip(":") for line in lines)
    names = sorted(counted)
    return ", ".join(names), ", ".join(str(counted[name]) for name in names)


def _sum(lines: Sequence[Line], field: str) -> float:
    return sum((getattr(line, field) for line in lines), 0.0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Arguments that are not ours go to pytest."""
    parser = argparse.ArgumentParser(description="Other projects' tests on both clocks.")
    parser.add_argument("suite", choices=MODULES)
    parser.add_argument("--checkout", type=Path, help="of aiokafka's tag v0.14.0")
    parser.add_argument("--write", type=Path, help="replace the suite's section of this page")
    options, others = parser.parse_known_args(arguments)
    directory: Path | None = options.checkout
    if options.suite == "kafka-python":
        directory = fetch(ROOT / ".venv" / "compat")
    if directory is None:
        parser.error("aiokafka's source distribution has no tests: --checkout of its tag")
    lines: dict[str, Any] = {
        clock: run(options.suite, directory.resolve(), clock, others) for clock in CLOCKS
    }
    pairs = paired(lines["live"], lines["virtual"])
    text = "\n".join(markdown(options.suite, pairs))
    if options.write is None:
        print(text)
    else:
        page = options.write.read_text(encoding="utf-8")
        options.write.write_text(with_section(page, options.suite, text), encoding="utf-8")
    differing = [pair for pair in pairs if _kind(pair.live) != _kind(pair.virtual)]
    for pair in differing:
        print(f"{pair.name}: live {pair.live.outcome}; virtual {pair.virtual.outcome}")
    return 1 if differing or len(pairs) < len(lines["live"]) else 0


def with_section(page: str, suite: str, text: str) -> str:
    """The page with `text` in the place of the section of this suite, or at its end."""
    before, heading, rest = page.partition(f"## {suite}\n")
    _, following, others = rest.partition("\n## ")
    end = following + others if heading else ""
    return before.rstrip("\n") + "\n\n" + text.rstrip("\n") + "\n" + end


def _kind(line: Line) -> str:
    return line.outcome.split(" ")[0]


if __name__ == "__main__":
    raise SystemExit(main())
