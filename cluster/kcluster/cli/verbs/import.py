"""`kcluster import`: a topology from a real cluster, a scenario from its logs.

Owns: the options, and the valid combinations.  Never: reads or writes a file (work/importing.py).
Kafka: no counterpart; it reads the output of kafka-topics, kafka-configs and kafka-cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import click

from kcluster.cli.click_tools import Section, section

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
    --topics; without these, on a cluster derived from the logs.
    """
    sources = (bootstrap, topics, topology, *properties[:1])
    _check_options(sources, topics, configs + brokers, log, logs, topology)
    from kcluster.cli.work.importing import Sources

    given = Sources(bootstrap, topics, configs, brokers, properties)
    if log:
        from kcluster.cli.work.import_logs import import_logs

        import_logs(log + logs, topology, given, output, force)
    else:
        from kcluster.cli.work.import_topology import import_topology

        import_topology(given, output, force)


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
