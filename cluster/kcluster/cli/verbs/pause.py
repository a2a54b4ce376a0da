"""`kcluster pause TARGETS`: pause brokers' processes, as a long garbage collection does.

Owns: the verb's options.  Never: carries it out: it is the action pause (actions/).
Kafka: kill -STOP.
"""

from __future__ import annotations

import click

from kcluster.cli.acting import act
from kcluster.cli.click_tools import Section, broker_options, section


@section(Section.FAULTS)
@click.command("pause")
@broker_options()
def command(targets: str, wait: bool, name: str | None, as_json: bool) -> None:
    """Pause brokers, as a long garbage collection does.

    Their sockets stay open.  Returns when the cluster has taken over from them; with --no-wait at
    once, for a pause that is too short to be noticed. kcluster resume ends it.
    """
    act({"pause": {"brokers": targets}}, name, as_json, wait=wait)
