"""`kcluster heal [NODES]`: heal cuts, and restore the speed of links.

Owns: the verb's options.  Never: carries it out: it is the action heal (actions/).
Kafka: iptables -F.
"""

from __future__ import annotations

from typing import Any

import click

from kcluster.cli.click_tools import Section, control_options, section, wait_option
from kcluster.cli.completion import complete_targets
from kcluster.cli.network_options import act


@section(Section.FAULTS)
@click.command("heal")
@click.argument("nodes", required=False, shell_complete=complete_targets)
@wait_option
@control_options
def command(nodes: str | None, **options: Any) -> None:
    """Heal all links, or those of NODES: undo isolate, cut and slow.

    Returns when the brokers that were cut off are back in their ISRs.
    """
    act("heal", {"nodes": nodes}, options)
