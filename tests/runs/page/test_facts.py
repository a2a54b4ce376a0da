"""What the page makes of a run's rows, asked of the page itself in a browser.

States of brokers over time, cuts, deleted topics, findings with their places.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kcluster.events import AnyEvent
from kcluster.events.brokers import BrokerPaused
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
from kcluster.evidence.rows import ExchangeRow
from kcluster.runs.page.document import page_of_record
from kcluster.runs.record import CommitRow, LeaderRow, NoteRow, ProcessedRow, RunRecord
from tests.runs.browser import IN_CHROMIUM, Browser
from tests.runs.stage import BEGAN_MS, unclean_run

pytestmark = IN_CHROMIUM

FACTS = """
while (!window.kclusterPage) await new Promise(requestAnimationFrame);
await kclusterPage.ready;
await new Promise(requestAnimationFrame);
await new Promise(requestAnimationFrame);
const { facts } = kclusterPage;
const { model, run } = facts;
const since = ({ from, to, what }) => [from - run.began, to - run.began, what];
const broker = (id) => facts.brokers.find((each) => each.id === id);
"""


@pytest.fixture
def facts(browser: Browser, tmp_path: Path) -> Any:
    """`facts(record, expression)`: the value of an expression about the facts of this run."""

    def asked(record: RunRecord, expression: str) -> Any:
        file = tmp_path / "page.html"
        file.write_text(page_of_record(record), "utf-8")
        return browser.look(file.as_uri(), f"{FACTS} return {expression};")

    return asked


def test_facts__brokers_have_spans_of_their_states(facts: Any) -> None:
    states, fenced, other = facts(
        unclean_run(),
        "[broker(1).states.map(since), broker(1).fenced.map(since), broker(2).fenced]",
    )
    assert states == [[-1_000, 2_000, "up"], [2_000, 7_000, "killed"], [7_000, 10_000, "up"]]
    assert fenced == [[5_000, 10_000, "fenced"]]
    assert other == []


def test_facts__a_broker_behind_a_cut_differs_from_those_that_lost_one_peer(facts: Any) -> None:
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
    cuts, causes, lanes = facts(
        record,
        """[facts.brokers.map((each) => each.cuts.map(since)),
        facts.brokers.map((each) => each.cuts[0].note.kind),
        model.notes.filter((note) => /cut/.test(note.kind)).map((note) => note.lane)]""",
    )
    assert cuts == [
        [[8_000, 8_500, "cut off from broker 2, broker 3, controller"]],
        [[8_000, 8_500, "no link with broker 1"]],
        [[8_000, 8_500, "no link with broker 1"]],
    ]
    assert causes == ["network_cut"] * 3
    assert lanes == [""] * len(ends) + ["actions"]  # a set is shown once, not link by link


def test_facts__a_link_cut_by_itself_is_an_action_one_way(facts: Any) -> None:
    record = unclean_run()
    record.notes.append(NoteRow((-1, 9), 9_000, LinkCut(1, 2)))
    cuts, lane = facts(
        record,
        "[facts.brokers.map((each) => each.cuts.map(({ what }) => what)), model.notes.at(-1).lane]",
    )
    assert cuts == [["cannot reach broker 2"], ["unreachable from broker 1"]]
    assert lane == "actions"


def test_facts__an_action_has_a_short_text(facts: Any) -> None:
    record = unclean_run()
    nothing: dict[str, Any] = {"links": (), "clients": {}}
    nodes = (1, 3000, 100_000, 100_001)
    no_sides: dict[str, Any] = {"sides": (), "joint": (), "astride": ()}
    events: tuple[AnyEvent, ...] = (
        NetworkCut(**nothing, **no_sides, nodes=nodes, others=(2,), one_way=False),
        NetworkShaped(**nothing, nodes=(1,), others=(2,), latency_us=5_000),
        RuleAdded("r", Drop(), ("Produce",), None, (), "*", ()),
        BrokerPaused(2),
        LinkReset(1, 2),
    )
    record.notes += [NoteRow((-1, 10 + at), 9_000, event) for at, event in enumerate(events)]
    assert facts(record, "facts.actions.map((note) => note.short)") == [
        "broker 1 killed",
        "broker 1 started",
        "broker 1, controller, 2 clients cut off",
        "latency 5 ms",
        "rule r: drops the request",
        "broker 2 paused",
        "link 1>2 link reset",
    ]


def test_facts__a_topic_recreated_in_the_same_ms_exists_and_a_deleted_one_does_not(
    facts: Any,
) -> None:
    record = unclean_run()
    record.notes.append(NoteRow((3000, 8), 9_000, TopicDeleted("orders")))
    record.leaders.append(LeaderRow("orders", 0, 9_000, 2, 0, (2,), (), (1, 2)))
    record.notes.append(NoteRow((3000, 9), 9_700, TopicDeleted("orders")))
    spans = facts(
        record,
        """facts.lanes && model.partitions.get("orders-0").leaders.slice(-3).map(
        (row) => [row.at - run.began, row.deleted, row.epoch])""",
    )
    assert spans == [[8_000, True, -1], [8_000, False, 0], [8_700, True, -1]]


def test_facts__findings_name_their_partition_and_their_causes(facts: Any) -> None:
    (anomaly,), (window,), causes = facts(
        unclean_run(),
        """[facts.anomalies.map((each) => [each.partition, each.at - run.began, each.count]),
        facts.windows.map((each) => [each.partition, ...since(each), each.kind]),
        facts.windows[0].chain.map(({ lane, note }) => [lane, note.kind])]""",
    )
    assert anomaly == ["orders-0", 1_500, 3]
    assert window == ["orders-0", 2_100, 6_000, None, "writes"]
    assert causes == [["actions", "broker_down"], ["p:orders-0", "leader_elected"]]


def test_facts__the_application_has_a_lane_and_its_misses_stand_in_the_log(facts: Any) -> None:
    record = unclean_run()
    record.processed = [ProcessedRow("orders", 0, at, "w", 2_000 + at) for at in (0, 1, 2)]
    record.commits = [
        CommitRow("billing", "m", 1, "c", "orders", 0, 5, 1, 2_600, ""),
        CommitRow("billing", "m", 1, "c", "orders", 0, 3, 1, 2_700, "ILLEGAL_GENERATION"),
        CommitRow("billing", "m", 1, "c", "other", 0, 3, 1, 2_700, ""),
    ]
    (application,), marks = facts(
        record, '[facts.applications, facts.marks.get("orders-0").map((x) => [x.first, x.from])]'
    )
    assert application["problems"] == "1 missed"
    assert [(each["at"], *each["offsets"], each["error"]) for each in application["commits"]] == [
        (2_600, "orders-0: 5", ""),
        (2_700, "orders-0: 3", "ILLEGAL_GENERATION"),
    ]
    assert marks == [[4, 1_500]]  # when offset 4 was appended


def test_facts__what_was_degraded_is_a_finding(facts: Any) -> None:
    record = unclean_run()
    record.verdict["degraded_lines"] = ["offline: orders-0 for 2 s"]
    cards = facts(record, 'document.querySelector(".finding.warn").textContent')
    assert cards == "offlineorders-0 for 2 s"


def test_facts__a_bad_habit_of_a_client_is_a_finding(facts: Any) -> None:
    record = unclean_run()
    asked = ExchangeRow(0, "shop", 1, "Metadata", 0, 0)
    times_ms = range(BEGAN_MS, BEGAN_MS + 5_000, 10)
    record.exchanges = [replace(asked, at_ms=at, asked_ms=at, answered_ms=at) for at in times_ms]
    cards = facts(record, 'document.querySelector(".finding.warn").textContent')
    assert cards == "metadata-storm: shop100 Metadata requests a second, 500 in all"
