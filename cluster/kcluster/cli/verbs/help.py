"""`kcluster help [VERB]`: short for `kcluster [VERB] --help`.

Owns: finding the verb.  Never: writes help (click does).  Kafka: none.
"""

from __future__ import annotations

import click

from kcluster.cli.click_tools import Section, kcluster, section


@section(Section.TOOLS)
@click.command("help")
@click.argument("verb", nargs=-1)
def command(verb: tuple[str, ...]) -> None:
    """Show the help of a verb, or the overview.

    kcluster help kill is kcluster kill --help.
    """
    kcluster.main(args=[*verb, "--help"], prog_name="kcluster")
