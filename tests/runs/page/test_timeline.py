"""The timeline of a run in a real browser, headless: lanes, hovering, zooming, selecting.

A script in the page sends the events of mouse and keyboard, and reports what it saw.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kcluster.runs.page.document import page_of_record
from kcluster.runs.record import EpochsRow, ProcessedRow, RunRecord
from tests.runs.browser import IN_CHROMIUM, Browser
from tests.runs.stage import crowded_run, unclean_run

HOSTILE = "</script><img src=x onerror='window.hostile = 1'>"

pytestmark = IN_CHROMIUM

HANDS = """
const at = (lane, share) => {
  const rows = [...document.querySelectorAll(".row[data-lane]")];
  const plot = rows.find((row) => row.dataset.lane.startsWith(lane)).querySelector(".plot");
  const box = plot.getBoundingClientRect();
  return [plot, {clientX: box.left + box.width * share, clientY: box.top + 10, bubbles: true,
    cancelable: true, pointerType: "mouse", button: 0}];
};
const point = (kind, lane, share, more) => {
  const [plot, where] = at(lane, share);
  plot.dispatchEvent(new PointerEvent(kind, {...where, ...more}));
};
const click = (lane, share) => {
  point("pointerdown", lane, share);
  point("pointerup", lane, share);
};
const press = (key) => document.body.dispatchEvent(
  new KeyboardEvent("keydown", {key, bubbles: true}));
const text = (id) => document.getElementById(id).textContent;
const frames = async (count) => {
  for (let i = 0; i < count; i++) await new Promise((done) => requestAnimationFrame(done));
};
const inked = (canvas) => canvas.width > 0 && canvas.getContext("2d")
  .getImageData(0, 0, canvas.width, canvas.height).data.some((value) => value > 0);
/** Whether a lane has pixels in the gold of elections. */
const crowned = (canvas) => {
  const gold = [0xa8, 0x6f, 0x00];
  const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  for (let i = 0; i < data.length; i += 4)
    if (gold.every((value, place) => data[i + place] === value)) return true;
  return false;
};
const rows = () => [...document.querySelectorAll(".row[data-lane]")]
  .filter((row) => row.style.display !== "none").map((row) => row.dataset.lane);
/** Where on a lane a share of the run lies: the view has a little room at both ends. */
const share = (part) => (part + 0.012) / 1.024;
/** The share of the page's height that the lanes have. */
const shareOfLanes = () => {
  const high = (each) => each.getBoundingClientRect().height;
  const [lanes, top] = ["scroll", "top"].map((id) => high(document.getElementById(id)));
  return (lanes - top) / high(document.body);
};
const saw = {};
while (!window.kclusterPage) await new Promise(requestAnimationFrame);
await kclusterPage.ready;
await frames(4);
"""


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Page:
    return Page(browser, tmp_path / "page.html")


class Page:
    """A run's page, reloaded for each inspection."""

    def __init__(self, browser: Browser, file: Path) -> None:
        self._browser, self._file = browser, file

    def look(
        self,
        record: RunRecord,
        steps: str,
        address: str = "",
        size: tuple[int, int, int] = (1_400, 900, 1),
    ) -> dict[str, Any]:
        """What the steps put into `saw`.  `address`: appended to the page's address; `size` as in
        Browser."""
        self._file.write_text(page_of_record(record), "utf-8")
        url = self._file.as_uri() + address
        found: dict[str, Any] = self._browser.look(url, f"{HANDS} {steps}\nreturn saw;", size)
        return found


def test_timeline__the_badge_is_the_worse_of_verdict_and_application(page: Page) -> None:
    record = unclean_run()
    record.info.outcome = record.verdict["outcome"] = "valid"
    record.info.failures, record.verdict["anomalies"] = [], []
    steps = """
    const badge = document.querySelector(".badge");
    saw.badge = [badge.className, badge.textContent];
    saw.good = document.querySelectorAll(".finding.good").length;
    saw.inked = inked(document.querySelector('.row[data-lane="a:orders"] canvas'));
    point("pointermove", "p:orders-0", share(0.05));
    saw.tip = text("tip");
    document.querySelector(".finding.bad").click();
    await frames(2);
    saw.chosen = text("chosen");
    """
    record.processed = [ProcessedRow("orders", 0, at, "w", 2_000 + at) for at in range(4)]
    saw = page.look(record, steps)
    assert saw["badge"] == ["badge bad", "the application: 1 missed"]
    assert saw["good"] == 0
    assert saw["inked"] is True
    missed = "missed: orders-0, offset 4: nobody processed it"
    assert missed in saw["tip"]
    assert missed in saw["chosen"]
    record.problems = []
    saw = page.look(record, "saw.badge = document.querySelector('.badge').textContent;")
    assert saw["badge"] == "valid"


