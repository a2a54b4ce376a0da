"""The MCP server: the tools for any agent, over the standard input and output.

Owns: the way from MCP's messages to a session, the tool `more`, the skill as a resource.  Never:
knows a verb (tools.py does).  Needs the extra `mcp`.
Kafka: no counterpart.
"""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import anyio
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListResourcesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from mcp_types import Tool as ToolOfProtocol

from kcluster import __version__
from kcluster.cli.mcp.arguments import schema_of
from kcluster.cli.mcp.session import AgentSession, ToolAnswer, open_session
from kcluster.cli.mcp.skill import skill
from kcluster.cli.mcp.tools import TOOLS
from kcluster.json_types import JsonObject

SKILL_URI: Final = "kcluster://skill"
MORE: Final = "more"
INSTRUCTIONS: Final = (
    "kcluster is a Kafka cluster simulator: real wire protocol, real replication, faults on"
    " command, and a verdict that names each lost or duplicated record with its cause. up starts a"
    " cluster for Kafka clients; fault breaks it; verdict judges it. scenario_run plays a whole"
    " test in virtual time, search looks for the faults that break it. The resource"
    f" {SKILL_URI} teaches how."
)
MORE_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "result": {"type": "integer", "description": "The number of the result."},
        "first": {"type": "integer", "description": "The first line to show, from 1."},
    },
    "required": ["result", "first"],
    "additionalProperties": False,
}
Context = ServerRequestContext[AgentSession]


def listed_tools() -> list[ToolOfProtocol]:
    """All tools, with their schemas."""
    tools = [
        ToolOfProtocol(
            name=tool.name,
            description=tool.description(),
            input_schema=schema_of(tool),
            annotations=ToolAnnotations(read_only_hint=tool.only_reads, open_world_hint=False),
        )
        for tool in TOOLS.values()
    ]
    more = ToolOfProtocol(
        name=MORE,
        description="Show more lines of a long result, as the end of its page says.",
        input_schema=MORE_SCHEMA,
        annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
    )
    return [*tools, more]


async def _list_tools(context: Context, _: PaginatedRequestParams | None) -> ListToolsResult:
    return ListToolsResult(tools=listed_tools())


async def _call_tool(context: Context, asked: CallToolRequestParams) -> CallToolResult:
    session, values = context.lifespan_context, asked.arguments or {}
    if asked.name == MORE:
        answer = _more(session, values)
    else:
        answer = await session.call(asked.name, values)
    content = TextContent(type="text", text=answer.text)
    return CallToolResult(content=[content], is_error=answer.is_refused)


def _more(session: AgentSession, values: JsonObject) -> ToolAnswer:
    result, first = values.get("result"), values.get("first")
    if type(result) is not int or type(first) is not int:
        return ToolAnswer("result, first: numbers, as the end of a page has them", True)
    return session.more(result, first)


async def _list_resources(
    context: Context, _: PaginatedRequestParams | None
) -> ListResourcesResult:
    text = "How to write a test with kcluster, search for failures, and read what it says"
    resource = Resource(name="skill", uri=SKILL_URI, description=text, mime_type="text/markdown")
    return ListResourcesResult(resources=[resource])


async def _read_resource(context: Context, asked: ReadResourceRequestParams) -> ReadResourceResult:
    contents = TextResourceContents(uri=SKILL_URI, mime_type="text/markdown", text=skill())
    if str(asked.uri) != SKILL_URI:
        contents = TextResourceContents(uri=asked.uri, text=f"no such resource; {SKILL_URI} is one")
    return ReadResourceResult(contents=[contents])


def server(session: AgentSession) -> Server[AgentSession]:
    """The server of a session, for any transport."""

    @asynccontextmanager
    async def lifespan(_: Server[AgentSession]) -> AsyncIterator[AgentSession]:
        yield session

    return Server(
        "kcluster",
        version=__version__,
        instructions=INSTRUCTIONS,
        lifespan=lifespan,
        on_list_tools=_list_tools,
        on_call_tool=_call_tool,
        on_list_resources=_list_resources,
        on_read_resource=_read_resource,
    )


def serve() -> None:
    """Serve the client at the other end of the standard input, until it ends."""
    anyio.run(_serve)


async def _serve() -> None:
    async with open_session() as session, anyio.create_task_group() as tasks:
        tasks.start_soon(_stop_on_signal, session)
        made = server(session)
        async with stdio_server() as (read_stream, write_stream):
            await made.run(read_stream, write_stream, made.create_initialization_options())
        tasks.cancel_scope.cancel()


async def _stop_on_signal(session: AgentSession) -> None:
    """End the process at a signal, without a wait for the standard input."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for number in signals:
            await session.close()
            os._exit(128 + number)
