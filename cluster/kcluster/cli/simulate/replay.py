"""The command that repeats a simulation.

Owns: its text.  Never: runs it.  Kafka: no counterpart.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from msgspec.structs import fields

from kcluster.cli.simulate.hash_seed import CHOSEN
from kcluster.cli.simulate.options import SimulateOptions
from kcluster.world.environment import HASH_SEED, hash_seed

_OPTIONS = {
    "topology": "--topology", "brokers": "--brokers", "profile": "--profile", "host": "--host",
    "scenario": "--scenario", "duration": "--for", "limit": "--limit", "schedule": "--schedule",
    "compute": "--compute",
}  # fmt: skip


def replay_command(options: SimulateOptions, seed: int) -> str:
    """The command that repeats the simulation, without the options that only place the output."""
    before = [] if hash_seed() == CHOSEN else [f"{HASH_SEED}={hash_seed()}"]
    return shlex.join([*before, "kcluster", "simulate", *_words(options, seed)])


def _words(options: SimulateOptions, seed: int) -> Iterator[str]:
    if not options.modules:
        yield from options.words[:1]
    for option, values in (
        ("-m", options.modules), ("--app", options.apps), ("--env", options.environment)
    ):  # fmt: skip
        for value in values:
            yield from (option, value)
    defaults = {field.name: field.default for field in fields(SimulateOptions)}
    for name, option in _OPTIONS.items():
        value = getattr(options, name)
        if value != defaults[name]:
            yield from (option, str(value))
    yield from ("--seed", str(seed))
    arguments = options.words if options.modules else options.words[1:]
    if arguments:
        yield from ("--", *arguments)
