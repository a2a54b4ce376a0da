"""The page of a run: its contents, and that no text of a run becomes HTML."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from kcluster.events import AnyEvent
from kcluster.events.brokers import BrokerPaused, BrokerStarted
from kcluster.events.network import (
    LinkCut,
    LinkHealed,
    LinkReset,
    NetworkCut,
    NetworkShaped,
    RuleAdded,
)
from kcluster.events.rule_effects import Drop
from kcluster.events.topics import TopicDeleted
from kcluster.runs import page as page_module
from kcluster.runs.directory import write_run
from kcluster.runs.page import SCRIPTS, json_in_html, page_of
from kcluster.runs.page_data import values_of
from kcluster.runs.record import CommitRow, LeaderRow, NoteRow, ProcessedRow
from tests.runs.stage import crowded_run, unclean_run

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


def embedded(page: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(Elements(page).scripts[0])
    return data


def broker(values: dict[str, Any], broker_id: int) -> dict[str, Any]:
    return next(each for each in values["brokers"] if each["id"] == broker_id)


def test_page__it_is_written_with_the_run_and_needs_nothing_else(tmp_path: Path) -> None:
    path = write_run(tmp_path, unclean_run())
    page = (path / "timeline.html").read_text("utf-8")
    for tag, attributes in Elements(page).found:
        assert "src" not in attributes, tag
        assert tag != "link" or attributes["href"] == "data:,"
    assert not re.search(r"https?:|@import|url\(|import\(|fetch\(|XMLHttp", page)
    assert "{{" not in page
    assert embedded(page)["run"]["name"] == "unclean"


def test_page__all_scripts_of_the_folder_are_in_it_once() -> None:
    folder = Path(page_module.__file__).parent / "html"
    assert sorted(SCRIPTS) == sorted(path.name for path in folder.glob("*.js"))
    page = page_of(unclean_run())
    for path in folder.glob("*.js"):
        assert page.count(path.read_text("utf-8")) == 1
        assert "innerHTML" not in path.read_text("utf-8")


def test_page__names_that_look_like_html_stay_text() -> None:
    record = unclean_run(HOSTILE, topic=HOSTILE)
    record.scenario = record.info.story = record.info.replay = HOSTILE
    page = page_of(record)
    plain = page_of(unclean_run())
    assert [tag for tag, _ in Elements(page).found] == [tag for tag, _ in Elements(plain).found]
    assert page.count("</script") == plain.count("</script") == 2
    assert "<!--" not in page
    assert "\u2028" not in json_in_html({"name": "a\u2028b"})
    values = embedded(page)
    assert values["run"]["name"] == values["run"]["story"] == HOSTILE
    assert values["partitions"][0]["name"] == f"{HOSTILE}-0"


def test_page__notes_name_their_lane_and_their_cause() -> None:
    values = json.loads(json.dumps(values_of(unclean_run())))
    kinds = values["kinds"]
    rows = {(kinds[row[1]], row[3]): row for row in values["notes"]}
    down = rows["broker_down", "broker 1"]
    assert (down[0], down[2], down[6]) == (2_000, "actions", "broker 1 killed")
    fenced = rows["broker_fenced", "broker 1"]
    assert fenced[2] == "b1"
    assert values["notes"][fenced[5]] == down
    elected = rows["leader_elected", "orders-0"]
    assert elected[2] == "p0"
    assert values["notes"][elected[5]] == fenced
    assert rows["broker_started", "broker 2"][2] == ""


def test_page__notes_have_a_mood_by_their_type_not_by_their_words() -> None:
    record = unclean_run()
    clean = replace(record.notes[4].event, clean=False)
    shaped: dict[str, Any] = {"links": ((1, 2),), "clients": {}, "undone": True}
    events = (
        clean,
        replace(clean, clean=True),
        NetworkShaped(**shaped),
        NetworkShaped(**shaped, remaining=((1, 2),)),
        BrokerStarted(1),
        BrokerPaused(1),
    )
    record.notes = [NoteRow((-1, at), 2_000, event) for at, event in enumerate(events)]
    moods = [row[7] for row in values_of(record)["notes"]]
    assert moods == ["bad", "plain", "good", "bad", "good", "bad"]


def test_page__its_scripts_do_not_decide_by_words() -> None:
    for path in (Path(page_module.__file__).parent / "html").glob("*.js"):
        reads = r"note\.text\s*(===|!==|\.(includes|startsWith|endsWith|match|split))"
        assert not re.search(reads, path.read_text("utf-8")), path


def test_page__brokers_have_spans_of_their_states() -> None:
    values = values_of(unclean_run())
    states = [span[:3] for span in broker(values, 1)["states"]]
    assert states == [(-1_000, 2_000, "up"), (2_000, 7_000, "killed"), (7_000, 10_000, "up")]
    assert [span[:3] for span in broker(values, 1)["fenced"]] == [(5_000, 10_000, "fenced")]
    assert broker(values, 2)["fenced"] == []


def test_page__a_broker_behind_a_cut_differs_from_those_that_lost_one_peer() -> None:
    record = unclean_run()
    ends = ((1, 2), (2, 1), (1, 3), (3, 1), (1, 3000), (3000, 1))
    record.info.topology["brokers"].append({"id": 3})
    sides: dict[str, Any] = {"links": ends, "clients": {}, "sides": (), "joint": (), "astride": ()}
    for number, link in enumerate(ends):
        record.notes.append(NoteRow((-1, 10 + number), 9_000, LinkCut(*link)))
    cut = NetworkCut(**sides, nodes=(1,), others=(2, 3, 3000), one_way=False)
    record.notes.append(NoteRow((-1, 20), 9_000, cut))
    for number, link in enumerate(ends):
        record.notes.append(NoteRow((-1, 30 + number), 9_500, LinkHealed(*link)))
    values = values_of(record)
    cuts = {each["id"]: [span[:3] for span in each["cuts"]] for each in values["brokers"]}
    assert cuts == {
        1: [(8_000, 8_500, "cut off from broker 2, broker 3, controller")],
        2: [(8_000, 8_500, "no link with broker 1")],
        3: [(8_000, 8_500, "no link with broker 1")],
    }
    kinds = (values["kinds"].index("link_cut"), values["kinds"].index("network_cut"))
    lanes = [row[2] for row in values["notes"] if row[1] in kinds]
    assert lanes == [""] * len(ends) + ["actions"]  # a set is shown once, not link by link


def test_page__an_action_has_a_short_text() -> None:
    record = unclean_run()
    nothing: dict[str, Any] = {"links": (), "clients": {}}
    cut = NetworkCut(
        **nothing,
        sides=(),
        joint=(),
        astride=(),
        nodes=(1, 3000, 100_000, 100_001),
        others=(2,),
        one_way=False,
    )
    added = RuleAdded("r", Drop(), ("Produce",), None, (), "*", ())
    events: tuple[AnyEvent, ...] = (
        cut,
        NetworkShaped(**nothing, nodes=(1,), others=(2,), latency_us=5_000),
        added,
        BrokerPaused(2),
        LinkReset(1, 2),
    )
    record.notes += [NoteRow((-1, 10 + at), 9_000, event) for at, event in enumerate(events)]
    words = [row[6] for row in values_of(record)["notes"] if row[2] == "actions"]
    assert words == [
        "broker 1 killed",
        "broker 1 started",
        "broker 1, controller, 2 clients cut off",
        "latency 5 ms",
        "rule r: drops the request",
        "broker 2 paused",
        "link 1>2 link reset",
    ]


def test_page__a_link_cut_by_itself_is_an_action_one_way() -> None:
    record = unclean_run()
    record.notes.append(NoteRow((-1, 9), 9_000, LinkCut(1, 2)))
    values = values_of(record)
    assert [span[2] for span in broker(values, 1)["cuts"]] == ["cannot reach broker 2"]
    assert [span[2] for span in broker(values, 2)["cuts"]] == ["unreachable from broker 1"]
    assert values["notes"][-1][2] == "actions"


def test_page__a_topic_recreated_in_the_same_ms_exists_and_a_deleted_one_does_not() -> None:
    record = unclean_run()
    record.notes.append(NoteRow((3000, 8), 9_000, TopicDeleted("orders")))
    record.leaders.append(LeaderRow("orders", 0, 9_000, 2, 0, (2,), (), (1, 2)))
    record.notes.append(NoteRow((3000, 9), 9_700, TopicDeleted("orders")))
    leaders = [row[:3] for row in values_of(record)["partitions"][0]["leaders"]]
    assert leaders[-2:] == [(8_000, 2, 0), (8_700, -2, -1)]


def test_page__clients_have_counts_by_time() -> None:
    writer, reader = values_of(unclean_run())["clients"]
    assert (writer["name"], reader["name"]) == ("writer", "reader")
    in_cells = [(at // 10 * 10, *rest) for at, *rest in writer["ended"]]
    assert in_cells == [(500, 1, 0, 0, 100), (6_100, 0, 0, 1, 4_000), (6_200, 0, 1, 0, 4_000)]
    assert sum(count for _, count in writer["sent"]) == 3
    assert [row[1:] for row in writer["errors"]] == [
        ("Produce", "NOT_LEADER_OR_FOLLOWER", "orders-0", 1)
    ]
    assert [count for _, count in reader["reads"]] == [1]


def test_page__what_the_application_did_wrong_is_a_finding() -> None:
    values = values_of(unclean_run())
    assert values["problems"] == ["missed: orders-0, offset 4: nobody processed it"]


def test_page__the_application_has_a_lane_and_its_misses_stand_in_the_log() -> None:
    record = unclean_run()
    record.processed = [ProcessedRow("orders", 0, at, "w", 2_000 + at) for at in (0, 1, 2)]
    record.commits = [
        CommitRow("billing", "m", 1, "c", "orders", 0, 5, 1, 2_600, ""),
        CommitRow("billing", "m", 1, "c", "orders", 0, 3, 1, 2_700, "ILLEGAL_GENERATION"),
        CommitRow("billing", "m", 1, "c", "other", 0, 3, 1, 2_700, ""),
    ]
    values = values_of(record)
    assert values["run"]["application"] == {"missed": 1}
    (lane,) = values["applications"]
    assert lane["processed"] == [(1_000, 2), (1_002, 1)]
    assert lane["commits"] == [
        (1_600, "billing", "orders-0: 5", ""),
        (1_700, "billing", "orders-0: 3", "ILLEGAL_GENERATION"),
    ]
    # Offset 4 was appended at +500 ms.
    text = "missed: orders-0, offset 4: nobody processed it"
    assert values["partitions"][0]["marks"] == [("missed", 4, 500, 4, 500, text)]


def test_page__what_was_degraded_is_a_finding() -> None:
    record = unclean_run()
    assert values_of(record)["degraded"] == [], "as in runs of before"
    record.verdict["degraded_lines"] = ["offline: orders-0 for 2 s"]
    assert values_of(record)["degraded"] == ["offline: orders-0 for 2 s"]


def test_page__findings_name_their_partition_and_notes() -> None:
    values = values_of(unclean_run())
    (anomaly,), (window,) = values["anomalies"], values["windows"]
    assert (anomaly["partition"], anomaly["at"], anomaly["count"]) == (0, 1_500, 3)
    assert (window["from"], window["to"], window["kind"]) == (2_100, 6_000, "writes")
    for at, _, number in (*anomaly["chain"], *window["chain"]):
        assert values["notes"][number][0] == at


def test_page__a_dense_log_is_thinned_except_for_its_decreases() -> None:
    values = values_of(crowded_run(1_000))
    changed = [each for each in values["partitions"] if each["changed"]]
    assert (len(values["partitions"]), len(changed)) == (1_000, 10)
    (series,) = values["partitions"][0]["series"]
    assert len(series["t"]) < 70_000
    watermarks, total = [], 0
    for step in series["hw"]:
        total += step
        watermarks.append(total)
    assert min(watermarks[1:-1]) == 0  # the one fall among a hundred thousand moves
    assert watermarks[-1] == sum(series["end"]) == 99_999


def test_page__a_run_without_a_verdict_is_drawn() -> None:
    record = unclean_run()
    record.verdict, record.notes, record.leaders, record.moves = {}, [], [], []
    values = embedded(page_of(record))
    assert values["run"]["counts"]["sent"] == 0
    assert [each["id"] for each in values["brokers"]] == [1, 2]
