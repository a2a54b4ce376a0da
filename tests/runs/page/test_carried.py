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
from kcluster.runs.page.carried import EVENT_FIELDS, carried_values, later_tables
from kcluster.runs.page.document import FOLDER, page_of_record
from kcluster.runs.record import STREAMED, CommitRow, EpochsRow, ProblemRow, ProcessedRow
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


def committed(at_ms: int, offset: int, error: str) -> CommitRow:
    return CommitRow("readers", "m", 1, "reader", "orders", 0, offset, 1, at_ms, error)


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
    assert page.count("</script") == plain.count("</script") == 7
    assert "<!--" not in page
    values = carried(page)
    assert values["run"]["name"] == values["run"]["story"] == HOSTILE
    assert values["tables"]["leaders"]["topic"][0] == HOSTILE


def test_carried__tables_are_columns_and_an_empty_one_has_none() -> None:
    tables = carried_values(unclean_run())["tables"]
    assert tables["leaders"]["leader"] == [1, 2, 2]
    assert tables["notes"]["lane"][2:5] == ["actions", "b1", "p:orders-0"]
    assert later_tables(unclean_run())["groups"] == {}


def test_carried__each_table_is_drawn_first_or_later_and_appends_stand_in_for_epochs() -> None:
    record = unclean_run()
    first, later = carried_values(record)["tables"], later_tables(record)
    assert sorted([*first, *later]) == sorted([*STREAMED, "waiting"])
    assert "appends" in first
    record.epochs = [EpochsRow("orders", 0, 1_000, 1, 0, ((0, 0),))]
    assert "appends" in later_tables(record)


def test_carried__the_fields_of_events_are_those_that_the_page_declares() -> None:
    types = (FOLDER / "types.d.ts").read_text("utf-8")
    declared = types.split("interface EventFields {")[1].split("}")[0]
    assert set(re.findall(r"(\w+)\??:", declared)) == EVENT_FIELDS


def test_carried__a_problem_has_the_times_at_which_its_records_were_appended() -> None:
    record = unclean_run()
    record.problems.append(ProblemRow("missed", "orders", 0, 90, 91, 2, "missed: never appended"))
    found = [(row["from_ms"], row["to_ms"]) for row in carried_values(record)["problems"]]
    assert found == [(1_500, 1_500), (None, None)]


def test_carried__only_commits_that_change_a_position_are_carried() -> None:
    record = unclean_run()
    rows = [(1_000, 3, ""), (1_100, 3, ""), (1_200, 9, "REBALANCE_IN_PROGRESS"), (1_300, 4, "")]
    record.commits = [committed(*row) for row in rows]
    assert later_tables(record)["commits"]["at_ms"] == [1_000, 1_300]
    assert carried_values(record)["commits"]["at_ms"] == [1_000, 1_100, 1_200, 1_300]


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
    moves = carried_values(record)["tables"]["moves"]
    assert len(record.moves) == 100_000
    marks = moves["high_watermark"]
    assert len(marks) < 70_000
    assert min(marks[1:-1]) == 0  # the one fall among a hundred thousand moves
    assert marks[-1] == moves["log_end_offset"][-1] == 99_999


def test_carried__too_many_commits_are_thinned_except_for_refused_ones() -> None:
    record = unclean_run()
    record.commits = [
        committed(BEGAN_MS + at // 10, at, "X" * (at == 50_000)) for at in range(100_000)
    ]
    commits = carried_values(record)["commits"]
    assert len(commits["offset"]) < 70_000
    assert commits["error"].count("X") == 1
    assert commits["offset"][-1] == 99_999


def test_carried__a_run_without_a_verdict_is_drawn() -> None:
    record = unclean_run()
    record.verdict, record.notes, record.leaders, record.moves = {}, [], [], []
    values = carried(page_of_record(record))
    assert values["verdict"] is None
    assert [each["id"] for each in values["run"]["brokers"]] == [1, 2]
