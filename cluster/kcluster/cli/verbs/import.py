"""`kcluster import`: a topology from a real cluster, a scenario from its logs.

Owns: the options, files read and written, exit codes.  Never: knows a format of Kafka's tools or
logs (importing/).
Kafka: no counterpart; it reads what kafka-topics, kafka-configs and kafka-cluster print.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

import click

from kcluster.cli.click_tools import Section, section

if TYPE_CHECKING:
    from kcluster.config.files.problems import Problem
    from kcluster.importing.described import DescribedCluster, LeftOut
    from kcluster.importing.log_scenario import NamedTopology

_INVALID, _FAILED = 2, 1
_EXAMPLES: Final = """\b
kcluster import --bootstrap broker.example:9092 -o topology.yaml
kcluster import --topics topics.txt --configs configs.txt -o topology.yaml
kcluster import --properties server-1.properties --properties server-2.properties -o topology.yaml
kcluster import --log controller.log --topology topology.yaml -o failover.yaml
kcluster import --log */state-change.log */controller.log -o failover.yaml
"""


@section(Section.TOOLS)
@click.command("import", epilog=_EXAMPLES)
@click.option(
    "--bootstrap", metavar="HOST:PORT", help="Read a running cluster; nothing in it is changed."
)
@click.option("--topics", metavar="FILE", help="Saved output of kafka-topics --describe.")
@click.option(
    "--configs",
    multiple=True,
    metavar="FILE",
    help="Saved output of kafka-configs --describe --all, of brokers and of topics; repeatable.",
)
@click.option(
    "--brokers",
    multiple=True,
    metavar="FILE",
    help="Saved output of kafka-cluster list-endpoints or kafka-broker-api-versions, for racks.",
)
@click.option(
    "--properties",
    multiple=True,
    metavar="FILE",
    help="The server.properties of a broker; repeatable.",
)
@click.option(
    "--log",
    multiple=True,
    metavar="FILE",
    help="A controller.log, state-change.log or server.log of 4.x: makes a scenario; repeatable.",
)
@click.argument("logs", nargs=-1, metavar="[FILE]...")
@click.option(
    "--topology", metavar="FILE", help="With --log: the topology file that the scenario will name."
)
@click.option("-o", "--output", metavar="FILE", help="Where to write.  [default: stdout]")
@click.option("--force", is_flag=True, help="Overwrite the output file.")
def command(
    bootstrap: str | None,
    topics: str | None,
    configs: tuple[str, ...],
    brokers: tuple[str, ...],
    properties: tuple[str, ...],
    log: tuple[str, ...],
    logs: tuple[str, ...],
    topology: str | None,
    output: str | None,
    force: bool,
) -> None:
    """Make a topology of a real cluster, or a scenario of its logs.

    What cannot be taken over is listed on stderr and in the file, with the reason. Files after
    --log FILE are more logs. The logs are played on the cluster of --topology, --bootstrap or
    --topics; without these, on what they show of it themselves.
    """
    sources = (bootstrap, topics, topology, *properties[:1])
    _check_options(sources, topics, configs + brokers, log, logs, topology)
    _check_output(output, force)
    cluster = None
    if bootstrap is not None:
        cluster = _from_cluster(bootstrap)
    elif topics is not None:
        cluster = _from_files(topics, configs, brokers)
    elif properties:
        cluster = _from_properties(properties)
    if log:
        _import_logs(log + logs, topology, cluster, output)
    else:
        assert cluster is not None
        _import_topology(cluster, output)


def _check_options(
    sources: Sequence[str | None],
    topics: str | None,
    more: Sequence[str],
    log: Sequence[str],
    logs: Sequence[str],
    topology: str | None,
) -> None:
    """Refuse options that do not go together."""
    given = len(sources) - sources.count(None)
    if not log and (logs or topology is not None):
        which = f"{logs[0]}: " if logs else "--topology: "
        raise click.UsageError(f"{which}name log files with --log, others with their options.")
    if not log and given == 0:
        raise click.UsageError("Give --bootstrap, --topics, --properties or --log.")
    if given > 1:
        raise click.UsageError("Give one of --bootstrap, --topics, --properties and --topology.")
    if more and topics is None:
        raise click.UsageError("--configs and --brokers go with --topics.")


def _import_topology(cluster: DescribedCluster, output: str | None) -> None:
    from kcluster.importing.topology_draft import draft_topology
    from kcluster.importing.topology_text import topology_text

    draft = draft_topology(cluster)
    if not draft.brokers:
        _fail(f"{draft.origin}: no brokers and no topics to import", _FAILED)
    text = topology_text(draft)
    _check_topology(text, output or "topology.yaml")
    _report(draft.left_out)
    partitions = sum(len(topic.assignment) for topic in draft.topics)
    counts = f"{len(draft.brokers)} brokers, {len(draft.topics)} topics, {partitions} partitions"
    _write(text, output, f"{counts}; start it: kcluster up {output}")
    racks = [broker.rack for broker in draft.brokers if broker.rack]
    if racks and output is not None:
        lost = shlex.quote(f"rack {racks[0]}")
        words = f"kcluster scenario new --topology {shlex.quote(output)} --lose {lost}"
        print(f"lose a rack of it: {words}", file=sys.stderr)


def _import_logs(
    logs: Sequence[str], topology: str | None, cluster: DescribedCluster | None, output: str | None
) -> None:
    from kcluster.importing.log_scenario import scenario_of_logs

    given = cluster if topology is None else _named_topology(topology, output)
    made = scenario_of_logs([(path, _text_of(path)) for path in logs], given)
    if made.problems:
        _refuse(made.problems)
    _report(made.found.left_out)
    if not made.text:
        _fail(f"{made.lines} lines read, none of a failure: no scenario to make", _FAILED)
    _check_scenario(made.text, output or "scenario.yaml")
    counts = f"{len(made.found.steps)} steps from {made.lines} lines, {made.unknown} not understood"
    _write(made.text, output, f"{counts}; play it: kcluster scenario run {output}")


def _named_topology(path: str, output: str | None) -> NamedTopology:
    """A topology file, named as seen from the scenario's directory."""
    from kcluster.config.files.problems import TopologyError
    from kcluster.config.topology.model import Topology
    from kcluster.importing.log_scenario import NamedTopology

    try:
        topology = Topology.load(path)
    except TopologyError as error:
        print(error, file=sys.stderr)
        sys.exit(_INVALID)
    return NamedTopology(os.path.relpath(path, os.path.dirname(output or "") or "."), topology)


