"""What moves on the page: where messages are at a moment, the rings, the ways around boxes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kcluster.runs.page.document import page_of_record
from kcluster.runs.record import RunInfo, RunRecord
from tests.runs.page.stage import failover_run

if TYPE_CHECKING:
    from playwright.sync_api import Page

    Tab = Callable[..., Page]

pytestmark = [pytest.mark.xdist_group("page"), pytest.mark.long, pytest.mark.timeout_s(180)]

CLUSTER = """
const page = kclusterPage;
await page.ready;
page.time.isComplete = true;
const start = (count) => page.rows({
  notes: [
    {id: [-1, 0], at_ms: 0, subject: "controller", text: "elected", cause: null,
     event: {kind: "controller_elected", leader: 3000, epoch: 1}},
    ...Array.from({length: count}, (_, i) => ({id: [-1, i + 1], at_ms: 0, cause: null,
      subject: `broker ${i + 1}`, text: "process started",
      event: {kind: "broker_started", broker: i + 1}})),
  ],
  leaders: [{topic: "t", partition: 0, at_ms: 0, leader: 1, leader_epoch: 0, isr: [1, 2, 3],
    elr: [], replicas: [1, 2, 3]}],
  epochs: [1, 2, 3].map((broker) => ({topic: "t", partition: 0, broker, at_ms: 0,
    start_offset: 0, epochs: [[0, 0]]})),
  moves: [1, 2, 3].map((broker) => ({topic: "t", partition: 0, broker, at_ms: 0,
    log_end_offset: 3, high_watermark: 3, last_stable_offset: 3})),
}, 20000);
const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
const show = async (view) => { page.show(view); await page.ready; await frame(); };
"""

FETCH = """
start(3);
page.time.speed = 0.01;
const message = (source, destination, is_answer, sent_us, arrives_us, parts) => ({source,
  destination, number: 7, is_answer, api: "Fetch", sent_us, arrives_us, parts});
page.rows({
  messages: [
    message(2, 1, false, 1_000_000, 1_010_000, [["t", 0, 3, -1, -1]]),
    message(1, 2, true, 1_050_000, 1_060_000, [["t", 0, 3, 3, 3]]),
  ],
  moves: [1, 2].map((broker) => ({topic: "t", partition: 0, broker,
    at_ms: broker === 1 ? 1050 : 1060, log_end_offset: 4, high_watermark: 3,
    last_stable_offset: 3})),
}, 20000);
await show("partition");
const seen = {};
for (const at of [999, 1005, 1030, 1055, 1061]) {
  page.look(at);
  await frame();
  seen[at] = kclusterFlights.journeys.map(({kind, from, to, share, cells}) =>
    [kind, from, to, Math.round(10 * share), cells ?? null]);
}
return seen;
"""


@pytest.fixture
def page(tab: Tab, tmp_path: Path) -> Page:
    return opened(tab, tmp_path)


def opened(tab: Tab, tmp_path: Path, **looks: Any) -> Page:
    file = tmp_path / "empty.html"
    file.write_text(page_of_record(RunRecord(RunInfo("motion", "live", 1, 0, 0))), "utf-8")
    return tab(file.as_uri(), **looks)


def run(page: Page, script: str) -> Any:
    return page.evaluate(f"(async () => {{ {CLUSTER} {script} }})()")


def test_motion__a_fetch_is_where_the_cluster_has_it(page: Page) -> None:
    """10 ms to the leader, 40 ms of waiting there, 10 ms back with the record."""
    assert run(page, FETCH) == {
        "999": [],
        "1005": [["fetch", "b2", "b1", 5, None]],
        "1030": [["parked", "b2", "b1", 10, None]],
        "1055": [["answer", "b1", "b2", 5, [3]]],
        "1061": [],
    }


CONSUMER = """
start(3);
page.time.speed = 0.01;
const fetch = (asked_ms, answered_ms, first) => ({client: "reader", at_ms: answered_ms, asked_ms,
  answered_ms, broker: 1, api: "Fetch", topic: first < 0 ? null : "t",
  partition: first < 0 ? null : 0,
  partitions: 1, error: "", first, last: first, leader: -1, leader_epoch: -1});
