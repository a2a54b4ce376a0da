"""`kcluster heal [NODES]`: heal cuts, and restore the speed of links.

Owns: the verb's options.  Never: carries it out: it is the action heal (actions/).
Kafka: iptables -F.
"""

from __future__ import annotations

import click

from kcluster.cli.acting import act
from kcluster.cli.click_tools import Section, control_options, section, wait_option
from kcluster.cli.completion import complete_targets


@section(Section.FAULTS)
@click.command("heal")
@click.argument("nodes", required=False, shell_complete=complete_targets)
@wait_option
@control_options
def command(nodes: str | None, wait: bool, name: str | None, as_json: bool) -> None:
    """Heal all links, or the links of NODES: undo isolate, cut and slow.

    Returns when the brokers that were cut off are back in their ISRs.
    """
    act({"heal": nodes and {"nodes": nodes}}, name, as_json, wait=wait)
