"""`kcluster conform`: any Kafka-compatible cluster beside the recorded answers of Apache Kafka.

Owns: the verb: its options.  Never: asks (work/conform.py, conform/).
Kafka: no counterpart.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kcluster.cli.click_tools import Section, section

RELEASES = ("4.4.0", "4.3.1")
"""The releases of Apache Kafka with recorded answers; the first one is the default."""


@section(Section.SCENARIOS)
@click.command("conform")
@click.option(
    "--bootstrap",
    required=True,
    metavar="HOST:PORT",
    help="The cluster: one of its brokers, or several with commas.",
)
@click.option(
    "--against",
    type=click.Choice(RELEASES),
    default=RELEASES[0],
    show_default=True,
    help="The release of Apache Kafka to compare with.",
)
@click.option(
    "--only",
    multiple=True,
    metavar="API",
    help="Ask only about this API, such as Fetch; repeatable.",
)
@click.option(
    "--skip",
    multiple=True,
    metavar="CASES",
    help="Leave out the cases with such names: 'wire: *' has malformed requests; repeatable.",
)
@click.option(
    "--all-versions", is_flag=True, help="Ask every version, not only where answers change."
)
@click.option(
    "--json",
    "json_file",
    type=click.Path(dir_okay=False, path_type=Path, allow_dash=True),
    metavar="FILE",
    help="Write the report as JSON; - is stdout.",
)
@click.option(
    "--page",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the report as a page: one HTML file.",
)
@click.option(
    "--allow",
    multiple=True,
    metavar="HOST",
    help="Go to this host, although it is not this machine; repeatable.",
)
@click.option(
    "--command-config",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Connect with these properties (TLS, SASL), in the form of Kafka's tools.",
)
@click.option("-q", "--quiet", is_flag=True, help="Show only the last line, the counts.")
def command(
    bootstrap: str,
    against: str,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    all_versions: bool,
    json_file: Path | None,
    page: Path | None,
    allow: tuple[str, ...],
    command_config: Path | None,
    quiet: bool,
) -> None:
    """Compare a cluster's answers with those of Apache Kafka.

    Sends the requests whose answers by Apache Kafka are recorded, and reports each value that
    differs, by API. Only topics and groups whose names begin with kcluster-conform- are made and
    changed; they are deleted at the end, after Ctrl-C as well. The exit code is 0 without a
    difference, 1 with differences, 2 if the cluster could not be asked.
    """
    from kcluster.cli.work.conform import ConformOptions, run_conform

    options = ConformOptions(
        bootstrap=bootstrap,
        against=against,
        only=only,
        skip=skip,
        all_versions=all_versions,
        json_file=json_file,
        page=page,
        allow=allow,
        command_config=command_config,
        quiet=quiet,
    )
    sys.exit(run_conform(options))
