"""The HTML file of the live page: self-contained, and safe whatever names it carries."""

from __future__ import annotations

import base64
import hashlib
import re
import zlib

from kcluster.runs.page.document import page_html, page_of_record
from tests.runs.stage import unclean_run

HOSTILE = "</script><img src=x onerror=alert(1)>"


def hash_of(script: str) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def unpacked(page: str, element: str) -> str:
    found = re.search(rf'<script id="{element}" type="text/plain">([^<]*)</script>', page)
    assert found is not None
    return zlib.decompress(base64.b64decode(found[1])).decode()


def test_page__is_one_file_that_asks_only_its_own_server() -> None:
    page = page_html("c1")
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page)
    assert "connect-src 'self'" in page


def test_page__the_policy_allows_its_own_script_only() -> None:
    page = page_html("c1")
    script = re.search(r"<script>(.*?)</script>", page, re.S)
    assert script is not None
    assert f"script-src {hash_of(script[1])};" in page


def test_page__carried_rows_and_titles_cannot_end_their_element() -> None:
    page = page_of_record(unclean_run(HOSTILE, HOSTILE))
    assert HOSTILE not in page
    plain = page_of_record(unclean_run())
    assert page.count("</script>") == plain.count("</script>")


def test_page__of_a_run_has_a_hash_for_each_script_that_it_inserts() -> None:
    page = page_of_record(unclean_run())
    hashes = re.findall(r"'sha256-[^']+'", page)
    inserted = [unpacked(page, name) for name in ("recorded", "moments")]
    assert [hash_of(each) for each in inserted] == hashes[1:]
    assert len(hashes) == 3


def test_page__of_a_run_has_fewer_bytes_of_code_than_96_kb() -> None:
    """78 KB of it were there before messages were drawn on their way, and a class was replayed; the
    code of the former is unpacked when a view of a moment is opened (docs/decisions/018).  The
    pictures of epochs and the crowns on lanes have 1.5 KB."""
    page = page_of_record(unclean_run())
    data = sum(len(found) for found in re.findall(r'id="(?:carried|later)"[^>]*>([^<]*)', page))
    assert len(page.encode()) - data < 96_000