page.rows({exchanges: [fetch(900, 950, 2), fetch(1000, 1040, -1), fetch(1100, 1150, 3)]}, 20000);
page.rows({asking: [{client: "reader", broker: 1, at_ms: 1200, partitions: ["t-0"]}]}, 20000);
const seen = {};
for (const view of ["partition", "cluster"]) {
  await show(view);
  seen[view] = {};
  for (const at of [1001, 1020, 1041, 1101, 1120, 1151, 1180, 1201, 1250]) {
    page.look(at);
    await frame();
    seen[view][at] = kclusterFlights.journeys.map(({kind, from, to, cells}) =>
      [kind, from, to, cells ?? null]);
  }
}
return seen;
"""


def test_motion__a_consumers_fetch_waits_at_the_leader(page: Page) -> None:
    """A fetch without records, one with a record, and one that still waits."""
    ask, asked = [["ask", "creader", "b1", None]], [["asked", "creader", "b1", None]]
    moments = {
        "1001": ask,
        "1020": asked,
        "1041": [["read", "b1", "creader", []]],
        "1101": ask,
        "1120": asked,
        "1151": [["read", "b1", "creader", [3]]],
        "1180": [],
        "1201": ask,
        "1250": asked,
    }
    assert run(page, CONSUMER) == {"partition": moments, "cluster": moments}


def test_motion__a_message_on_a_cut_link_ends_on_its_way(page: Page) -> None:
    seen = run(
        page,
        """
        start(3);
        page.rows({messages: [{source: 2, destination: 3000, number: 1, is_answer: false,
          api: "BrokerHeartbeat", sent_us: 1_000_000, arrives_us: -1, parts: []}]}, 20000);
        await show("cluster");
        page.look(1250);
        await frame();
        return kclusterFlights.journeys.map(({kind, share, isLost}) => [kind, share, isLost]);
        """,
    )
    assert seen == [["heartbeat", 0.55, True]]


def test_motion__nothing_flies_with_reduced_motion(tab: Tab, tmp_path: Path) -> None:
    page = opened(tab, tmp_path, reduced_motion="reduce")
    assert run(page, FETCH)["1005"] == []


def test_motion__a_ring_empties_until_the_fence_falls(page: Page) -> None:
    seen = run(
        page,
        """
        start(3);
        page.rows({
          sessions: [{at_ms: 2000, broker: 1, expires_ms: 11000}],
          notes: [{id: [3000, 1], at_ms: 11000, subject: "broker 1", text: "fenced", cause: null,
            event: {kind: "broker_fenced", broker: 1}}],
        }, 20000);
        await show("cluster");
        const seen = [];
        for (const at of [2000, 6500, 10_100, 11_000]) {
          page.look(at);
          await frame();
          const broker = document.querySelector("[data-flight=b1]");
          seen.push([
            broker.querySelector(".session [stroke-dasharray]")?.getAttribute("stroke-dasharray"),
            broker.querySelector(".state").textContent,
            broker.querySelector(".fence") !== null,
          ]);
        }
        return seen;
        """,
    )
    assert seen == [
        ["100.0 100", "up", False],
        ["50.0 100", "up · fenced in 4.5 s", False],
        ["10.0 100", "up · fenced in 0.9 s", False],
        [None, "up, fenced", True],
    ]


@pytest.mark.parametrize("width", [480, 1366, 1920])
def test_motion__no_way_leads_through_a_box(tab: Tab, tmp_path: Path, width: int) -> None:
    page = opened(tab, tmp_path, width=width, height=900)
    crossed = run(
        page,
        """
        const crossed = [];
        for (const count of [2, 3, 4, 5, 6, 8]) {
          start(count);
          page.rows({exchanges: ["shop", "reader"].flatMap((client) =>
            Array.from({length: count}, (_, i) => ({client, at_ms: 19000, asked_ms: 19000,
              answered_ms: 19000, broker: i + 1, api: "Produce", topic: "t", partition: 0,
              partitions: 1, error: "", first: 0, last: 0, leader: -1, leader_epoch: -1})))},
            20000);
          page.look(19500);
          await show("cluster");
          const stage = document.querySelector(".stage").getBoundingClientRect();
          const boxes = [...document.querySelectorAll("#view [data-flight]")].map((each) =>
            [each.dataset.flight, each.getBoundingClientRect()]);
          for (const line of document.querySelectorAll("path[data-route]")) {
            const ends = line.dataset.route.replace("controller", "b3000").split(" ");
            const length = line.getTotalLength();
            for (let i = 0; i <= 60; i++) {
              const point = line.getPointAtLength((length * i) / 60);
              const x = point.x + stage.left, y = point.y + stage.top;
              for (const [name, box] of boxes) {
                if (!ends.includes(name) && x > box.left && x < box.right && y > box.top &&
                    y < box.bottom) crossed.push(`${count}: ${line.dataset.route} at ${name}`);
              }
            }
          }
        }
        return [...new Set(crossed)];
        """,
    )
    assert crossed == []


def test_motion__a_finished_run_shows_the_session_that_ended_and_the_records_that_waited(
    page: Page,
) -> None:
    """The record has no heartbeats: the fence says when the last one was."""
    seen = run(
        page,
        """
        page.model.isWhole = true;
        start(3);
        const stack = (at_ms, count) => ({at_ms, client: "shop", topic: "t", partition: 0, count,
          oldest_ms: 5000});
        page.rows({
          notes: [{id: [3000, 1], at_ms: 11000, subject: "broker 1", text: "fenced", cause: null,
            event: {kind: "broker_fenced", broker: 1, silent_ms: 9000}}],
          exchanges: [{client: "shop", at_ms: 900, asked_ms: 900, answered_ms: 900, broker: 1,
            api: "Produce", topic: "t", partition: 0, partitions: 1, error: "", first: 2, last: 2,
            leader: -1, leader_epoch: -1}],
          waiting: [stack(6000, 4), stack(8000, 9), stack(12000, 0)],
        }, 20000);
        await show("partition");
        const seen = [];
        for (const at of [1999, 6500, 10_100, 12_000]) {
          page.look(at);
          await frame();
          const ring = document.querySelector("[data-broker='1'] .session [stroke-dasharray]");
          seen.push([ring?.getAttribute("stroke-dasharray") ?? null,
            document.querySelector(".waiting")?.textContent ?? null]);
        }
        return seen;
        """,
    )
    assert seen == [
        [None, None],
        ["50.0 100", "4 records waiting, 1.5 s"],
        ["10.0 100", "9 records waiting, 5.1 s"],
        [None, None],
    ]


def test_motion__no_record_passes_through_words_on_a_narrow_page(tab: Tab, tmp_path: Path) -> None:
    words, wire = run(
        opened(tab, tmp_path, width=480, height=900),
        """
        start(3);
        page.rows({
          exchanges: [{client: "shop", at_ms: 900, asked_ms: 900, answered_ms: 900, broker: 1,
            api: "Produce", topic: "t", partition: 0, partitions: 1, error: "", first: 2, last: 2,
            leader: -1, leader_epoch: -1}],
          waiting: [{at_ms: 6000, client: "shop", topic: "t", partition: 0, count: 11,
            oldest_ms: 5000}],
        }, 20000);
        page.look(10_000);
        await show("partition");
        await frame();
        const {points} = kclusterFlights.routeOf(page, {from: "b1", to: "cshop", kind: "ack"});
        return [document.querySelector(".waiting").getBoundingClientRect().right,
          Math.max(...points.map(({x}) => x))];
        """,
    )
    assert words < wire


SEVERAL = """
start(3);
page.time.speed = 0.01;
const clients = ["accounting", "billing", "shipping"];
const asked = [["Produce", 1], ["Produce", 2], ["Fetch", 3]];
page.rows({exchanges: clients.flatMap((client) => asked.map(([api, broker]) => ({client,
  at_ms: 1000, asked_ms: 1000, answered_ms: 1001, broker, api, topic: "t", partition: 0,
  partitions: 1, error: api === "Produce" ? "NOT_LEADER_OR_FOLLOWER" : "", first: 2, last: 2,
  leader: -1, leader_epoch: -1})))}, 20000);
