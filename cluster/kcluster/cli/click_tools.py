"""The click side of `kcluster`: verbs by name, imported when called; options that verbs share.

Owns: the table of verbs, their common options, how a refusal is shown.  Never: a verb's work.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

import click

from kcluster import __version__, build
from kcluster.cli.control.client import ControlError

VERBS: Final = {
    "up": "Start a cluster in the foreground.",
    "status": "Show brokers and partitions of the running cluster.",
    "kill": "Take a broker down: kill, clean, power, wipe or pause.",
    "start": "Start a broker that is down.",
    "resume": "Let a paused broker run on.",
    "elect": "Elect the preferred leader of a partition, or move it to a broker.",
    "events": "Show what has happened and why; --follow goes on.",
    "down": "Stop the running cluster.",
    "fault": "Do to the running cluster what a scenario's step can do.",
    "scenario": "Run scenario files, live or in virtual time; or check them.",
    "pipeline": "Jobs on Spark: ingest, audit, timeline, sweep.",
    "schema": "Print the JSON Schema of topology or scenario files.",
    "explain": "Tell a run directory as a story: each change, its cause, the logs.",
    "decode": "Show each byte of a request or response with what it is.",
    "demo": "Kill a leader under load and count: nothing acked is lost.",
}
"""Verb -> its line in the overview; `kcluster.cli.verbs.<verb>` has its `command`."""


class VerbGroup(click.Group):
    """Imports a verb's module when it is called, not before."""

    verbs: dict[str, str] = VERBS
    home = "kcluster.cli.verbs."
    """Before a verb, its module's name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.verbs:
            return None
        command: click.Command = import_module(f"{self.home}{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self.verbs.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.verbs and not args[0].startswith("-"):
            ctx.fail(f"No verb {args[0]!r}.{did_you_mean(args[0], list(self.verbs))}")
        return super().resolve_command(ctx, args)


@click.group(cls=VerbGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(message=f"kcluster {__version__} ({build()})", version=__version__)
def kcluster() -> None:
    """A Kafka cluster of several brokers with real replication, in one process."""


def did_you_mean(word: str, known: list[str]) -> str:
    """` Did you mean kill?`, or nothing."""
    from difflib import get_close_matches

    close = get_close_matches(word, known, n=1)
    return f" Did you mean {close[0]}?" if close else ""


def talks_to_cluster(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--name` and `--json` to a verb, and show what it refuses in one line.

    The function gets `name` and `as_json`; a ControlError ends the process with its exit code, on
    stderr as words or, with `--json`, as `{"error": …}`.
    """

    @click.option("--name", envvar="KCLUSTER_NAME", help="Which cluster, when several run.")
    @click.option("--json", "as_json", is_flag=True, help="Answer as JSON.")
    @functools.wraps(function)
    def wrapper(**options: Any) -> None:
        try:
            function(**options)
        except ControlError as error:
            fail(error, options["as_json"])
        except BrokenPipeError:
            sys.stderr.close()  # the reader of a pipe has seen enough

    return wrapper


def fail(error: ControlError, as_json: bool) -> None:
    """Say what is wrong on stderr and leave."""
    text = json.dumps({"error": str(error)}) if as_json else f"kcluster: {error}"
    print(text, file=sys.stderr)
    sys.exit(error.exit_code)


def print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False))
