"""`kcluster up`: a cluster in the foreground.

Owns: the options, as click knows them.  Never: declares an option (cli/up_options.py), runs the
cluster (cli/foreground.py).  Plain command lines do not come here: main.py has a faster way.
Kafka: kafka-server-start.sh.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click

from kcluster.cli.click_tools import Section, section
from kcluster.cli.main import STARTED_S
from kcluster.cli.up_options import UpOption, UpOptions, declared


def _type_of(option: UpOption) -> click.IntRange | click.Choice[str] | None:
    if option.numbers is not None:
        return click.IntRange(*option.numbers)
    return click.Choice(option.words) if option.words else None


def up_options(function: Callable[..., object]) -> Callable[..., object]:
    """Add the options of `up`; the function is called with the fields of UpOptions."""
    for name, option in reversed(declared().items()):
        function = click.option(
            *option.flags,
            name,
            type=_type_of(option),
            metavar=option.metavar,
            is_flag=option.is_flag,
            help=option.help,
        )(function)
    return function


@section(Section.CLUSTER)
@click.command("up")
@click.argument("file", required=False)
@up_options
def command(**options: Any) -> None:
    """Start a cluster in the foreground.

    FILE is a topology; without it topology.yaml is used if it exists, else 3 brokers are started.
    """
    from kcluster.cli.foreground import run_reporting

    sys.exit(run_reporting(UpOptions(**options), STARTED_S))
