"""What the verbs on the network share: their options, and the action of a scenario that they are.

Owns: composing an action from options.  Never: checks or performs it (`kcluster fault` does).
Kafka: none.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click

from kcluster.cli.click_tools import control_options, make_change, wait_option
from kcluster.cli.verbs.fault import FaultRequest


def network_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--one-way`, `--for`, `--no-wait` and the options of a verb to the running cluster."""
    for option in (
        control_options,
        wait_option,
        click.option("--for", "duration", metavar="TIME", help="Undo it after this time: 5s."),
        click.option("--one-way", is_flag=True, help="Affect only messages from NODES."),
    ):
        function = option(function)
    return function


def act(action: str, keys: dict[str, Any], options: dict[str, Any]) -> None:
    """Perform an action with those of its keys that are set."""
    if options.get("one_way"):
        keys["one_way"] = True
    given = {key: value for key, value in keys.items() if value is not None}
    # JSON is YAML, in which actions are written.
    request = FaultRequest(
        json.dumps({action: given or None}), options.get("duration"), options["wait"]
    )
    make_change(request, options["name"], options["as_json"])
