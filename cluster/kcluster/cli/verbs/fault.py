"""`kcluster fault 'isolate: leader(orders-0)'`: any deed of scenario files, on the running cluster.

Owns: the options, the list of deeds.  Never: what they do (scenario/actions, in the cluster's
process).
"""

from __future__ import annotations

import click

from kcluster.cli.click_tools import print_json, talks_to_cluster
from kcluster.cli.control.client import ask


@click.command("fault")
@click.argument("deed", metavar="[DEED]", required=False)
@click.option("--for", "duration", metavar="TIME", help="Undo it after so long, like 5s.")
@talks_to_cluster
def command(deed: str | None, duration: str | None, name: str | None, as_json: bool) -> None:
    """Do to the running cluster what a scenario's step can do.

    DEED is written as in scenario files: 'isolate: leader(orders-0)', 'heal',
    'slow: {nodes: 3, latency: 50ms}'.  Without DEED: what there is.
    """
    if deed is None:
        from kcluster.scenario.actions import ACTIONS

        for verb, action in sorted(ACTIONS.items()):
            summary = " ".join((action.__doc__ or "").split()).split(". ")[0].rstrip(".")
            print(f"{verb:<16} {summary}.")
        return
    result = ask("fault", name, deed=deed, **({"for": duration} if duration else {}))
    if as_json:
        print_json(result)
    else:
        print("\n".join(result["lines"]))
