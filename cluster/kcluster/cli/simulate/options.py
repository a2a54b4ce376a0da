"""The command line of `kcluster simulate`, checked.

Owns: the programs that it names, their topology and their scenario.  Never: runs anything.
Kafka: no counterpart.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct, structs

from kcluster.actions.stalls import apps_of
from kcluster.cli.errors import CommandError
from kcluster.cli.topology_choice import choose_topology
from kcluster.config.files.durations import milliseconds
from kcluster.config.files.problems import Problem, unknown
from kcluster.config.topology.values import host_problem
from kcluster.scenario.language.loader import ScenarioError
from kcluster.scenario.language.scenario import Scenario
from kcluster.scenario.search import scenario_files
from kcluster.world.imports import own_modules, program_file
from kcluster.world.programs import Program, folder_of, names_of

DEFAULT_LIMIT: Final = "1h"


class SimulateOptions(Struct, frozen=True):
    """The typed options.  `words`: the program and its arguments."""

    words: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    apps: tuple[str, ...] = ()
    topology: str | None = None
    brokers: int | None = None
    profile: str | None = None
    host: str | None = None
    scenario: str | None = None
    seed: int | None = None
    seeds: int | None = None
    duration: str | None = None
    limit: str = DEFAULT_LIMIT
    schedule: str = "fifo"
    compute: str = "1"
    environment: tuple[str, ...] = ()
    quiet: bool = False
    out: str | None = None
    trace: str | None = None
    check_determinism: bool = False


class SimulationSetting(Struct, frozen=True):
    """The simulation to be run.  `shared`: programs that share a module of their own code, by the
    module's name; `scenario`: without steps if none is given.  `duration_s`: the time after which
    the simulation is over even if programs still run, or None; `limit_s`: the time by which they
    must have ended.  `compute`: None to draw it from the seed."""

    programs: tuple[Program, ...]
    shared: dict[str, list[str]]
    scenario: Scenario
    has_scenario: bool
    seed: int
    duration_s: float | None
    limit_s: float
    schedule: str
    compute: float | None
    environment: dict[str, str]


def setting_of(options: SimulateOptions) -> SimulationSetting:
    """The setting that the options describe; CommandError, TopologyError or ScenarioError if it is
    invalid."""
    programs = _programs(options)
    shared = _shared_modules(programs)
    scenario = _scenario(options, programs)
    if options.host is not None:
        _check_host(options.host)
        topology = structs.replace(scenario.topology, host=options.host)
        scenario = structs.replace(scenario, topology=topology)
    _check_apps(scenario, programs)
    return SimulationSetting(
        programs=programs,
        shared=shared,
        scenario=scenario,
        has_scenario=options.scenario is not None,
        seed=scenario.first_seed(options.seed),
        duration_s=None if options.duration is None else _seconds("--for", options.duration),
        limit_s=_seconds("--limit", options.limit),
        schedule=options.schedule,
        compute=_compute(options.compute),
        environment=_environment(options.environment),
    )


# -------------------------------------------------------------------------------- programs


def _programs(options: SimulateOptions) -> tuple[Program, ...]:
    given = [_app(text) for text in options.apps]
    if len(options.modules) > 1:
        raise CommandError("-m takes one module; --app NAME='-m MODULE' takes several", 2)
    if given and (options.words or options.modules):
        extra = (*options.modules, *options.words)[0]
        raise CommandError(f"{extra}: with --app, every program is an --app NAME=FILE", 2)
    if options.modules:
        (module,) = options.modules
        given.append(Program(module.rpartition(".")[2], module, True, options.words))
    elif options.words:
        file, *arguments = options.words
        given.append(Program(names_of([file])[0], file, False, tuple(arguments)))
    if not given:
        raise CommandError("no program is given: kcluster simulate FILE.py, or -m MODULE", 2)
    names = [program.name for program in given]
    for name in names:
        if names.count(name) > 1:
            raise CommandError(f"--app {name}: two programs have this name", 2)
    for program in given:
        _check(program)
    return tuple(given)


def _app(text: str) -> Program:
    name, equals, command = text.partition("=")
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise CommandError(f"--app {text}: {error}", 2) from None
    if not name or not equals or not words:
        raise CommandError(f"--app {text}: write NAME=FILE, or NAME='FILE ARGUMENTS'", 2)
    if words[0] == "-m":
        if len(words) < 2:
            raise CommandError(f"--app {text}: -m needs a module", 2)
        return Program(name, words[1], True, tuple(words[2:]))
    return Program(name, words[0], False, tuple(words[1:]))


def _check(program: Program) -> None:
    if not program.is_module:
        try:
            with open(program.target, "rb"):
                return
        except OSError as error:
            text = f"{program.target}: cannot be read: {error.strerror}"
            raise CommandError(text, 2) from None
    if program_file(program.target) is None:
        raise CommandError(f"-m {program.target}: no such module, or it has no __main__", 2)


def _shared_modules(programs: Sequence[Program]) -> dict[str, list[str]]:
    """The modules that several programs import, by name, each with the names of these programs.
    CommandError if two programs import different modules with one name."""
    found: dict[str, Path] = {}
    users: dict[str, list[str]] = {}
    for program in programs:
        for name, file in own_modules([source_of(program)], folder_of(program)).items():
            other = found.setdefault(name, file)
            if other != file:
                text = f"two programs import a module {name}: {other} and {file}"
                raise CommandError(f"{text}; programs of one simulation share modules", 2)
            users.setdefault(name, []).append(program.name)
    return {name: names for name, names in users.items() if len(names) > 1}


def source_of(program: Program) -> Path:
    """The file with which a program begins."""
    if not program.is_module:
        return Path(program.target)
    file = program_file(program.target)
    assert file is not None, "checked"
    return file


# ------------------------------------------------------------------------------ everything else


def _scenario(options: SimulateOptions, programs: Sequence[Program]) -> Scenario:
    """The given scenario, on the given topology if there is one; or an empty scenario."""
    if options.scenario is None:
        topology = choose_topology(options.topology, options.brokers, None, options.profile)
        return Scenario("+".join(program.name for program in programs), "", topology)
    if options.brokers is not None or options.profile is not None:
        option = "--profile" if options.brokers is None else "--brokers"
        text = "a scenario has a topology of its own, which only --topology FILE replaces"
        raise CommandError(f"{option}: {text}", 2)
    problems: list[str] = []
    files = scenario_files(options.scenario, problems)
    if len(files) != 1:
        several = f"{options.scenario} has {len(files)} scenarios; name one"
        raise CommandError("\n".join(problems) or several, 2)
    topology_file = None if options.topology is None else os.path.abspath(options.topology)
    return Scenario.load(files[0], topology=topology_file)


def _check_apps(scenario: Scenario, programs: Sequence[Program]) -> None:
    """ScenarioError for steps that name programs which do not run."""
    names = [program.name for program in programs]
    problems = [
        Problem(
            scenario.source,
            step.place.line,
            step.place.column,
            f"{step.path}.{step.verb}",
            f"app {app}: {unknown('program', app, names)}",
        )
        for step in scenario.steps
        for app in apps_of(step.action)
        if app not in names
    ]
    if problems:
        raise ScenarioError(problems)


def _check_host(host: str) -> None:
    problem = host_problem(host)
    if problem is not None:
        raise CommandError(f"--host {problem}", 2)


def _seconds(option: str, text: str) -> float:
    try:
        ms = milliseconds(text)
    except ValueError as error:
        raise CommandError(f"{option} {text}: {error}", 2) from None
    if ms <= 0:
        raise CommandError(f"{option} {text}: it must be longer than nothing", 2)
    return ms / 1000


def _compute(text: str) -> float | None:
    if text == "random":
        return None
    try:
        factor = float(text)
    except ValueError:
        factor = -1.0
    if not 0 <= factor <= 1000:
        raise CommandError(f"--compute {text}: it must be random, or a factor up to 1000", 2)
    return factor


def _environment(pairs: Sequence[str]) -> dict[str, str]:
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise CommandError(f"--env {pair}: write KEY=VALUE", 2)
        found[key] = value
    return found
