"""`kcluster play SCENARIO`: a scenario in virtual time, looked at on the page.

Owns: the verb: its options, its ready line, its end.  Never: plays (scenario/play), serves the page
(web/).  Kafka: no counterpart.
"""

from __future__ import annotations

import os
import sys
from queue import SimpleQueue

import click

from kcluster.cli.click_tools import Section, fail, print_json, section
from kcluster.cli.errors import CommandError

PLAY_ID = "play"
"""The id of the run for requests of the page."""


@section(Section.SCENARIOS)
@click.command("play")
@click.argument("scenario", metavar="SCENARIO")
@click.option("--seed", type=click.IntRange(0), help="Of the run.  [default: the scenario's, or 1]")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Serve the page on this port.  [default: a free one]",
)
@click.option("-q", "--quiet", is_flag=True, help="Print the ready line alone.")
@click.option("--json", "as_json", is_flag=True, help="Print the ready line as JSON.")
def command(scenario: str, seed: int | None, port: int, quiet: bool, as_json: bool) -> None:
    """Run a scenario in virtual time and show the whole run on the page.

    SCENARIO is a file, or the name of one that ships with kcluster (kcluster scenario list). The
    page shows any moment of the run, and forks it there: what would have followed from another
    action. The address holds a token; Ctrl-C ends it.
    """
    from kcluster.cli.stop_signals import on_stop_signals
    from kcluster.cli.verbs.fork import one_scenario
    from kcluster.operations.errors import ClusterError
    from kcluster.scenario.play.played import PlayedRun
    from kcluster.scenario.play.running import run_scenario
    from kcluster.scenario.report import head_line
    from kcluster.web.held import HeldCluster
    from kcluster.web.server import WebServer

    try:
        result = run_scenario(one_scenario(scenario), "virtual", seed)
        server = WebServer(can_create=False, port=port)
    except CommandError as error:
        fail(error, as_json)
    except ClusterError as error:
        fail(CommandError(str(error)), as_json)
    stopped: SimpleQueue[None] = SimpleQueue()
    on_stop_signals(lambda: stopped.put(None))
    server.clusters.add(HeldCluster(PLAY_ID, PlayedRun(result), stop=lambda: None))
    server.start()
    page = server.page_url(PLAY_ID)
    if as_json:
        print_json({
            "ready": True, "page": page, "pid": os.getpid(), "scenario": result.scenario.name,
            "seed": result.seed, "outcome": result.verdict.outcome,
        })  # fmt: skip
    else:
        if not quiet:
            print(head_line(result))
        print(f"ready: {page}  (Ctrl-C stops)")
    sys.stdout.flush()
    stopped.get()
    server.stop()
