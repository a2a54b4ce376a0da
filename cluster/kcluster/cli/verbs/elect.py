"""`kcluster elect TOPIC-PARTITION`: elect the preferred leader or, with `--to`, another replica.

Owns: the verb's options.  Never: carries it out: it is the action elect or move (actions/).
Kafka: kafka-leader-election.sh.
"""

from __future__ import annotations

import click

from kcluster.cli.acting import act
from kcluster.cli.click_tools import Section, control_options, section
from kcluster.cli.completion import complete_partitions, complete_targets


@section(Section.FAULTS)
@click.command("elect")
@click.argument("partition", metavar="TOPIC-PARTITION", shell_complete=complete_partitions)
@click.option(
    "--to",
    metavar="TARGET",
    help="The broker to elect; it must be in the ISR.",
    shell_complete=complete_targets,
)
@control_options
def command(partition: str, to: str | None, name: str | None, as_json: bool) -> None:
    """Elect the preferred leader of a partition, or another replica.

    The partition is written like orders-0.
    """
    if to is not None:
        move(partition, to, name, as_json)
        return
    otherwise = f"{partition}: its preferred leader leads it already"
    act({"elect": {"partition": partition}}, name, as_json, otherwise=otherwise)


def move(partition: str, to: str, name: str | None, as_json: bool) -> None:
    """Make another broker the leader."""
    otherwise = f"{partition}: broker {{broker}} is already the leader"
    act({"move": {"partition": partition, "to": to}}, name, as_json, otherwise=otherwise)
