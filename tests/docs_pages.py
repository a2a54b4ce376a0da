"""The pages of docs/ and those beside README.md as data: their code blocks, links and anchors.

Owns: reading a page.  Never: runs a block, judges a page.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[1]
BLOCKS = MarkdownIt("commonmark").disable("inline")
"""Reads blocks but neither tables nor text, in a third of the time: each worker reads all pages."""
NOT_RUN = re.compile(r"<!-- not run: (?P<reason>[^>]+?) -->")


class Block(NamedTuple):
    """One fenced block.  `not_run`: the reason in the comment before it, empty if there is none."""

    document: str
    line: int
    language: str
    text: str
    not_run: str


class Link(NamedTuple):
    """A relative link.  `path` is empty for an anchor of the same page."""

    document: str
    path: str
    anchor: str


@cache
def documents() -> tuple[str, ...]:
    """Paths of all pages, relative to the repository."""
    pages = (*sorted(ROOT.glob("*.md")), *sorted(ROOT.joinpath("docs").rglob("*.md")))
    return tuple(str(page.relative_to(ROOT)) for page in pages)


@cache
def tokens(document: str) -> tuple[Token, ...]:
    text = (ROOT / document).read_text(encoding="utf-8")
    return tuple(MarkdownIt("commonmark").enable("table").parse(text))


@cache
def fenced(document: str) -> tuple[Block, ...]:
    """All fenced blocks of a page, those of Sphinx's directives left out."""
    found = []
    reason = ""
    text = (ROOT / document).read_text(encoding="utf-8")
    if "```" not in text:
        return ()  # each worker that collects the tests asks for all pages
    for token in BLOCKS.parse(text):
        if token.type == "fence":
            language = token.info.strip()
            line = token.map[0] + 1 if token.map else 0
            if not language.startswith("{"):
                found.append(Block(document, line, language, token.content, reason))
        comment = NOT_RUN.search(token.content) if token.type == "html_block" else None
        reason = comment["reason"] if comment else ""
    return tuple(found)


@cache
def links(document: str) -> tuple[Link, ...]:
    """Links and images of a page that lead to files or to anchors."""
    found = []
    for token in tokens(document):
        for child in token.children or ():
            target = child.attrGet("href") or child.attrGet("src")
            if isinstance(target, str) and "://" not in target:
                path, _, anchor = target.partition("#")
                found.append(Link(document, path, anchor))
    return tuple(found)


@cache
def anchors(document: str) -> frozenset[str]:
    """The anchors of a page's headings, as GitHub and MyST make them."""
    found: list[str] = []
    listed = tokens(document)
    for heading, inline in pairwise(listed):
        if heading.type == "heading_open":
            words = "".join(child.content for child in inline.children or ())
            slug = re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-")
            repeated = sum(
                re.fullmatch(rf"{re.escape(slug)}(-\d+)?", one) is not None for one in found
            )
            found.append(f"{slug}-{repeated}" if repeated else slug)
    return frozenset(found)
