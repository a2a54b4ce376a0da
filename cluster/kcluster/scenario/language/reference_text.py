"""The pages of the reference as text for a terminal, and as one Markdown file.

Owns: the layout.  Never: knows the content of a page (reference.py).
Kafka: no counterpart.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from textwrap import fill
from typing import Final

from kcluster.scenario.language.reference import KeyLine, KeyTable, Page, WordTable, pages

_WIDTH: Final = 88
_COMMAND: Final = "kcluster scenario help --markdown > docs/reference/scenario-keys.md"


# -------------------------------------------------------------------------------------- terminal


def overview() -> str:
    """Every page with its title, for a terminal."""
    found = pages().values()
    titles = [f"  {page.name:<12} {page.title}" for page in found if not page.is_action]
    actions = ", ".join(page.name for page in found if page.is_action)
    last = fill(f"Actions: {actions}", _WIDTH, subsequent_indent="  ")
    return "\n".join(["Topics: kcluster scenario help TOPIC", "", *titles, "", last])


def as_text(page: Page) -> str:
    """One page for a terminal."""
    return "\n\n".join(_text_blocks(page))


def _text_blocks(page: Page) -> Iterator[str]:
    yield fill(f"{page.name}: {_plain(page.title)}", _WIDTH)
    for table in page.tables:
        head = [f"{table.heading}:"] if table.heading else []
        if isinstance(table, KeyTable):
            lines = (line for key in table.lines for line in _key_lines(key))
        else:
            width = max(len(word) for word, _ in table.lines)
            lines = (
                fill(
                    _plain(meaning),
                    _WIDTH,
                    initial_indent=f"  {word:<{width}}  ",
                    subsequent_indent=" " * (width + 4),
                )
                if meaning
                else f"  {word}"
                for word, meaning in table.lines
            )
        yield "\n".join([*head, *lines])
    if page.prose:
        yield fill(_plain(page.prose), _WIDTH)
    if page.is_action:
        yield "More: kcluster scenario help steps (at, when, for, ...), targets, values."
    if examples := [*_examples(page)]:
        yield "Example:\n" + "\n".join(f"  {line}" for line in examples)


def _key_lines(line: KeyLine) -> Iterator[str]:
    yield f"  {line.key:<20} {line.form}{_default(line, '  [', ']')}"
    if line.words:
        yield fill(_plain(line.words), _WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 6)


def _default(line: KeyLine, before: str, after: str) -> str:
    if line.is_required:
        return f"{before}required{after}"
    return f"{before}default: {line.default}{after}" if line.default else ""


def _plain(words: str) -> str:
    """The text with one space after each sentence, and without the marks of code, for a
    terminal."""
    return " ".join(words.split())


def _examples(page: Page) -> Iterator[str]:
    """An action's example as a step, and as a command."""
    if not page.is_action:
        yield from page.example.splitlines()
        return
    yield f"- {page.example}"
    if not page.example.startswith("{"):
        yield f"kcluster fault {shlex.quote(page.example)}"


# -------------------------------------------------------------------------------------- Markdown


def as_markdown() -> str:
    """The whole reference as one file."""
    lines = [
        "# Keys of scenario files",
        "",
        "On a terminal: `kcluster scenario help`, `kcluster scenario help checks`,",
        "`kcluster fault slow --help`. For editors: the"
        " [JSON Schema](../schema/scenario.schema.json), from the same",
        f"classes. `{_COMMAND}` writes this page; a test keeps it equal.",
        "",
    ]
    found = pages()
    lines += [
        f"- [{page.name}](#{page.name}): {_cell(page.title)}"
        for page in found.values()
        if not page.is_action
    ]
    for page in found.values():
        lines += ["", f"## {page.name}", "", _cell(page.title), *_markdown_body(page)]
    return "\n".join(lines) + "\n"


def _markdown_body(page: Page) -> Iterator[str]:
    for table in page.tables:
        yield ""
        if table.heading:
            yield from (f"**{table.heading}**", "")
        yield from _markdown_table(table)
    if page.prose:
        yield from ("", _cell(page.prose))
    if examples := [*_examples(page)]:
        yield from ("", "```", *examples, "```")


def _markdown_table(table: KeyTable | WordTable) -> Iterator[str]:
    if isinstance(table, WordTable):
        yield from ("| | |", "|---|---|")
        yield from (f"| `{word}` | {_cell(meaning)} |" for word, meaning in table.lines)
        return
    yield from ("| key | value | default | |", "|---|---|---|---|")
    for line in table.lines:
        default = "*required*" if line.is_required else f"`{line.default}`" * bool(line.default)
        yield f"| `{line.key}` | {_cell(line.form)} | {default} | {_cell(line.words)} |"


def _cell(words: str) -> str:
    """Text in a table or a paragraph of Markdown."""
    return _plain(words).replace("|", "\\|")