def test_timeline__every_lane_is_drawn_and_shows_its_causes(page: Page) -> None:
    steps = """
    saw.rows = rows();
    saw.inked = rows().filter((lane) => inked(
      document.querySelector(`.row[data-lane="${lane}"] canvas`)));
    saw.map = inked(document.getElementById("map"));
    saw.crowned = rows().filter((lane) => crowned(
      document.querySelector(`.row[data-lane="${lane}"] canvas`)));
    saw.findings = text("findings");
    saw.events = text("events");
    for (const [name, lane, part] of [["elected", "p:", 0.5], ["away", "p:", 0.4],
        ["ahead", "p:", 0.55], ["end", "p:", 1.005], ["down", "b1", 0.3], ["fenced", "b1", 0.5],
        ["action", "actions", 0.2], ["error", "c:writer", 0.51]]) {
      point("pointermove", lane, share(part));
      saw[name] = document.getElementById("tip").hidden ? "" : text("tip");
    }
    saw.cross = document.getElementById("cross").style.display;
    point("pointermove", "actions", share(0.9));
    saw.nothing = document.getElementById("tip").hidden;
    """
    saw = page.look(unclean_run(), steps)
    lanes = ["actions", "control", "b1", "b2", "p:orders-0", "c:writer", "c:reader", "a:orders"]
    assert saw["rows"] == lanes
    assert set(saw["inked"]) >= {*lanes} - {"a:orders"}  # nothing was processed
    assert saw["map"] is True
    assert saw["crowned"] == ["p:orders-0"]
    assert "lost-write, orders-0: 3 records" in saw["findings"]
    assert "orders-0: no writes for 3,900 ms" in saw["findings"]
    assert "3 lost-write that nobody expected" in saw["findings"]
    assert "the application: missed" in saw["findings"]
    assert "process killed" in saw["events"]
    chain = r"UNCLEAN.*because.*broker 1: fenced: no heart.*because.*broker 1: process killed"
    assert re.search(chain, saw["elected"])
    assert "no writes for 3,900 ms" in saw["away"]
    assert "broker 2 elected unclean" in saw["away"]
    assert "ISR {1}, ELR {2}, replicas {1, 2}" in saw["away"]
    assert "broker 1, down (killed), leader: end 8, high watermark 8" in saw["away"]
    assert "broker 1, in sync, fenced: end 6, high watermark 6" in saw["end"]
    assert "broker 2, eligible (ELR), 3 behind: end 5, high watermark 5" in saw["away"]
    assert "broker 1, down (killed), out of sync, 3 not in the leader's log: end 8" in saw["ahead"]
    assert "killed, since +2.000 s until +7.000 s: process killed" in saw["down"]
    assert "leads orders-0" in saw["down"]
    assert "fenced, since +5.000 s" in saw["fenced"]
    assert "process killed" in saw["action"]
    assert "received NOT_LEADER_OR_FOLLOWER for Produce orders-0" in saw["error"]
    assert (saw["cross"], saw["nothing"]) == ("block", True)


def test_timeline__a_follower_of_a_compacted_log_diverges_by_epochs_not_by_where_they_begin(
    page: Page,
) -> None:
    record = unclean_run()
    record.epochs = [
        EpochsRow("orders", 0, 1, 2_500, 0, ((0, 0),)),
        EpochsRow("orders", 0, 2, 7_000, 0, ((0, 0), (1, 5))),
        EpochsRow("orders", 0, 1, 8_010, 0, ((0, 0), (1, 3))),
    ]
    steps = """
    for (const [name, part] of [["ahead", 0.65], ["same", 0.9]]) {
      point("pointermove", "p:", share(part));
      saw[name] = text("tip");
    }
    """
    saw = page.look(record, steps)
    assert "broker 1, down (killed), out of sync, 3 not in the leader's log" in saw["ahead"]
    assert "not in the leader's log" not in saw["same"]


