"""`kcluster judge`: whether a history of clients shows a broken promise.

Owns: the verb: its options, its exit code.  Never: judges (judge/).
Kafka: no counterpart; `lein run analyze` of a Jepsen test.
"""

from __future__ import annotations

import click

from kcluster.cli.click_tools import Section, section


@section(Section.SCENARIOS)
@click.command("judge")
@click.argument("paths", metavar="DIR|FILE...", nargs=-1, required=True)
@click.option("-v", "--verbose", is_flag=True, help="Show every anomaly.")
@click.option("-q", "--quiet", is_flag=True, help="Show only the last line, the answer.")
@click.option("--manners", is_flag=True, help="Judge the habits of clients, too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    paths: tuple[str, ...], verbose: bool, quiet: bool, manners: bool, as_json: bool
) -> None:
    """Judge what clients saw, of any Kafka cluster: valid, invalid or unknown.

    Nothing but the clients' own history is read: run directories, JSON lines of operations, the
    output of Kafka's VerifiableProducer and VerifiableConsumer, or a history of Jepsen's Kafka
    workload. Several files are one history. The exit code is 0 for valid, 1 for invalid or unknown,
    or with --manners for a bad habit in a run directory, 2 for a file that cannot be read.
    """
    from kcluster.cli.work.judge import judge_paths

    judge_paths(paths, verbose, quiet, manners, as_json)
