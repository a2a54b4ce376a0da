"""`kcluster completion SHELL`: the shell's side of completion.

Owns: the verb.  Never: completes a word (click does, with cli/completion.py).  Kafka: none.
"""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from kcluster.cli.click_tools import Section, kcluster, section


@section(Section.TOOLS)
@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print a script that completes verbs, options, brokers and topics.

    For bash, in ~/.bashrc: eval "$(kcluster completion bash)".  For zsh the same in ~/.zshrc.  For
    fish: kcluster completion fish | source
    """
    found = get_completion_class(shell)
    assert found is not None, shell
    print(found(kcluster, {}, "kcluster", "_KCLUSTER_COMPLETE").source())
