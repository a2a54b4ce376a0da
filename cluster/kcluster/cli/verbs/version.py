"""`kcluster version`: the version, and which build runs.

Owns: the verb; `kcluster --version` prints the same.  Never: anything else.
Kafka: kafka-broker-api-versions.sh --version.
"""

from __future__ import annotations

import click

from kcluster.cli.click_tools import Section, section, version_line


@section(Section.TOOLS)
@click.command("version")
def command() -> None:
    """Show the version, and whether the hot modules are compiled."""
    print(version_line())
