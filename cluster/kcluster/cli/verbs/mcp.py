"""`kcluster mcp`: the verbs as tools of an agent, over the standard input and output.

Owns: the verb's options.  Never: serves (cli/mcp/server.py).  Kafka: no counterpart.
"""

from __future__ import annotations

import click

from kcluster.cli.click_tools import Section, section
from kcluster.cli.mcp.skill import skill


@section(Section.TOOLS)
@click.command("mcp")
@click.option("--skill", "shows_skill", is_flag=True, help="Print the guide for agents, and end.")
def command(shows_skill: bool) -> None:
    """Serve an agent by the Model Context Protocol (MCP), over stdin and stdout.

    The agent starts clusters, breaks them, reads their verdicts, runs scenarios and searches. Its
    clusters stop when it leaves.  Needs the extra mcp.
    """
    if shows_skill:
        print(skill(), end="")
        return
    from kcluster.cli.work.mcp import serve_agent

    serve_agent()
