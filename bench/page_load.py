"""The live page under load in Chromium: frames, long tasks, and the CPU time of a frame.

Owns: the loads, as rows that the page's stream would carry, and the measurement of one view.
Never: starts a browser (bench/clients/page.py and tests/runs/page/ do), runs a cluster.

A script beside the page adds rows as ten readings of a cluster in a second would.  The CPU time of
a frame is that of the page's main thread: script, styles, layout, and the record of what is to be
painted.  Other processes of the machine change it little; frames per second depend on them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from playwright.sync_api import Page

READING_MS: Final = 100


class PageLoad(Struct, frozen=True):
    """A cluster as the page sees it: `partitions` with three replicas each, spread over
    `brokers`, and records that are a batch each."""

    brokers: int
    partitions: int
    records_per_s: int


SMALL: Final = PageLoad(3, 1, 1_000)
LARGE: Final = PageLoad(50, 1_000, 5_000)


class Watched(Struct, frozen=True):
    """A view that was watched for some time.  `long_ms`: the time in tasks above 50 ms, in which
    the page reacts to nothing; `elements`: of the document."""

    frames_per_s: float
    long_ms: float
    elements: int


def feed(load: PageLoad) -> str:
    """A script that starts the cluster of a load on an empty page, and defines `feed(count)`: the
    rows of READING_MS with `count` records, and `page`."""
    return (
        f"const load = {json.dumps({x: getattr(load, x) for x in load.__struct_fields__})};{_FEED}"
    )


_FEED: Final = """
const page = kclusterPage;
await page.ready;
page.time.isComplete = page.model.isWhole = false;
const {brokers, partitions} = load, CONTROLLER = 3000;
const replicasOf = (i) => [0, 1, 2].map((k) => 1 + (i + k) % brokers);
const numbers = [...Array(partitions).keys()], ids = [...Array(brokers).keys()].map((i) => i + 1);
page.rows({
  notes: [{id: [-1, 0], at_ms: 0, subject: "controller", text: "elected", cause: null,
    event: {kind: "controller_elected", leader: CONTROLLER, epoch: 1}},
    ...ids.map((id) => ({id: [-1, id], at_ms: 0, subject: `broker ${id}`,
      text: "process started", cause: null, event: {kind: "broker_started", broker: id}}))],
  leaders: numbers.map((i) => ({topic: "t", partition: i, at_ms: 0, leader: replicasOf(i)[0],
    leader_epoch: 0, isr: replicasOf(i), elr: [], replicas: replicasOf(i)})),
  epochs: numbers.flatMap((i) => replicasOf(i).map((broker) => ({topic: "t", partition: i, broker,
    at_ms: 0, start_offset: 0, epochs: [[0, 0]]}))),
}, 0);
page.now();
const ends = new Float64Array(partitions);
let next = 0, at = 0, number = 0;
const call = (source, destination, api, sent_ms, took_ms, parts) => [false, true].map((is_answer) =>
  ({source: is_answer ? destination : source, destination: is_answer ? source : destination,
    number, is_answer, api, sent_us: 1000 * (is_answer ? sent_ms + took_ms : sent_ms),
    arrives_us: 1000 * (is_answer ? sent_ms + took_ms : sent_ms), parts: is_answer ? parts : []}));
const feed = (count) => {
  at += 100;
  const appends = [], moves = [], exchanges = [], messages = [], sessions = [];
  const began = at - 100, apart = 100 / count;
  for (let k = 0; k < count; k++) {
    const i = next++ % partitions, [leader, ...others] = replicasOf(i), offset = ends[i]++;
    const where = {topic: "t", partition: i, at_ms: began + Math.floor(apart * k)};
    appends.push({...where, broker: leader, epoch: 0, base_offset: offset, last_offset: offset,
      client: "c", isr: [leader, ...others]});
    for (const broker of [leader, ...others]) moves.push({...where, broker,
      log_end_offset: offset + 1, high_watermark: offset, last_stable_offset: offset});
    const asked = {...where, broker: leader, asked_ms: where.at_ms - 3,
      answered_ms: where.at_ms, partitions: 1, error: "", leader: -1, leader_epoch: -1};
    exchanges.push({...asked, client: `p${k % 7}`, api: "Produce", first: offset, last: offset});
    if (k % 5 === 0) exchanges.push({...asked, client: `r${k % 3}`, api: "Fetch", first: offset - 5,
      last: offset - 1});
  }
  // At most 150 requests are shown between two readings (evidence/watching.py).
  for (let k = 0; k < Math.min(75, 8 * brokers); k++) {
    const i = (next + k) % partitions, [leader, ...others] = replicasOf(i), end = ends[i];
    for (const follower of others) {
      number++;
      const parts = [["t", i, end - 1, end - 1, end - 1]];
      messages.push(...call(follower, leader, "Fetch", began + k, 2, parts));
    }
  }
  for (const id of at % 2000 ? [] : ids) {
    number++;
    messages.push(...call(id, CONTROLLER, "BrokerHeartbeat", at, 0, []));
    sessions.push({at_ms: at, broker: id, expires_ms: at + 9000});
  }
  page.rows({appends, moves, exchanges, messages, sessions}, at);
};
"""

_WATCH: Final = """
let longs = 0, frames = 0, isOver = false;
const observer = new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) longs += entry.duration;
});
observer.observe({type: "longtask"});
const began = performance.now();
const tick = () => {
  frames += 1;
  if (!isOver) requestAnimationFrame(tick);
};
requestAnimationFrame(tick);
while (performance.now() < began + watched_ms) {
  feed(load.records_per_s / 10);
  await new Promise((done) => setTimeout(done, 100));
}
isOver = true;
return {frames_per_s: 1000 * frames / (performance.now() - began), long_ms: longs,
  elements: document.querySelectorAll("body *").length};
"""

_DRAW: Final = """
for (let i = 0; i < count; i++) {
  if (i % 6 === 0) feed(load.records_per_s / 10);
  await new Promise((done) => requestAnimationFrame(done));
}
"""


def watch(page: Page, load: PageLoad, view: str, seconds: float) -> Watched:
    """Watch a view of a page (kcluster.runs.page.document) that carries an empty run, in real
    time."""
    _show(page, load, view)
    found = page.evaluate(f"(async () => {{ const watched_ms = {1000 * seconds}; {_WATCH} }})()")
    return Watched(**found)


def frame_cpu_ms(page: Page, load: PageLoad, view: str, frames: int = 120) -> float:
    """The CPU time of a frame at 60 frames per second: every sixth has the rows of READING_MS,
    however long frames take."""
    _show(page, load, view)
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def cpu_s() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return float(next(x["value"] for x in metrics if x["name"] == "TaskDuration"))

    before_s = cpu_s()
    page.evaluate(f"(async () => {{ const count = {frames}; {_DRAW} }})()")
    took_s = cpu_s() - before_s
    session.detach()
    return 1000 * took_s / frames


def _show(page: Page, load: PageLoad, view: str) -> None:
    """Show a view of the cluster after two seconds of its load, its code compiled."""
    page.evaluate(
        f"""(async () => {{ {feed(load)}
        Object.assign(window, {{load, feed}});
        page.show("{view}");
        await page.ready;
        const count = 120; {_DRAW}
        }})()"""
    )
