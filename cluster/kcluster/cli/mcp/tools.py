"""The tools of an agent: which verbs of `kcluster` they are, and which of their parameters.

Owns: the table.  Never: knows a parameter's type or help (click has both), runs a verb.
Kafka: no counterpart.

To add a tool: a line in TOOLS.  Its schema and its description follow from the verb.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import cleandoc
from typing import Final, NamedTuple

import click

from kcluster.cli.click_tools import kcluster

NO_NAMES: Final[Mapping[str, str]] = {}


class Tool(NamedTuple):
    """A verb as a tool.  `verb`: its words; `shown`: the parameters that agents see, by the names
    that click has for them.  `words`: what it does, if the verb's help is about a terminal;
    `texts`: parameters that name a file and also take the file's text, with the name that such a
    text gets in messages; `only_reads`: whether it changes neither a cluster nor a file."""

    verb: str
    shown: str = ""
    words: str = ""
    texts: Mapping[str, str] = NO_NAMES
    only_reads: bool = False

    @property
    def name(self) -> str:
        """The tool's name: `scenario_run`."""
        return self.verb.replace(" ", "_").replace("-", "_")

    @property
    def words_of_verb(self) -> list[str]:
        """The verb, as it begins a command line."""
        return self.verb.split()

    def command(self) -> click.Command:
        """The verb's command."""
        command: click.Command = kcluster
        context = click.Context(command)
        for word in self.words_of_verb:
            assert isinstance(command, click.Group), self.verb
            below = command.get_command(context, word)
            assert below is not None, self.verb
            command = below
        return command

    def description(self) -> str:
        """What it does, for the agent."""
        return self.words or cleandoc(self.command().help or "").replace("\b\n", "")

    def parameters(self) -> dict[str, click.Parameter]:
        """The parameters that agents see, by the names that agents give them."""
        known = {str(one.name): one for one in self.command().params}
        return {_argument_name(known[name]): known[name] for name in self.shown.split()}


def _argument_name(parameter: click.Parameter) -> str:
    """An option's long form without its dashes: `stop_on`; an argument's own name."""
    if isinstance(parameter, click.Argument):
        return str(parameter.name)
    longest = max(parameter.opts, key=len)
    return longest.lstrip("-").replace("-", "_")


SCENARIO: Final = {"file": "scenario.yaml"}
TOOLS: Final = {
    tool.name: tool
    for tool in (
        Tool(
            "up",
            "file brokers profile name",
            "Start a cluster; answered when its brokers serve clients. FILE is a topology; without"
            " it topology.yaml is used if it exists, else 3 brokers are started. profile=fast makes"
            " Kafka's time constants 100 times shorter. The cluster stops with this session.",
            {"file": "topology.yaml"},
        ),
        Tool("down", "name"),
        Tool(
            "fault",
            "action duration wait name",
            "Perform an action on the running cluster, and report its consequences: 'kill:"
            " leader(orders-0)', 'isolate: 2', 'slow: {nodes: 3, latency: 50ms}', 'start: down',"
            " 'create_topic: {name: orders, partitions: 3}', 'heal'. scenario_help lists all"
            " actions, scenario_help(word=slow) the keys of one. Returns when the cluster has"
            " settled.",
        ),
        Tool("wait", "condition within since name", only_reads=True),
        Tool("status", "topic at name", only_reads=True),
        Tool("events", "last since kinds name", only_reads=True),
        Tool("verdict", "since verbose manners name", only_reads=True),
        Tool("save", "directory scenario name"),
        Tool("scenario list", only_reads=True),
        Tool("scenario show", "name", only_reads=True),
        Tool("scenario help", "word", only_reads=True),
        Tool("scenario run", "files seed runs clock verbose out", texts={"files": "scenario.yaml"}),
        Tool("search", "file seconds runs seed stop_on out", texts=SCENARIO),
        Tool("shrink", "file seed out", texts=SCENARIO),
        Tool("explain", "run partition", only_reads=True),
    )
}
"""The tools by name, in the order of their list."""