def test_timeline__wheel_drag_and_keys_change_the_view(page: Page) -> None:
    steps = """
    const note = async (name) => { await frames(2); saw[name] = text("span"); };
    await note("whole");
    const [plot, where] = at("p:orders-0", share(0.5));
    plot.dispatchEvent(new WheelEvent("wheel", {...where, deltaY: -120}));
    await note("wheel");
    press("0");
    await note("again");
    point("pointerdown", "p:orders-0", share(0.2));
    point("pointermove", "p:orders-0", share(0.3));
    point("pointermove", "p:orders-0", share(0.4));
    saw.brush = document.getElementById("brush").style.display;
    point("pointerup", "p:orders-0", share(0.4));
    await note("drag");
    while (!location.hash) await frames(1);
    saw.address = location.hash;
    press("ArrowRight");
    await note("pan");
    point("pointerdown", "p:orders-0", 0.5, {shiftKey: true});
    point("pointermove", "p:orders-0", 0.7, {shiftKey: true});
    point("pointerup", "p:orders-0", 0.7, {shiftKey: true});
    await note("pulled");
    document.getElementById("all").click();
    await note("reset");
    """
    saw = page.look(unclean_run(), steps)
    whole = "+0.0 s to +10.0 s (10.0 s)"
    assert saw["whole"] == saw["again"] == saw["reset"] == whole
    assert saw["brush"] == "block"
    first, last = map(int, re.findall(r"\d+", saw["address"]))
    assert [first, last] == pytest.approx([2_000, 4_000], abs=30)
    times = {
        name: [float(x) for x in re.findall(r"\+([\d.]+) s", saw[name])]
        for name in saw
        if isinstance(saw[name], str) and saw[name].startswith("+")
    }
    assert times["wheel"][0] > 0.5
    assert times["wheel"][1] < 9.5
    assert sum(times["wheel"]) / 2 == pytest.approx(5.0, abs=0.2)
    assert times["drag"] == pytest.approx([2.0, 4.0], abs=0.05)
    assert times["pan"] == pytest.approx([2.3, 4.3], abs=0.05)
    assert times["pulled"] == pytest.approx([1.9, 3.9], abs=0.05)


def test_timeline__an_address_with_a_time_opens_there(page: Page) -> None:
    saw = page.look(unclean_run(), 'saw.span = text("span");', "#t=2000-4000")
    assert saw["span"] == "+2.00 s to +4.00 s (2,000 ms)"


def test_timeline__the_selection_is_shown_with_its_chain(page: Page) -> None:
    steps = """
    const items = () => [...document.querySelectorAll("#chosen li")].map((li) => li.textContent);
    const after = async (action) => { action(); await frames(2); };
    await after(() => click("p:orders-0", share(0.15)));
    saw.anomaly = text("chosen");
    saw.chain = items();
    await after(() => press("Escape"));
    saw.closed = document.getElementById("chosen") === null;
    await after(() => document.querySelector(".finding.warn").click());
    saw.window = text("chosen");
    await after(() => press("Escape"));
    await after(() => press("0"));
    await after(() => press("n"));
    saw.next = text("chosen");
    await after(() => press("n"));
    await after(() => press("n"));
    saw.third = items();
    await after(() => press("p"));
    saw.before = items();
    saw.moment = kclusterPage.at - kclusterPage.began;
    """
    saw = page.look(unclean_run(), steps)
    assert "lost-write: orders-0" in saw["anomaly"]
    assert "allowed by unclean.leader.election.enable=true" in saw["anomaly"]
    links = ["+2.000 sbroker 1 was killed", "+5.000 sbroker 2 elected unclean"]
    assert saw["chain"] == links
    assert saw["closed"] is True
    assert "no writes: orders-0" in saw["window"]
    assert "broker 1: broker down" in saw["next"]
    assert [link.split("s", 1)[1] for link in saw["third"]] == [
        "broker 1: process killed; written data survives",
        "broker 1: fenced: no heartbeat for 3000 ms",
        "orders-0: leader 1 -> 2, epoch 1, UNCLEAN: broker 1 registered after an unclean restart"
        " (previous epoch 7); first active replica, out of sync (unclean)",
    ]
    assert saw["before"] == saw["third"][:2]
    assert saw["moment"] == 5_000, "the other views show the moment of what is selected"


@pytest.mark.parametrize(
    ("size", "zoom", "buttons"),
    [
        ((1_366, 768, 1), 1, []),
        ((683, 384, 2), 1, ["Story", "Findings", "Legend"]),
        ((1_366, 768, 1), 2, ["Story", "Findings", "Legend"]),
        ((480, 900, 1), 1, ["Story", "Findings", "Legend"]),
        ((1_920, 1_080, 1), 1, []),
    ],
)
def test_timeline__the_lanes_keep_half_of_any_screen(
    page: Page, size: tuple[int, int, int], zoom: int, buttons: list[str]
) -> None:
    steps = f"""
    document.body.style.zoom = {zoom};
    await frames(4);
    saw.share = shareOfLanes();
    saw.wide = document.documentElement.scrollWidth - innerWidth;
    const all = [...document.querySelectorAll("#tools button[aria-controls]")];
    const offered = all.filter((button) => button.offsetParent);
    saw.offered = offered.map((button) => button.textContent);
    saw.shown = all.map((button) => {{
      if (button.offsetParent) button.click();
      const part = document.getElementById(button.getAttribute("aria-controls"));
      const {{top, bottom}} = part.getBoundingClientRect();
      const box = button.getBoundingClientRect();
      const onTop = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
      if (button.offsetParent && onTop !== button) return "the button is covered";
      return part.checkVisibility() && top >= 0 && bottom <= innerHeight + 1
        && (part.id !== "about" || part.scrollHeight <= part.clientHeight);
    }});
    press("Escape");
    await frames(2);
    saw.again = shareOfLanes();
    saw.closed = offered.every((button) => button.ariaExpanded === "false");
    """
    record = unclean_run()
    record.info.story = "A leader dies with records that no other replica has. " * 9
    saw = page.look(record, steps, size=size)
    assert saw["offered"] == buttons
    assert saw["share"] >= 0.5
    assert saw["shown"] == [True, True, True]
    assert saw["wide"] <= 0
    assert (saw["again"], saw["closed"]) == (saw["share"], True)


