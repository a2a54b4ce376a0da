"""A session of an agent: each call runs a verb in a process of its own, on a leash.

Owns: the processes and the files of the session; which cluster a call means that names none.
Never: knows MCP (server.py does), words a result (the verbs do).
Kafka: no counterpart.

A process per call costs a fifth of a second.  It is the same verb as in a terminal, it can be ended
at any moment, and a search does not take time from clusters.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

import anyio
import click
from anyio.abc import Process, TaskGroup

from kcluster.cli.directory import running_clusters
from kcluster.cli.mcp.arguments import WrongArguments, command_line
from kcluster.cli.mcp.leash import STOPS_WITHIN_S
from kcluster.cli.mcp.pages import KeptResults
from kcluster.cli.mcp.tools import TOOLS, Tool
from kcluster.config.files.problems import unknown

MAX_CALLS: Final = 8
"""The most calls at once."""
CALL_LIMIT_S: Final = 600.0
MAX_OUTPUT_BYTES: Final = 2_000_000
"""The bytes of a verb's output that are kept."""
SEARCH_S: Final = 20
"""How long a search takes unless a call says so: clients wait for about a minute."""
PREFIX: Final = "kcluster-mcp-"
TEXTS: Final = "texts"
_OF_THE_COMMAND: Final = 2
"""The exit code of a verb whose command line or file is wrong."""


class ToolAnswer(NamedTuple):
    """The answer to a call, for the agent.  `is_refused`: whether the verb did not do its work."""

    text: str
    is_refused: bool = False


class _Ended(NamedTuple):
    """The end of a verb's process."""

    code: int
    output: str
    complaints: str


