"""The click side of `kcluster`: verbs found by their module, imported when they are called.

Owns: the command group, the options that verbs share, how an error is shown.  Never: knows a verb
by name, does a verb's work.

To add a verb: a module in `cli/verbs/` with a click command called `command`, in a section of the
overview: `@section(Section.CLUSTER)`.  The first sentence of its help is its line there.
"""

from __future__ import annotations

import functools
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, TypeVar

import click

from kcluster import __version__, build
from kcluster.cli.completion import complete_targets
from kcluster.cli.errors import CommandError
from kcluster.cli.interrupts import INTERRUPTED, raise_on_interrupt
from kcluster.cli.synonyms import SYNONYMS
from kcluster.deaths import meanings

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_UNTRUNCATED: Final = 200
"""A width beyond any verb's first sentence, so that the overview wraps sentences and cuts nothing
off."""


_OTHER: Final = "Commands"
"""The heading of verbs without a section."""


class Section(StrEnum):
    """The headings of `kcluster --help`, in order."""

    CLUSTER = "Run a cluster"
    FAULTS = "Change and break the running cluster"
    SCENARIOS = "Scenarios and analysis"
    TOOLS = "Tools"


C = TypeVar("C", bound=click.Command)
F = TypeVar("F", bound=Callable[..., object])


def section(of: Section) -> Callable[[C], C]:
    """Place a verb in a section of the overview, which reads this from the verb's source."""

    def same(command: C) -> C:
        return command

    return same


class Overview(NamedTuple):
    """The line of a verb in a group's help."""

    name: str
    summary: str
    heading: str = _OTHER


_COMMAND: Final = (
    r'(?:^@section\(Section\.(\w+)\)$.*?)?^@click\.\w+\(.*?^def command\(.*?"""(.*?)"""'
)
"""A pattern that finds a verb's section, and the help of its command, in the source of its module.
It is not compiled here, because a verb that is called does not need it."""


def overview_of(name: str, source: str) -> Overview:
    """The line of a verb, from the source of its module."""
    found = re.search(_COMMAND, source, re.DOTALL | re.MULTILINE)
    assert found is not None, name
    summary = click.Command(name, help=found[2]).get_short_help_str(_UNTRUNCATED)
    return Overview(name, summary, Section[found[1]] if found[1] else _OTHER)


class HelpfulGroup(click.Group):
    """A group that shows whole sentences in its help, and suggests the verb that was meant."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        lines: dict[str, list[tuple[str, str]]] = {}
        for heading in (*Section, _OTHER):
            lines[heading] = []
        for verb in self.overview(ctx):
            lines[verb.heading].append((verb.name, verb.summary))
        for heading, listed in lines.items():
            if listed:
                with formatter.section(heading):
                    formatter.write_dl(listed)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem  # only for a shell's completion

        return [
            *(
                CompletionItem(verb.name, help=verb.summary)
                for verb in self.overview(ctx)
                if verb.name.startswith(incomplete)
            ),
            *click.Command.shell_complete(self, ctx, incomplete),
        ]

    def overview(self, ctx: click.Context) -> Iterator[Overview]:
        """The lines of the group's verbs."""
        for name, command in sorted(self.commands.items()):
            yield Overview(name, command.get_short_help_str(_UNTRUNCATED))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        verbs = self.list_commands(ctx)
        if args and args[0] not in verbs and not args[0].startswith("-"):
            typed = " ".join([*ctx.command_path.split()[1:], args[0]])
            meant = SYNONYMS.get(typed)
            known = [typed[: -len(args[0])] + verb for verb in verbs]
            hint = f" Did you mean {meant}?" if meant else did_you_mean(typed, known)
            ctx.fail(f"No verb {typed!r}.{hint}")
        return super().resolve_command(ctx, args)


class LazyGroup(HelpfulGroup):
    """A group whose commands are the modules of a package, imported when they are called."""

    package = "kcluster.cli.verbs"

    @property
    def folder(self) -> str:
        """The folder of the package."""
        (folder,) = import_module(self.package).__path__
        return folder

    def list_commands(self, ctx: click.Context) -> list[str]:
        names = (
            entry.removesuffix(".py") for entry in os.listdir(self.folder) if entry.endswith(".py")
        )
        return sorted(name.replace("_", "-") for name in names if not name.startswith("_"))

    def overview(self, ctx: click.Context) -> Iterator[Overview]:
        """The lines of its verbs, from their source: importing all of them would take longer than
        the rest of `kcluster --help`."""
        folder = self.folder
        for name in self.list_commands(ctx):
            path = os.path.join(folder, f"{name.replace('-', '_')}.py")
            with open(path, encoding="utf-8") as file:
                yield overview_of(name, file.read())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        module = import_module(f"{self.package}.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def invoke(self, ctx: click.Context) -> object:
        raise_on_interrupt()
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)


