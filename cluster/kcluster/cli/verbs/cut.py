"""`kcluster cut A B`: cut the links between two sets of nodes.

Owns: the verb's options.  Never: carries it out: it is the action isolate (actions/).
Kafka: iptables.
"""

from __future__ import annotations

import click

from kcluster.cli.acting import act_on_links
from kcluster.cli.click_tools import Section, network_options, section
from kcluster.cli.completion import complete_targets


@section(Section.FAULTS)
@click.command("cut")
@click.argument("nodes", shell_complete=complete_targets)
@click.argument("others", shell_complete=complete_targets)
@network_options
def command(nodes: str, others: str, **options: object) -> None:
    """Cut the links between nodes: kcluster cut 1 2.

    NODES and OTHERS are written as for isolate.  Returns when ISRs and leaders have changed
    accordingly.  kcluster heal undoes it.
    """
    act_on_links("isolate", {"nodes": nodes, "others": others}, options)
