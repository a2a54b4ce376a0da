"""`kcluster rolling-restart`: restart brokers one after the other, as an upgrade does.

Owns: the verb's options.  Never: carries it out: it is the action rolling_restart
(actions/).  Kafka: the loop in every operator's runbook.
"""

from __future__ import annotations

import click

from kcluster.cli.acting import act
from kcluster.cli.click_tools import Section, control_options, how_option, section
from kcluster.cli.completion import complete_targets
from kcluster.deaths import DeathKind


@section(Section.FAULTS)
@click.command("rolling-restart")
@click.argument("targets", default="all", shell_complete=complete_targets)
@how_option(tuple(DeathKind), DeathKind.CLEAN)
@control_options
def command(targets: str, how: str, name: str | None, as_json: bool) -> None:
    """Restart brokers one after the other, by default all.

    Each is restarted when the one before is back in all of its ISRs.
    """
    act({"rolling_restart": {"brokers": targets, "how": how, "down": "0ms"}}, name, as_json)