def test_timeline__an_open_panel_stays_while_the_window_changes(page: Page) -> None:
    steps = """
    const button = document.getElementById("legend-button");
    const resize = async (width, height) => {
      Object.assign(document.body.style, {width, height});
      await frames(4);
      return [button.checkVisibility(), button.ariaExpanded, shareOfLanes() >= 0.5];
    };
    saw.small = await resize("683px", "384px");
    button.click();
    saw.smaller = await resize("640px", "380px");
    saw.large = await resize("", "");
    """
    saw = page.look(unclean_run(), steps)
    assert saw["small"] == [True, "false", True]
    assert saw["smaller"] == [True, "true", True]
    assert saw["large"] == [False, "false", True]


def test_timeline__a_selection_opens_the_panel_that_shows_it(page: Page) -> None:
    steps = """
    const side = document.getElementById("side");
    saw.before = side.checkVisibility();
    press("n");
    await frames(2);
    saw.selected = side.checkVisibility() && text("chosen");
    press("Escape");
    await frames(2);
    saw.after = side.checkVisibility();
    """
    saw = page.look(unclean_run(), steps, size=(683, 384, 2))
    assert "process killed" in saw["selected"]
    assert (saw["before"], saw["after"]) == (False, False)


def test_timeline__a_tooltip_goes_when_the_view_moves_below_it(page: Page) -> None:
    steps = """
    const hover = () => point("pointermove", "p:orders-0", share(0.5));
    const shown = () => !document.getElementById("tip").hidden;
    saw.hovered = [];
    saw.left = [];
    for (const key of ["+", "ArrowRight", "-", "0"]) {
      hover();
      saw.hovered.push(shown());
      press(key);
      saw.left.push(shown());
    }
    press("0");
    hover();
    const [plot, where] = at("p:orders-0", share(0.5));
    plot.dispatchEvent(new WheelEvent("wheel", {...where, deltaY: -120}));
    saw.wheel = shown();
    """
    saw = page.look(unclean_run(), steps)
    assert (saw["hovered"], saw["left"]) == ([True] * 4, [False] * 4)
    assert saw["wheel"] is True


def test_timeline__nothing_in_a_run_is_html(page: Page) -> None:
    steps = """
    point("pointermove", "p:", share(0.5));
    saw.tip = text("tip");
    saw.head = text("title") + text("about");
    press("n");
    await frames(2);
    document.querySelectorAll(".finding").forEach((card) => card.click());
    await frames(3);
    saw.images = document.images.length;
    saw.hostile = window.hostile ?? null;
    """
    saw = page.look(unclean_run(HOSTILE, topic=HOSTILE), steps)
    assert saw["hostile"] is None
    assert saw["images"] == 0
    assert HOSTILE in saw["head"]
    assert HOSTILE in saw["tip"]


def test_timeline__of_a_thousand_partitions_those_that_changed_are_shown(page: Page) -> None:
    steps = """
    const partitions = () => rows().filter((lane) => lane.startsWith("p:")).length;
    saw.few = partitions();
    saw.offered = text("with-quiet");
    document.getElementById("quiet").click();
    await frames(2);
    saw.all = partitions();
    const filter = document.getElementById("filter");
    filter.value = "MANY-77";
    filter.dispatchEvent(new Event("input"));
    await frames(3);
    saw.named = partitions();
    saw.large = [...document.querySelectorAll(".row canvas")]
      .filter((canvas) => canvas.width > 300).length;
    """
    saw = page.look(crowded_run(1_000), steps)
    assert (saw["few"], saw["all"], saw["named"]) == (10, 1_000, 11)
    assert saw["offered"].strip() == "unchanged (990)"
    assert saw["large"] < 60  # what is not in sight has no canvas of its size