def version_line() -> str:
    """The version, and which build runs."""
    return f"kcluster {__version__} ({build()})"


class VerbGroup(LazyGroup):
    """The verbs of `kcluster`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        option = args[0].partition("=")[0] if args else ""
        if option == "--name":
            ctx.fail("--name follows the verb: kcluster status --name NAME")
        if option in ("-b", "--bootstrap", "--bootstrap-server"):
            ctx.fail(
                "kcluster starts clusters, it does not connect to one: kcluster up prints the "
                "address for your client, kcluster status shows topics and brokers."
            )
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb that was typed.  It may be the verb of an action that is not in the overview,
        unless the word means another verb to most people, as stop does."""
        if args and args[0] not in (*self.list_commands(ctx), *SYNONYMS):
            verbs = import_module("kcluster.cli.action_verbs")
            command: click.Command | None = verbs.action_verb(args[0])
            if command is not None:
                return args[0], command, args[1:]
        return super().resolve_command(ctx, args)


@click.group(cls=VerbGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", message=version_line())
def kcluster() -> None:
    """A Kafka cluster of several brokers, with real replication, in one process."""


def did_you_mean(word: str, known: list[str]) -> str:
    """The suggestion ` Did you mean kill?`; empty without a similar name."""
    from difflib import get_close_matches

    close = get_close_matches(word, known, n=1)
    return f" Did you mean {close[0]}?" if close else ""


def control_options(function: Callable[..., object]) -> Callable[..., object]:
    """Add `--name` and `--json` to a verb that talks to the running cluster.

    The function is called with `name` and `as_json`.  A CommandError ends the process with its exit
    code and one line on stderr: text or, with `--json`, `{"error": …}`.
    """

    @click.option("--name", envvar="KCLUSTER_NAME", help="The cluster, if several are running.")
    @click.option("--json", "as_json", is_flag=True, help="Answer as JSON.")
    @functools.wraps(function)
    def wrapper(**options: Any) -> None:
        try:
            function(**options)
        except CommandError as error:
            fail(error, options["as_json"])
        except BrokenPipeError:
            sys.stderr.close()  # the reader of the pipe has closed it

    return wrapper


def fail(error: CommandError, as_json: bool = False) -> NoReturn:
    """Show an error on stderr and exit."""
    text = json.dumps({"error": str(error)}) if as_json else f"kcluster: {error}"
    print(text, file=sys.stderr)
    sys.exit(error.exit_code)


def refuse_both(verbose: bool, quiet: bool) -> None:
    """Refuse `--verbose` together with `--quiet`."""
    if verbose and quiet:
        raise click.UsageError("choose one of --verbose and --quiet")


def print_json(value: object) -> None:
    """Print a value as one line of JSON."""
    print(json.dumps(value, ensure_ascii=False))


def print_answer(answer: object, lines: Iterable[str], as_json: bool) -> None:
    """Print an answer as one line of JSON, or its lines for people."""
    if as_json:
        print_json(answer)
    else:
        print("\n".join(lines))


def how_option(ways: Sequence[str], default: str) -> Callable[[F], F]:
    """Add `--how` to a verb, one of `ways` to end a broker; the function is called with `how`."""
    return click.option(
        "--how",
        type=click.Choice(list(map(str, ways))),
        default=str(default),
        show_default=True,
        help=meanings(*ways),
    )


def wait_option(function: Callable[..., object]) -> Callable[..., object]:
    """Add `--no-wait` to a verb; the function is called with `wait`."""
    option = click.option(
        "--wait/--no-wait",
        default=True,
        help="Wait until the cluster has settled, or return at once.  [default: wait]",
    )
    return option(function)


def broker_options(
    *own: Callable[[Callable[..., object]], Callable[..., object]],
) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Add TARGETS, a verb's `own` options, `--no-wait` and the options of a verb to the running
    cluster; the function is called with `targets`."""

    def add(function: Callable[..., object]) -> Callable[..., object]:
        targets = click.argument("targets", shell_complete=complete_targets)
        for option in (control_options, wait_option, *reversed(own), targets):
            function = option(function)
        return function

    return add


def network_options(function: Callable[..., object]) -> Callable[..., object]:
    """Add `--one-way`, `--for`, `--no-wait` and the options of a verb to the running cluster."""
    for option in (
        control_options,
        wait_option,
        click.option("--for", "duration", metavar="TIME", help="Undo it after this time: 5s."),
        click.option("--one-way", is_flag=True, help="Affect only messages from NODES."),
    ):
        function = option(function)
    return function
