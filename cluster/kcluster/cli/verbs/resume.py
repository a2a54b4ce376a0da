"""`kcluster resume TARGETS`: resume paused brokers, as after a long garbage collection.

Owns: the verb's options.  Never: carries it out: it is the action resume (actions/).
Kafka: kill -CONT.
"""

from __future__ import annotations

import click

from kcluster.cli.acting import act
from kcluster.cli.click_tools import Section, broker_options, section


@section(Section.FAULTS)
@click.command("resume")
@broker_options()
def command(targets: str, wait: bool, name: str | None, as_json: bool) -> None:
    """Resume paused brokers.

    Returns when they serve clients and are back in their ISRs.
    """
    act({"resume": {"brokers": targets}}, name, as_json, wait=wait)
