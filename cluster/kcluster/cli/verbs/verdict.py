"""`kcluster verdict`: whether the running cluster has kept its promises so far.

Owns: the verb: its options, its exit code.  Never: judges (checks/verdict.py).
Kafka: no counterpart.
"""

from __future__ import annotations

import sys

import click

from kcluster.cli.click_tools import Section, control_options, print_json, refuse_both, section
from kcluster.cli.remote import Remote


@section(Section.CLUSTER)
@click.command("verdict")
@click.option(
    "--since",
    metavar="WHEN",
    help="Judge only what was sent and what happened since: a time back (30s), an event's number,"
    " or a moment of the cluster's clock in ms (@12345).",
)
@click.option("-v", "--verbose", is_flag=True, help="Show every outage with its reasons.")
@click.option("-q", "--quiet", is_flag=True, help="Show only the last line, the answer.")
@click.option("--manners", is_flag=True, help="Judge the habits of clients, too.")
@control_options
def command(
    since: str | None, verbose: bool, quiet: bool, manners: bool, name: str | None, as_json: bool
) -> None:
    """Judge what clients of the running cluster were promised: valid, invalid or unknown.

    Clients are known by what the brokers saw of them. The exit code is 0 for valid, else 1; with
    --manners also 1 for a bad habit, such as a producer for each record, or requests without a
    pause.
    """
    refuse_both(verbose, quiet)
    lines = "" if as_json else "all" if verbose else "brief"
    wanted = {"since": since, "lines": lines, "manners": "true" if manners else None}
    verdict = Remote(name).get("verdict", wanted)
    if as_json:
        print_json(verdict)
    else:
        told = [] if quiet else verdict.get("manner_lines", [])
        print("\n".join([*told, *(verdict["lines"][-1:] if quiet else verdict["lines"])]))
    sys.exit(0 if verdict["outcome"] == "valid" and not verdict.get("manners") else 1)