class AgentSession:
    """The calls of one client; use it within `open_session`."""

    def __init__(self, tasks: TaskGroup) -> None:
        self._tasks = tasks
        self._clusters: dict[str, Process] = {}
        self._results = KeptResults()
        self._files: Path | None = None
        self._calls = 0
        self._texts = 0

    @property
    def clusters(self) -> list[str]:
        """The names of the clusters that this session has started, and that run."""
        return [name for name, one in self._clusters.items() if one.returncode is None]

    async def call(self, name: str, values: Mapping[str, object]) -> ToolAnswer:
        """Run a tool; a refusal names what is right."""
        tool = TOOLS.get(name)
        if tool is None:
            return ToolAnswer(unknown("tool", name, TOOLS), True)
        if self._calls >= MAX_CALLS:
            return ToolAnswer(f"{MAX_CALLS} calls are running; wait for one of them", True)
        self._calls += 1
        try:
            return await self._run(tool, values)
        except WrongArguments as error:
            return ToolAnswer(str(error), True)
        finally:
            self._calls -= 1

    def more(self, result: int, first: int) -> ToolAnswer:
        """A further page of a result."""
        try:
            return ToolAnswer(self._results.page(result, first))
        except LookupError as error:
            return ToolAnswer(str(error.args[0]), True)

    async def _run(self, tool: Tool, given: Mapping[str, object]) -> ToolAnswer:
        values, problems = self._completed(tool, given), []
        if _names_a_cluster(tool) and not values.get("name"):
            if tool.name == "up":
                values["name"] = self._new_name()
            elif len(self.clusters) == 1:
                values["name"] = self.clusters[0]
            else:
                problems.append(self._why_no_cluster())
        try:
            words = command_line(tool, values, self._file_of)
        except WrongArguments as error:
            problems.insert(0, str(error))
        if problems:
            raise WrongArguments("\n".join(problems))
        if tool.name == "up":
            return await self._start(str(values["name"]), words)
        ended = await self._end_of(words)
        if tool.name == "down" and (stopped := self._clusters.get(str(values["name"]))) is not None:
            await _end(stopped)
        return self._answer(ended)

    def _answer(self, ended: _Ended) -> ToolAnswer:
        complaints = ended.complaints.strip()
        is_refused = ended.code == _OF_THE_COMMAND or (
            ended.code != 0 and bool(re.search("^kcluster: ", complaints, re.MULTILINE))
        )
        parts = (complaints.replace("kcluster: ", ""), ended.output.rstrip("\n"))
        text = "\n".join(part for part in parts if part)
        if self._texts:
            text = re.sub(rf"{re.escape(str(self._files))}/{TEXTS}/\d+/", "", text)
        return ToolAnswer(self._results.first_page(text or "done"), is_refused)

    # ------------------------------------------------------------------------------ arguments

    def _completed(self, tool: Tool, given: Mapping[str, object]) -> dict[str, object]:
        """The values with what a session adds: places for files, a limit of time."""
        values = dict(given)
        if tool.name == "scenario_run" and not values.get("out"):
            values["out"] = str(self._place("runs"))
        if tool.name == "save" and not (values.get("directory") or values.get("scenario")):
            values["directory"] = str(self._place("runs"))
        if tool.name == "explain" and not values.get("run"):
            values["run"] = str(self._place("runs"))
        if tool.name == "search" and not (values.get("seconds") or values.get("runs")):
            values["seconds"] = SEARCH_S
        if tool.name in ("search", "shrink") and not values.get("out"):
            values["out"] = tempfile.mkdtemp(prefix=f"{tool.name}-", dir=self._place("found"))
        return values

    def _new_name(self) -> str:
        taken, number = {*running_clusters(), *self._clusters}, 1
        while f"agent{number}" in taken:
            number += 1
        return f"agent{number}"

    def _why_no_cluster(self) -> str:
        """Why a call must name its cluster.  The only one of somebody else is never meant."""
        if self.clusters:
            return f"name: which cluster? This session has {', '.join(self.clusters)}"
        others = running_clusters()
        hint = f"; clusters of others run: {', '.join(others)}; give its name" if others else ""
        return f"name: this session has no cluster; up starts one{hint}"

    def _place(self, name: str) -> Path:
        """A directory of the session."""
        place = self._directory() / name
        place.mkdir(exist_ok=True)
        return place

    def _directory(self) -> Path:
        """The directory of all files of the session."""
        if self._files is None:
            self._files = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
        return self._files

    def _file_of(self, name: str, text: str) -> str:
        """The path of a new file with this text."""
        self._texts += 1
        directory = self._place(TEXTS) / str(self._texts)
        directory.mkdir()
        path = directory / name
        path.write_text(text, "utf-8")
        return str(path)

    # ------------------------------------------------------------------------------ processes

    async def _open(self, words: list[str]) -> Process:
        """The process of a verb, which leads a group of its own."""
        leash = [sys.executable, "-P", "-m", "kcluster.cli.mcp.leash", str(self._directory())]
        return await anyio.open_process([*leash, *words], start_new_session=True)

    async def _end_of(self, words: list[str]) -> _Ended:
        """Run a verb until it ends; it is ended if the call is cancelled, or takes too long."""
        async with await self._open(words) as process:
            kept: dict[str, bytes] = {"output": b"", "complaints": b""}

            async def read(stream: anyio.abc.ByteReceiveStream | None, into: str) -> None:
                assert stream is not None
                async for part in stream:
                    if len(kept[into]) < MAX_OUTPUT_BYTES:
                        kept[into] += part

            try:
                with anyio.move_on_after(CALL_LIMIT_S) as limit:
                    async with anyio.create_task_group() as tasks:
                        tasks.start_soon(read, process.stdout, "output")
                        tasks.start_soon(read, process.stderr, "complaints")
                    await process.wait()
            finally:
                _kill(process)
            code = process.returncode if process.returncode is not None else -signal.SIGKILL
            output, complaints = (kept[one].decode("utf-8", "replace") for one in kept)
            if limit.cancelled_caught:
                complaints += f"kcluster: ended: it took more than {CALL_LIMIT_S:g} s\n"
            return _Ended(code, output, complaints)

    async def _start(self, name: str, words: list[str]) -> ToolAnswer:
        """Start a cluster, which runs on."""
        process = await self._open([*words[:1], "--quiet", "--base-port=0", *words[1:]])
        ready = ""
        try:
            assert process.stdout is not None
            with anyio.move_on_after(CALL_LIMIT_S):
                async for part in process.stdout:
                    ready += part.decode("utf-8", "replace")
                    if re.search("^ready: .*\n", ready, re.MULTILINE):
                        break
        finally:
            if not re.search("^ready: .*\n", ready, re.MULTILINE):
                _kill(process)
        if process.returncode is None and "ready: " in ready:
            self._clusters[name] = process
            self._tasks.start_soon(_drain, process.stdout)
            self._tasks.start_soon(_drain, process.stderr)
            shown = ready.replace(", Ctrl-C stops", "").strip()
            return ToolAnswer(f"{shown}\nits name: {name}")
        assert process.stderr is not None
        complaints = b"".join([part async for part in process.stderr]).decode("utf-8", "replace")
        code = await process.wait()
        return self._answer(_Ended(code or _OF_THE_COMMAND, ready, complaints))

    async def close(self) -> None:
        """Stop the clusters and remove the files of the session."""
        async with anyio.create_task_group() as tasks:
            for process in self._clusters.values():
                tasks.start_soon(_end, process)
        if self._files is not None:
            shutil.rmtree(self._files, ignore_errors=True)


@asynccontextmanager
async def open_session() -> AsyncIterator[AgentSession]:
    """A session; at its end its clusters stop and its files are removed."""
    remove_left_files()
    async with anyio.create_task_group() as tasks:
        session = AgentSession(tasks)
        try:
            yield session
        finally:
            with anyio.CancelScope(shield=True):
                await session.close()
            tasks.cancel_scope.cancel()


def _names_a_cluster(tool: Tool) -> bool:
    return isinstance(tool.parameters().get("name"), click.Option)


def remove_left_files() -> None:
    """Remove the files of sessions that were killed."""
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        pid = path.name.removeprefix(PREFIX).partition("-")[0]
        if pid.isdecimal() and not _is_alive(int(pid)):
            shutil.rmtree(path, ignore_errors=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True  # of another user, whose files they are
    return True


async def _drain(stream: anyio.abc.ByteReceiveStream | None) -> None:
    """Read what a cluster prints: a full pipe would hold it up."""
    assert stream is not None
    async for _ in stream:
        pass


async def _end(process: Process) -> None:
    """Ask a cluster to stop, by the end of its standard input; then end its group."""
    if process.stdin is not None:
        await process.stdin.aclose()
    with anyio.move_on_after(STOPS_WITHIN_S + 0.5):
        await process.wait()
    _kill(process)


def _kill(process: Process) -> None:
    """End a verb and the processes that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
