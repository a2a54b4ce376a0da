"""What the page of a run carries, and that no text of a run becomes HTML."""

from __future__ import annotations

import base64
import json
import re
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from kcluster.runs.directory import write_run
from kcluster.runs.page.carried import carried_values, thinned
from kcluster.runs.page.document import page_of_record
from kcluster.runs.record import ProcessedRow
from tests.runs.stage import BEGAN_MS, crowded_run, unclean_run

HOSTILE = "</script><script>window.hostile = 1</script><!--<img src=x onerror='hostile=1'>&{{data}}"


class Elements(HTMLParser):
    """Every element with its attributes, and the text inside scripts, as a browser takes them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.found and self.found[-1][0] == "script" and self.lasttag == "script":
            self.scripts[-1] += data


def carried(page: str) -> dict[str, Any]:
    """What the page's script unpacks."""
    values: dict[str, Any] = json.loads(
        zlib.decompress(base64.b64decode(Elements(page).scripts[0]))
    )
    return values


def test_page__it_is_written_with_the_run_and_needs_nothing_else(tmp_path: Path) -> None:
    path = write_run(tmp_path, unclean_run())
    page = (path / "timeline.html").read_text("utf-8")
    for tag, attributes in Elements(page).found:
        assert "src" not in attributes, tag
        assert tag != "link" or attributes["href"] == "data:,"
    page = page.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|@import|url\((?!#)|import\(|XMLHttp|\{\{\w+\}\}", page)
    assert carried(page)["run"]["name"] == "unclean"


def test_page__names_that_look_like_html_stay_text() -> None:
    record = unclean_run(HOSTILE, topic=HOSTILE)
    record.info.story = record.info.replay = HOSTILE
    page = page_of_record(record)
    plain = page_of_record(unclean_run())
    assert [tag for tag, _ in Elements(page).found] == [tag for tag, _ in Elements(plain).found]
    assert page.count("</script") == plain.count("</script") == 3
    assert "<!--" not in page
    values = carried(page)
    assert values["run"]["name"] == values["run"]["story"] == HOSTILE
    assert values["tables"]["leaders"]["topic"][0] == HOSTILE


def test_carried__tables_are_columns_and_an_empty_one_has_none() -> None:
    tables = carried_values(unclean_run())["tables"]
    assert tables["leaders"]["leader"] == [1, 2, 2]
    assert tables["notes"]["lane"][2:5] == ["actions", "b1", "p:orders-0"]
    assert tables["groups"] == {}


def test_carried__clients_have_counts_by_time() -> None:
    writer, reader = carried_values(unclean_run())["clients"]
    assert (writer["name"], reader["name"]) == ("writer", "reader")
    in_cells = [((at - BEGAN_MS) // 10 * 10, *rest) for at, *rest in writer["ended"]]
    assert in_cells == [(500, 1, 0, 0, 100), (6_100, 0, 0, 1, 4_000), (6_200, 0, 1, 0, 4_000)]
    assert sum(count for _, count in writer["sent"]) == 3
    assert [row[1:] for row in writer["errors"]] == [
        ("Produce", "NOT_LEADER_OR_FOLLOWER", "orders-0", 1)
    ]
    assert [count for _, count in reader["reads"]] == [1]


def test_carried__what_the_application_processed_is_counted_by_topic() -> None:
    record = unclean_run()
    record.processed = [ProcessedRow("orders", 0, at, "w", 2_000 + at) for at in (0, 1, 2)]
    assert carried_values(record)["processed"] == {"orders": [(2_000, 2), (2_002, 1)]}


def test_carried__a_dense_log_is_thinned_except_for_its_decreases() -> None:
    record = crowded_run(1_000)
    moves = thinned(record.moves, 10_000)
    assert len(record.moves) == 100_000
    assert len(moves) < 70_000
    marks = [move.high_watermark for move in moves]
    assert min(marks[1:-1]) == 0  # the one fall among a hundred thousand moves
    assert marks[-1] == moves[-1].log_end_offset == 99_999


def test_carried__a_run_without_a_verdict_is_drawn() -> None:
    record = unclean_run()
    record.verdict, record.notes, record.leaders, record.moves = {}, [], [], []
    values = carried(page_of_record(record))
    assert values["verdict"] is None
    assert [each["id"] for each in values["run"]["brokers"]] == [1, 2]
