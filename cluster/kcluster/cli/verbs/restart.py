"""`kcluster restart TARGETS`: stop brokers and start them again, all at once.

Owns: the verb's options.  Never: carries it out: it is the action restart (actions/).
Kafka: systemctl restart.
"""

from __future__ import annotations

import click

from kcluster.cli.acting import act
from kcluster.cli.click_tools import Section, broker_options, how_option, section
from kcluster.deaths import DeathKind


@section(Section.FAULTS)
@click.command("restart")
@broker_options(how_option(tuple(DeathKind), DeathKind.CLEAN))
def command(targets: str, how: str, wait: bool, name: str | None, as_json: bool) -> None:
    """Stop brokers, all at once, and start them again when all are down.

    Returns when they are back in their ISRs.  One after the other: kcluster rolling-restart.
    """
    act({"restart": {"brokers": targets, "how": how, "down": "0ms"}}, name, as_json, wait=wait)
