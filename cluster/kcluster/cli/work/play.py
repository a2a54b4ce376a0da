"""The work of `kcluster play`.

Owns: the ready line, the end.  Never: plays (scenario/play), serves the page (web/).
Kafka: no counterpart.
"""

from __future__ import annotations

import os
import sys
from queue import SimpleQueue

from kcluster.cli.click_tools import fail, print_json
from kcluster.cli.errors import CommandError
from kcluster.cli.stop_signals import on_stop_signals
from kcluster.cli.work.scenario_files import one_scenario
from kcluster.operations.errors import ClusterError
from kcluster.scenario.play.played import PlayedRun
from kcluster.scenario.play.running import run_scenario
from kcluster.scenario.report import head_line
from kcluster.web.held import HeldCluster
from kcluster.web.server import WebServer

PLAY_ID = "play"
"""The id of the run in the page's requests."""


def play_scenario(scenario: str, seed: int | None, port: int, quiet: bool, as_json: bool) -> None:
    """Run a scenario, and serve its page until Ctrl-C."""
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
