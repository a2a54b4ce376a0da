"""The overview of `kcluster --help` and of the shell's completion, and what a start imports.

The overview is read from the verbs' sources, so that no verb is imported for it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from kcluster.cli.click_tools import LazyGroup, Section, kcluster, overview_of


def lazy_groups() -> Iterator[LazyGroup]:
    yield kcluster
    ctx = click.Context(kcluster)
    for name in kcluster.list_commands(ctx):
        command = kcluster.get_command(ctx, name)
        if isinstance(command, LazyGroup):
            yield command


@pytest.mark.parametrize("group", [*lazy_groups()], ids=lambda group: group.name)
def test_overview__has_the_first_sentence_of_each_verb(group: LazyGroup) -> None:
    ctx = click.Context(group)
    lines = {verb.name: verb.summary for verb in group.overview(ctx)}
    assert list(lines) == group.list_commands(ctx)
    for name, summary in lines.items():
        command = group.get_command(ctx, name)
        assert command is not None
        assert (name, summary) == (command.name, command.get_short_help_str(200))
        assert not command.hidden


def test_overview__each_verb_has_a_section() -> None:
    ctx = click.Context(kcluster)
    assert isinstance(kcluster, LazyGroup)
    assert {verb.heading for verb in kcluster.overview(ctx)} == set(Section)


def test_overview__the_first_decorator_of_the_command_counts() -> None:
    source = '''"""A verb."""
def helper() -> None:
    """Not this."""

@section(Section.TOOLS)
@click.command("x")
def command(
    name: str,
) -> None:
    """Do it: now and
    here.  More of it.
    """
'''
    assert overview_of("x", source) == ("x", "Do it: now and here.", Section.TOOLS)


def loaded(words: list[str], **environment: str) -> set[str]:
    """The modules that a command line imports."""
    script = (
        "import sys\nfrom kcluster.cli.main import main\n"
        f"try: main({words})\nexcept SystemExit: pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **environment},
        capture_output=True,
        check=True,
        text=True,
        timeout=50,
    )
    return set(done.stderr.split())


COMPLETION = {"_KCLUSTER_COMPLETE": "bash_complete", "COMP_WORDS": "kcluster ", "COMP_CWORD": "1"}


def test_overview__imports_no_verb() -> None:
    for modules in (loaded(["--help"]), loaded([], **COMPLETION)):
        assert "kcluster.cli.click_tools" in modules
        assert [name for name in modules if name.startswith("kcluster.cli.verbs.")] == []


HEAVY = {"asyncio", "gevent", "http.client", "importlib.metadata", "msgspec", "rich", "yaml"}


@pytest.mark.parametrize("verb", ["kill 1", "status", "start 1", "version", "scenario run --help"])
def test_start__a_quick_verb_imports_nothing_heavy(verb: str) -> None:
    # The cluster is looked for and not found, so nothing is asked.
    modules = loaded(verb.split(), KCLUSTER_NAME="no-such-cluster")
    assert f"kcluster.cli.verbs.{verb.split()[0]}" in modules
    assert modules & HEAVY == set()
    assert not any(name.startswith("kcluster.cli.work") for name in modules)
