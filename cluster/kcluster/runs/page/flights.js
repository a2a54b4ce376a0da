// @ts-check
// Records, fetches and acks that move between the elements that stand for clients and brokers.

import { byId } from "./dom.js";

/** @import { Model, Partition } from "./model.js" */
/** @import { Page } from "./page.js" */
/** @import { Flight } from "./types.js" */

const FLIGHT_MS = 450;
const MAX_FLIGHTS = 24;
/** The longest step of time that is seen as a motion. */
const MAX_SPAN_MS = 2000;
/** The views with elements to fly between. */
const VIEWS = ["partition", "cluster"];
const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
const lastFlight = new Map();
let flying = 0;

/**
 * The flights of one partition in (from, to]: [from element, to element, kind, words].
 *
 * @param {Model} model
 * @param {Partition} partition
 * @param {number} from
 * @param {number} to
 * @returns {Flight[]}
 */
function flightsOf(model, partition, from, to) {
  /** @type {Flight[]} */
  const found = [];
  for (let i = partition.appends.length - 1; i >= 0 && partition.appends[i].at > from; i--) {
    const batch = partition.appends[i];
    if (batch.at > to) continue;
    for (const broker of batch.isr) {
      if (broker !== batch.broker) found.push([`b${batch.broker}`, `b${broker}`, "copy", ""]);
    }
  }
  for (const client of model.clients.values()) {
    const rows = client.exchanges;
    for (let i = rows.length - 1, tries = 0; i >= 0 && tries < 60; i--, tries++) {
      const row = rows[i],
        over = row.answered_ms;
      if (over <= from || over > to) continue;
      if (row.topic !== partition.topic || row.partition !== partition.number) continue;
      const here = `c${client.name}`,
        there = `b${row.broker}`;
      if (row.error) found.push([here, there, "refused", row.error]);
      else if (row.api === "Produce") found.push([here, there, "send", ""]);
      else if (row.api === "Fetch" && row.last >= row.first && row.first >= 0)
        found.push([there, here, "read", ""]);
    }
  }
  return found;
}

/**
 * What a view drew last.
 *
 * @type {{ at: number, partition: Partition | null, view: string }}
 */
let drawn = { at: 0, partition: null, view: "" };

/**
 * Let fly what moved since the view was drawn before.
 *
 * @param {Page} page
 */
export function drawFlights({ at, view, model, shownPartition: partition }) {
  const isNext = drawn.partition === partition && drawn.view === view;
  const isSoon = at > drawn.at && at - drawn.at < MAX_SPAN_MS;
  if (partition && isNext && isSoon && VIEWS.includes(view))
    fly(flightsOf(model, partition, drawn.at, at));
  drawn = { at, partition, view };
}

/** @param {Flight[]} flights */
function fly(flights) {
  if (reducedMotion.matches || document.hidden) return;
  for (const [from, to, kind, words] of flights) {
    const key = `${from} ${to} ${kind}`,
      now = performance.now();
    if (flying >= MAX_FLIGHTS || now - (lastFlight.get(key) ?? -1e9) < FLIGHT_MS / 2) continue;
    const start = edgeOf(from),
      end = edgeOf(to);
    if (!start || !end) continue;
    lastFlight.set(key, now);
    flying += 1;
    const dot = document.createElement("div");
    dot.className = `flight ${kind}`;
    dot.setAttribute("aria-hidden", "true");
    dot.textContent = words;
    byId("flights").append(dot);
    const at = (/** @type {{ x: number, y: number }} */ { x, y }) => ({
      transform: `translate(${x}px, ${y}px)`,
    });
    const path = kind === "refused" ? [at(start), at(end), at(start)] : [at(start), at(end)];
    const motion = dot.animate(path, {
      duration: kind === "refused" ? 2 * FLIGHT_MS : FLIGHT_MS,
      easing: "ease-in-out",
    });
    motion.onfinish = motion.oncancel = () => {
      flying -= 1;
      dot.remove();
    };
  }
  if (lastFlight.size > 500) lastFlight.clear();
}

/**
 * @param {string} name
 * @returns {{ x: number, y: number } | null}
 */
function edgeOf(name) {
  const found = document.querySelector(`#view [data-flight="${CSS.escape(name)}"]`);
  if (!found) return null;
  const box = found.getBoundingClientRect(),
    shown = byId("view").getBoundingClientRect();
  if (box.top < shown.top || box.bottom > shown.bottom) return null;
  return { x: box.left + 5, y: box.top + box.height / 2 };
}
