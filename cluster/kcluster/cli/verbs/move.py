"""`kcluster move TOPIC-PARTITION TARGET`: make another broker the leader.

Owns: the verb's options.  Never: moves a leader: it is `kcluster elect --to`.
Kafka: kafka-reassign-partitions.sh and kafka-leader-election.sh, in one step.
"""

from __future__ import annotations

import click

from kcluster.cli.click_tools import Section, control_options, section
from kcluster.cli.completion import complete_partitions, complete_targets
from kcluster.cli.verbs.elect import move


@section(Section.FAULTS)
@click.command("move")
@click.argument("partition", metavar="TOPIC-PARTITION", shell_complete=complete_partitions)
@click.argument("target", required=False, shell_complete=complete_targets)
@click.option("--to", metavar="TARGET", help="The same as TARGET.", shell_complete=complete_targets)
@control_options
def command(
    partition: str, target: str | None, to: str | None, name: str | None, as_json: bool
) -> None:
    """Make another broker the leader of a partition: kcluster move orders-0 2.

    TARGET must be in the ISR.  It may be a word: 'any follower' is 'any followers(orders-0)'.
    """
    chosen = target or to
    if chosen is None or (target is not None and to is not None):
        raise click.UsageError("to which broker? kcluster move orders-0 2")
    move(partition, chosen, name, as_json)
