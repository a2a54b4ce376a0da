"""The work of `kcluster scenario help`.

Owns: the choice of the page.  Never: makes its text (scenario/language/reference.py).
Kafka: no counterpart.
"""

from __future__ import annotations

from kcluster.cli.click_tools import fail
from kcluster.cli.errors import CommandError
from kcluster.config.files.problems import unknown
from kcluster.scenario.language.reference import pages
from kcluster.scenario.language.reference_text import as_markdown, as_text, overview


def print_help(word: str | None, markdown: bool) -> None:
    """Print the page of a word, or all pages."""
    found = pages()
    if markdown:
        print(as_markdown(), end="")
    elif word is None:
        print(overview())
    elif word in found:
        print(as_text(found[word]))
    else:
        fail(CommandError(f"{word}: {unknown('word of scenario files', word, found)}", 2))