def _from_cluster(bootstrap: str) -> DescribedCluster:
    from kcluster.config.topology.specs import split_address
    from kcluster.importing.admin import AdminError, read_cluster

    for address in bootstrap.split(","):
        try:
            _, port = split_address(address)
        except ValueError:
            port = 0
        if not port:
            raise click.UsageError(f"--bootstrap {address}: not an address like localhost:9092.")
    try:
        return read_cluster(bootstrap)
    except AdminError as error:
        _fail(str(error), _FAILED)


def _from_files(topics: str, configs: Sequence[str], brokers: Sequence[str]) -> DescribedCluster:
    from kcluster.importing.tool_output import ToolText, read_tools

    def read(path: str) -> ToolText:
        return ToolText(path, _text_of(path))

    cluster, problems = read_tools(read(topics), [*map(read, configs)], [*map(read, brokers)])
    if problems:
        _refuse(problems)
    return cluster


def _from_properties(paths: Sequence[str]) -> DescribedCluster:
    from kcluster.importing.properties import read_properties
    from kcluster.importing.tool_output import ToolText

    files = [ToolText(path, _text_of(path)) for path in paths]
    cluster = read_properties(files)
    problems = [problem for file in files for problem in file.problems]
    if problems:
        _refuse(problems)
    return cluster


def _text_of(path: str) -> str:
    """The text of a file; ends the process with one line if it has none."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        _fail(f"{path}: cannot be read: {error.strerror}", _INVALID)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        _fail(f"{path}:{line}:{column}: not UTF-8", _INVALID)


def _check_topology(text: str, source: str) -> None:
    """Refuse what `kcluster up` would refuse, now."""
    from kcluster.config.files.problems import TopologyError
    from kcluster.config.topology.model import Topology

    try:
        Topology.parse(text, source)
    except TopologyError as error:
        print(error, file=sys.stderr)
        _fail("the imported topology cannot be run here, for the reasons above", _FAILED)


def _check_scenario(text: str, source: str) -> None:
    """Refuse what `kcluster scenario run` would refuse, now."""
    from kcluster.scenario.language.loader import ScenarioError
    from kcluster.scenario.language.scenario import Scenario

    try:
        Scenario.parse(text, source)
    except ScenarioError as error:
        print(error, file=sys.stderr)
        _fail("the imported scenario cannot be played here, for the reasons above", _FAILED)


def _report(left_out: Sequence[LeftOut]) -> None:
    for entry in left_out:
        print(f"not taken over: {entry}", file=sys.stderr)


def _check_output(output: str | None, force: bool) -> None:
    if output is not None and os.path.exists(output) and not force:
        _fail(f"{output} exists; --force overwrites it", _INVALID)


def _write(text: str, output: str | None, summary: str) -> None:
    if output is None:
        print(text, end="")
        return
    from kcluster.runs.whole_files import SHARED, replacing

    try:
        with replacing(Path(output), SHARED) as file:
            file.write(text.encode())
    except OSError as error:
        _fail(f"{output}: cannot be written: {error.strerror}", _FAILED)
    print(f"{output}: {summary}", file=sys.stderr)


def _refuse(problems: Sequence[Problem]) -> NoReturn:
    from kcluster.config.files.problems import ProblemsError

    print(ProblemsError(problems), file=sys.stderr)
    sys.exit(_INVALID)


def _fail(text: str, code: int) -> NoReturn:
    print(f"kcluster: {text}", file=sys.stderr)
    sys.exit(code)
