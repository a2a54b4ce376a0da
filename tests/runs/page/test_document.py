"""The HTML file of the live page: self-contained, and safe whatever names it carries."""

from __future__ import annotations

import base64
import hashlib
import re

from kcluster.runs.page.document import page_html, page_of_record
from tests.runs.stage import unclean_run

HOSTILE = "</script><img src=x onerror=alert(1)>"


def test_page__is_one_file_that_asks_only_its_own_server() -> None:
    page = page_html("c1")
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page)
    assert "connect-src 'self'" in page


def test_page__the_policy_allows_its_own_script_only() -> None:
    page = page_html("c1")
    script = re.search(r"<script>(.*?)</script>", page, re.S)
    assert script is not None
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page


def test_page__carried_rows_and_titles_cannot_end_their_element() -> None:
    page = page_of_record(unclean_run(HOSTILE, HOSTILE))
    assert HOSTILE not in page
    assert page.count("</script>") == page_html("c1").count("</script>")