page.look(1002);
await show("partition");
"""


def test_motion__records_pass_no_other_clients_name(page: Page) -> None:
    crossed = run(
        page,
        f"""{SEVERAL}
        const crossed = [], boxes = [...kclusterFlights.boxes].filter(([name]) => name[0] === "c");
        for (const name of clients.map((client) => `c${{client}}`)) {{
          const way = {{from: "b1", to: name, kind: "refused"}};
          const {{points}} = kclusterFlights.routeOf(page, way);
          for (const [other, box] of boxes) {{
            const twenty = [...Array(20).keys()];
            const isCrossed = points.slice(1).some((end, index) => twenty.some((k) => {{
              const {{x, y}} = points[index], part = k / 20;
              return Math.abs(x + (end.x - x) * part - box.x) < box.width / 2 &&
                Math.abs(y + (end.y - y) * part - box.y) < box.height / 2;
            }}));
            if (other !== name && isCrossed) crossed.push(`${{name}} at ${{other}}`);
          }}
        }}
        return [boxes.length, crossed];
        """,
    )
    assert crossed == [3, []]


@pytest.mark.parametrize("view", ["partition", "cluster"])
def test_view__its_legend_is_seen_while_the_page_says_that_no_client_can_write(
    tab: Tab, tmp_path: Path, view: str
) -> None:
    file = tmp_path / "run.html"
    file.write_text(page_of_record(failover_run()), "utf-8")
    page = tab(f"{file.as_uri()}#t=1600&view={view}")
    page.evaluate("kclusterPage.ready")
    page.locator(".gapwords").wait_for()
    page.wait_for_function(
        """() => document.querySelector("#view .legend").getBoundingClientRect().bottom <=
          document.querySelector("#view").getBoundingClientRect().bottom"""
    )


def test_view__a_narrow_ladder_keeps_its_words_right_of_its_times(tab: Tab, tmp_path: Path) -> None:
    page = opened(tab, tmp_path, width=480, height=900)
    beyond = run(
        page,
        f"""{SEVERAL}
        page.client = "billing";
        await show("client");
        const beyond = [], line = document.querySelector(".life").getBoundingClientRect().left;
        const words = document.querySelectorAll(".rung text:not(.dim)");
        for (const each of words)
          if (each.getBoundingClientRect().left < line) beyond.push(each.textContent);
        return [words.length, beyond];
        """,
    )
    assert beyond == [5, []]
