"""Long results in pages: nothing is lost, and each page is short."""

from __future__ import annotations

import re

import pytest

from kcluster.cli.mcp.pages import MAX_KEPT, PAGE_CHARACTERS, KeptResults

LONG = "\n".join(f"line {number}: {'x' * 50}" for number in range(1, 301))


def test_pages__together_have_every_line_once_and_the_end_comes_first() -> None:
    results = KeptResults()
    page = results.first_page(LONG)
    assert page.endswith("\n".join(LONG.split("\n")[-3:]))
    shown: list[str] = []
    while (marked := re.search(r"\[lines .*more\(result=(\d+), first=(\d+)\)\]", page)) is not None:
        assert len(page) < PAGE_CHARACTERS + 200
        shown += page[: marked.start()].splitlines()
        page = results.page(int(marked[1]), int(marked[2]))
    assert [*shown, *page.splitlines()] == LONG.split("\n")


def test_pages__a_short_result_is_whole_and_a_long_line_is_cut() -> None:
    results = KeptResults()
    assert results.first_page("valid\n") == "valid"
    assert len(results.first_page("x" * 100_000)) < PAGE_CHARACTERS


def test_pages__only_the_newest_results_are_kept() -> None:
    results = KeptResults()
    for _ in range(MAX_KEPT + 1):
        results.first_page(LONG)
    assert results.page(MAX_KEPT + 1, 300).startswith("line 300")
    with pytest.raises(LookupError):
        results.page(1, 1)
