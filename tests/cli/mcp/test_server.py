"""`kcluster mcp`, with the client of the SDK over stdin and stdout: as an agent uses it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import TextContent, TextResourceContents

from kcluster.cli.directory import running_clusters
from tests.cli.conftest import CODE
from tests.rig.patience import PATIENCE_S
from tests.search.spaces import LOSING

pytestmark = [pytest.mark.long, pytest.mark.pure_python]

TOPOLOGY = """\
brokers: 3
profile: fast
topics: {orders: {assignment: [[1, 2, 3]]}}
"""


class Agent:
    """An agent with its client.  `call`: the text of a tool's answer; `refused`: of a refusal."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def call(self, tool: str, **values: object) -> str:
        text, is_error = await self.answer(tool, values)
        assert not is_error, text
        return text

    async def refused(self, tool: str, **values: object) -> str:
        text, is_error = await self.answer(tool, values)
        assert is_error, text
        return text

    async def answer(self, tool: str, values: dict[str, object]) -> tuple[str, bool]:
        result = await self.client.call_tool(tool, values)
        (content,) = result.content
        assert isinstance(content, TextContent)
        return content.text, bool(result.is_error)


Story = Callable[[Agent], Awaitable[None]]
Play = Callable[[Story], None]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """The directory of temporary files of a server."""
    files = tmp_path / "tmp"
    files.mkdir()
    return files


@pytest.fixture
def server(base: Path, files: Path, tmp_path: Path) -> StdioServerParameters:
    """How an agent starts the server."""
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "kcluster", "mcp"],
        cwd=tmp_path,
        env={"XDG_RUNTIME_DIR": str(base), "PYTHONPATH": CODE, "TMPDIR": str(files)},
    )


@pytest.fixture
def play(server: StdioServerParameters, files: Path) -> Play:
    """Play a story with an agent.  Whatever it did, nothing is left."""

    async def run(story: Story) -> None:
        with anyio.fail_after(PATIENCE_S):
            async with Client(stdio_client(server)) as client:
                await story(Agent(client))

    def played(story: Story) -> None:
        anyio.run(run, story)
        assert running_clusters() == []
        assert [*files.iterdir()] == []

    return played


def test_agent__starts_a_cluster_kills_a_leader_and_reads_the_verdict(play: Play) -> None:
    async def story(agent: Agent) -> None:
        started = await agent.call("up", file=TOPOLOGY)
        assert started.startswith("ready: 127.0.0.1:")
        assert started.endswith("its name: agent1")
        killed = await agent.call("fault", action="kill: leader(orders-0)")
        assert "leader_elected         orders-0     leader 1 -> 2" in killed
        assert killed.endswith("broker 1 is down")
        assert "orders-0" in await agent.call("status")
        elected = await agent.call("events", kind=["leader_elected"], n=1)
        assert len(elected.splitlines()) == 1
        assert "broker 1 is up" in await agent.call("fault", action={"start": "down"})
        assert "holds after" in await agent.call("wait", condition="isr(orders-0) = 3")
        verdict = await agent.call("verdict")
        assert verdict.endswith("unknown: nothing was sent")
        assert "run directory: " in await agent.call("save")
        assert "leader 1 -> 2" in await agent.call("explain", partition="orders-0")
        assert await agent.call("down") == "cluster agent1 has stopped"
        assert "this session has no cluster; up starts one" in await agent.refused("status")

    play(story)


def test_agent__searches_a_scenario_and_repeats_what_it_found(play: Play, tmp_path: Path) -> None:
    async def story(agent: Agent) -> None:
        found = await agent.call("search", file=LOSING, runs=40, stop_on=["lost-write"], out="here")
        assert found.startswith("lost-write at +")
        assert "It needs " in found
        again = await agent.call("scenario_run", files="here/lost-write-acks-1.yaml")
        assert ": invalid, as expected" in again
        shrunk = await agent.call("shrink", file="here/lost-write-acks-1.yaml")
        assert "Without " in shrunk
        assert "offsets" in await agent.call("explain", partition="orders-0")

    play(story)
    assert [one.name for one in tmp_path.joinpath("here").iterdir()]


