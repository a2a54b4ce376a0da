"""`kcluster isolate NODES`: cut nodes off from all others.

Owns: the verb's options.  Never: carries it out: it is the action isolate (actions/).
Kafka: iptables.
"""

from __future__ import annotations

import click

from kcluster.cli.acting import act_on_links
from kcluster.cli.click_tools import Section, network_options, section
from kcluster.cli.completion import complete_targets


@section(Section.FAULTS)
@click.command("isolate")
@click.argument("nodes", shell_complete=complete_targets)
@click.option("--from", "others", metavar="NODES", help="Only from these.  [default: all others]")
@network_options
def command(nodes: str, others: str | None, **options: object) -> None:
    """Cut nodes off from all others, or from some.

    NODES: 1 or 1,2 or 'leader(orders-0)', 'rack a', controller, 'client billing*', as in scenario
    files.  Returns when the cluster has taken over from them.  kcluster heal undoes it.
    """
    act_on_links("isolate", {"nodes": nodes, "others": others}, options, {"others": "--from"})
