"""The work of `kcluster mcp`.

Owns: the message for an installation without the extra.  Never: serves (cli/mcp/server.py).
Kafka: no counterpart.
"""

from __future__ import annotations

from kcluster.cli.click_tools import fail
from kcluster.cli.errors import CommandError
from kcluster.extras import how_to_install


def serve_agent() -> None:
    """Serve the agent at the other end of the standard input, until it leaves."""
    try:
        from kcluster.cli.mcp.server import serve
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in ("anyio", "mcp", "mcp_types"):
            raise
        fail(CommandError(f"mcp needs the extra mcp: {how_to_install('mcp')}", 2))
    serve()