def test_refusals__name_the_right_form(play: Play) -> None:
    async def story(agent: Agent) -> None:
        assert "did you mean status?" in await agent.refused("statsu")
        assert "did you mean profile?" in await agent.refused("up", profil="fast")
        assert "'kafka', 'fast', 'slow'" in await agent.refused("up", profile="quick")
        wrong = await agent.refused("up", brokers="many", name=3.5, file=["a"])
        assert wrong.splitlines() == [
            "file: takes one value, not a list",
            'brokers: takes a number, not "many"',
        ]
        assert (await agent.refused("wait")).splitlines() == [
            "condition: is missing: CONDITION",
            "name: this session has no cluster; up starts one",
        ]
        placed = await agent.refused("scenario_run", files="topology: {brokrs: 3}\nsteps: []\n")
        wanted = "no such key of a topology; did you mean brokers?"
        assert f"scenario.yaml:1:12 topology.brokrs: {wanted}" in placed.splitlines()
        assert "did you mean safe_settings?" in await agent.refused("search", file="safe_setings")
        await agent.call("up", profile="fast", brokers=1)
        assert "did you mean kill?" in await agent.refused("fault", action="kil: 1")
        assert "agent1 is already running" in await agent.refused("up", name="agent1")
        assert "no cluster called other" in await agent.refused("down", name="other")

    play(story)


def test_abuse__is_refused_and_harms_nothing(play: Play) -> None:
    async def story(agent: Agent) -> None:
        assert "NUL" in await agent.refused("scenario_show", name="a\0b")
        assert "at most 10000" in await agent.refused("fault", action="x" * 20_000, name="a")
        huge = "a: 1\n" * 400_000
        assert "at most 1000000" in await agent.refused("up", file=huge)
        assert "at most 100" in await agent.refused("scenario_run", files=["a"] * 101)
        assert "numbers" in await agent.refused("more", result="1", first=None)
        assert "result" in await agent.refused("more", result=7, first=1)
        # An option in place of a value is a value.
        assert "--help" in await agent.refused("scenario_show", name="--help")
        assert "leader_dies" not in await agent.refused("explain", run="--partition=x")
        assert "acks_one_crash" in await agent.call("scenario_list")

    play(story)


def test_calls__run_at_once_and_a_cancelled_one_ends_its_processes(play: Play, files: Path) -> None:
    async def story(agent: Agent) -> None:
        names: list[str] = []

        async def start(name: str) -> None:
            await agent.call("up", profile="fast", brokers=1, name=name)
            names.append(name)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(start, "one")
            tasks.start_soon(start, "two")
        assert sorted(names) == ["one", "two"]
        assert "which cluster? This session has" in await agent.refused("status")
        assert "cluster two" in await agent.call("status", name="two")
        with anyio.move_on_after(2):
            await agent.call("search", seconds=300)
        while processes_of(files, "search"):  # until the server has heard of it
            await anyio.sleep(0.05)
        assert "cluster one" in await agent.call("status", name="one")

    play(story)


def test_results__are_short_and_more_has_the_rest(play: Play) -> None:
    async def story(agent: Agent) -> None:
        page = await agent.call("scenario_list")
        assert len(page) < 2_600
        assert "more(result=1, first=" in page
        first = int(page.partition("first=")[2].partition(")")[0])
        rest = await agent.call("more", result=1, first=first)
        assert rest.splitlines()[0] not in page
        assert "lines 1 to" in await agent.refused("more", result=1, first=0)
        tools = (await agent.client.list_tools()).tools
        listed = [tool.model_dump(exclude_none=True) for tool in tools]
        assert len(json.dumps(listed)) < 16_000, "an agent reads this in every conversation"
        (resource,) = (await agent.client.list_resources()).resources
        (skill,) = (await agent.client.read_resource(str(resource.uri))).contents
        assert isinstance(skill, TextResourceContents)
        assert skill.text.startswith("---\nname: kcluster\n")

    play(story)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_server__that_is_ended_leaves_nothing(
    server: StdioServerParameters, files: Path, number: int
) -> None:
    async def run() -> None:
        with anyio.fail_after(PATIENCE_S):
            async with Client(stdio_client(server)) as client:
                agent = Agent(client)
                await agent.call("up", profile="fast", brokers=1)
                (pid,) = processes_of(files, "mcp")
                os.kill(pid, number)
            while running_clusters() or any(files.iterdir()) or processes_of(files, "up"):
                await anyio.sleep(0.05)

    anyio.run(run)


def processes_of(files: Path, verb: str) -> list[int]:
    """The processes of a verb that have this directory for temporary files."""
    found = []
    for place in Path("/proc").iterdir():
        if not place.name.isdecimal():
            continue
        try:
            words = place.joinpath("cmdline").read_bytes().split(b"\0")
            variables = place.joinpath("environ").read_bytes()
        except OSError:
            continue  # it has ended, or is of another user
        if verb.encode() in words and f"TMPDIR={files}".encode() in variables:
            found.append(int(place.name))
    return found


def test_verb__without_the_extra_says_how_to_install_it(tmp_path: Path) -> None:
    tmp_path.joinpath("mcp.py").write_text("raise ModuleNotFoundError('none', name='mcp')\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), CODE))}
    command = [sys.executable, "-m", "kcluster", "mcp"]
    ended = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert ended.stderr.startswith("kcluster: mcp needs the extra mcp: pip install ")
    assert "[mcp]" in ended.stderr
