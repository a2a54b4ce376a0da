"""`kcluster kill TARGETS`: end brokers' processes, or pause them.

Owns: the verb's options.  Never: carries it out: it is the action kill, stop or pause
(actions/).  Kafka: kill.
"""

from __future__ import annotations

import click

from kcluster.cli.acting import act
from kcluster.cli.click_tools import Section, broker_options, how_option, section
from kcluster.deaths import PAUSE, WAYS_TO_FAIL, DeathKind


@section(Section.FAULTS)
@click.command("kill")
@broker_options(how_option(WAYS_TO_FAIL, DeathKind.KILL))
def command(targets: str, how: str, wait: bool, name: str | None, as_json: bool) -> None:
    """Take brokers down, or pause them.

    TARGETS: 1 or 1,2 or 'leader(orders-0)', 'followers(orders-0)', 'rack a', 'all but 1', as in
    scenario files.  Returns when the cluster has taken over from them.
    """
    if how in (PAUSE, DeathKind.CLEAN):
        action = {"pause" if how == PAUSE else "stop": {"brokers": targets}}
    else:
        action = {"kill": {"brokers": targets, "how": how}}
    act(action, name, as_json, wait=wait)
