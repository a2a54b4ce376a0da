"""The pages of docs/ hold together: links, anchors, blocks that parse, generated pages.

Owns: what can be checked without running a block (test_docs.py runs them).  Never: corrects a page.
"""

from __future__ import annotations

import ast
import configparser
import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from tests.docs_pages import ROOT, Block, anchors, documents, fenced, links
from tools.reference_pages import FOLDER, PAGES, page_text

LANGUAGES = (
    "",
    "console",
    "python",
    "yaml",
    "json",
    "ini",
    "sh",
    "text",
    "java",
    "xml",
    "go",
    "js",
)


@pytest.mark.parametrize("document", documents())
def test_page__each_link_leads_to_a_file_and_each_anchor_to_a_heading(document: str) -> None:
    broken = []
    for link in links(document):
        target = (ROOT / document).parent / link.path if link.path else ROOT / document
        if not target.exists():
            broken.append(link.path)
        elif link.anchor and target.suffix == ".md":
            page = str(target.resolve().relative_to(ROOT))
            if link.anchor not in anchors(page):
                broken.append(f"{link.path}#{link.anchor}")
    assert broken == []


@pytest.mark.parametrize("document", documents())
def test_page__each_block_has_a_known_language_and_parses(document: str) -> None:
    for block in fenced(document):
        place = f"{document}:{block.line}"
        assert block.language in LANGUAGES, f"{place}: {block.language!r}"
        assert problem(block) is None, f"{place}: {problem(block)}"


def problem(block: Block) -> str | None:
    """Why a block cannot be what it says; None if it can."""
    try:
        if block.language == "python":
            ast.parse(block.text)
        elif block.language == "yaml":
            yaml.safe_load(block.text)
        elif block.language == "json":
            json.loads(block.text)
        elif block.language == "ini":
            configparser.ConfigParser().read_string(block.text)
        elif block.language == "console" and not block.text.startswith("$ "):
            return "a console block begins with `$ `"
    except (SyntaxError, yaml.YAMLError, ValueError, configparser.Error) as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    ("language", "text"),
    [("python", "a b"), ("yaml", "a: [1"), ("json", "{"), ("ini", "a"), ("console", "ls")],
)
def test_problem__a_block_that_does_not_parse_is_found(language: str, text: str) -> None:
    assert problem(Block("page.md", 1, language, text, "")) is not None


@pytest.mark.parametrize("name", PAGES)
def test_generated_page__is_what_the_code_says(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == page_text(name), "run `make reference`"


@pytest.mark.long
@pytest.mark.skipif(find_spec("sphinx") is None, reason="needs the extra docs: make docs")
def test_site__builds_without_a_warning_and_loads_nothing_from_other_servers(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet"]
    built = subprocess.run(
        [*command, str(ROOT / "docs"), str(tmp_path)],
        text=True,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=100,
    )
    assert built.returncode == 0, built.stdout
    loaded = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=\"(?:https?:)?//[^\"]*")
    for page in tmp_path.rglob("*.html"):
        assert loaded.findall(page.read_text(encoding="utf-8")) == [], page.name
